"""Ways out of a loop of which only the names of its errors are known."""

from collections.abc import Iterable, Iterator

from contextgraph.loops.adviser import EvidenceStore
from contextgraph.loops.ways import Proof, WayOut, merged
from contextgraph.model import (
    ErrorQuestion,
    ErrorSignature,
    Family,
    RecoveryCandidate,
    Scope,
    SignatureLevel,
)
from contextgraph.trace import in_general, is_repetition

REPOSITORIES = 2
_CANDIDATES = 200


def ways_past_names(
    names: Iterable[str], store: EvidenceStore, exclude_instances: frozenset[str]
) -> list[WayOut]:
    """What cleared errors of these types in several repositories, most of them first.

    *names* are those of `LoopInfo.signatures`: `command → error type`.
    """
    types = dict.fromkeys(name.rpartition(" → ")[2] for name in names if " → " in name)
    scope = Scope(None, exclude_instances)
    found = (one for error_type in types for one in _recoveries(error_type, store, scope))
    ways = merged(way for one in found if (way := _way(one)) is not None)
    shared = [way for way in ways if way.repositories >= REPOSITORIES]
    return sorted(shared, key=lambda way: (-way.repositories, way.what))


def _way(one: RecoveryCandidate) -> WayOut | None:
    what, run = in_general(one.recovered.what), one.trajectory
    if what is None or is_repetition(what):
        return None
    return WayOut(what, Proof.CLEARED_THE_ERROR, False, ((run.instance_id, run.repo),))


def _recoveries(error_type: str, store: EvidenceStore, scope: Scope) -> Iterator[RecoveryCandidate]:
    asked = [
        ErrorQuestion(ErrorSignature(family, error_type, "", ""), SignatureLevel.TYPE, scope)
        for family in Family
    ]
    for found in store.recoveries_for_error(asked, _CANDIDATES):
        if found.recovered.verified and not found.recovered.workaround:
            yield found
