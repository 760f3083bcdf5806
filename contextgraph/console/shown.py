"""What was shown, in words, and the command that switches each item of it off."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from contextgraph.advising.wording import is_fact_id
from contextgraph.agents.hook import headline, headlines
from contextgraph.knowledge.recall import without_secret
from contextgraph.model import Exposure, ShownItem
from contextgraph.store.memory_store import Store
from contextgraph.trace import describe_remedy
from contextgraph.trace.advice import describe_pattern, is_advice_id

# The decision that switches an item off or on, and the arguments of its command before the id.
_ADVICE = (
    ("quarantine", "call quarantine identity="),
    ("release", "call release identity="),
)
_LESSON = (("reject", "lessons --reject "), ("undo", "lessons --undo "))
_NOTE = (
    ("archive", "call notes_change archive="),
    ("restore", "call notes_change restore="),
)


class Switch(Struct, frozen=True):
    """The *command* that switches an item off, or on again where it *is_off*.

    *words* are those of the item; *page* and *decision* are its page of the console and the button.
    """

    words: str
    is_off: bool
    page: str
    decision: str
    command: str


def texts_of(store: Store, shown: Sequence[Exposure]) -> Mapping[str, str]:
    """Return for each item of what was *shown*, by its id, what it says."""
    items = [item for exposure in shown for item in exposure.items]
    ids = [item.id for item in items]
    texts = {
        item.id: "; ".join(filter(None, map(describe_pattern, item.patterns))) for item in items
    }
    notes = map(without_secret, store.notes.get(ids).values())
    texts |= {note.id: note.content for note in notes}
    texts |= {item.id: item.strategy for item in store.methodologies.get(ids)}
    for recovery in store.recoveries.of_fragments(ids):
        texts[recovery.fragment_id] = describe_remedy(recovery.actions)
    unknown = [id_ for id_, text in texts.items() if not text]
    runs = store.runs.trajectories(unknown).values()
    texts |= {run.id: f"a similar task: {run.title}" for run in runs}
    for exposure in sorted(shown, key=lambda one: one.shown_at):
        lines = headlines(exposure.text, len(exposure.items))
        is_line_each = len(lines) == len(exposure.items)
        # What was read, where it is known which line an item is; the newest words of an item.
        is_known = is_line_each and (len(lines) == 1 or exposure.moment == "start")
        for place, item in enumerate(exposure.items):
            if is_known or not texts[item.id]:
                texts[item.id] = lines[place] if is_line_each else "; ".join(lines)
    return texts


def switched_off(store: Store, items: Collection[ShownItem]) -> set[str]:
    """Return the advice of *items* that a person has switched off."""
    verdicts = store.exposures.record([item.advice for item in items]).verdicts
    notes = store.notes.get([item.id for item in items]).values()
    off = {one.advice for one in verdicts if one.is_quarantined}
    return off | {note.id for note in notes if note.archived_at}


def switch_of(item: ShownItem, text: str, off: Collection[str]) -> Switch | None:
    """Return the switch of an *item* with this *text*; None for a past task, which has none."""
    if is_advice_id(item.advice) or is_fact_id(item.advice):
        page, ways = "advice", _ADVICE
    elif item.advice.startswith("lesson_"):
        page, ways = "notes", _LESSON
    elif item.advice.startswith("note_"):
        page, ways = "notes", _NOTE
    else:
        return None
    is_off = item.advice in off
    decision, arguments = ways[is_off]
    command = f"contextgraph {arguments}{item.advice}"
    return Switch(headline(text), is_off, page, decision, command)
