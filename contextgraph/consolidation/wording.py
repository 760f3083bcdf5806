"""Who worded a methodology, from which facts, and whether that still holds.

A model's words stand below what was counted, in lines of their own: the counts change with every
run, the words only with what the runs did. `Methodology.made_by` names the template, or the model,
the version of its prompt and a fingerprint of what it was told; where a model had nothing to say,
the template and, in brackets, why.
"""

import re
from dataclasses import replace
from hashlib import blake2b
from typing import TypeAlias

from contextgraph.model import Group, Methodology, MethodologyStatus, Words, counted
from contextgraph.ports import Editor

GroupEditor: TypeAlias = Editor[Group, Words]

_COUNTS = re.compile(r" \(\d+ of \d+ runs[^)]*\)\.?| \d+ of them solved (?:its|their) task\.$")
_WAITS = " (waits for {})"
_UNUSABLE = " ({}: unusable answer)"


def with_words_of(before: Methodology | None, now: Methodology) -> Methodology:
    """*now*, as *before* was worded, where what it says is still the same."""
    if before is None or fingerprint(now) not in before.made_by:
        return now
    _, _, words = before.strategy.partition("\n")
    if not words:
        _, bracket, why = before.made_by.partition(" (")
        return replace(now, made_by=f"{now.made_by}{bracket}{why}")
    return replace(
        now,
        situation=before.situation,
        strategy=f"{counted(now.strategy)}\n{words}",
        made_by=before.made_by,
    )


def is_to_word(methodology: Methodology, editor: GroupEditor) -> bool:
    """True where *editor* was not asked about it, or not about what it says now."""
    return methodology.status is not MethodologyStatus.RETIRED and _mark(
        methodology, editor
    ) not in _answered(methodology.made_by)


def worded(methodology: Methodology, words: Words, editor: GroupEditor) -> Methodology:
    """*methodology* in the *words* of *editor*, below what was counted."""
    said = [counted(methodology.strategy), f"How: {words.strategy}"]
    if words.not_when:
        said.append(f"Not when: {words.not_when}")
    return replace(
        methodology,
        situation=words.situation,
        strategy="\n".join(said),
        made_by=_mark(methodology, editor),
    )


def unworded(methodology: Methodology, editor: GroupEditor) -> Methodology:
    """*methodology* as it is, of which *editor* said nothing usable."""
    reason = _UNUSABLE.format(_mark(methodology, editor))
    return replace(methodology, made_by=f"{_maker(methodology)}{reason}")


def waiting(methodology: Methodology, editor: GroupEditor) -> Methodology:
    """*methodology* as it is, to be worded once *editor* answers."""
    reason = _WAITS.format(_mark(methodology, editor))
    return replace(methodology, made_by=f"{_maker(methodology)}{reason}")


def fingerprint(methodology: Methodology) -> str:
    """The same while it is about the same, and counts the same remedies in the same order."""
    told = f"{methodology.id}\n{_COUNTS.sub('', counted(methodology.strategy))}"
    return blake2b(told.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _mark(methodology: Methodology, editor: GroupEditor) -> str:
    return f"{editor.name} {fingerprint(methodology)}"


def _answered(made_by: str) -> str:
    """*made_by*, "" where it only says that someone will be asked."""
    return "" if _WAITS.partition("{")[0] in made_by else made_by


def _maker(methodology: Methodology) -> str:
    """Who made it, without what became of asking a model."""
    return methodology.made_by.partition(" (")[0]
