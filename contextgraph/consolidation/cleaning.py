"""The fourth step: what is not worth keeping goes, and does not come back."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.consolidation.tallies import Tally, in_batches
from contextgraph.model import Methodology, MethodologyStatus
from contextgraph.ports import ConsolidationStore


def clean_up(
    store: ConsolidationStore,
    error_ids: Sequence[str],
    repos: Sequence[str],
    policy: ConsolidationPolicy,
    tally: Tally,
) -> None:
    """Remove orphans, old failed fragments of these errors, and methodologies that do not hold.

    Looked at are those of these errors, and those of no error of these repositories.
    """
    of_errors = map(store.methodologies_of_errors, in_batches(error_ids))
    for known in chain(of_errors, map(store.methodologies_of_repos, in_batches(repos))):
        tally.examined += len(known)
        failed = [_tombstone(one) for one in known if does_not_hold(one, policy)]
        if failed:
            store.put_methodologies(failed, (), (), ())
            tally.removed += len(failed)
    tally.removed += store.prune_failed_fragments(error_ids, policy.failed_fragments)
    tally.removed += store.remove_orphans()


def does_not_hold(methodology: Methodology, policy: ConsolidationPolicy) -> bool:
    """True where it had its chances, and neither its effect nor its sources speak for it."""
    return (
        methodology.status is not MethodologyStatus.RETIRED
        and methodology.success_count + methodology.failure_count >= policy.probation_chances
        and methodology.confidence < policy.least_confidence
        and len(methodology.sources) < policy.least_sources
    )


def _tombstone(methodology: Methodology) -> Methodology:
    return replace(methodology, status=MethodologyStatus.RETIRED)
