"""Finding what says the same twice: methodologies of one scope, fragments of one repository."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, groupby

from contextgraph.consolidation.likeness import Likeness, dice, said
from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.consolidation.tallies import Changes, Tally, in_batches, resolved_by
from contextgraph.model import Clearance, Methodology, MethodologyStatus, SimilarTo, Source
from contextgraph.ports import ConsolidationStore


def merge(
    store: ConsolidationStore,
    error_ids: Sequence[str],
    policy: ConsolidationPolicy,
    likeness: Likeness,
    tally: Tally,
) -> None:
    """Let the better supported of two methodologies alike take the other's place, with its errors.

    Looked at are those of errors of the types of *error_ids*.
    """
    seen: set[str] = set()
    for batch in in_batches(error_ids):
        changes = Changes()
        for known in store.methodologies_of_types(batch):
            if not seen.issuperset(one.id for one in known):
                seen.update(one.id for one in known)
                tally.examined += len(known)
                tally.removed += _merge(known, policy, likeness, changes)
        changes.write(store)


def _merge(
    known: Sequence[Methodology], policy: ConsolidationPolicy, likeness: Likeness, changes: Changes
) -> int:
    """Add to *changes* what goes of those *known* of one type of error; how many did."""
    pairs = list(merged_pairs(known, policy, likeness))
    for stays, goes in pairs:
        # Those that it had itself taken the place of go with it.
        for one in (goes, *(one for one in known if one.superseded_by == goes.id)):
            changes.methodologies.append(
                replace(one, status=MethodologyStatus.RETIRED, superseded_by=stays.id)
            )
            changes.resolved.append(resolved_by(one, one.error_id, stays.id))
    return len(pairs)


def merged_pairs(
    methodologies: Sequence[Methodology], policy: ConsolidationPolicy, likeness: Likeness
) -> Iterator[tuple[Methodology, Methodology]]:
    """(the one that stays, the one that goes) of *methodologies* of errors of one type.

    Of two that give the same advice for the same scope, keyword and type of task, the better
    supported stays; ties by id. What was given up before stays so.
    """
    alive = [one for one in methodologies if one.status is not MethodologyStatus.RETIRED]
    gone: set[str] = set()
    for _, group in groupby(sorted(alive, key=_place), key=_place):
        ranked = sorted(group, key=lambda one: (-one.support, one.id))
        for stays, goes in combinations(ranked, 2):
            if (
                gone.isdisjoint((stays.id, goes.id))
                and likeness.of(stays.strategy, goes.strategy) >= policy.alike
            ):
                gone.add(goes.id)
                yield stays, goes


def similar_fragments(
    error_id: str, clearances: Iterable[Clearance], policy: ConsolidationPolicy
) -> Iterator[SimilarTo]:
    """Which fragments tell the same as the newest one of their repository that does."""
    told: dict[Source, tuple[Source, float]] = {}
    heads: dict[str, list[tuple[Clearance, frozenset[str]]]] = {}
    for clearance in clearances:
        told_words = said(clearance.recovered.what)
        known = heads.setdefault(clearance.repo, [])
        nearest = max(known, key=lambda head: dice(head[1], told_words), default=None)
        weight = dice(nearest[1], told_words) if nearest else 0.0
        if nearest is None or weight < policy.alike:
            nearest, weight = (clearance, told_words), 1.0
            known.append(nearest)
        told[clearance.source] = (nearest[0].source, round(weight, 4))
    for source, (head, weight) in told.items():
        yield SimilarTo(error_id, source, head, weight)


def _place(methodology: Methodology) -> tuple[str, str, str]:
    return methodology.repo or "", methodology.keyword, methodology.task_type or ""
