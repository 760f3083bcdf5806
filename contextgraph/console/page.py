"""Pages of HTML: the templates, and a run as the reader shows it. Files need no network."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape
from msgspec import Struct

from contextgraph.errors import SettingsError
from contextgraph.model import LoopInfo, Phase, RawTrajectory, duration_text
from contextgraph.system.processes import replacing
from contextgraph.text import number_of, one_line, plain, short_count

if TYPE_CHECKING:
    from jinja2 import Environment

    from contextgraph.learning import Inspection
    from contextgraph.store.memory_store import Store
    from contextgraph.trace import Recovery, StepTrace

TEMPLATES = Path(__file__).with_name("templates")
_SUMMARY_WIDTH, _ADVICE_WIDTH = 140, 300
# Steps in a row without an error, a recovery or a loop that are collapsed.
_QUIET_STEPS = 4


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from contextgraph.trace import describe_remedy

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else plain(f"{value}"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        one_line=one_line,
        day=lambda time: f"{time:%Y-%m-%d}",
        duration=duration_text,
        short=short_count,
        percent=lambda share: f"{100 * share:.0f} %",
        minute=lambda time: f"{time:%Y-%m-%d %H:%M}",
        diff=_diff,
        remedy=describe_remedy,
    )
    return environment


def render(template: str, /, **values: object) -> str:
    """Return the page that *template* makes of *values*; an unknown name raises."""
    return _environment().get_template(template).render(values)


def compile_pages() -> None:
    """Compile all templates: 0.1 s, which the first visitor does not wait for then."""
    environment = _environment()
    for name in environment.list_templates(extensions=["html"]):
        environment.get_template(name)


def write_page(path: Path, template: str, /, **values: object) -> None:
    """Write a page that needs no network to the file *path*.

    Raises `SettingsError` where it cannot be written.
    """
    stream = (
        _environment()
        .get_template(template)
        .stream({"title": path.stem, "offline": True, **values})
    )
    try:
        with (
            replacing(path) as part,
            part.open("w", encoding="utf-8", errors="replace") as file,
        ):
            file.writelines(stream)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror or error}") from error


class StepView(Struct, frozen=True):
    """A step of the reader: its *action* on one line, *notes* by kind, and texts by name."""

    index: int
    phase: "Phase"
    action: str
    notes: Sequence[tuple[str, str]]
    texts: Sequence[tuple[str, str]]
    said: str
    in_loop: bool

    @property
    def mark(self) -> str:
        """The kind of its first error or recovery; empty where it has none."""
        return next((kind for kind, _ in self.notes if kind != "loop"), "")

    @property
    def label(self) -> str:
        """Place, phase and action on one line."""
        return one_line(f"{self.index} {self.phase}: {self.action}", _SUMMARY_WIDTH)


class StepGroup(Struct, frozen=True):
    """Steps that are shown together; quiet ones are collapsed."""

    steps: Sequence[StepView]
    is_quiet: bool

    @property
    def title(self) -> str:
        """The line that stands for the collapsed steps."""
        first, last = self.steps[0].index, self.steps[-1].index
        return f"{len(self.steps)} quiet steps ({first}–{last})"


class PartView(Struct, frozen=True):
    """A fragment of a run."""

    title: str
    description: str
    groups: Sequence[StepGroup]


class RunView(Struct, frozen=True):
    """A run as the reader shows it."""

    raw: "RawTrajectory"
    title: str
    facts: Sequence[str]
    cells: Sequence[StepView]
    parts: Sequence[PartView]
    phases: "Sequence[Phase]"


def advice_in(store: "Store", raw: RawTrajectory) -> dict[int, list[str]]:
    """Return what *raw* was shown, by the step after which it was."""
    advice: dict[int, list[str]] = {}
    for context_id, step in raw.advised.items():
        for exposure in store.exposures.newest(1, name=context_id):
            if exposure.text and not exposure.is_withheld:
                advice.setdefault(step, []).append(one_line(exposure.text, _ADVICE_WIDTH))
    return advice


def run_view(inspection: "Inspection", advice: Mapping[int, Sequence[str]]) -> RunView:
    """Return *inspection* as the reader shows it, with the *advice* that was shown after steps.

    What was shown before the first step stands at it.
    """
    from contextgraph.model import Phase

    trace, raw = inspection.trace, inspection.trace.raw
    errors = sum(1 for step in trace.steps if step.error)
    facts = [raw.repo or "no repository", raw.agent, raw.model, inspection.ending.text]
    facts += [number_of(len(trace.steps), "step"), number_of(errors, "error")]
    facts += [number_of(len(trace.loops), "loop"), f"{len(trace.recoveries)} recoveries"]
    facts += [f"advised {number_of(sum(map(len, advice.values())), 'time')}"] if advice else []
    steps = [*_steps(inspection, advice)]
    parts = []
    for fragment in inspection.fragments:
        kind = fragment.fragment_type.replace("_", " ")
        title = f"{kind}, {fragment.outcome} ({fragment.start}–{fragment.end})"
        inside = steps[fragment.start : fragment.end + 1]
        parts.append(PartView(title, fragment.description, [*_groups(inside)]))
    return RunView(raw, inspection.title, [*filter(None, facts)], steps, parts, tuple(Phase))


def _steps(inspection: "Inspection", advice: Mapping[int, Sequence[str]]) -> Iterator[StepView]:
    trace = inspection.trace
    looping = {index for loop in trace.loops for index in range(loop.start, loop.end + 1)}
    for step in trace.steps:
        loops = [loop for loop in trace.loops if loop.start == step.index]
        before = advice.get(-1, ()) if step.index == 0 else ()
        notes = [("advice", f"✦ {text}") for text in (*before, *advice.get(step.index, ()))]
        notes += [("loop", f"↻ {loop_line(loop)}") for loop in loops]
        notes += [("error", f"✗ {error_line(step)}")] if step.error else []
        notes += [
            ("cleared", f"✓ {recovery_line(recovery)}")
            for recovery in (*trace.recoveries, *trace.left_behind)
            if recovery.cleared_step == step.index
        ]
        action = step.step.action.text
        texts = (
            ("thought", step.step.thought),
            ("action", action),
            ("output", step.step.observation or ""),
        )
        yield StepView(
            step.index,
            step.phase,
            one_line(action, _SUMMARY_WIDTH) or "(no action)",
            notes,
            [(name, text) for name, text in texts if text.strip()],
            step.step.user_message or "",
            step.index in looping,
        )


def _groups(steps: Sequence[StepView]) -> Iterator[StepGroup]:
    """Collapse runs of steps at which nothing happened."""
    for is_quiet, group in groupby(steps, lambda step: not (step.notes or step.said)):
        members = [*group]
        yield StepGroup(members, is_quiet and len(members) >= _QUIET_STEPS)


def _diff(patch: str) -> Markup:
    """Mark the lines of *patch* that are added, removed, and the heads of hunks."""
    forms = {
        "+": Markup("<ins>{}</ins>"),
        "-": Markup("<del>{}</del>"),
        "@": Markup('<span class="hunk">{}</span>'),
    }
    lines = ((forms.get(line[:1]), escape(plain(line))) for line in patch.splitlines())
    return Markup("\n").join(form.format(line) if form else line for form, line in lines)


def error_line(step: "StepTrace") -> str:
    """Return the error of *step* on one line; empty where it has none."""
    if not step.error:
        return ""
    place = f" ({step.error.location})" if step.error.location else ""
    return f"{step.error.error_type}{place}: {one_line(step.error.message, 200)}"


def loop_line(loop: "LoopInfo") -> str:
    """Return *loop* on one line."""
    return (
        f"{loop.kind.replace('_', ' ')}, steps {loop.start}-{loop.end},"
        f" {loop.repetitions} times, {loop.severity}"
    )


def recovery_line(recovery: "Recovery") -> str:
    """Return how *recovery* cleared its error, on one line."""
    from contextgraph.trace import describe_remedy

    error = f"{recovery.error.error_type} of step {recovery.error_step}"
    if not recovery.actions:
        return f"left {error} behind, not verified"
    how = "avoided" if recovery.workaround else "cleared"
    doubt = "" if recovery.verified else ", not verified"
    return f"{how} {error}{doubt}: {one_line(describe_remedy(recovery.actions), 200)}"


class ReportPart(Struct, frozen=True):
    """A part of a report: a table, or a *drawing* in SVG; *texts* are opened by a click."""

    title: str
    columns: Sequence[str] = ()
    rows: Iterable[Sequence[str]] = ()
    drawing: Markup | None = None
    texts: Sequence[tuple[str, Sequence[str]]] = ()


def write_report(
    path: Path, title: str, verdict: str, parts: Iterable[ReportPart], facts: Mapping[str, Any]
) -> None:
    """Write a report to the file *path*; raises `SettingsError` where it cannot be written."""
    write_page(path, "report.html", title=title, verdict=verdict, parts=parts, facts=facts)
