"""Generated values that hang together as those of real runs do; small, so that they collide."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

from hypothesis import strategies as st

from contextgraph.model import (
    Action,
    Bundle,
    CausedError,
    ChangeStatus,
    EmbeddedRun,
    ErrorPattern,
    ErrorSignature,
    Family,
    Fragment,
    FragmentOutcome,
    FragmentType,
    LoopEnding,
    LoopKind,
    Methodology,
    MethodologyStatus,
    Outcome,
    OutcomeSource,
    Phase,
    RawTrajectory,
    Recovered,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    ResolvedBy,
    Scope,
    SeenContext,
    ShownItem,
    SimilarTo,
    Source,
    Space,
    Step,
    TaskType,
    Trajectory,
    Vector,
    Words,
    dimensions_of,
)

VOCABULARY = (
    "cache",
    "getattr_static",
    "parse",
    "Überlauf",
    "naïve",
    "HTTPServer",
    "日本語",
    "x86",
)
WORDS = (*VOCABULARY, "getattr", "static", "überlauf", "http", "httpserver", "absent", "Parse")
REPOSITORIES = ("", "ada/engine", "bob/pump")
INSTANCES = ("", "ada__engine-1", "ada__engine-2", "bob__pump-7")
PATHS = ("src/core.py", "core.py", "src/deep/core.py", "docs/read me.md", "naïve.py")
FILE_NAMES = ("core.py", "read me.md", "naïve.py", "absent.py")
TRAJECTORY_IDS = tuple(f"run{number}" for number in range(5))
CONTEXT_IDS = ("ctx_1", "ctx_2", "ctx_3")
FRAGMENT_IDS = tuple(f"{run}/0-{end}" for run in TRAJECTORY_IDS for end in range(3))
METHODOLOGY_IDS = ("advice0", "advice1", "advice2", "advice3")
ADVICE_IDS = ("", "adv_1", "adv_2")
ITEM_IDS = (*FRAGMENT_IDS, *METHODOLOGY_IDS, "unheard of")
PATTERNS = (
    RemedyPattern(RemedyKind.RUN, "pytest"),
    RemedyPattern(RemedyKind.INSTALL, "<the missing module>"),
)
_TRIED = st.lists(st.sampled_from(PATTERNS), max_size=2).map(tuple)
_SEEN = st.builds(SeenContext, st.sampled_from(CONTEXT_IDS), st.integers(-1, 3), _TRIED)
SPACES = (Space("made/one@2", 3), Space("made/two@3", 0))
_EPOCH = datetime(2026, 2, 1, tzinfo=UTC)
_ZONES = (UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8)))
_ERRORS = (
    (Family.PYTHON_EXCEPTION, "TypeError", "<name> is not callable"),
    (Family.PYTHON_EXCEPTION, "TypeError", "missing <number> arguments"),
    (Family.PYTHON_EXCEPTION, "KeyError", "<name>"),
    (Family.SHELL, "CommandNotFound", "<name>: not found"),
)
ERROR_IDS = tuple(f"error{number}" for number in range(len(_ERRORS)))
SIGNATURES = tuple(
    ErrorSignature(family, error_type, "as shown", template)
    for family, error_type, template in _ERRORS
)


def texts() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(VOCABULARY), max_size=4).map(" ".join)


def times() -> st.SearchStrategy[datetime]:
    """Few moments, so that they tie, in several time zones."""
    offsets = st.sampled_from((0, 1, 86_400_000_000))
    return st.builds(
        lambda microseconds, zone: (_EPOCH + timedelta(microseconds=microseconds)).astimezone(zone),
        offsets,
        st.sampled_from(_ZONES),
    )


def scopes() -> st.SearchStrategy[Scope]:
    return st.builds(
        Scope,
        repo=st.none() | st.sampled_from((*REPOSITORIES, "Ada/Engine", "nobody/nothing")),
        exclude_instances=st.just(frozenset()) | st.frozensets(st.sampled_from(INSTANCES)),
        as_of=st.none() | times(),
    )


def phases() -> st.SearchStrategy[Phase]:
    return st.sampled_from((Phase.FIXING, Phase.TESTING, Phase.LOCATING))


@st.composite
def vectors(draw: st.DrawFn, space: str) -> Vector:
    """Few directions, so that they tie."""
    size = dimensions_of(space)
    numbers = st.lists(st.integers(-1, 2), min_size=size, max_size=size)
    return Vector.of(space, draw(numbers.filter(any)))


@st.composite
def embedded_runs(draw: st.DrawFn) -> EmbeddedRun:
    """A run in one of the spaces, which may have no vector there."""
    space = draw(st.sampled_from(SPACES)).name
    return EmbeddedRun(space, draw(st.none() | vectors(space)))


@dataclass(frozen=True, slots=True)
class Abstracted:
    """The arguments of a call of `put_methodologies`."""

    methodologies: tuple[Methodology, ...]
    removed: tuple[str, ...]
    resolved: tuple[ResolvedBy, ...]
    similar: tuple[SimilarTo, ...]


def sources(trajectory_ids: tuple[str, ...] = TRAJECTORY_IDS) -> st.SearchStrategy[Source]:
    """Fragments of these runs, few of which exist."""
    runs = st.sampled_from(trajectory_ids)
    spans = st.sampled_from(("0-0", "0-1", "0-2", "0-5", "1-2", "2-2"))
    return st.builds(lambda run, span: Source(run, f"{run}/{span}"), runs, spans)


@st.composite
def abstracted(draw: st.DrawFn, trajectory_ids: tuple[str, ...] = TRAJECTORY_IDS) -> Abstracted:
    """Methodologies with edges, some of them to what is not there."""
    ids = draw(st.lists(st.sampled_from(METHODOLOGY_IDS), max_size=3, unique=True))
    edges = st.builds(
        ResolvedBy,
        st.sampled_from((*ERROR_IDS, "error none met")),
        st.sampled_from(METHODOLOGY_IDS),
        _shares(),
        _shares(),
        st.integers(1, 3),
    )
    own = sources(trajectory_ids)
    links = st.builds(SimilarTo, st.sampled_from(ERROR_IDS), own, own, _shares())
    return Abstracted(
        tuple(draw(_methodologies(one, ids, own)) for one in ids),
        tuple(draw(st.lists(st.sampled_from(METHODOLOGY_IDS), max_size=1))),
        tuple(
            draw(st.lists(edges, max_size=4, unique_by=lambda e: (e.error_id, e.methodology_id)))
        ),
        tuple(draw(st.lists(links, max_size=4, unique_by=lambda e: (e.error_id, e.fragment)))),
    )


def _shares() -> st.SearchStrategy[float]:
    return st.sampled_from((0.0, 0.25, 1 / 3, 1.0))


@st.composite
def _methodologies(
    draw: st.DrawFn, own_id: str, ids: list[str], own: st.SearchStrategy[Source]
) -> Methodology:
    return Methodology(
        id=own_id,
        error_id=draw(st.sampled_from(ERROR_IDS)),
        keyword=draw(st.sampled_from(("", "cache"))),
        task_type=draw(st.none() | st.just(TaskType.BUG_FIX)),
        repo=draw(st.none() | st.sampled_from(REPOSITORIES[1:])),
        situation=draw(texts()),
        strategy=draw(texts()),
        made_by="template/1",
        status=draw(st.sampled_from(MethodologyStatus)),
        confidence=draw(_shares()),
        support=draw(st.integers(1, 3)),
        repositories=draw(st.integers(1, 2)),
        success_rate=draw(_shares()),
        avg_steps=draw(_shares()),
        frequency=draw(st.integers(3, 5)),
        success_count=draw(_shares()),
        failure_count=draw(_shares()),
        sources=tuple(sorted(draw(st.sets(own, max_size=4)))),
        superseded_by=draw(st.sampled_from((None, *(one for one in ids if one > own_id)))),
        words=draw(st.none() | st.builds(Words, texts(), texts(), texts(), texts())),
    )


@st.composite
def bundles(draw: st.DrawFn, trajectory_ids: tuple[str, ...] = TRAJECTORY_IDS) -> Bundle:
    """All that one run teaches: fragments cover its steps, errors and recoveries lie in them."""
    trajectory = draw(_trajectories(trajectory_ids))
    fragments = draw(_fragments(trajectory))
    met = draw(_met(trajectory.total_steps))
    recovered = tuple(draw(_recovered(fragments, met)))
    return Bundle(
        trajectory=trajectory,
        fragments=fragments,
        errors=tuple(draw(_pattern(error)) for error in sorted(set(met.values()))),
        caused=tuple(_caused(fragments, met)),
        recovered=recovered,
        raw=draw(_raws(trajectory)),
        exposures=tuple(draw(st.just([]) | st.lists(_SEEN, max_size=2))),
        embedded=draw(st.none() | embedded_runs()),
    )


def shown_items() -> st.SearchStrategy[list[ShownItem]]:
    """Items of a context, some of the same advice."""
    advice = st.sampled_from(ADVICE_IDS)
    return st.lists(st.builds(ShownItem, st.sampled_from(ITEM_IDS), advice, _TRIED), max_size=4)


LOOP_COMMANDS = ("", "pytest", "edit")


@st.composite
def _trajectories(draw: st.DrawFn, trajectory_ids: tuple[str, ...]) -> Trajectory:
    return Trajectory(
        id=draw(st.sampled_from(trajectory_ids)),
        instance_id=draw(st.sampled_from(INSTANCES)),
        repo=draw(st.sampled_from(REPOSITORIES)),
        task=draw(texts()),
        task_type=draw(st.sampled_from((TaskType.BUG_FIX, TaskType.FEATURE))),
        outcome=draw(st.sampled_from(Outcome)),
        exit_status=draw(st.none() | st.just("submitted")),
        total_steps=draw(st.sampled_from((6, 5, 3, 2, 1, 0))),
        summary=draw(texts()),
        files=draw(st.lists(st.sampled_from(PATHS), max_size=2).map(tuple)),
        agent="agent",
        model="model",
        source_format="made",
        source=draw(st.sampled_from(("", "runs.jsonl:1"))),
        contributor=draw(st.sampled_from(("", "", "ci", "laptop"))),
        run_at=draw(st.none() | times()),
        learned_at=draw(times()),
        outcome_source=draw(st.sampled_from(OutcomeSource)),
        change=draw(st.sampled_from(ChangeStatus)),
    )


@st.composite
def _fragments(draw: st.DrawFn, trajectory: Trajectory) -> tuple[Fragment, ...]:
    cuts = draw(st.sets(st.integers(1, max(1, trajectory.total_steps - 1)), max_size=3))
    borders = sorted({0, trajectory.total_steps, *(c for c in cuts if c < trajectory.total_steps)})
    spans = pairwise(borders)
    return tuple(
        Fragment(
            id=f"{trajectory.id}/{start}-{stop - 1}",
            trajectory_id=trajectory.id,
            order=order,
            start=start,
            end=stop - 1,
            fragment_type=draw(st.sampled_from(FragmentType)),
            phase=draw(phases()),
            outcome=draw(st.sampled_from(FragmentOutcome)),
            description=draw(texts()),
            action_sequence=draw(st.lists(texts(), max_size=2).map(tuple)),
            files=draw(st.lists(st.sampled_from(PATHS), max_size=2).map(tuple)),
            open_file=draw(st.none() | st.sampled_from(PATHS)),
            repo=trajectory.repo,
            task_type=trajectory.task_type,
            loop_kind=draw(st.none() | st.sampled_from(LoopKind)),
            loop_command=draw(st.sampled_from(LOOP_COMMANDS)),
            repetitions=draw(st.sampled_from((0, 3))),
            loop_ending=draw(st.none() | st.sampled_from(LoopEnding)),
        )
        for order, (start, stop) in enumerate(spans)
    )


@st.composite
def _met(draw: st.DrawFn, total_steps: int) -> dict[int, int]:
    """Step -> the number of the error met there."""
    if not total_steps:
        return {}
    steps = st.integers(0, total_steps - 1)
    return draw(st.dictionaries(steps, st.integers(0, len(_ERRORS) - 1), max_size=6))


@st.composite
def _pattern(draw: st.DrawFn, error: int) -> ErrorPattern:
    """The pattern of an error, in words that differ from run to run."""
    family, error_type, template = _ERRORS[error]
    keywords = draw(st.lists(st.sampled_from(VOCABULARY), max_size=3, unique=True).map(tuple))
    return ErrorPattern(f"error{error}", family, error_type, template, keywords, draw(texts()))


def _caused(fragments: tuple[Fragment, ...], met: dict[int, int]) -> list[CausedError]:
    found = []
    for fragment in fragments:
        inside = {step: e for step, e in met.items() if fragment.start <= step <= fragment.end}
        for error in sorted(set(inside.values())):
            steps = tuple(sorted(step for step, other in inside.items() if other == error))
            found.append(CausedError(fragment.id, f"error{error}", steps, (f"core.py:{error}",)))
    return found


def _actions() -> st.SearchStrategy[RemedyAction]:
    kinds = st.sampled_from((RemedyKind.RUN, RemedyKind.OTHER, RemedyKind.RETRY))
    return st.builds(
        RemedyAction,
        kind=kinds,
        target=texts(),
        pattern=st.sampled_from(PATTERNS)
        | st.builds(RemedyPattern, kinds, texts(), texts(), st.just(()) | st.just(("flag",))),
        replaced=texts(),
        parameters=st.just(()) | st.just((("flag", "-x"), ("flag", "-q"))),
    )


@st.composite
def _recovered(
    draw: st.DrawFn, fragments: tuple[Fragment, ...], met: dict[int, int]
) -> list[Recovered]:
    found = []
    for step, error in met.items():
        later = [fragment for fragment in fragments if fragment.end > step]
        if not later or draw(st.integers(0, 3)) == 3:
            continue
        fragment = draw(st.sampled_from(later))
        found.append(
            Recovered(
                fragment_id=fragment.id,
                error_id=f"error{error}",
                error_step=step,
                cleared_step=fragment.end,
                message=draw(texts()),
                location=draw(st.none() | st.just("core.py:3")),
                actions=draw(st.lists(_actions(), max_size=2).map(tuple)),
                verified=draw(st.booleans()),
                workaround=draw(st.booleans()),
                circumstances=draw(st.lists(texts(), max_size=2).map(tuple)),
            )
        )
    return found


@st.composite
def _raws(draw: st.DrawFn, trajectory: Trajectory) -> RawTrajectory:
    steps = tuple(
        Step(
            index=index,
            thought="think",
            action=Action("bash", "ls", {"command": "ls", "flags": [1, None, True]}),
            observation=draw(st.none() | texts()),
            exit_code=draw(st.none() | st.just(0)),
            timestamp=draw(st.none() | times()),
        )
        for index in range(trajectory.total_steps)
    )
    return RawTrajectory(
        source_format=trajectory.source_format,
        instance_id=trajectory.instance_id,
        repo=trajectory.repo,
        task=trajectory.task,
        steps=steps,
        outcome=trajectory.outcome,
        exit_status=trajectory.exit_status,
        patch=draw(st.none() | texts()),
        started_at=trajectory.run_at,
        outcome_source=trajectory.outcome_source,
        change=trajectory.change,
        content_hashes=draw(st.dictionaries(texts(), st.just("3b18e512"), max_size=2)),
    )
