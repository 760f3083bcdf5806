"""Runs as pages that need no network and no scripts, for files and for the service."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from contextgraph.errors import SettingsError
from contextgraph.text import (
    number_of,
    one_line,
    plain,
)

if TYPE_CHECKING:
    from contextgraph.learning import Inspection
    from contextgraph.model import Fragment, LoopInfo
    from contextgraph.trace import Recovery, StepTrace

_SUMMARY_WIDTH = 140
_PHASE_COLOURS = {
    "understanding": "#8ecae6",
    "locating": "#219ebc",
    "reproducing": "#ffb703",
    "fixing": "#fb8500",
    "testing": "#90be6d",
    "submitting": "#577590",
}
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff }
h2 { font-size: 1.15rem }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f5f5f5; padding: .6rem;
  font-size: 13px; margin: .3rem 0 }
summary { cursor: pointer; overflow-wrap: anywhere }
summary code { font-size: 13px }
.timeline { display: flex; height: 2.2rem; gap: 1px; margin: .8rem 0 }
.timeline a { flex: 1; min-width: 2px; border-bottom: .5rem solid transparent }
.timeline a.error { border-bottom-color: #d00000 }
.timeline a.recovery { border-bottom-color: #2a9d2a }
.timeline a.loop { border-top: .4rem solid #9d4edd }
.legend span { display: inline-block; margin-right: 1rem }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem }
.step { border-left: .35rem solid #ccc; padding-left: .6rem; margin: .15rem 0 }
.is-error { color: #b00000 } .is-recovery { color: #1d7a1d } .is-loop { color: #7b2cbf }
.facts, .source { color: #555 } .added { color: #1d7a1d } .removed { color: #b00000 }
.hunk { color: #0055aa }
"""


def write_page(path: Path, inspections: "Iterable[Inspection]") -> int:
    """Write a page of all *inspections* to the file *path*; how many there are.

    Raises `SettingsError` where it cannot be written.
    """
    runs = 0

    def body() -> Iterator[str]:
        nonlocal runs
        for runs, inspection in enumerate(inspections, start=1):
            yield from run_parts(inspection, runs)

    write_html(path, phase_styles(), body())
    return runs


def document(title: str, style: str, body: Iterable[str]) -> Iterator[str]:
    """A page of the parts *body*, with *style* after the common one."""
    yield _head(title, style)
    yield from body
    yield "</body></html>\n"


def write_html(path: Path, style: str, body: Iterable[str]) -> None:
    """Write a page of the parts *body* to the file *path*, with *style* after the common one.

    Raises `SettingsError` where it cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", errors="replace") as file:
            file.writelines(document(path.stem, style, body))
        part.replace(path)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


TABLE_STYLE = """
table { border-collapse: collapse; margin: .5rem 0 1.5rem }
th, td { text-align: right; padding: .25rem .8rem; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
.verdict { font-size: 1.2rem; max-width: 50rem }
svg { max-width: 100%; height: auto }
"""


def html_table(titles: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, its cells as plain text."""
    head = "".join(f"<th>{shown(title)}</th>" for title in titles)
    lines = ("".join(f"<td>{shown(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f"<table>\n<tr>{head}</tr>\n{body}</table>\n"


def phase_styles() -> str:
    """The colours of phases in `run_parts`."""
    return "".join(
        f".{phase} {{ background: {colour} }} .step.{phase} {{ background: none;"
        f" border-left-color: {colour} }}\n"
        for phase, colour in _PHASE_COLOURS.items()
    )


def _head(title: str, style: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy"'
        " content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{shown(title)}</title>\n<style>{_STYLE}{style}</style></head><body>\n"
    )


def run_parts(inspection: "Inspection", number: int = 1) -> Iterator[str]:
    """The parts of the page about one run; *number* makes its link targets unique."""
    trace, raw = inspection.trace, inspection.trace.raw
    errors = sum(1 for step in trace.steps if step.error)
    facts = [raw.repo or "no repository", raw.agent, raw.model, f"outcome {raw.outcome}"]
    facts += [number_of(len(trace.steps), "step"), number_of(errors, "error")]
    facts += [number_of(len(trace.loops), "loop"), f"{len(trace.recoveries)} recoveries"]
    yield f"<h1>{shown(raw.instance_id)}</h1>\n"
    yield f'<p class="facts">{shown(" · ".join(filter(None, facts)))}</p>\n'
    yield f'<p class="source">{shown(raw.source)}</p>\n'
    yield f"<details><summary>Task</summary><pre>{shown(raw.task)}</pre></details>\n"
    yield _timeline(inspection, number)
    for fragment in inspection.fragments:
        yield _fragment_heading(fragment)
        for step in trace.steps[fragment.start : fragment.end + 1]:
            yield _step(step, inspection, number)
    if raw.patch:
        yield f"<h2>Diff</h2>\n<pre>{_diff(raw.patch)}</pre>\n"


def _timeline(inspection: "Inspection", number: int) -> str:
    """A bar of one cell for each step, which links to the step, and what its colours mean."""
    trace = inspection.trace
    cleared = {recovery.cleared_step for recovery in trace.recoveries}
    looping = {index for loop in trace.loops for index in range(loop.start, loop.end + 1)}
    cells = []
    for step in trace.steps:
        marks = [str(step.phase)]
        marks += ["error"] if step.error else ["recovery"] if step.index in cleared else []
        marks += ["loop"] if step.index in looping else []
        label = one_line(f"{step.index} {step.phase}: {step.step.action.text}", _SUMMARY_WIDTH)
        link = f'href="#s{number}-{step.index}" title="{shown(label)}"'
        cells.append(f'<a class="{" ".join(marks)}" {link}></a>')
    keys = [f'<span><i class="{phase}"></i>{phase}</span>' for phase in _PHASE_COLOURS]
    keys += ['<span class="is-error">below: error</span>']
    keys += ['<span class="is-recovery">below: recovery</span>']
    keys += ['<span class="is-loop">above: loop</span>']
    legend = f'<p class="legend">{"".join(keys)}</p>'
    return f'<nav class="timeline">{"".join(cells)}</nav>\n{legend}\n'


def _fragment_heading(fragment: "Fragment") -> str:
    kind = fragment.fragment_type.replace("_", " ")
    title = f"{kind}, {fragment.outcome} ({fragment.start}-{fragment.end})"
    return f"<h2>{shown(title)}</h2>\n<p>{shown(fragment.description)}</p>\n"


def _step(step: "StepTrace", inspection: "Inspection", number: int) -> str:
    """One step, opened by a click; a link to what is inside opens it, too."""
    action = one_line(step.step.action.text, _SUMMARY_WIDTH) or "(no action)"
    parts = "".join(
        f"<b>{name}</b><pre>{shown(text)}</pre>\n"
        for name, text in (
            ("thought", step.step.thought),
            ("action", step.step.action.text),
            ("observation", step.step.observation or ""),
            ("user", step.step.user_message or ""),
        )
        if text.strip()
    )
    return (
        f'<details class="step {step.phase}"><summary>{step.index} <code>{shown(action)}</code>'
        f"{_notes(step, inspection)}</summary>\n"
        f'<div id="s{number}-{step.index}">{parts}</div></details>\n'
    )


def _notes(step: "StepTrace", inspection: "Inspection") -> str:
    """The loops that begin at a step, its error, and what it cleared, as they are listed."""
    trace = inspection.trace
    notes = [("loop", f"↻ {loop_line(loop)}") for loop in trace.loops if loop.start == step.index]
    notes += [("error", f"✗ {error_line(step)}")] if step.error else []
    notes += [
        ("recovery", f"✓ {recovery_line(recovery)}")
        for recovery in (*trace.recoveries, *trace.left_behind)
        if recovery.cleared_step == step.index
    ]
    return "".join(f'<br><span class="is-{kind}">{shown(text)}</span>' for kind, text in notes)


def _diff(patch: str) -> str:
    kinds = {"+": "added", "-": "removed", "@": "hunk"}
    lines = ((kinds.get(line[:1], ""), shown(line)) for line in patch.splitlines())
    return "\n".join(
        f'<span class="{kind}">{line}</span>' if kind else line for kind, line in lines
    )


def shown(text: str) -> str:
    """*text* in HTML."""
    return escape(plain(text))


def error_line(step: "StepTrace") -> str:
    """The error of *step* in one line; empty where it has none."""
    if not step.error:
        return ""
    place = f" ({step.error.location})" if step.error.location else ""
    return f"{step.error.error_type}{place}: {one_line(step.error.message, 200)}"


def loop_line(loop: "LoopInfo") -> str:
    """*loop* in one line."""
    return (
        f"{loop.kind.replace('_', ' ')}, steps {loop.start}-{loop.end},"
        f" {loop.repetitions} times, {loop.severity}"
    )


def recovery_line(recovery: "Recovery") -> str:
    """How *recovery* cleared its error, in one line."""
    from contextgraph.trace import describe_remedy

    error = f"{recovery.error.error_type} of step {recovery.error_step}"
    if not recovery.actions:
        return f"left {error} behind, not verified"
    how = "avoided" if recovery.workaround else "cleared"
    doubt = "" if recovery.verified else ", not verified"
    return f"{how} {error}{doubt}: {one_line(describe_remedy(recovery.actions), 200)}"


def report_head(title: str, verdict: str) -> str:
    """The head of a report: its *title* and what it finds."""
    return f'<h1>{title}</h1>\n<p class="verdict">{shown(verdict)}</p>\n'


def heading(title: str) -> str:
    """The *title* of a part of a page."""
    return f"<h2>{shown(title)}</h2>\n"


def facts_line(settings: Mapping[str, object]) -> str:
    """All *settings*, on one line."""
    listed: Iterable[str] = (f"{name}: {value}" for name, value in settings.items())
    return f'<p class="facts">{shown(" · ".join(listed))}</p>\n'
