"""Learning: one run, one bundle, one transaction."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from contextgraph.model import (
    Bundle,
    EmbeddedBundle,
    Learned,
    LearnReceipt,
    LearnStatus,
    Outcome,
    RawTrajectory,
    story_of,
)
from contextgraph.ports import RetellingStore, TrajectoryStore
from contextgraph.writing.bundle import bundle_of, renewed
from contextgraph.writing.identity import trajectory_id


class WritingStore(TrajectoryStore, RetellingStore, Protocol):
    """What learning takes."""


def _as_they_are(bundles: Sequence[Bundle]) -> list[EmbeddedBundle]:
    return [EmbeddedBundle(bundle) for bundle in bundles]


class MemoryWriter:
    """Writes what runs teach into a store."""

    def __init__(
        self,
        store: WritingStore,
        now: Callable[[], datetime],
        embedded: Callable[[Sequence[Bundle]], Sequence[EmbeddedBundle]] = _as_they_are,
    ) -> None:
        self._store = store
        self._now = now
        self._embedded = embedded

    def write(self, raw: RawTrajectory) -> LearnReceipt:
        """Learn *raw*; on return it is stored durably, or an error was raised and nothing is.

        A run that is known costs next to nothing: an interrupted batch goes on where it was.
        """
        return self.write_all([raw])[0]

    def write_all(self, raws: Sequence[RawTrajectory]) -> Sequence[LearnReceipt]:
        """Learn *raws* in one transaction: all are stored, or an error was raised and none is."""
        ids = [trajectory_id(raw) for raw in raws]
        known = self._store.learned(ids)
        found = [
            self._known_or_read(raw, identity, known.get(identity))
            for raw, identity in zip(raws, ids, strict=True)
        ]
        made = self._embedded([one for one in found if isinstance(one, Bundle)])
        statuses = self._store.add_bundles([one.bundle for one in made]) if made else ()
        receipts = map(_receipt, made, statuses)
        return [next(receipts) if isinstance(one, Bundle) else one for one in found]

    def _known_or_read(
        self, raw: RawTrajectory, identity: str, known: Learned | None
    ) -> LearnReceipt | Bundle:
        """The receipt of a run that is known and says no more; what any other teaches."""
        if known is None or _tells_more(raw, known):
            return bundle_of(raw, self._now(), identity)
        return LearnReceipt(
            identity, LearnStatus.UNCHANGED, known.fragments, known.error_patterns, known.to_embed
        )

    def rewrite(self, identity: str) -> LearnReceipt | None:
        """Read the stored run of this id again; None where there is none."""
        before, raw = (
            self._store.trajectory(identity),
            self._store.raw_trajectory(identity),
        )
        if before is None or raw is None:
            return None
        bundle = self._retold(renewed(bundle_of(raw, self._now(), identity), before))
        (made,) = self._embedded([bundle])
        self._store.replace_bundle(made.bundle)
        return _receipt(made, LearnStatus.UPDATED)

    def _retold(self, bundle: Bundle) -> Bundle:
        """*bundle*, with what a language model said of its run where it would hear the same."""
        run = bundle.trajectory
        known = self._store.retellings_of([run.id]).get(run.id)
        holds = known and known.told == story_of(run, bundle.fragments).fingerprint
        return replace(bundle, retelling=known) if holds else bundle

    def rewrite_all(self) -> Iterator[LearnReceipt]:
        """Read all stored runs again, each in a transaction of its own."""
        for identity in self._store.trajectory_ids():
            receipt = self.rewrite(identity)
            if receipt:  # None: another process forgot it meanwhile
                yield receipt


def _tells_more(raw: RawTrajectory, known: Learned) -> bool:
    return known.outcome is Outcome.UNKNOWN and raw.outcome is not Outcome.UNKNOWN


def _receipt(made: EmbeddedBundle, status: LearnStatus) -> LearnReceipt:
    bundle = made.bundle
    return LearnReceipt(
        trajectory_id=bundle.trajectory.id,
        status=status,
        fragments=len(bundle.fragments),
        error_patterns=len(bundle.errors),
        to_embed=0 if bundle.vectors else len(bundle.fragments) + 1,
        not_embedded=made.failure,
        usage=made.usage,
    )
