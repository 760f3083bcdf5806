"""How an edit that was refused came to be accepted."""

import re
from collections.abc import Sequence

from contextgraph.trace.edits import Span, edited_file, likeness, new_lines
from contextgraph.trace.steps import StepTrace
from contextgraph.trace.wording import code, files_of, lines_said

_NAME = re.compile(r"undefined name ['\"`]?([A-Za-z_][\w.]*)")
_WORD = re.compile(r"\w+")
# What stands before a name that a line makes known: imports, definitions, loops, parameters.
_INTRODUCING = re.compile(
    r"\s*(?:(?:from\s*\S+\s+)?import\b|(?:async\s+)?(?:def|class)\s+\Z"
    r"|(?:async\s+)?def\s+\w+\(|(?:with|for|except)\b)"
)
_ASSIGNED = re.compile(r"\s*(?::[^=]*)?=[^=]")
_LINE_READ = 500


def acceptance_said(failed: StepTrace, accepted: StepTrace, before: Sequence[StepTrace]) -> str:
    """What made the difference between two edits, given those accepted in between."""
    return (
        _definition_said(failed, accepted, before)
        or _placing_said(failed, accepted)
        or _text_said(failed, accepted)
    )


def _definition_said(failed: StepTrace, accepted: StepTrace, before: Sequence[StepTrace]) -> str:
    """How a name that was undefined got its definition; empty where that was not the trouble."""
    match = _NAME.search(failed.error.message) if failed.error else None
    if match is None:
        return ""
    name, defined = code(match[1]), match[1].partition(".")[0]
    for step in before:
        if line := _defining(new_lines(step), defined):
            where = files_of([edited_file(step)])
            return f"{name} was undefined: added {code(line)} to {where} first, then edited again"
    known = {line.strip() for line in new_lines(failed)}
    added = [line for line in new_lines(accepted) if line.strip() not in known]
    if line := _defining(added, defined):
        return f"{name} was undefined: put {code(line)} into the edit itself"
    if _is_used(match[1], failed) and not _is_used(match[1], accepted):
        return f"{name} was undefined: did without it, {_text_said(failed, accepted)}"
    return ""


def _defining(lines: Sequence[str], name: str) -> str:
    """The first of *lines* that makes *name* known; empty where none does."""
    return next((line for line in lines if name in line and _defines(line[:_LINE_READ], name)), "")


def _defines(line: str, name: str) -> bool:
    for word in _WORD.finditer(line):
        if word.group() == name:
            start, end = word.span()
            if _INTRODUCING.match(line, 0, start):
                return True
            if _ASSIGNED.match(line, end) and not line[:start].strip():
                return True
    return False


def _is_used(name: str, step: StepTrace) -> bool:
    lines = [line[:_LINE_READ] for line in new_lines(step) if name in line]
    return bool(lines) and re.search(rf"\b{re.escape(name)}\b", "\n".join(lines)) is not None


def _placing_said(failed: StepTrace, accepted: StepTrace) -> str:
    """How the same text was placed otherwise; empty where the text itself was changed."""
    old, new = _told(failed), _told(accepted)
    if [line.strip() for line in old] != [line.strip() for line in new]:
        return ""
    file = edited_file(accepted)
    if edited_file(failed) != file:
        return f"sent the same text to {files_of([file])}: another file had been open"
    was_head, head = (step.step.action.text.split("\n", 1)[0] for step in (failed, accepted))
    if was_head.split() != head.split() and file in was_head:
        return f"left out the file, which has to be open: {code(head)} instead of {code(was_head)}"
    was, now = failed.reading.span, accepted.reading.span
    if was is not None and now is not None and was != now:
        return _range_said(was, now)
    if old != new:
        pairs = zip(old, new, strict=True)
        line = next(after for before, after in pairs if before != after)
        return f"indented the same text by {len(line) - len(line.lstrip())}: {code(line)}"
    return "sent the same edit again and it was accepted"


def _told(step: StepTrace) -> list[str]:
    return [line.rstrip() for line in new_lines(step) if line.strip()]


def _range_said(was: Span, now: Span) -> str:
    said = f"sent the same text for lines {now[0]}:{now[1]} instead of {was[0]}:{was[1]}"
    if now[0] <= was[0] and was[1] < now[1]:
        return f"{said}, so that nothing of the old statement is left over"
    if was[0] <= now[0] and now[1] < was[1]:
        return f"{said}, so that the lines around it stay"
    return said


def _text_said(failed: StepTrace, accepted: StepTrace) -> str:
    """What differs between the text that was refused and the one that was accepted."""
    old, new = _told(failed), _told(accepted)
    if not new:
        return _with_range("deleted the lines instead", failed, accepted)
    if likeness(old, new) == 0.0:
        return _with_range(f"wrote {lines_said(new)} there instead", failed, accepted)
    kept = {line.strip() for line in old} & {line.strip() for line in new}
    come = [line for line in new if line.strip() not in kept]
    gone = [line for line in old if line.strip() not in kept]
    named = failed.error.keywords if failed.error else ()
    parts = [f"with {lines_said(come, named)}"] if come else []
    parts += [f"without {lines_said(gone, named)}"] if gone else []
    said = " and ".join(parts) or "in another order or indentation"
    return _with_range(f"sent the text again {said}", failed, accepted)


def _with_range(said: str, failed: StepTrace, accepted: StepTrace) -> str:
    was, now = failed.reading.span, accepted.reading.span
    if was is None or now is None or was == now:
        return said
    return f"{said}, for lines {now[0]}:{now[1]} instead of {was[0]}:{was[1]}"
