"""Search by people: what is recalled, past runs and remedies, each with what opens it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from shlex import quote
from typing import TypeAlias

from contextgraph.knowledge.notes import Notes, places_of, repo_name
from contextgraph.knowledge.recall import ALWAYS, MOST_WORDS, Period
from contextgraph.model import (
    Found,
    LinkType,
    Note,
    NoteKind,
    NoteScope,
    Outcome,
    RunFilter,
    Scope,
    Strategy,
    Trajectory,
    is_subagent,
    run_text,
)
from contextgraph.ports import Store
from contextgraph.text import cut, number_of, stems, words as words_of
from contextgraph.trace import describe_remedy
from contextgraph.values import replace

_PROPOSED, _SESSIONS, _TEXT, _TITLE, _FILES = 60, 20, 300, 120, 3
# More of one session would hide the others; of what is new, and of passages, each stands once.
_OF_SESSION, _ONCE, _OF_A_TIME = 3, 1, 1_000
_PASSAGES, _RUNS = ("said", "reply"), ("task", "session")
_AT_STEP = " --step "

_Described: TypeAlias = tuple[Note, str, str, str]


def search(
    store: Store,
    notes: Notes,
    question: str,
    *,
    repo: str | None = None,
    limit: int = 10,
    strategy: Strategy = Strategy.HYBRID,
    period: Period = ALWAYS,
) -> tuple[Found, ...]:
    """Return what *store* has about *question*, best first: see `AgentMemory.search`."""
    scope = NoteScope(places_of(repo), strategy.kinds)
    is_graph = strategy is Strategy.GRAPH
    others = {} if is_graph else dict(_others(store, question, repo, limit, period))
    candidates = [note for note, *_ in others.values()]
    recalled = notes.answers(question, scope, strategy, candidates, period)
    is_new = bool(recalled) and recalled[0].why.keys() == {"recency"}
    listed = {command for _, kind, _, command in others.values() if kind in _RUNS}
    of_session: Counter[str] = Counter()
    shown: list[Found] = []
    for one in recalled:
        if len(shown) == limit:
            break
        _, kind, text, command = others.get(one.note.id) or _described(store, one.note)
        if any((kind, text, one.note.repo) == (it.kind, it.text, it.repo) for it in shown):
            continue
        opened = command.partition(_AT_STEP)[0]
        if is_new and kind not in _RUNS and opened in listed:
            continue  # its session stands for it
        is_passage = kind in _PASSAGES
        session = opened if is_new else f"{'passage' if is_passage else kind} {opened}"
        of_session[session] += 1
        if of_session[session] <= (_ONCE if is_new or is_passage else _OF_SESSION):
            why = {name: round(value, 4) for name, value in one.why.items()}
            score, note = round(one.score, 4), one.note
            probability = 1.0 if is_new else round(one.probability, 4)
            found = Found(kind, note.id, text, note.repo, note.created_at, score, command, why)
            shown.append(replace(found, probability=probability))
    return tuple(shown)


def _others(
    store: Store, question: str, repo: str | None, limit: int, period: Period
) -> Iterator[tuple[str, _Described]]:
    """Id -> runs and remedies in the form of notes.

    They are found by whole words; the newest runs are among them.
    """
    terms, scope = [*dict.fromkeys(words_of(question))][:MOST_WORDS], Scope(repo)
    # Those of a time are among the newest since it began.
    most = limit if period == ALWAYS else _OF_A_TIME
    newest = store.runs.listed(RunFilter(repo=repo, since=period.since), most)
    proposed = {run.id: run for run in (*newest, *store.runs.for_text(terms, scope, _PROPOSED))}
    for run, sub_agents in _sessions(store, proposed.values()):
        outcome = "" if run.outcome is Outcome.UNKNOWN else f"{run.outcome}, "
        changed = f"changed {', '.join(run.files[:_FILES])}" if run.files else "no task"
        title = cut(" ".join(run.task.split()) or changed, _TITLE)
        said = "\n".join(map(run_text, (run, *sub_agents)))
        note = Note(run.id, said, repo_name(run.repo), run.agent, run.seen_at)
        kind, title = (
            "task" if run.files else "session",
            f"{title} ({outcome}{number_of(run.total_steps, 'step')})",
        )
        yield run.id, (note, kind, title, _opening(run))
    yield from _passages(store, question, repo)
    for recovery in store.recoveries.for_text(terms, scope, _PROPOSED):
        id_, repo_ = f"{recovery.fragment_id}#{recovery.error_step}", repo_name(recovery.repo)
        title = f"{recovery.error_type}: {describe_remedy(recovery.actions)}"[:_TEXT]
        note = Note(id_, f"{recovery.message} {title}", repo_, "", recovery.seen_at)
        yield (
            id_,
            (note, "remedy", title, f"contextgraph call explain identity={recovery.fragment_id}"),
        )


def _sessions(
    store: Store, found: Iterable[Trajectory]
) -> Iterator[tuple[Trajectory, list[Trajectory]]]:
    """Yield each run that was *found*, with its sub-agents that were, also where it was not.

    A sub-agent whose session is not stored stands for itself.
    """
    sub_agents: dict[str, list[Trajectory]] = {}
    runs: dict[str, Trajectory] = {}
    for run in found:
        of = run
        if is_subagent(run.agent):
            ids = store.runs.ids(repo=run.repo, instance=run.instance_id) if run.instance_id else []
            same = store.runs.trajectories(ids).values()
            # Of several attempts at one task nothing says which began it.
            sessions = [one for one in same if not is_subagent(one.agent)]
            of = sessions[0] if len(sessions) == 1 else run
            sub_agents.setdefault(of.id, []).extend([run] if of is not run else ())
        runs.setdefault(of.id, of)
    for id_, run in runs.items():
        yield run, sub_agents.get(id_, [])


def _passages(store: Store, question: str, repo: str | None) -> Iterator[tuple[str, _Described]]:
    """Id -> the passages of past sessions that share words with *question*, as notes."""
    asked = {*stems(question)}
    scope = NoteScope(places_of(repo), (NoteKind.SESSION,))
    for session in store.notes.for_text([*asked][:MOST_WORDS], scope, _SESSIONS):
        run = store.runs.trajectories(session.targets(LinkType.SAID_IN)[:1]).values()
        for number, line in enumerate(session.content.splitlines()):
            step, speaker, said = line.split(" ", 2)
            if asked.isdisjoint(stems(said)):
                continue
            source = f"{session.source}:{speaker}"
            note = Note(f"{session.id}#{number}", said, session.repo, source, session.created_at)
            command = next((_opening(one, int(step)) for one in run), "")
            text = f"{speaker} {session.created_at:%Y-%m-%d}: {said}"
            yield note.id, (note, "reply" if speaker == "agent" else "said", text, command)


def _opening(run: Trajectory, step: int = -1) -> str:
    """The command that shows a run, or a *step* of it: from its file, where that is still there."""
    path = run.source.rpartition(":")[0] if ":" in run.source else run.source
    for file in filter(None, (run.source, path)):
        if Path(file).is_file():
            at = f"{_AT_STEP}{min(step, run.total_steps - 1)}" if step >= 0 else ""
            return f"contextgraph inspect {quote(file)} --instance {quote(run.instance_id)}{at}"
    return f"contextgraph call explain identity={run.id}"


def _described(store: Store, note: Note) -> _Described:
    """*note* with its kind, its text in a list and the command that opens it."""
    text = "[confidential]" if note.security.is_secret else " ".join(note.content.split())[:_TEXT]
    command = f"contextgraph call explain identity={note.id}"
    if note.kind is NoteKind.KEYED:
        command = f"cat {quote(note.locator)}"
    elif note.kind is NoteKind.ENTITY:
        text = ": ".join(filter(None, (note.title, note.summary, text)))
    elif note.kind is NoteKind.PAGE:
        text, command = (
            note.title or text,
            f"contextgraph call pages_get page_id={quote(note.id[5:])}",
        )
    elif note.lesson is not None:
        for run in store.runs.trajectories(note.targets(LinkType.SAID_IN)[:1]).values():
            command = _opening(run, int(note.locator.rpartition("#")[2]))
        if note.summary and len(text) < 60:
            text = f"{text} (asked: {' '.join(note.summary.split())})"[:_TEXT]
        text = f"{note.lesson.kind} {note.created_at:%Y-%m-%d}: {text}"
    return note, note.kind.value, text, command
