"""Proposing candidates for the channels."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from contextgraph.model import (
    ErrorQuestion,
    ErrorSignature,
    ErrorTally,
    FragmentCandidate,
    Methodology,
    Near,
    Phase,
    RecoveryCandidate,
    Scope,
    TaskType,
    Trajectory,
)
from contextgraph.vectors import Vector

Answer = TypeVar("Answer")


class RetrievalStore(Protocol):
    """Proposes candidates for the channels.

    Of *words*, the eight rarest known ones count (ties by the word). The relevance of a text is the
    sum of what those it has are worth: 1 + round(1000 ln((1 + N) / n)), where n of all N texts of
    its kind have the word. A store that has to ask a server may let n and N lag behind by 1 % of
    the texts.
    """

    def snapshot(self) -> AbstractContextManager[None]:
        """Within it this thread sees one state of the memory, whatever is written meanwhile.

        Nothing is to be written within it; taking one within another is harmless. A store that
        cannot hold on to a state shows each question the newest one.
        """

    def ahead(self, question: Callable[[], Answer]) -> Callable[[], Answer]:
        """What gives the answer to *question*, which only reads, in the snapshot of this thread.

        Where waiting for a server takes the time it is asked at once, in another thread.
        """

    def recoveries_for_error(
        self, asked: Sequence[ErrorQuestion], limit: int, enough: int | None = None
    ) -> Sequence[RecoveryCandidate]:
        """Recoveries from the errors *asked* about (at no level PLACE), at most *limit* of each.

        Those of the first question first; none of those after *enough* were found. Of one question
        verified ones first, then the newest run (`Trajectory.seen_at`), then by fragment id, error
        id, error step.
        """

    def recoveries_for_text(
        self, words: Sequence[str], scope: Scope, limit: int
    ) -> Sequence[RecoveryCandidate]:
        """Recoveries whose error message or description has any of *words*, most relevant first."""

    def representatives_of(
        self, recoveries: Sequence[RecoveryCandidate], scope: Scope
    ) -> Sequence[RecoveryCandidate]:
        """For each of *recoveries* the one that stands for it, itself where none within *scope* is.

        That is the recovery of the same error in the fragment that its own is `SIMILAR_TO`; of
        several the first by error step.
        """

    def trajectories_for_task(
        self, task_type: TaskType | None, scope: Scope, limit: int
    ) -> Sequence[Trajectory]:
        """Runs of this type of task (None: of any), solved ones first, then the newest."""

    def trajectories_for_text(
        self, words: Sequence[str], scope: Scope, limit: int
    ) -> Sequence[Trajectory]:
        """Runs whose task or summary has any of *words*, most relevant first."""

    def fragments_for_state(
        self, phase: Phase | None, file_name: str | None, scope: Scope, limit: int
    ) -> Sequence[FragmentCandidate]:
        """Fragments of this phase (None: any) that touch a file of this name, newest run first.

        *file_name* is the last part of a path, as agents name one file in several ways; a fragment
        touches its `files` and its `open_file`. None: any fragment.
        """

    def nearest_trajectories(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[Trajectory]]:
        """Runs by the cosine of their vector with *vector*, highest first.

        Cosines that are the same when rounded to four decimals tie. Raises `SpaceMismatchError`
        where *vector* is not of the active space.
        """

    def nearest_fragments(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[FragmentCandidate]]:
        """Fragments, in the same order."""

    def nearest_recoveries(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[RecoveryCandidate]]:
        """The recoveries of the *limit* nearest fragments, those of one by error id and step."""

    def methodologies_for_error(
        self, signatures: Sequence[ErrorSignature], scope: Scope, limit: int
    ) -> Sequence[Methodology]:
        """Those that resolve the error of the first of these templates that has any.

        Of the repository of *scope* or general.
        Those of a repository first, then by support, highest first. None that was derived from a
        run that *scope* hides.
        """

    def methodologies_for_task(
        self, task_type: TaskType | None, scope: Scope, limit: int
    ) -> Sequence[Methodology]:
        """Those of no error, for tasks of this type (None: of any) or of all types.

        Of the repository of *scope* or general, in the order of `methodologies_for_error`, and
        hidden as there.
        """

    def nearest_methodologies(
        self, vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[Methodology]]:
        """Methodologies, in the order of `nearest_trajectories`.

        Of the repository of *scope* or general, hidden as in `methodologies_for_error`.
        """

    def document_count(self) -> int:
        """How many trajectories there are: the N to `word_frequencies`."""

    def word_frequencies(self, words: Sequence[str]) -> Mapping[str, int]:
        """In how many trajectories (task or summary) each word occurs; 0 for unknown ones."""

    def common_errors(self, phase: Phase | None, scope: Scope, limit: int) -> Sequence[ErrorTally]:
        """Errors met in fragments of *phase* (None: any), those of most runs first."""

    def error_tally(self, signature: ErrorSignature, scope: Scope) -> ErrorTally | None:
        """How the error of this template went within *scope*; None where it was never met."""
