"""The ports in plain Python: the shortest store that gives the required answers."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from contextgraph.errors import SpaceMismatchError, StoreError
from contextgraph.model import (
    AdviceRecord,
    Bundle,
    ChangeStatus,
    ErrorKind,
    ErrorPattern,
    ErrorQuestion,
    ErrorSignature,
    ErrorSteps,
    ErrorTally,
    Exposure,
    Fragment,
    FragmentCandidate,
    Learned,
    LearnStatus,
    MemoryCounts,
    Near,
    Note,
    NoteKind,
    NoteScope,
    Outcome,
    OutcomeSource,
    Phase,
    RawTrajectory,
    RecoveryCandidate,
    Scope,
    SeenContext,
    ShownItem,
    SignatureLevel,
    Space,
    TaskType,
    Trajectory,
    Verdict,
    WordCounts,
    run_text,
)
from contextgraph.ports import ALL, NoteChange
from contextgraph.store import rules
from contextgraph.text import stems, words as words_of
from contextgraph.trace import describe_remedy
from contextgraph.vectors import Vector, cosines
from tests.builders import recovery_of

_MOST_WORDS = 8
_MOST_TRAJECTORIES = 10
_LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE)


class ReferenceStore:
    """Bundles in a dict, every answer by looking at all of them."""

    def __init__(self) -> None:
        self.bundles: dict[str, Bundle] = {}
        # At how many steps each run met each error: that stays when fragments are pruned.
        self.met: dict[str, Counter[str]] = {}
        self.notes: dict[str, Note] = {}
        # A text without words has its space alone.
        self.note_vectors: dict[str, Vector | str] = {}
        self.shown: dict[str, Exposure] = {}
        self.verdicts: dict[str, Verdict] = {}
        self.spaces: dict[str, tuple[Space, bytes | None]] = {}
        self.active: str | None = None
        self.vectors: dict[tuple[str, str], Vector | None] = {}
        self.former_ids: dict[str, str] = {}

    def runs_add(self, bundles: Sequence[Bundle]) -> Sequence[LearnStatus]:
        return [self.add(bundle) for bundle in bundles]

    def add(self, bundle: Bundle) -> LearnStatus:
        known = self.bundles.get(bundle.trajectory.id)
        if known is None:
            self._put(bundle)
            self._fold(bundle)
            return LearnStatus.CREATED
        given = bundle.trajectory
        is_better = _is_better_known(given, known.trajectory)
        if not is_better and given.change in {ChangeStatus.UNKNOWN, known.trajectory.change}:
            return LearnStatus.UNCHANGED
        updated = _with_outcome(known.trajectory, given) if is_better else known.trajectory
        if given.change is not ChangeStatus.UNKNOWN:
            updated = replace(updated, change=given.change)
        self.bundles[given.id] = replace(known, trajectory=updated)
        return LearnStatus.UPDATED

    def runs_set_outcome(self, trajectory_ids: Iterable[str], outcome: Outcome) -> int:
        known = (self.bundles[run] for run in {*trajectory_ids} & self.bundles.keys())
        changed = []
        for one in known:
            by_hand = OutcomeSource.HAND
            trajectory = replace(one.trajectory, outcome=outcome, outcome_source=by_hand)
            if trajectory != one.trajectory:
                changed.append(replace(one, trajectory=trajectory))
        self.bundles |= {one.trajectory.id: one for one in changed}
        return len(changed)

    def runs_replace(self, bundles: Mapping[str, Bundle]) -> Sequence[str]:
        return [former for former, one in bundles.items() if self._replace(former, one)]

    def _replace(self, former: str, bundle: Bundle) -> bool:
        own = bundle.trajectory.id
        if former not in self.bundles:
            return False
        known = [self.bundles[one].trajectory for one in (former, own) if one in self.bundles]
        judged = next((one for one in known if one.outcome is not Outcome.UNKNOWN), None)
        trajectory = replace(bundle.trajectory, learned_at=min(one.learned_at for one in known))
        if judged is not None and not _is_better_known(trajectory, judged):
            trajectory = _with_outcome(trajectory, judged)
        if trajectory.change is ChangeStatus.UNKNOWN:
            changes = [one.change for one in known if one.change is not ChangeStatus.UNKNOWN]
            trajectory = replace(trajectory, change=(*changes, ChangeStatus.UNKNOWN)[0])
        for one in {run.id for run in known}:
            self._drop_vectors(one)
            del self.bundles[one]
        self.former_ids = {
            **{old: own if now == former else now for old, now in self.former_ids.items()},
            **({former: own} if former != own else {}),
        }
        self._put(replace(bundle, trajectory=trajectory))
        self._fold(bundle)
        return True

    def runs_learned(self, trajectory_ids: Sequence[str]) -> Mapping[str, Learned]:
        runs = {one: self.former_ids.get(one, one) for one in sorted({*trajectory_ids})}
        return {one: self._learned(run) for one, run in runs.items() if run in self.bundles}

    def _learned(self, trajectory_id: str) -> Learned:
        bundle = self.bundles[trajectory_id]
        fragments, outcome = len(bundle.fragments), bundle.trajectory.outcome
        to_embed = 0 if (self.active or "", trajectory_id) in self.vectors else 1
        is_open = outcome is Outcome.UNKNOWN and bundle.trajectory.exit_status is None
        return Learned(
            trajectory_id,
            outcome,
            is_open,
            fragments,
            len(bundle.errors),
            to_embed,
            bundle.trajectory.outcome_source,
            bundle.trajectory.change,
        )

    def runs_trajectories(self, trajectory_ids: Iterable[str]) -> Mapping[str, Trajectory]:
        known = sorted({*trajectory_ids} & self.bundles.keys())
        return {run: self.bundles[run].trajectory for run in known}

    def runs_ids(
        self,
        repo: str | None = None,
        instance: str | None = None,
        after: str = "",
        limit: int = ALL,
    ) -> Sequence[str]:
        found = sorted(
            run
            for run, bundle in self.bundles.items()
            if repo is None or bundle.trajectory.repo.casefold() == repo.casefold()
            if instance in {None, bundle.trajectory.instance_id} and run > after
        )
        return found[:limit]

    def runs_raw(self, trajectory_id: str) -> RawTrajectory | None:
        bundle = self.bundles.get(trajectory_id)
        if bundle is None:
            return None
        run = bundle.trajectory
        return replace(
            bundle.raw,
            outcome=run.outcome,
            exit_status=run.exit_status,
            outcome_source=run.outcome_source,
            change=run.change,
        )

    def runs_fragments(self, trajectory_ids: Iterable[str]) -> Mapping[str, Sequence[Fragment]]:
        bundles = {run: self.bundles.get(run) for run in trajectory_ids}
        return {run: list(bundle.fragments) if bundle else [] for run, bundle in bundles.items()}

    def runs_forget(self, trajectory_ids: Iterable[str]) -> int:
        known = set(trajectory_ids) & self.bundles.keys()
        for trajectory_id in known:
            self._drop_vectors(trajectory_id)
            former = self.former_ids.items()
            self.former_ids = {old: now for old, now in former if now != trajectory_id}
            gone = {fragment.id for fragment in self.bundles.pop(trajectory_id).fragments}
            self.shown = {
                name: replace(one, items=tuple(i for i in one.items if i.id not in gone))
                for name, one in self.shown.items()
            }
        return len(known)

    def recoveries_for_error(
        self, questions: Sequence[ErrorQuestion], limit: int
    ) -> Sequence[RecoveryCandidate]:
        found = (candidate for one in questions for candidate in self._recoveries_for(one)[:limit])
        return list({recovery_id(candidate): candidate for candidate in found}.values())

    def _recoveries_for(self, question: ErrorQuestion) -> list[RecoveryCandidate]:
        found = [
            candidate
            for candidate in self._recoveries(question.scope)
            if agrees(candidate, question.signature, question.level)
        ]
        found.sort(key=recovery_id)
        found.sort(key=lambda candidate: candidate.seen_at, reverse=True)
        found.sort(key=lambda candidate: not candidate.verified)
        return found

    def recoveries_for_text(
        self, words: Sequence[str], scope: Scope, limit: int
    ) -> Sequence[RecoveryCandidate]:
        def text(candidate: RecoveryCandidate) -> str:
            return f"{candidate.message}\n{describe_remedy(candidate.actions)}"

        everywhere = [text(candidate) for candidate in self._recoveries(Scope())]
        relevance = _relevance(words, everywhere)
        found = [c for c in self._recoveries(scope) if relevance(text(c))]
        return sorted(found, key=lambda c: (-relevance(text(c)), recovery_id(c)))[:limit]

    def recoveries_of_fragments(self, fragment_ids: Iterable[str]) -> Sequence[RecoveryCandidate]:
        named = set(fragment_ids)
        found = [c for c in self._recoveries(Scope()) if c.fragment_id in named]
        return sorted(found, key=recovery_id)

    def runs_for_task(
        self, task_type: TaskType | None, scope: Scope, limit: int, agent: str | None = None
    ) -> Sequence[Trajectory]:
        runs = (bundle.trajectory for bundle in self._within(scope))
        found = [run for run in runs if task_type in {None, run.task_type}]
        found = [run for run in found if agent in {None, run.agent}]
        found.sort(key=lambda run: run.id)
        found.sort(key=lambda run: run.seen_at, reverse=True)
        found.sort(key=lambda run: not run.success)
        return found[:limit]

    def runs_for_text(self, words: Sequence[str], scope: Scope, limit: int) -> Sequence[Trajectory]:
        relevance = _relevance(words, self._texts())
        runs = [bundle.trajectory for bundle in self._within(scope)]
        found = [run for run in runs if relevance(_text(run))]
        return sorted(found, key=lambda run: (-relevance(_text(run)), run.id))[:limit]

    def runs_find_fragments(
        self,
        scope: Scope,
        limit: int,
        *,
        phase: Phase | None = None,
        file_name: str | None = None,
        loop_command: str | None = None,
    ) -> Sequence[FragmentCandidate]:
        found = [
            FragmentCandidate(fragment, bundle.trajectory)
            for bundle in self._within(scope)
            for fragment in bundle.fragments
            if phase in {None, fragment.phase} and file_name in {None, *_file_names(fragment)}
            if loop_command is None or "" != loop_command == fragment.loop_command
        ]
        found.sort(key=lambda candidate: candidate.fragment.id)
        found.sort(key=lambda candidate: candidate.trajectory.seen_at, reverse=True)
        return found[:limit]

    def runs_word_counts(self, words: Sequence[str]) -> WordCounts:
        texts = [set(words_of(text)) for text in self._texts()]
        counts = {word: sum(word in text for text in texts) for word in words}
        return WordCounts(len(self.bundles), counts)

    def recoveries_errors(
        self,
        scope: Scope,
        limit: int,
        *,
        phase: Phase | None = None,
        runs: Iterable[str] | None = None,
    ) -> Sequence[ErrorTally]:
        named = None if runs is None else {*runs}
        chosen = [
            bundle
            for bundle in self._within(scope)
            if named is None or bundle.trajectory.id in named
        ]
        ids = {error.id for bundle in chosen for error in bundle.errors}
        tallies = [self._tally(error_id, phase, chosen) for error_id in ids]
        found = [tally for tally in tallies if tally is not None]
        return sorted(found, key=lambda tally: (-tally.runs, tally.error.id))[:limit]

    def vectors_active_space(self) -> Space | None:
        return None if self.active is None else self.spaces[self.active][0]

    def vectors_space_model(self, space: str) -> bytes | None:
        return self.spaces[space][1] if space in self.spaces else None

    def vectors_texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        later = [run for run in sorted(self.bundles) if run > after]
        wanted = [run for run in later if (space, run) not in self.vectors]
        return {run: run_text(self.bundles[run].trajectory) for run in wanted[:limit]}

    def vectors_prepare(self, space: Space, model: bytes | None) -> None:
        known = self.spaces.get(space.name)
        self.spaces[space.name] = (space, known[1] if known else model)

    def vectors_add(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        self._known(space)
        for run, vector in vectors.items():
            if run in self.bundles:
                self.vectors.setdefault((space, run), vector)

    def vectors_switch(self, space: str) -> None:
        self._known(space)
        self.active = space
        self.spaces = {space: self.spaces[space]}
        self.vectors = {key: found for key, found in self.vectors.items() if key[0] == space}

    def vectors_nearest(self, vector: Vector, scope: Scope, limit: int) -> Sequence[Near]:
        if vector.space != self.active:
            raise SpaceMismatchError("not the active space")
        found = [
            Near(bundle.trajectory, own)
            for bundle in self._within(scope)
            if (own := self.vectors.get((vector.space, bundle.trajectory.id)))
        ]
        return sorted(found, key=lambda n: (-cosine(vector, n.vector), n.trajectory.id))[:limit]

    def admin_counts(self) -> MemoryCounts:
        every = list(self.bundles.values())
        fragments = sum(len(bundle.fragments) for bundle in every)
        runs = [bundle.trajectory for bundle in every]
        return MemoryCounts(
            nodes={
                "Trajectory": len(every),
                "Fragment": fragments,
                "ErrorPattern": len({error.id for bundle in every for error in bundle.errors}),
            },
            edges={
                "HAS_FRAGMENT": fragments,
                "CAUSED_ERROR": sum(len(bundle.caused) for bundle in every),
                "RECOVERED": sum(len(bundle.recovered) for bundle in every),
            },
            outcomes={o.value: sum(run.outcome is o for run in runs) for o in Outcome},
            changes={c.value: sum(run.change is c for run in runs) for c in ChangeStatus},
            methodologies={},
            repositories=len({run.repo for run in runs} - {""}),
        )

    def recoveries_error_steps(self) -> Mapping[str, Sequence[ErrorSteps]]:
        return {
            run: sorted(
                ErrorSteps(one.fragment_id, error.id, error.error_type, one.steps)
                for one in bundle.caused
                for error in bundle.errors
                if error.id == one.error_id
            )
            for run, bundle in sorted(self.bundles.items())
            if bundle.caused
        }

    def _put_notes(self, notes: Sequence[Note]) -> None:
        for note in notes:
            before = self.notes.get(note.id)
            if before is None or rules.note_text(before) != rules.note_text(note):
                self.note_vectors.pop(note.id, None)
            self.notes[note.id] = note

    def notes_change(
        self, ids: Sequence[str] = (), function: NoteChange = replace, new: Sequence[Note] = ()
    ) -> Sequence[Note]:
        self._put_notes(new)
        changed = [function(note) for note in self.notes_get(ids).values()]
        self._put_notes(changed)
        return changed

    def notes_get(self, ids: Sequence[str]) -> Mapping[str, Note]:
        return {id_: self.notes[id_] for id_ in sorted({*ids} & self.notes.keys())}

    def notes_for_text(self, words: Sequence[str], scope: NoteScope, limit: int) -> Sequence[Note]:
        def found(note: Note) -> int:
            return len({*words} & {*stems(rules.note_text(note))})

        return sorted(
            filter(found, self._in_scope(scope)),
            key=lambda one: (-found(one), -one.created_at.timestamp(), one.id),
        )[:limit]

    def notes_nearest(self, vector: Vector, scope: NoteScope, limit: int) -> Mapping[str, float]:
        known = {one.id: self.note_vectors.get(one.id) for one in self._in_scope(scope)}
        near = {
            id_: round(cosines(vector, [own])[0], rules.COSINE_DECIMALS)
            for id_, own in known.items()
            if isinstance(own, Vector) and own.space == vector.space
        }
        return dict(sorted(near.items(), key=lambda one: (-one[1], one[0]))[:limit])

    def notes_newest(self, scope: NoteScope, limit: int) -> Sequence[Note]:
        found = self._in_scope(scope)
        return sorted(found, key=lambda one: (one.created_at, one.id), reverse=True)[:limit]

    def notes_linking(self, ids: Sequence[str]) -> Sequence[Note]:
        known = (self.notes[id_] for id_ in sorted(self.notes))
        return [one for one in known if any(link.target in ids for link in one.links)]

    def notes_counts(self) -> Mapping[NoteKind, int]:
        live = Counter(one.kind for one in self.notes.values() if one.is_live)
        return dict(sorted(live.items()))

    def notes_all(self) -> Sequence[Note]:
        return [self.notes[id_] for id_ in sorted(self.notes)]

    def notes_texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        waiting = (
            note
            for note in self.notes_all()
            if note.is_live
            and note.id > after
            and (space is None or _space_of(self.note_vectors.get(note.id)) != space)
        )
        return {note.id: rules.note_text(note) for note in islice(waiting, limit)}

    def notes_add(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        known = {id_: own or space for id_, own in vectors.items() if id_ in self.notes}
        self.note_vectors |= known

    def notes_delete(self, ids: Sequence[str]) -> int:
        for id_ in ids:
            self.note_vectors.pop(id_, None)
        return sum(self.notes.pop(id_, None) is not None for id_ in {*ids})

    def _in_scope(self, scope: NoteScope) -> list[Note]:
        return [one for one in self.notes.values() if one.is_live and scope.has(one)]

    def exposures_add(self, exposures: Sequence[Exposure]) -> None:
        for one in exposures:
            self.shown.setdefault(one.context_id, one)

    def exposures_report(
        self, context_id: str, helped: bool, item: int | None = None, source: str = ""
    ) -> bool:
        shown = self.shown.get(context_id)
        if shown is None or (shown.is_withheld and item is not None):
            return False
        items = list(shown.items)
        if item is None:
            open_places = [place for place, one in enumerate(items) if one.helped is None]
            places = [] if shown.is_withheld else open_places
            is_open = shown.helped is None
            shown = replace(shown, helped=helped)
        else:
            places = [item - 1] if 1 <= item <= len(items) else []
            is_open = any(items[place].helped is None for place in places)
        if not is_open:
            return False
        for place in places:
            items[place] = replace(items[place], helped=helped)
        source = shown.source or source
        self.shown[context_id] = replace(shown, items=tuple(items), source=source)
        return True

    def exposures_record(self, advice: Sequence[str]) -> AdviceRecord:
        found: dict[str, Exposure] = {}
        for name in advice:
            of_advice = [
                one
                for one in self.shown.values()
                if any(name in (i.id, i.advice) and i.helped is not None for i in one.items)
            ]
            newest = sorted(of_advice, key=lambda one: (one.shown_at, one.context_id))[-100:]
            found.update((one.context_id, one) for one in newest)
        exposures = tuple(found[name] for name in sorted(found))
        errors = {one.error_id for one in exposures}
        rates = {error: (0, 0) for bundle in self.bundles.values() for error in _met(bundle)}
        for bundle in self.bundles.values():
            cleared = {one.error_id for one in bundle.recovered}
            for error in _met(bundle):
                runs, of_them = rates[error]
                rates[error] = (runs + 1, of_them + (error in cleared))
        named = {bundle.trajectory.contributor for bundle in self.bundles.values()} - {""}
        return AdviceRecord(
            exposures,
            {error: rates[error] for error in sorted(rates) if error in errors},
            tuple(self.verdicts[name] for name in sorted(self.verdicts)),
            min(2, len(named)),
        )

    def exposures_decide(self, verdicts: Sequence[Verdict]) -> None:
        self.verdicts |= {one.advice: one for one in verdicts}

    def exposures_all(self) -> Sequence[Exposure]:
        return [self.shown[context] for context in sorted(self.shown)]

    def _fold(self, bundle: Bundle) -> None:
        for seen in bundle.exposures:
            shown = self.shown.get(seen.context_id)
            if shown and shown.helped is None and shown.error_id in _met(bundle):
                self.shown[seen.context_id] = _observed(shown, seen, bundle)

    def _put(self, bundle: Bundle) -> None:
        run = bundle.trajectory.id
        self.bundles[run] = replace(bundle, embedded=None)
        self.met[run] = Counter()
        for caused in bundle.caused:
            self.met[run][caused.error_id] += len(caused.steps)
        self.met[run] = Counter({**self.met[run], **(bundle.met or {})})
        if bundle.embedded and bundle.embedded.space in self.spaces:
            self.vectors[bundle.embedded.space, run] = bundle.embedded.vector

    def _drop_vectors(self, run: str) -> None:
        self.vectors = {key: found for key, found in self.vectors.items() if key[1] != run}

    def _known(self, space: str) -> None:
        if space not in self.spaces:
            raise StoreError("no such space")

    def _within(self, scope: Scope) -> Iterator[Bundle]:
        for bundle in self.bundles.values():
            run = bundle.trajectory
            if (
                scope.repo in {None, run.repo}
                and run.instance_id not in scope.exclude_instances
                and (scope.as_of is None or run.seen_at <= scope.as_of)
            ):
                yield bundle

    def _recoveries(self, scope: Scope) -> list[RecoveryCandidate]:
        return [
            recovery_of(recovered, self._pattern(recovered.error_id), bundle.trajectory)
            for bundle in self._within(scope)
            for recovered in bundle.recovered
        ]

    def _pattern(self, error_id: str) -> ErrorPattern:
        """As the run with the smallest id met it."""
        patterns = (
            (run, error) for run, b in self.bundles.items() for error in b.errors
            if error.id == error_id
        )  # fmt: skip
        return min(patterns, key=lambda item: item[0])[1]

    def _tally(
        self, error_id: str, phase: Phase | None, bundles: Iterable[Bundle]
    ) -> ErrorTally | None:
        steps: dict[str, int] = {}
        cleared, seen = set(), {}
        for bundle in bundles:
            run = bundle.trajectory
            phases = {fragment.id: fragment.phase for fragment in bundle.fragments}
            if phase is None and error_id in self.met[run.id]:
                steps[run.id], seen[run.id] = self.met[run.id][error_id], run.seen_at
            for caused in bundle.caused:
                if caused.error_id == error_id and phases[caused.fragment_id] is phase:
                    steps[run.id] = steps.get(run.id, 0) + len(caused.steps)
                    seen[run.id] = run.seen_at
            if any(recovered.error_id == error_id for recovered in bundle.recovered):
                cleared.add(run.id)
        if not steps:
            return None
        newest = sorted(sorted(steps), key=lambda run_id: seen[run_id], reverse=True)
        return ErrorTally(
            error=self._pattern(error_id),
            runs=len(steps),
            steps=sum(steps.values()),
            cleared_runs=len(cleared & steps.keys()),
            trajectories=tuple(newest[:_MOST_TRAJECTORIES]),
        )

    def _texts(self) -> list[str]:
        return [_text(bundle.trajectory) for bundle in self.bundles.values()]


def cosine(one: Vector, other: Vector) -> float:
    pairs = zip(one.numbers().tolist(), other.numbers().tolist(), strict=True)
    product: float = sum(left * right for left, right in pairs)
    return round(product, 4)


def agrees(error: ErrorKind, signature: ErrorSignature, level: SignatureLevel) -> bool:
    pattern = ErrorSignature(error.family, error.error_type, "", error.template)
    agreement = pattern.agreement(signature)
    return agreement in _LEVELS and _LEVELS.index(agreement) <= _LEVELS.index(level)


def _is_better_known(given: Trajectory, known: Trajectory) -> bool:
    ranks = {OutcomeSource.LOG: 1, OutcomeSource.REPORT: 2, OutcomeSource.HAND: 3}
    unknown = Outcome.UNKNOWN
    given_rank = 0 if given.outcome is unknown else ranks[given.outcome_source]
    return given_rank > (0 if known.outcome is unknown else ranks[known.outcome_source])


def _with_outcome(run: Trajectory, judged: Trajectory) -> Trajectory:
    return replace(
        run,
        outcome=judged.outcome,
        outcome_source=judged.outcome_source,
        exit_status=judged.exit_status,
    )


def _relevance(words: Sequence[str], texts: Sequence[str]) -> Callable[[str], int]:
    """How relevant a text is: the sum over the rarest words of *words* that it has."""
    sets = [set(words_of(text)) for text in texts]
    counts = sorted((sum(word in text for text in sets), word) for word in set(words))
    known = [(count, word) for count, word in counts if count][:_MOST_WORDS]
    worth = {word: 1 + round(1000 * math.log((1 + len(texts)) / count)) for count, word in known}
    return lambda text: sum(worth.get(word, 0) for word in set(words_of(text)))


def _text(run: Trajectory) -> str:
    return f"{run.task}\n{run.summary}"


def _file_names(fragment: Fragment) -> set[str]:
    paths = (*fragment.files, fragment.open_file or "")
    return {path.split("/")[-1] for path in paths} - {""}


def recovery_id(candidate: RecoveryCandidate) -> tuple[str, str, int]:
    return candidate.fragment_id, candidate.error_id, candidate.error_step


def _met(bundle: Bundle) -> set[str]:
    return {error.id for error in bundle.errors}


def _observed(shown: Exposure, seen: SeenContext, bundle: Bundle) -> Exposure:
    after = [one for one in bundle.recovered if one.cleared_step > seen.step and one.verified]
    actions = [one.actions for one in after if one.error_id == shown.error_id]
    done = {action.pattern for some in actions for action in some}

    def effect(item: ShownItem) -> bool | None:
        if item.helped is not None or shown.is_withheld:
            return item.helped
        if not item.patterns:
            return bool(actions)
        missing = set(item.patterns) - done
        return None if missing and set(item.patterns) - set(seen.tried) else not missing

    items = tuple(replace(item, helped=effect(item)) for item in shown.items)
    source = shown.source or bundle.trajectory.contributor
    return replace(shown, helped=bool(actions), items=items, source=source)


def _space_of(vector: Vector | str | None) -> str | None:
    return vector.space if isinstance(vector, Vector) else vector
