"""Generated values that hang together as those of real runs do; small, so that they collide."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from random import Random
from typing import TypeVar

from hypothesis import strategies as st

from contextgraph.model import (
    Action,
    ActionKind,
    Bundle,
    Cause,
    CausedError,
    ChangeStatus,
    CommandUse,
    EmbeddedRun,
    Environment,
    ErrorPattern,
    ErrorSignature,
    Family,
    Fragment,
    FragmentOutcome,
    FragmentType,
    LoopEnding,
    LoopKind,
    Loss,
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
    RunFacts,
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

T = TypeVar("T")
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
SPACES = (Space("made/one@2", 3), Space("made/two@3", 0))
_EPOCH = datetime(2026, 2, 1, tzinfo=UTC)
_OFFSETS = (0, 1, 86_400_000_000)
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
    return st.builds(_moment, st.sampled_from(_OFFSETS), st.sampled_from(_ZONES))


def _moment(microseconds: int, zone: tzinfo) -> datetime:
    return (_EPOCH + timedelta(microseconds=microseconds)).astimezone(zone)


def scopes() -> st.SearchStrategy[Scope]:
    return st.builds(
        Scope,
        repo=st.none() | st.sampled_from((*REPOSITORIES, "Ada/Engine", "nobody/nothing")),
        exclude_instances=st.just(frozenset()) | st.frozensets(st.sampled_from(INSTANCES)),
        as_of=st.none() | times(),
    )


@st.composite
def vectors(draw: st.DrawFn, space: str) -> Vector:
    """Few directions, so that they tie."""
    size = dimensions_of(space)
    numbers = st.lists(st.integers(-1, 2), min_size=size, max_size=size)
    return Vector.of(space, draw(numbers.filter(any)))


@dataclass(frozen=True, slots=True)
class Abstracted:
    """The arguments of a call of `put_methodologies`."""

    methodologies: tuple[Methodology, ...]
    removed: tuple[str, ...]
    resolved: tuple[ResolvedBy, ...]
    similar: tuple[SimilarTo, ...]


def abstracted(
    trajectory_ids: tuple[str, ...] = TRAJECTORY_IDS,
) -> st.SearchStrategy[Abstracted]:
    """Methodologies with edges, some of them to what is not there; of one number, as bundles."""
    return st.integers(0, 2**32 - 1).map(lambda seed: _abstracted(_Chance(seed), trajectory_ids))


def bundles(trajectory_ids: tuple[str, ...] = TRAJECTORY_IDS) -> st.SearchStrategy[Bundle]:
    """All that one run teaches: fragments cover its steps, errors and recoveries lie in them.

    Made from one number that is drawn: to draw each field takes longer than what is tested.
    """
    return st.integers(0, 2**32 - 1).map(lambda seed: _bundle(_Chance(seed), trajectory_ids))


def shown_items() -> st.SearchStrategy[list[ShownItem]]:
    """Items of a context, some of the same advice."""
    advice = st.sampled_from(ADVICE_IDS)
    return st.lists(st.builds(ShownItem, st.sampled_from(ITEM_IDS), advice, _TRIED), max_size=4)


LOOP_COMMANDS = ("", "pytest", "edit")


class _Chance(Random):
    """Draws the values of one bundle."""

    def maybe(self, value: T) -> T | None:
        return self.choice((value, None))

    def few(self, values: Sequence[T], most: int = 2) -> tuple[T, ...]:
        return tuple(self.choices(values, k=self.randint(0, most)))

    def text(self) -> str:
        return " ".join(self.few(VOCABULARY, 4))

    def texts(self) -> tuple[str, ...]:
        return tuple(self.text() for _ in range(self.randint(0, 2)))

    def share(self) -> float:
        return self.choice((0.0, 0.25, 1 / 3, 1.0))

    def time(self) -> datetime:
        return _moment(self.choice(_OFFSETS), self.choice(_ZONES))


def _abstracted(chance: _Chance, trajectory_ids: tuple[str, ...]) -> Abstracted:
    def source() -> Source:
        """A fragment of these runs, few of which exist."""
        run = chance.choice(trajectory_ids)
        return Source(run, f"{run}/{chance.choice(('0-0', '0-1', '0-2', '0-5', '1-2', '2-2'))}")

    ids = tuple(dict.fromkeys(chance.few(METHODOLOGY_IDS, 3)))
    edges = [
        ResolvedBy(
            chance.choice((*ERROR_IDS, "error none met")),
            chance.choice(METHODOLOGY_IDS),
            chance.share(),
            chance.share(),
            chance.randint(1, 3),
        )
        for _ in range(chance.randint(0, 4))
    ]
    links = [
        SimilarTo(chance.choice(ERROR_IDS), source(), source(), chance.share())
        for _ in range(chance.randint(0, 4))
    ]
    return Abstracted(
        tuple(
            _methodology(chance, one, ids, [source() for _ in range(chance.randint(0, 4))])
            for one in ids
        ),
        chance.few(METHODOLOGY_IDS, 1),
        tuple({(one.error_id, one.methodology_id): one for one in edges}.values()),
        tuple({(one.error_id, one.fragment): one for one in links}.values()),
    )


def _methodology(
    chance: _Chance, own_id: str, ids: tuple[str, ...], own: list[Source]
) -> Methodology:
    words = Words(*(chance.text() for _ in range(4)))
    return Methodology(
        id=own_id,
        error_id=chance.choice(ERROR_IDS),
        keyword=chance.choice(("", "cache")),
        task_type=chance.maybe(TaskType.BUG_FIX),
        repo=chance.maybe(chance.choice(REPOSITORIES[1:])),
        situation=chance.text(),
        strategy=chance.text(),
        made_by="template/1",
        status=chance.choice([*MethodologyStatus]),
        confidence=chance.share(),
        support=chance.randint(1, 3),
        repositories=chance.randint(1, 2),
        success_rate=chance.share(),
        avg_steps=chance.share(),
        frequency=chance.randint(3, 5),
        success_count=chance.share(),
        failure_count=chance.share(),
        sources=tuple(sorted(set(own))),
        superseded_by=chance.choice((None, *(one for one in ids if one > own_id))),
        words=chance.maybe(words),
    )


def _bundle(chance: _Chance, trajectory_ids: tuple[str, ...]) -> Bundle:
    trajectory = _trajectory(chance, trajectory_ids)
    fragments = _fragments(chance, trajectory)
    met = _met(chance, trajectory.total_steps)
    return Bundle(
        trajectory=trajectory,
        fragments=fragments,
        errors=tuple(_pattern(chance, error) for error in sorted(set(met.values()))),
        caused=tuple(_caused(fragments, met)),
        recovered=tuple(_recovered(chance, fragments, met)),
        facts=_facts(chance),
        raw=_raw(chance, trajectory),
        exposures=tuple(_seen(chance) for _ in range(chance.choice((0, 0, 1, 2)))),
        embedded=chance.maybe(_embedded(chance)),
    )


def _facts(chance: _Chance) -> RunFacts:
    use = CommandUse(
        chance.choice([*ActionKind]),
        chance.text(),
        chance.text(),
        chance.choice(("", "src")),
        ran=chance.choice((True, False)),
        error_type=chance.choice(("", "ValueError")),
        prompted=chance.choice((True, False)),
    )
    loss = Loss(chance.choice([*Cause]), "python", chance.text(), 1, 3, chance.choice(PATTERNS))
    return RunFacts(
        commands=chance.few([use]),
        created=chance.few(PATHS),
        listed=chance.few(PATHS),
        names={path: chance.texts() for path in chance.few(PATHS)},
        symbols={path: chance.texts() for path in chance.few(PATHS)},
        content_hashes={path: chance.texts() for path in chance.few(PATHS)},
        environment=Environment("linux", chance.text(), (("python", "3.11"),)),
        losses=chance.few([loss]),
    )


def _seen(chance: _Chance) -> SeenContext:
    step = chance.randint(-1, 3)
    tried, cleared = chance.few(PATTERNS), chance.few(PATTERNS)
    return SeenContext(chance.choice(CONTEXT_IDS), step, tried, cleared)


def _embedded(chance: _Chance) -> EmbeddedRun:
    """A run in one of the spaces, which may have no vector there."""
    space = chance.choice(SPACES).name
    numbers = [chance.randint(-1, 2) for _ in range(dimensions_of(space))]
    return EmbeddedRun(space, chance.maybe(Vector.of(space, numbers)) if any(numbers) else None)


def _trajectory(chance: _Chance, trajectory_ids: tuple[str, ...]) -> Trajectory:
    return Trajectory(
        id=chance.choice(trajectory_ids),
        instance_id=chance.choice(INSTANCES),
        repo=chance.choice(REPOSITORIES),
        task=chance.text(),
        task_type=chance.choice((TaskType.BUG_FIX, TaskType.FEATURE)),
        outcome=chance.choice([*Outcome]),
        exit_status=chance.maybe("submitted"),
        total_steps=chance.randint(0, 6),
        summary=chance.text(),
        files=chance.few(PATHS),
        agent="agent",
        model="model",
        source_format="made",
        source=chance.choice(("", "runs.jsonl:1")),
        contributor=chance.choice(("", "", "ci", "laptop")),
        run_at=chance.maybe(chance.time()),
        learned_at=chance.time(),
        outcome_source=chance.choice([*OutcomeSource]),
        change=chance.choice([*ChangeStatus]),
    )


def _fragments(chance: _Chance, trajectory: Trajectory) -> tuple[Fragment, ...]:
    inside = range(1, trajectory.total_steps)
    borders = sorted({0, trajectory.total_steps, *(chance.few(inside, 3) if inside else ())})
    return tuple(
        Fragment(
            id=f"{trajectory.id}/{start}-{stop - 1}",
            trajectory_id=trajectory.id,
            order=order,
            start=start,
            end=stop - 1,
            fragment_type=chance.choice([*FragmentType]),
            phase=chance.choice((Phase.FIXING, Phase.TESTING, Phase.LOCATING)),
            outcome=chance.choice([*FragmentOutcome]),
            description=chance.text(),
            action_sequence=chance.texts(),
            files=chance.few(PATHS),
            open_file=chance.maybe(chance.choice(PATHS)),
            repo=trajectory.repo,
            task_type=trajectory.task_type,
            loop_kind=chance.maybe(chance.choice([*LoopKind])),
            loop_command=chance.choice(LOOP_COMMANDS),
            repetitions=chance.choice((0, 3)),
            loop_ending=chance.maybe(chance.choice([*LoopEnding])),
        )
        for order, (start, stop) in enumerate(pairwise(borders))
    )


def _met(chance: _Chance, total_steps: int) -> dict[int, int]:
    """Step -> the number of the error met there."""
    steps = chance.few(range(total_steps), 6) if total_steps else ()
    return {step: chance.randrange(len(_ERRORS)) for step in steps}


def _pattern(chance: _Chance, error: int) -> ErrorPattern:
    """The pattern of an error, in words that differ from run to run."""
    family, error_type, template = _ERRORS[error]
    keywords = tuple(dict.fromkeys(chance.few(VOCABULARY, 3)))
    return ErrorPattern(f"error{error}", family, error_type, template, keywords, chance.text())


def _caused(fragments: tuple[Fragment, ...], met: dict[int, int]) -> list[CausedError]:
    found = []
    for fragment in fragments:
        inside = {step: e for step, e in met.items() if fragment.start <= step <= fragment.end}
        for error in sorted(set(inside.values())):
            steps = tuple(sorted(step for step, other in inside.items() if other == error))
            found.append(CausedError(fragment.id, f"error{error}", steps, (f"core.py:{error}",)))
    return found


def _action(chance: _Chance) -> RemedyAction:
    kinds = (RemedyKind.RUN, RemedyKind.OTHER, RemedyKind.RETRY)
    made = RemedyPattern(
        chance.choice(kinds), chance.text(), chance.text(), chance.choice(((), ("flag",)))
    )
    return RemedyAction(
        kind=chance.choice(kinds),
        target=chance.text(),
        pattern=chance.choice((*PATTERNS, made, made)),
        replaced=chance.text(),
        parameters=chance.choice(((), (("flag", "-x"), ("flag", "-q")))),
    )


def _recovered(
    chance: _Chance, fragments: tuple[Fragment, ...], met: dict[int, int]
) -> list[Recovered]:
    found = []
    for step, error in met.items():
        later = [fragment for fragment in fragments if fragment.end > step]
        if not later or not chance.randrange(4):
            continue
        fragment = chance.choice(later)
        found.append(
            Recovered(
                fragment_id=fragment.id,
                error_id=f"error{error}",
                error_step=step,
                cleared_step=fragment.end,
                message=chance.text(),
                location=chance.maybe("core.py:3"),
                actions=tuple(_action(chance) for _ in range(chance.randint(0, 2))),
                verified=chance.choice((False, True)),
                workaround=chance.choice((False, True)),
                circumstances=chance.texts(),
            )
        )
    return found


def _raw(chance: _Chance, trajectory: Trajectory) -> RawTrajectory:
    steps = tuple(
        Step(
            index=index,
            thought="think",
            action=Action("bash", "ls", {"command": "ls", "flags": [1, None, True]}),
            observation=chance.maybe(chance.text()),
            exit_code=chance.maybe(0),
            timestamp=chance.maybe(chance.time()),
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
        patch=chance.maybe(chance.text()),
        started_at=trajectory.run_at,
        outcome_source=trajectory.outcome_source,
        change=trajectory.change,
        content_hashes=dict.fromkeys(chance.texts(), "3b18e512"),
    )
