"""Channels: what a state asks of a memory, and what each way of searching finds."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache, partial
from itertools import islice, product
from math import log, sqrt
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field

from contextgraph.advising.gate import SHIPPED, stored_gate
from contextgraph.advising.harnesses import Harnesses, shipped
from contextgraph.errors import ContextGraphError, EmbeddingError, SpaceMismatchError
from contextgraph.knowledge.forgetting import age_weight
from contextgraph.model import (
    EXCEPTIONS,
    ChannelRank,
    ErrorQuestion,
    ErrorSignature,
    Family,
    FittedModel,
    Found,
    Fragment,
    FragmentCandidate,
    LinkType,
    Methodology,
    Note,
    NoteKind,
    Recollection,
    RecoveryCandidate,
    Scope,
    ScopeLevel,
    SignatureLevel,
    State,
    Strategy,
    TaskType,
    Trajectory,
    Vector,
    WordCounts,
    cosines,
    node_text,
    run_text,
)
from contextgraph.model.values import replace
from contextgraph.store.memory_store import Store
from contextgraph.store.protocols import Embedder, EmbedderSource
from contextgraph.text import (
    TASK_CHARS,
    FixedCounts,
    clip,
    gives_instructions,
    masked_name,
    overlap,
    quoted_names,
    rarity,
    subject_of,
    title_of,
    word_counts,
    words,
)
from contextgraph.trace import Names, error_id, error_of, names_in, states_of, task_type_of

if TYPE_CHECKING:
    from contextgraph.knowledge.lessons import Lessons
    from contextgraph.knowledge.notes import Notes

TASK_WORDS = 160
_REMEMBERED_TASKS = 64
_LEAST_PRINTED, _LONGEST_PRINTED, _ERRORS_READ = 20, 300, 500


def no_embedder() -> None:
    """An `EmbedderSource` for a memory without vectors."""


class Query(Struct, frozen=True):
    """A state as the channels need it.

    *is_at_error*: it is about an error, recognised or not. *scopes* are tried in order, the
    repository before all; *scope* is the first. *weights* says how much each of *task_words*
    counts: more for rare and frequent words, those of the title and identifiers. Both are empty
    beside an error, and *counts*, of the runs with these words, is None.
    *embedder* gives what turns texts into vectors. *model* of remedies is the one of the memory,
    else the shipped one. *asked_at* is when the task came, where that is known; else it is the
    newest. *least_session* is the least probability of a session that is shown.
    """

    state: State
    is_at_error: bool
    signature: ErrorSignature | None
    names: Names
    task_words: tuple[str, ...]
    weights: Mapping[str, float]
    scopes: tuple[Scope, ...]
    scope: Scope
    embedder: EmbedderSource
    model: FittedModel
    counts: WordCounts | None = None
    asked_at: datetime | None = None
    least_session: float = 0.0
    _overlaps: dict[str, float] = field(default_factory=dict)

    @property
    def task_type(self) -> TaskType | None:
        """The type of the task; None where it has no words."""
        return _task_type(self.state.task_description)

    def overlap(self, run: Trajectory) -> float:
        """Return the share of the query that the task of *run* has, 0 to 1."""
        known = self._overlaps.get(run.id)
        if known is None:
            known = self._overlaps[run.id] = overlap(self.weights, task_counts(run.task, run.files))
        return known


@lru_cache(_REMEMBERED_TASKS)
def _task_type(task: str) -> TaskType | None:
    return task_type_of(task) if word_counts(task) else None


def harness(agent: str) -> str:
    """Return what *agent*, maybe a sub-agent such as ``claude-code/subagent``, runs in."""
    return agent.partition("/")[0]


def query_of(
    state: State,
    store: Store,
    exclude_instances: frozenset[str] = frozenset(),
    as_of: datetime | None = None,
    embedder: EmbedderSource = no_embedder,
    *,
    error: ErrorSignature | None = None,
    asked_at: datetime | None = None,
    least_session: float = 0.0,
) -> Query:
    """Return the query of *state*; *error* is its error where that is recognised already."""
    is_at_error = error is not None or bool(state.current_error.strip())
    signature = error
    if is_at_error and error is None:
        signature = error_of(state) or _as_printed(store, state.current_error)
    weights, counts = {}, None
    if not signature:  # beside an error tasks are not compared
        task = state.task_description
        terms = dict(islice(word_counts(task).items(), TASK_WORDS))
        if terms:
            counts = store.runs.word_counts(tuple(terms))
            weights = emphasised(weights_of(terms, counts), task)
    exclude_instances = frozenset(map(masked_name, exclude_instances))
    everywhere = Scope(None, exclude_instances, as_of)
    here = (Scope(state.repo, exclude_instances, as_of),) if state.repo else ()
    scopes = (*here, everywhere)
    return Query(
        state=state,
        is_at_error=is_at_error,
        signature=signature,
        names=names_in(signature.error_type, signature.message) if signature else Names(),
        task_words=tuple(weights),
        counts=counts,
        weights=weights,
        scopes=scopes,
        scope=scopes[0],
        embedder=embedder,
        model=(stored_gate(store).model if signature else None) or SHIPPED,
        asked_at=asked_at or as_of,
        least_session=least_session,
    )


def _as_printed(store: Store, text: str) -> ErrorSignature | None:
    """Return the error of *store* whose printed form, which may be cut, is *text*."""
    printed = " ".join(text.split())
    if len(printed) > _LONGEST_PRINTED:
        return None
    start = printed.removesuffix("…").rstrip()
    is_cut = printed.endswith("…") and len(start) >= _LEAST_PRINTED
    for tally in store.recoveries.errors(Scope(), _ERRORS_READ):
        known = " ".join(tally.error.text.split())
        if known == printed or (is_cut and known.startswith(start)):
            return tally.error.signature(tally.error.template)
    return None


def weights_of(terms: Mapping[str, int], counts: WordCounts) -> dict[str, float]:
    """Return for each of *terms* its rarity in the tasks *counts* is of, times 1 + ln(count)."""
    return {
        word: (1 + log(count)) * rarity(counts.by_word[word], counts.total)
        for word, count in terms.items()
    }


# Candidates taken from the store per question; scores decide among them.
OVERFETCH = 48
_SAME_REPO, _SAME_TYPE = 0.15, 0.05


class CaseHit(Struct, frozen=True):
    """A past run that a channel found, with its evidence (0 to 1) and the similarity of its task.

    *similarity* is the cosine of the vectors, where vectors were compared.
    """

    trajectory: Trajectory
    evidence: float
    task_overlap: float
    fragments: tuple[Fragment, ...] = ()
    similarity: float = 0.0


class Findings(Struct, frozen=True):
    """Findings of one channel; *degraded* says what it could not do, and why.

    Recoveries are candidates in no order that counts; the rest is best first. *tasks* counts, for
    each scope of the query, those that met its error, and those that cleared it.
    """

    recoveries: tuple[RecoveryCandidate, ...] = ()
    cases: tuple[CaseHit, ...] = ()
    methodologies: tuple[Methodology, ...] = ()
    notes: tuple[Recollection, ...] = ()
    lessons: tuple[Recollection, ...] = ()
    sessions: tuple[Found, ...] = ()
    tasks: tuple[tuple[int, int], ...] = ()
    degraded: str = ""


Search: TypeAlias = Callable[[Query, Store], Findings]


class Channel(NamedTuple):
    """A way of searching: what it does *at_error*, and *about_task* without one.

    It does *without_cases* only where no similar case of the task is shown.
    """

    at_error: Search | None = None
    about_task: Search | None = None
    without_cases: Search | None = None


def ranked_cases(query: Query, trajectories: Iterable[Trajectory]) -> tuple[CaseHit, ...]:
    """Return *trajectories*, each once, those that fit *query* best first."""
    unique = {trajectory.id: trajectory for trajectory in trajectories}
    return best_first([case_hit(query, trajectory) for trajectory in unique.values()])


def case_hit(query: Query, trajectory: Trajectory, similarity: float = 0.0) -> CaseHit:
    """Rate how *trajectory* fits *query*: similarity of tasks, then repository and type.

    *similarity* is the cosine of the vectors, where a channel compares them.
    """
    shared = query.overlap(trajectory)
    near = scope_level(trajectory.repo, query.state.repo) is ScopeLevel.REPO
    evidence = (1 - _SAME_REPO - _SAME_TYPE) * max(shared, similarity) + _SAME_REPO * near
    evidence += _SAME_TYPE * (trajectory.task_type is query.task_type)
    return CaseHit(trajectory, evidence, shared, similarity=similarity)


def best_first(hits: Sequence[CaseHit]) -> tuple[CaseHit, ...]:
    """Return *hits*, the most evidence first, ties by id."""
    return tuple(sorted(hits, key=lambda hit: (-hit.evidence, hit.trajectory.id)))


# With so many runs of this type of task, others are not searched.
ENOUGH = 12
# Recoveries taken from the store per question: agreement counts them.
RECOVERIES = 128
# Where fewer are of the same type of error, those of its family say what else may help.
ENOUGH_OF_TYPE, RECOVERIES_OF_FAMILY = 16, 64
FRAGMENTS_AT_FILE = 2
_SAME_FILE = 0.5
_METHODOLOGIES = 64
_OF_TYPE = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE)
# What a methodology of this repository and one of any is worth, about this very message and about
# the error in general.
_OF_MESSAGE, _OF_ERROR = (0.95, 0.85), (0.75, 0.6)
# How much of its rank depends on its confidence.
_BY_CONFIDENCE = 0.25


def by_error(query: Query, store: Store) -> Findings:
    """Find what cleared errors of the same template or type, here and everywhere."""
    signature = query.signature
    if signature is None:
        return Findings()
    variants = signature.variants()
    questions = [
        ErrorQuestion(variant, level, scope)
        for scope, level, variant in product(query.scopes, _OF_TYPE, variants)
    ]
    ids = [error_id(variant) for variant in variants]
    known, recoveries, tasks = store.methodologies.with_recoveries(
        variants, query.scopes, _METHODOLOGIES, questions, RECOVERIES, ids
    )
    if len(recoveries) < ENOUGH_OF_TYPE:
        of_family = [ErrorQuestion(signature, SignatureLevel.FAMILY, query.scopes[-1])]
        more = store.recoveries.for_error(of_family, RECOVERIES_OF_FAMILY)
        recoveries = [*recoveries, *more]
    subject = subject_of(signature.message)
    fitting: list[tuple[float, Methodology]] = []
    for one in known:
        is_of_task = one.task_type is None or one.task_type is query.task_type
        if one.repo in (None, query.state.repo) and is_of_task and one.keyword in ("", subject):
            here, anywhere = _OF_MESSAGE if one.keyword else _OF_ERROR
            base = here if one.repo else anywhere
            worth = base * (1 - _BY_CONFIDENCE + _BY_CONFIDENCE * one.confidence)
            fitting.append((worth, one))
    fitting.sort(key=lambda pair: (-pair[0], pair[1].id))
    return Findings(
        recoveries=tuple(recoveries),
        methodologies=tuple(one for _, one in fitting),
        tasks=tuple(tasks),
    )


def by_harness(query: Query, _: Store, harnesses: Harnesses | None = None) -> Findings:
    """Find what tasks elsewhere did in this harness about errors of the same type.

    By the counts of *harnesses*, else those of the package. Tasks of the repository itself do not
    count: it has runs of its own, and what is evaluated on it must not know its answers.
    """
    known = shipped() if harnesses is None else harnesses
    agent = harness(query.state.agent)
    if query.signature is None or agent not in known:
        return Findings()
    counts = known[agent].without([query.state.repo])
    return Findings(recoveries=tuple(counts.recoveries(query.signature, agent)))


def by_task(query: Query, store: Store) -> Findings:
    """Find past runs of the same repository, those of the same type of task first."""
    if not query.state.repo or not query.task_words:
        return Findings()
    runs = store.runs.for_task(query.task_type, query.scope, OVERFETCH)
    if len(runs) < ENOUGH:
        runs = [*runs, *store.runs.for_task(None, query.scope, OVERFETCH)]
    return Findings(cases=ranked_cases(query, runs))


def by_state(query: Query, store: Store) -> Findings:
    """Find past runs with the same file open in the same phase, and their fragments there."""
    state = query.state
    if not (state.repo and state.phase and state.open_file):
        return Findings()
    name = PurePosixPath(state.open_file).name
    candidates = store.runs.find_fragments(
        query.scope, OVERFETCH, phase=state.phase, file_name=name
    )
    runs: dict[str, list[FragmentCandidate]] = {}
    for candidate in candidates:
        runs.setdefault(candidate.trajectory.id, []).append(candidate)
    cases = []
    for run in runs.values():
        case = case_hit(query, run[0].trajectory)
        fragments = tuple(candidate.fragment for candidate in run[:FRAGMENTS_AT_FILE])
        evidence = _SAME_FILE + case.evidence / 2
        cases.append(replace(case, evidence=evidence, fragments=fragments))
    return Findings(cases=best_first(cases))


def by_words_of_task(query: Query, store: Store) -> Findings:
    """Find runs whose task has the same rare words."""
    runs = (
        store.runs.for_text(query.task_words, scope, OVERFETCH, query.counts)
        for scope in query.scopes
    )
    return Findings(cases=ranked_cases(query, next(filter(None, runs), ())))


# As many as the channel has of vectors.
_NEAREST = 20

Scored = TypeVar("Scored")


def similar_in_words(query: Query, store: Store, failure: str) -> Findings:
    """Find runs in scope that share words with the task of *query*, by TF-IDF similarity.

    *failure*, the reason why vectors were not compared, becomes part of the findings.
    """
    runs = store.runs.for_text(query.task_words, query.scope, OVERFETCH, query.counts)
    tasks = _ranked(query.state.task_description, [(run.task, run) for run in runs], store)
    return Findings(
        cases=tuple(case_hit(query, run, similarity) for run, similarity in tasks),
        degraded=f"{failure}; words are compared instead of vectors",
    )


def _ranked(
    target: str, texts: Sequence[tuple[str, Scored]], store: Store
) -> list[tuple[Scored, float]]:
    """The items whose texts are most like *target*, with their similarity; ties in given order."""
    known = {word for text, _ in texts for word in word_counts(text)}
    terms = dict.fromkeys((*word_counts(target), *sorted(known)), 1)
    rarity = weights_of(terms, store.runs.word_counts(tuple(terms)))
    like = _weighed(word_counts(target), rarity)
    pairs = [(item, _cosine(like, _weighed(word_counts(text), rarity))) for text, item in texts]
    return sorted(pairs, key=lambda pair: -pair[1])[:_NEAREST]


def _weighed(counts: Counter[str], rarity: Mapping[str, float]) -> dict[str, float]:
    return {word: (1 + log(count)) * rarity[word] for word, count in counts.items()}


def _cosine(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    # In a fixed order: floating-point sums depend on it.
    shared = sum(left[word] * right[word] for word in sorted(left.keys() & right.keys()))
    lengths = _length(left) * _length(right)
    return shared / lengths if lengths else 0.0


def _length(weights: Mapping[str, float]) -> float:
    return sqrt(sum(weight * weight for weight in weights.values()))


# Nothing is over-fetched: the store ranks by what is the score here too.
NEAREST = 20


def by_semantic(query: Query, store: Store) -> Findings:
    """Find past runs of a similar task, by vectors.

    Not used at errors: similar meaning says little about what clears an error (docs/retrieval.md).
    Finds nothing without an embedding space. If the embedder fails, words are compared.
    """
    if not query.task_words:
        return Findings()
    try:
        try:
            return _search(query, store)
        except SpaceMismatchError:  # the memory was switched over just now: once more
            return _search(query, store)
    except EmbeddingError as error:
        return similar_in_words(query, store, str(error))


def _search(query: Query, store: Store) -> Findings:
    embedder = query.embedder()
    if embedder is None:
        return Findings()
    if query.state.embedding:
        task: Vector | None = Vector.of(embedder.space, [*query.state.embedding])
    else:
        (task,) = embedder.embed([query.state.task_description[:TASK_CHARS]]).vectors
    if task is None:
        return Findings()
    threshold = embedder.similarity_threshold
    return Findings(
        cases=tuple(
            case_hit(query, near.trajectory, rescaled(near.cosine, threshold))
            for near in store.vectors.nearest(task, query.scope, NEAREST)
        )
    )


AT_THRESHOLD = 0.3


def rescaled(cosine: float, threshold: float | None) -> float:
    """Return *cosine* rescaled so that *threshold*, that of its space, becomes 0.3.

    Return 0 without a threshold: similarity alone then admits nothing.
    """
    if threshold is None:
        return 0.0
    if cosine <= threshold:
        return AT_THRESHOLD * max(cosine, 0.0) / threshold
    return AT_THRESHOLD + (1 - AT_THRESHOLD) * (cosine - threshold) / (1 - threshold)


# How many are recalled; the gate and the length of the text limit how many are shown.
_RECALLED = 10


def by_notes(notes: "Callable[[], Notes]") -> Channel:
    """Find notes about the task; not used at errors, where no note was ever right."""

    def search(query: Query, store: Store) -> Findings:
        # A note is as short as a title: more of the task is only more that it cannot answer.
        title = title_of(query.state.task_description)
        if not title:
            return Findings()
        try:
            repo = query.state.repo
            recalled = notes().recall(title, repo=repo, limit=_RECALLED, strategy=Strategy.NOTES)
            # Lessons have a channel of their own.
            own = (one for one in recalled if one.note.kind is NoteKind.NOTE)
            return Findings(notes=_readable(own, query, store))
        except ContextGraphError as error:  # other channels still answer
            return Findings(degraded=str(error))

    return Channel(about_task=search)


def by_lessons(lessons: "Callable[[], Lessons]") -> Channel:
    """Find decisions of people in earlier sessions, at the start of a run.

    These are about its task, or people had to repeat them in other tasks.
    """

    def search(query: Query, store: Store) -> Findings:
        state, as_of = query.state, query.scope.as_of
        task, repo = state.task_description, state.repo or None
        if state.last_action or state.steps or not (task.strip() or repo):
            return Findings()
        try:
            known = lessons()
            about = known.for_request(task, repo=repo, as_of=as_of) if task.strip() else ()
            found = (*about, *(known.standing(repo, task, as_of=as_of) if repo else ()))
            return Findings(lessons=_readable(found, query, store))
        except ContextGraphError as error:  # other channels still answer
            return Findings(degraded=str(error))

    return Channel(about_task=search)


def by_sessions(notes: "Callable[[], Notes]") -> Channel:
    """Find sessions in which people and agents spoke about the task."""

    def search(query: Query, store: Store) -> Findings:
        state, as_of = query.state, query.scope.as_of
        if state.last_action or state.steps or not state.repo:
            return Findings()
        from contextgraph.knowledge.search import sessions_about  # slow to load

        try:
            task, least = state.task_description, query.least_session
            found = sessions_about(task, store, notes, repo=state.repo, as_of=as_of, least=least)
            return Findings(sessions=found)
        except ContextGraphError as error:  # other channels still answer
            return Findings(degraded=str(error))

    return Channel(without_cases=search)


def _readable(
    found: Iterable[Recollection], query: Query, store: Store
) -> tuple[Recollection, ...]:
    found = [*found]
    notes = [note for one in found for note in (one.note, one.later) if note]
    seen = readable(notes, store, query.scope.exclude_instances, query.scope.as_of)
    known = {note.id for note in seen}
    return tuple(
        one if one.later is None or one.later.id in known else replace(one, later=None)
        for one in {one.note.id: one for one in found}.values()
        if one.note.id in known
    )


def readable(
    notes: Iterable[Note],
    store: Store,
    exclude_instances: frozenset[str],
    as_of: datetime | None,
) -> list[Note]:
    """Return the *notes* that every agent may see and that existed at *as_of*.

    Not what is confidential, looks like instructions, was said in a run of *exclude_instances*, or
    comes from a distrusted source.
    """
    notes = [*notes]
    named = any(note.source for note in notes)
    distrusted = store.exposures.record([]).distrusted if named else frozenset()
    shown = [
        note
        for note in notes
        if not (note.security.is_secret or gives_instructions(note.content))
        and distrusted.isdisjoint((note.source, note.contributor))
        and (as_of is None or (note.created_at <= as_of and note.is_valid(as_of)))
    ]
    said_in = [run for note in shown for run in note.targets(LinkType.SAID_IN)]
    runs = store.runs.trajectories(said_in if exclude_instances else ()).values()
    hidden = {run.id for run in runs if run.instance_id in exclude_instances}
    return [note for note in shown if hidden.isdisjoint(note.targets(LinkType.SAID_IN))]


TITLE_CHARS, _TITLE_AGAIN = 120, 2
_REMEMBERED = 4_096

SAME_TEMPLATE = frozenset({SignatureLevel.PLACE, SignatureLevel.TEMPLATE})
# Where code was at fault, what cleared an error about one name does not help with another.
OF_CODE = EXCEPTIONS | {Family.EDIT_REJECTED}


@lru_cache(_REMEMBERED)
def task_counts(task: str, files: tuple[str, ...]) -> FixedCounts:
    """Count words of a past task by field, as BM25F: the title three times, *files* once."""
    counted = Counter(word_counts(task))
    for _ in range(_TITLE_AGAIN):
        counted.update(words(clip(title_of(task), TITLE_CHARS)))
    for file in files:
        counted.update(words(file))
    return FixedCounts(counted)


def emphasised(weights: Mapping[str, float], task: str) -> dict[str, float]:
    """Return *weights*, doubled for words in the title of *task* and for whole identifiers."""
    title = frozenset(words(clip(title_of(task), TITLE_CHARS)))
    return {
        word: weight * (2 if word in title else 1) * (2 if "_" in word else 1)
        for word, weight in weights.items()
    }


def about_another(current: ErrorSignature, candidate: RecoveryCandidate) -> bool:
    """Return True if code was at fault, and what was cleared names other things than *current*.

    What was done about one name does not help with another (figures: docs/evaluation.md), nor
    is the package of another module; that one path or command is not found often has the same
    reason as that another one is not.
    """
    if current.family not in OF_CODE and not current.error_type.endswith("No module named"):
        return False
    ours, theirs = set(quoted_names(current.message)), set(quoted_names(candidate.message))
    return bool(ours and theirs and ours.isdisjoint(theirs))


def scope_level(repo: str, current: str) -> ScopeLevel:
    """Return whether evidence of *repo* is of the *current* repository."""
    same = current and repo.casefold() == current.casefold()
    return ScopeLevel.REPO if same else ScopeLevel.GENERAL


Key = TypeVar("Key", bound=Hashable)


def ranks_in(
    rankings: Mapping[str, Sequence[tuple[Key, float]]],
) -> dict[Key, tuple[ChannelRank, ...]]:
    """Return for each key its rank in the channels of *rankings* that found it.

    A ranking has pairs of key and evidence, best first.
    """
    ranks: dict[Key, tuple[ChannelRank, ...]] = {}
    for name, ranking in rankings.items():
        for rank, (key, evidence) in enumerate(ranking, start=1):
            ranks[key] = (*ranks.get(key, ()), ChannelRank(name, rank, evidence))
    return ranks


def signature_level(current: ErrorSignature, candidate: RecoveryCandidate) -> SignatureLevel:
    """Return how exactly the *current* error and that of *candidate* agree."""
    level = current.agreement(candidate, candidate.location)
    if level in SAME_TEMPLATE and not has_words(current.template):
        return SignatureLevel.TYPE
    return level or SignatureLevel.FAMILY


@lru_cache(_REMEMBERED)
def has_words(template: str) -> bool:
    """Return False for a template of placeholders only, whose agreement means nothing."""
    bare = "".join("" if part.startswith("<") else part for part in template.split())
    return any(letter.isalpha() for letter in bare)


HALF_LIFE = timedelta(days=90)
WEIGHTS: Mapping[str, float] = {
    "task": 0.6,
    "state": 0.5,
    "lexical": 0.8,
    "semantic": 1.0,
}

# How much of the final score is decided by what: agreement of channels, then evidence, then age.
_EVIDENCE_LIFT, _RECENCY_LIFT = 0.4, 0.05


def final_score(fused: float, evidence: float, seen_at: datetime, newest: datetime | None) -> float:
    """Return the score of an item, 0 to 1: *fused* ranks, raised by *evidence* and recency.

    Recency halves every 90 days before the *newest* item found, not before now: the same memory
    gives the same answer tomorrow.
    """
    age = (newest - seen_at) if newest else timedelta()
    recency = age_weight(age, HALF_LIFE)
    base = 1 - _EVIDENCE_LIFT - _RECENCY_LIFT
    return fused * (base + _EVIDENCE_LIFT * evidence + _RECENCY_LIFT * recency)


CHANNELS: Mapping[str, Channel] = {
    "error": Channel(at_error=by_error),
    "harness": Channel(at_error=by_harness),
    "task": Channel(about_task=by_task),
    "state": Channel(about_task=by_state),
    "lexical": Channel(about_task=by_words_of_task),
    "semantic": Channel(about_task=by_semantic),
}


FROM_RUNS = {name: channel for name, channel in CHANNELS.items() if name != "harness"}
"""Channels that ask the memory alone."""


def without_counts_of(
    channels: Mapping[str, Channel], repos: Collection[str]
) -> dict[str, Channel]:
    """Return *channels*, of which that by harness knows nothing of *repos*."""
    counts = {agent: known.without(repos) for agent, known in shipped().items()}
    hidden = {"harness": Channel(at_error=partial(by_harness, harnesses=counts))}
    return {name: hidden.get(name, channel) for name, channel in channels.items()}


Node: TypeAlias = Fragment | Methodology | Trajectory | State
_NODE_TYPES = ("Fragment", "Methodology", "Trajectory", "State")
# Runs whose fragments are compared, and methodologies, at most.
_RUNS, _COMPARED = 32, 2_000


def nearest_nodes(
    store: Store,
    source: EmbedderSource,
    query: str | Iterable[float] | Vector,
    node_type: str,
    limit: int,
) -> tuple[Node, ...]:
    """Return at most *limit* nodes of *node_type* whose texts are nearest to *query*.

    Fragments and states are those of the nearest runs, and those in which an error with such words
    was cleared; fragments and methodologies also those whose stored vectors are nearest. What has
    none is embedded on request. Where the embedder fails, the words of a text are compared, and by
    a vector what is stored: other nodes come in the order of their runs. Raises `ValueError` for an
    unknown *node_type*, and `SpaceMismatchError` for a vector that no space of the memory has.
    """
    if node_type not in _NODE_TYPES:
        raise ValueError(f"node_type is one of {', '.join(_NODE_TYPES)}, not {node_type!r}")
    embedder, text = source(), query if isinstance(query, str) else ""
    if embedder is None:
        if not text:
            raise SpaceMismatchError("the memory has no embedding space yet; search by a text")
        vector = None
    elif text:
        vector = _embedded(embedder, [text])[0]
    else:
        vector = query if isinstance(query, Vector) else Vector.of(embedder.space, [*query])
    stored = _stored_nodes(store, node_type, vector, limit) if vector else []
    own = {node.id: one for node, one in stored}
    others = _nodes(store, node_type, text, vector)
    nodes: list[tuple[str, Node]] = [(node_text(node), node) for node, _ in stored]
    nodes += [(said, node) for said, node in others if _id(node) not in own]
    texts = [(said, index) for index, (said, _) in enumerate(nodes)]
    # A fitted space does not know the rarest words.
    scores = Counter(dict(_ranked(text, texts, store)) if text else {})
    embedded = dict(enumerate(own.values()))
    if embedder is not None and vector is not None:
        vectors = _embedded(embedder, [said for said, _ in nodes[len(own) :]])
        if not (text or any(vectors)):
            scores.update({index: 1 / (1 + index) for index in range(len(own), len(nodes))})
        embedded |= {index: one for index, one in enumerate(vectors, start=len(own)) if one}
        similarities = cosines(vector, [*embedded.values()])
        scores.update(dict(zip(embedded, similarities, strict=True)))
    best = sorted((index for index in scores if scores[index] > 0), key=lambda i: (-scores[i], i))
    return tuple(
        replace(nodes[index][1], embedding=embedded[index].numbers().tolist())
        if index in embedded
        else nodes[index][1]
        for index in best[:limit]
    )


def _embedded(embedder: Embedder, texts: Sequence[str]) -> Sequence[Vector | None]:
    """Return the vectors of *texts*, none where the embedder fails: words are compared then."""
    try:
        return embedder.embed(texts).vectors
    except EmbeddingError as error:
        import logging

        logging.getLogger(__name__).warning("words are compared instead of vectors: %s", error)
        return [None] * len(texts)


def _id(node: Node) -> str:
    return "" if isinstance(node, State) else node.id


def _stored_nodes(
    store: Store, node_type: str, vector: Vector, limit: int
) -> list[tuple[Fragment | Methodology, Vector]]:
    """Return the nodes whose stored vectors are nearest, with these."""
    if node_type == "Methodology":
        near = store.vectors.nearest_nodes(vector, "Methodology", limit)
        known = store.methodologies.get([id_ for _, id_ in near]) if near else ()
        return [(one, near["", one.id]) for one in known]
    if node_type != "Fragment":
        return []
    near = store.vectors.nearest_nodes(vector, "Fragment", limit)
    by_run = store.runs.fragments(dict.fromkeys(run for run, _ in near))
    found = {one.id: one for fragments in by_run.values() for one in fragments}
    return [(found[id_], own) for (_, id_), own in near.items() if id_ in found]


def _nodes(
    store: Store, node_type: str, text: str, vector: Vector | None
) -> list[tuple[str, Node]]:
    """Return the nodes to compare, each with its text."""
    if node_type == "Methodology":
        known = store.methodologies.get(store.methodologies.ids(limit=_COMPARED))
        return [(node_text(found), found) for found in known]
    terms = tuple(word_counts(text))
    if vector is None:
        runs = store.runs.for_text(terms, Scope(), _RUNS)
    else:
        runs = [near.trajectory for near in store.vectors.nearest(vector, Scope(), _RUNS)]
    if node_type == "Trajectory":
        return [(run_text(run), run) for run in runs]
    cleared = store.recoveries.for_text(terms, Scope(), _RUNS) if terms else ()
    ids = dict.fromkeys((*(run.id for run in runs), *(found.trajectory_id for found in cleared)))
    if node_type == "State":
        raws = filter(None, map(store.runs.raw, ids))
        # Of the states of a run with the same error, the first.
        states = {
            (raw.instance_id, state.current_error): state
            for raw in raws
            for state in reversed(tuple(states_of(raw)))
        }
        return [(f"{one.task_description} {one.current_error}", one) for one in states.values()]
    by_run = store.runs.fragments(ids)
    fragments = (fragment for run in ids for fragment in by_run.get(run, ()))
    return [(node_text(fragment), fragment) for fragment in fragments]
