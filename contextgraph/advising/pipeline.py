"""The way of a remedy from the memory to an agent: a list of steps, each of which can silence it.

=========  ==========================================================  ==========================
step       a remedy is silenced where                                  decided by
=========  ==========================================================  ==========================
found      it is never advised, or cannot help in this state           `evidence.found`
same       (what says the same is one remedy, and is counted)          `evidence.found`, `counted`
trusted    it harmed, was withdrawn, or gives instructions             `_trusted`
worth it   it is too improbable                                        `gate.Gate.refusal`
fresh      it names what the working tree does not have                `freshness.fresh_remedy`
sure       nobody asked, and it is not sure enough to interrupt for    `_sure`
new        it was shown to this agent before in this run               `_New`
fits       more are asked for, or the text has no room                 `wording.Room`
chance     the answer is withheld, to measure what advice is worth     `_by_chance`
=========  ==========================================================  ==========================

`MemoryRetriever.retrieve` goes up to "worth it" beside the memory; `settle` does the rest where the
agent works: with its working tree, and with what it was shown before.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import chain, zip_longest
from typing import TypeAlias

from msgspec import Struct

from contextgraph.advising.cases import cases_at_error, cases_of, session_of_task
from contextgraph.advising.channels import (
    CHANNELS,
    WEIGHTS,
    Channel,
    Findings,
    Node,
    Query,
    Search,
    nearest_nodes,
    no_embedder,
    query_of,
)
from contextgraph.advising.evidence import counted, found, recovery_key
from contextgraph.advising.failure import failure_warnings
from contextgraph.advising.freshness import fresh_case, fresh_playbook, fresh_remedy
from contextgraph.advising.gate import (
    CONSERVATIVE,
    INTERRUPTION,
    NO_CREDITS,
    SURE,
    Credits,
    Gate,
    credits_for,
    may_be_shown,
)
from contextgraph.advising.playbook import Playbooks, seen_by, unversioned
from contextgraph.advising.wording import (
    Room,
    case_line,
    command_warnings,
    fitting_lessons,
    is_told,
    note_line,
    playbook_lines,
    remedy_text,
    unsaid,
)
from contextgraph.errors import ContextGraphError, StoreError
from contextgraph.knowledge.counted import program_not_found
from contextgraph.model import (
    Cause,
    CommandHistory,
    ErrorSignature,
    FailureWarning,
    Found,
    Fragment,
    LessonKind,
    MemoryContext,
    Methodology,
    MethodologyStatus,
    NonNegativeInt,
    Note,
    Origin,
    Phase,
    PipelineStep,
    RecoveryCandidate,
    Remedy,
    RepositoryPlaybook,
    Scope,
    Silence,
    State,
    TaskType,
    Time,
    Vector,
    new_context_id,
    vouches,
)
from contextgraph.model.values import argument, checked, replace
from contextgraph.store.memory_store import Store, current_name
from contextgraph.store.protocols import EmbedderSource
from contextgraph.system.working_tree import WorkingTree
from contextgraph.text import gives_instructions, words
from contextgraph.trace import MISSING_PROGRAM, MachineLesson, error_of, lessons_of, signature_of
from contextgraph.trace.shell import commands_in

Step: TypeAlias = Callable[[Remedy], Remedy | Silence]

# Errors that are looked through for methodologies, those of most runs first.
_CONSIDERED = 300
# The share of tasks that run a program from which on a start says that it fails.
_OFTEN_RUN = 0.25
# Before these, nothing that one instance or source alone supports is ranked.
_PROBABLE = 0.5
# Why a remedy is silent whose cause the start named.
TOLD_AT_START = "it was shown at the start of this run"
_SETTLED = (PipelineStep.SURE, PipelineStep.NEW, PipelineStep.FITS, PipelineStep.CHANCE)


def passed(remedies: Iterable[Remedy], *steps: Step) -> Iterator[Remedy]:
    """Take each of *remedies* through *steps*, up to the one that silences it."""
    for remedy in remedies:
        taken = remedy
        for step in steps:
            if taken.silence is None:
                result = step(taken)
                taken = replace(taken, silence=result) if isinstance(result, Silence) else result
        yield taken


@checked
class MemoryRetriever:
    """Retrieves what a memory knows about a state."""

    def __init__(
        self,
        store: Store,
        embedder: EmbedderSource = no_embedder,
        *,
        channels: Mapping[str, Channel] = CHANNELS,
        gate: Gate = CONSERVATIVE,
        weights: Mapping[str, float] = WEIGHTS,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._clock = clock
        self.channels = channels
        self.gate = gate
        self.weights = weights
        self.embedder = embedder

    @cached_property
    def playbooks(self) -> Playbooks:
        """Counts what the runs of a repository agree on."""
        return Playbooks(self._store, self._clock)

    def retrieve(
        self,
        current_state: State,
        top_k: NonNegativeInt = 5,
        *,
        exclude_instances: frozenset[str] = frozenset(),
        as_of: Time | None = None,
        error: ErrorSignature | None = None,
    ) -> MemoryContext:
        """Return what fits *current_state*, at most *top_k* items of each kind.

        A channel that fails is named in `degraded`. *error* is the error of the state, if it is
        already recognised. Raises `StoreError` if the store does not answer.
        """
        (context,) = self.retrieve_under(
            (self.gate,),
            current_state,
            top_k,
            exclude_instances=exclude_instances,
            as_of=as_of,
            error=error,
        )
        return context

    def retrieve_under(
        self,
        gates: Sequence[Gate],
        state: State,
        limit: NonNegativeInt = 5,
        *,
        exclude_instances: frozenset[str] = frozenset(),
        as_of: Time | None = None,
        error: ErrorSignature | None = None,
        asked_at: Time | None = None,
    ) -> tuple[MemoryContext, ...]:
        """Return the answers of `retrieve` under each of *gates*, from one search of the memory.

        *asked_at* is the time of the task, by default now.
        """
        with self._store.snapshot():
            state = replace(state, repo=current_name(self._store.runs, state.repo))
            query = query_of(
                state,
                self._store,
                exclude_instances,
                as_of,
                self.embedder,
                error=error,
                asked_at=asked_at,
                least_session=min(gate.min_session_precision for gate in gates),
            )
            findings, degraded = self._search(
                query,
                {
                    name: channel.at_error if query.is_at_error else channel.about_task
                    for name, channel in self.channels.items()
                },
            )
            each: dict[object, RecoveryCandidate] = {}
            for of in findings.values():  # several channels find the same recoveries
                each.update(zip(map(recovery_key, of.recoveries), of.recoveries, strict=True))
            candidates = [
                one for one in each.values() if vouches(one.contributor, one.repo, state.repo)
            ]
            remedies, known = self._remedies(query, findings, candidates)
            tasks = next((of.tasks for of in findings.values() if of.tasks), ())
            warnings = tuple(
                failure_warnings(state, self._store, query.scope, query.signature, tasks)
            )
            # Past tasks and notes say nothing of what clears an error.
            answers = (
                [
                    MemoryContext(
                        new_context_id(),
                        similar_cases=cases_at_error(
                            query, candidates, remedies, gate, self._store, limit
                        ),
                    )
                    for gate in gates
                ]
                if query.is_at_error
                else self._about_task(query, gates, limit, findings, degraded)
            )
            contexts = []
            for gate, about in zip(gates, answers, strict=True):
                answer = replace(
                    about,
                    remedies=tuple(
                        passed(remedies, partial(_trusted, known), partial(_worth_it, gate))
                    ),
                    error=query.signature,
                    degraded=tuple(degraded.values()),
                    failed=tuple(degraded),
                    warnings=warnings,
                )
                answer = settle(answer, limit)
                contexts.append(answer if answer.shown else self._with_warning(query, answer))
            return tuple(contexts)

    def _search(
        self, query: Query, searches: Mapping[str, Search | None]
    ) -> tuple[dict[str, Findings], dict[str, str]]:
        """Return what each of *searches* found, and the failures of others, by channel."""
        findings: dict[str, Findings] = {}
        degraded: dict[str, str] = {}
        for name, search in searches.items():
            if search is None:
                continue
            try:
                findings[name] = search(query, self._store)
            except StoreError:
                raise
            except ContextGraphError as error:
                degraded[name] = f"{name}: {error}"
            else:
                if findings[name].degraded:
                    degraded[name] = f"{name}: {findings[name].degraded}"
        return findings, degraded

    def _remedies(
        self,
        query: Query,
        findings: Mapping[str, Findings],
        candidates: Sequence[RecoveryCandidate],
    ) -> tuple[list[Remedy], Credits]:
        """Return what was done about the error of *query*, best first, and the credit of it."""
        if query.signature is None:
            return [], NO_CREDITS
        remedies, counts = found(query, candidates)
        known = credits_for(self._store, [one.advice for one in remedies])
        if known.distrusted:
            trusted = [one for one in candidates if one.contributor not in known.distrusted]
            remedies, counts = found(query, trusted)
        methodologies = [one for of in findings.values() for one in of.methodologies]
        return _ordered(counted(query, remedies, counts, known, methodologies)), known

    def _about_task(
        self,
        query: Query,
        gates: Sequence[Gate],
        limit: NonNegativeInt,
        findings: Mapping[str, Findings],
        degraded: dict[str, str],
    ) -> list[MemoryContext]:
        """Return what *findings* say about the task, under each of *gates*.

        Adds the failures of further searches to *degraded*.
        """
        whole = self._playbook(query, degraded)
        playbook = whole if whole and any(playbook_lines(whole)) else None
        # Pinned notes stand in the playbook.
        pinned = {note.id for note in playbook.notes} if playbook else set[str]()
        notes = [one for of in findings.values() for one in of.notes if one.note.id not in pinned]
        task = query.state.task_description
        lessons = [
            one
            for of in findings.values()
            for one in of.lessons
            if whole is None or _is_run(one.note, whole, task)
        ]
        is_ours = seen_by(self._store, query.state.agent)
        hits = {
            name: tuple(
                hit
                for hit in of.cases
                if is_ours(run := hit.trajectory)
                and vouches(run.contributor, run.repo, query.state.repo)
            )
            for name, of in findings.items()
            if name in self.weights
        }

        of_gates = [cases_of(query, hits, gate, self._store, limit, self.weights) for gate in gates]
        sessions: list[Found] = []
        if not all(any(case.is_shown for case in cases) for cases in of_gates):
            more, failed = self._search(
                query, {name: channel.without_cases for name, channel in self.channels.items()}
            )
            degraded.update(failed)
            sessions = [one for of in more.values() for one in of.sessions]
        answers = []
        for gate, cases in zip(gates, of_gates, strict=True):
            probable = [one for one in notes if one.probability >= gate.min_note_precision]
            excluded = query.scope.exclude_instances
            spoken = () if any(case.is_shown for case in cases) else sessions
            about = session_of_task(spoken, query.state.repo, excluded, gate, self._store)
            known = {case.trajectory_id for case in about}
            others = (case for case in cases if case.trajectory_id not in known)
            answers.append(
                MemoryContext(
                    new_context_id(),
                    playbook=playbook,
                    notes=tuple(probable[:limit]),
                    lessons=fitting_lessons(lessons, gate.min_lesson_precision),
                    similar_cases=(*about, *others)[:limit],
                )
            )
        return answers

    def _playbook(self, query: Query, degraded: dict[str, str]) -> RepositoryPlaybook | None:
        """Return what runs of the repository agree on, where the run that asks has only begun."""
        state, scope = query.state, query.scope
        has_begun = state.last_action or state.steps or state.phase is Phase.SUBMITTING
        if has_begun or not (state.repo or state.agent):
            return None
        playbook = self.playbooks.of(
            state.repo,
            state.task_description,
            scope.exclude_instances,
            scope.as_of,
            state.agent,
            state.environment,
        )
        if playbook.degraded:
            degraded["notes"] = playbook.degraded
        return playbook

    def _with_warning(self, query: Query, context: MemoryContext) -> MemoryContext:
        """*context* with what is known of a command whose program is missing, as `before` has it.

        The command is the last one, or the one that the error names.
        """
        error, state, scope = query.signature, query.state, query.scope
        if error is None or error.error_type not in MISSING_PROGRAM or not state.repo:
            return context
        named = "".join(query.names.names[:1])
        is_module = error.error_type.startswith("python -m")
        program = f"python -m {named}" if is_module else program_not_found(error.message)
        history = self.playbooks.history(
            state.repo,
            state.last_action or program,
            scope.exclude_instances,
            scope.as_of,
            state.agent,
            state.environment,
        )
        # That it does not run is known by now: who did not ask does without.
        known = self.warnings_before(history) if history.others else ()
        asked = tuple(replace(one, is_sure=False) for one in known)
        # That it was never cleared, whose text is its own subject, is not said beside that.
        others = [one for one in context.warnings if not asked or one.subject != one.text]
        return replace(context, warnings=(*asked, *others))

    def warnings_before(self, history: CommandHistory) -> tuple[FailureWarning, ...]:
        """Return the warning before the command of *history*, unless a person turned it off."""
        found = command_warnings(history)
        names = [one.fact for one in found]
        verdicts = self._store.exposures.record(names).verdicts if names else ()
        off = {verdict.advice for verdict in verdicts if verdict.is_quarantined}
        return tuple(one for one in found if one.fact not in off)

    def only(self, channel: str) -> "MemoryRetriever":
        """Return a retriever that uses only *channel*, one of `CHANNELS`."""
        single = {channel: self.channels.get(channel, CHANNELS[channel])}
        retriever = MemoryRetriever(
            self._store, self.embedder, channels=single, gate=self.gate, weights=self.weights
        )
        retriever.playbooks = self.playbooks
        return retriever

    def by_error(
        self, error_type: str, error_msg: str = "", top_k: NonNegativeInt = 5
    ) -> tuple[Methodology, ...]:
        """Return methodologies for an error, highest success rate first.

        *error_type* is for example ``ImportError``, *error_msg* the rest of its message.
        """
        store = self._store.methodologies
        error = signature_of(f"{error_type}: {error_msg}") or signature_of(error_msg)
        known = store.for_error(error.variants(), Scope(), top_k) if error else ()
        if not known:
            met = self._store.recoveries.errors(Scope(), _CONSIDERED)
            same = [tally.error.id for tally in met if tally.error.error_type == error_type]
            known = _in_use(store.get(errors=same)) if same else ()
        return tuple(sorted(known, key=lambda found: (-found.success_rate, found.id))[:top_k])

    def by_task(
        self, task_type: str, repo_context: str = "", top_k: NonNegativeInt = 20
    ) -> tuple[Fragment, ...]:
        """Return fragments of solved runs with a task type, the most informative of each run first.

        *task_type* is a `TaskType` or its value; raises `ValueError` for another. *repo_context* is
        the repository (``owner/repo``), or empty for all.
        """
        kind = argument("task_type", TaskType, task_type)
        runs = self._store.runs.for_task(kind, Scope(repo_context or None), top_k)
        solved = [run.id for run in runs if run.success]
        ranked = self._store.runs.fragments(solved, top_k).values()
        return tuple(filter(None, chain.from_iterable(zip_longest(*ranked))))[:top_k]

    def by_state(self, state: State, top_k: NonNegativeInt = 5) -> tuple[Methodology, ...]:
        """Return methodologies for *state*, most confident first.

        If the state has an error, those for it; otherwise those for errors that runs met in this
        phase, in the repository of the state if it names one.
        """
        store, scope = self._store.methodologies, Scope(state.repo or None)
        if error := error_of(state) if state.current_error else None:
            known = store.for_error(error.variants(), scope, top_k)
        else:
            met = self._store.recoveries.errors(scope, _CONSIDERED, phase=state.phase)
            known = _in_use(store.get(errors=[tally.error.id for tally in met])) if met else ()
        return tuple(sorted(known, key=lambda found: (-found.confidence, found.id))[:top_k])

    def by_semantic(
        self,
        query_embedding: str | Sequence[float] | Vector,
        node_type: str = "Fragment",
        top_k: NonNegativeInt = 5,
    ) -> tuple[Node, ...]:
        """Return the nodes nearest in meaning to a text or a vector, nearest first.

        *node_type* is ``Fragment``, ``Methodology``, ``Trajectory`` or ``State``; each node has its
        `embedding`. States are read from the nearest runs. A text is compared by words while the
        memory has no embedding space; a vector then raises `SpaceMismatchError`.
        """
        return nearest_nodes(self._store, self.embedder, query_embedding, node_type, top_k)


def settle(
    context: MemoryContext,
    limit: NonNegativeInt,
    *,
    tree: WorkingTree | None = None,
    already_shown: Collection[str] = (),
    unasked: bool = False,
    withheld: bool = False,
) -> MemoryContext:
    """Take *context* through the steps beside the agent; it may have gone through them before.

    *tree* is the working tree of the agent, *already_shown* is what this run was shown: see
    `sayings`. *unasked*: the agent is interrupted. Of remedies at most *limit* are ranked.
    """
    remedies = [
        replace(one, silence=None, rank=0) if one.silence and one.silence.step in _SETTLED else one
        for one in context.remedies
    ]
    if unasked:
        # What is like the moment of an error interrupts no agent: it says no more than remedies do.
        context = replace(
            context,
            warnings=tuple(one for one in context.warnings if one.is_sure),
            similar_cases=() if context.error else context.similar_cases,
        )
    if tree is not None:
        fresh = passed(remedies, partial(fresh_remedy, context.error, tree), _worded)
        remedies = _ordered(fresh)
        playbook = context.playbook and fresh_playbook(context.playbook, tree)
        context = replace(
            context,
            similar_cases=tuple(fresh_case(case, tree) for case in context.similar_cases),
            playbook=playbook if playbook and any(playbook_lines(playbook)) else None,
        )
    if already_shown:
        context = without_shown(context, already_shown)
    steps: list[Step] = [_New({*already_shown}), Room(context.id, limit)]
    if unasked:
        has_own = any(one.silence is None and "" in one.why.sources for one in remedies)
        steps.insert(0, partial(_sure, has_own))
    if withheld:
        steps.append(_by_chance)
    return replace(context, remedies=tuple(passed(remedies, *steps)))


def shown_by_chance(context: MemoryContext) -> MemoryContext:
    """Return *context* with its remedies that were withheld by chance."""
    remedies = (replace(one, silence=None) if one.is_withheld else one for one in context.remedies)
    return replace(context, remedies=tuple(remedies))


def sayings(context: MemoryContext) -> Iterator[str]:
    """Yield each thing that *context* shows an agent: nothing is shown twice in a run."""
    if context.loop:  # its line says nothing of other tasks
        return
    yield from chain.from_iterable(map(_said, context.shown))
    yield from (one.subject for one in context.warnings if one.is_sure or not context.error)
    if not context.error:
        yield from (case_line(case) for case in context.similar_cases if is_told(case))
    yield from (note_line(recollection.note) for recollection in context.notes)
    yield from (recollection.note.id for recollection in context.lessons)
    if context.playbook:
        yield from (line.text for line in playbook_lines(context.playbook))
        for fact in context.playbook.facts:
            yield lesson_key(MachineLesson(fact.cause, fact.fails, fact.works))
            if fact.cause is Cause.KEPT_FOLDER:
                yield lesson_key(MachineLesson(Cause.FOLDER))


def _said(remedy: Remedy) -> tuple[str, ...]:
    """Return what *remedy* says: its sentence and, where it names that, what is to be done."""
    named = [one for one in remedy.actions if one.replaced and one.target != one.pattern.target]
    if not named or len(named) < len(remedy.actions):
        return (remedy.description,)
    # Whatever it is to replace.
    return remedy.description, "\n".join(f"{one.kind} {one.target}" for one in named)


def _is_run(note: Note, playbook: RepositoryPlaybook, task: str) -> bool:
    """Return False for a *note* on a program that is seldom run here and not named by the *task*.

    Versions in the names of programs do not count.
    """
    facts = note.lesson
    if not (facts and facts.origin is Origin.COUNTED and facts.kind is LessonKind.FACT):
        return True
    records = (*playbook.tests, *playbook.scripts, *playbook.setup)
    often = (one.command for one in records if one.tried >= _OFTEN_RUN * playbook.tasks)
    used = {unversioned(one.program) for line in often for one in commands_in(line)}
    programs = {*map(unversioned, facts.about.programs)}
    return not programs.isdisjoint({*used, *map(unversioned, words(task))})


def lesson_key(lesson: MachineLesson) -> str:
    """Return the key of a *lesson* of the machine among `sayings`, for any wording."""
    return "\n".join(lesson)


def _ordered(remedies: Iterable[Remedy]) -> list[Remedy]:
    """Order by score; what few support comes after all else that is probable enough.

    Where sources are named, what one of them did often displaces nothing that others agree on.
    """
    given = [*remedies]
    is_named = any(any(remedy.why.sources) for remedy in given)
    return sorted(
        given,
        key=lambda one: (
            one.silence is not None,
            not (one.why.is_active and one.probability >= _PROBABLE),
            is_named and not one.why.is_active,
            is_named and not one.why.is_active and "" not in one.why.sources,
            -one.score,
        ),
    )


def _trusted(known: Credits, remedy: Remedy) -> Remedy | Silence:
    credit, by = known.of(remedy.advice), remedy.methodology
    if known.is_silenced(remedy.advice, remedy.why.sources):
        reason = "it was quarantined by hand" if credit.by_hand else "it harmed where it was shown"
        return Silence(PipelineStep.TRUSTED, reason)
    if by and (not may_be_shown(by) or known.of(by.id).is_quarantined):
        return Silence(PipelineStep.TRUSTED, "its methodology was withdrawn")
    if gives_instructions(remedy_text(remedy)):
        return Silence(PipelineStep.TRUSTED, "it quotes an instruction to an agent")
    if by and not remedy.why.is_active:
        remedy = replace(remedy, methodology=replace(by, status=MethodologyStatus.PROBATION))
    return remedy


def _worth_it(gate: Gate, remedy: Remedy) -> Remedy | Silence:
    reason = gate.refusal(remedy) or (gate.min_precision and unsaid(remedy))
    return Silence(PipelineStep.WORTH_IT, reason) if reason else remedy


def _worded(remedy: Remedy) -> Remedy | Silence:
    """Silence *remedy* where its general words, for a path that is gone, leave something open."""
    reason = unsaid(remedy)
    return Silence(PipelineStep.FRESH, reason) if reason else remedy


def _sure(has_own: bool, remedy: Remedy) -> Remedy | Silence:
    """Silence what is not sure, and what one source says where the owner *has_own* experience."""
    if has_own and not remedy.why.is_active and "" not in remedy.why.sources:
        return Silence(PipelineStep.SURE, "nobody asked, and one source alone says so")
    if remedy.probability < SURE:
        reason = f"nobody asked, and it is less probable than {SURE:.1f}"
        return Silence(PipelineStep.SURE, reason)
    if remedy.probability * remedy.why.saves < INTERRUPTION:
        return Silence(PipelineStep.SURE, "nobody asked, and agents do it next anyway")
    return remedy


class _New(Struct):
    """Silences what this agent was shown before, in this answer or an earlier one of the run."""

    already_shown: set[str]

    def __call__(self, remedy: Remedy) -> Remedy | Silence:
        if not self.already_shown.isdisjoint(_said(remedy)):
            return Silence(PipelineStep.NEW, "it was shown in this run before")
        lessons = {*map(lesson_key, lessons_of(remedy.actions, remedy.error_type))}
        if lessons and lessons <= self.already_shown:
            return Silence(PipelineStep.NEW, TOLD_AT_START)
        self.already_shown.update(_said(remedy))
        return remedy


def _by_chance(remedy: Remedy) -> Remedy:
    return remedy.silenced(PipelineStep.CHANCE, "withheld by chance, to measure its worth")


def without_shown(context: MemoryContext, already_shown: Collection[str]) -> MemoryContext:
    """Return *context* without runs, notes, lessons, warnings and facts *already_shown*."""
    playbook = context.playbook
    if playbook and already_shown:
        said = [one for one in playbook_lines(playbook) if one.text in already_shown]
        off = (*playbook.quarantined, *(line.id_in(playbook.repo) for line in said))
        playbook = replace(playbook, quarantined=off)
        playbook = playbook if any(playbook_lines(playbook)) else None
    return replace(
        context,
        similar_cases=tuple(
            one for one in context.similar_cases if case_line(one) not in already_shown
        ),
        warnings=tuple(
            one
            for one in context.warnings
            if not any(one.subject in said for said in already_shown)
        ),
        notes=tuple(one for one in context.notes if note_line(one.note) not in already_shown),
        lessons=tuple(one for one in context.lessons if one.note.id not in already_shown),
        playbook=playbook,
    )


def _in_use(methodologies: Iterable[Methodology]) -> list[Methodology]:
    statuses = (MethodologyStatus.ACTIVE, MethodologyStatus.PROBATION)
    return [methodology for methodology in methodologies if methodology.status in statuses]
