"""Counts for each harness that come with the package: what tasks elsewhere did about an error.

They are fitted by ``python -m benchmarks.harnesses`` (see benchmarks/README.md). A row has the kind
of an error, its circumstances, and a remedy of closed patterns that several repositories have in
common: no name, word or run of a project. Instances are numbers; of the repository of each only a
hash is kept, so that those of one repository can be left out.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TypeAlias

import msgspec
from msgspec import Struct

from contextgraph.model import (
    ErrorSignature,
    Family,
    RecoveryCandidate,
    RemedyAction,
    RemedyPattern,
)
from contextgraph.model.values import replace
from contextgraph.text import digest

# In place of a repository, which has an owner in its name.
_ELSEWHERE = "shipped"
_BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)


class Row(Struct, frozen=True, omit_defaults=True):
    """The *instances*, by their numbers, that cleared such an error by a remedy of *patterns*.

    *template* and *circumstances* are empty where they name things of a project.
    """

    family: Family
    error_type: str
    patterns: tuple[RemedyPattern, ...]
    instances: tuple[int, ...]
    template: str = ""
    circumstances: tuple[str, ...] = ()


class HarnessCounts(Struct, frozen=True):
    """The counts of one harness: the hash of the repository of each instance, and the *rows*."""

    repositories: tuple[str, ...]
    rows: tuple[Row, ...]

    def without(self, repos: Collection[str]) -> "HarnessCounts":
        """Return the counts without the instances of *repos*."""
        hashes = {*map(hash_of, repos)}
        if hashes.isdisjoint(self.repositories):
            return self
        rows = (
            replace(
                row,
                instances=tuple(
                    one for one in row.instances if self.repositories[one] not in hashes
                ),
            )
            for row in self.rows
        )
        return replace(self, rows=tuple(row for row in rows if row.instances))

    def recoveries(self, error: ErrorSignature, agent: str) -> Iterator[RecoveryCandidate]:
        """Yield what instances of *agent* did about errors of the type of *error*."""
        kinds = {(variant.family, variant.error_type) for variant in error.variants()}
        for number, row in enumerate(self.rows):
            if (row.family, row.error_type) not in kinds:
                continue
            actions = tuple(
                RemedyAction(one.kind, one.target, one, one.replaced) for one in row.patterns
            )
            for instance in row.instances:
                yield RecoveryCandidate(
                    fragment_id="",
                    error_id=str(number),
                    error_step=instance,
                    cleared_step=instance,
                    message=row.template,
                    location=None,
                    actions=actions,
                    verified=True,
                    workaround=False,
                    circumstances=row.circumstances,
                    words="",
                    family=row.family,
                    error_type=row.error_type,
                    template=row.template,
                    trajectory_id="",
                    instance_id=f"{_ELSEWHERE} {instance}",
                    repo=_ELSEWHERE,
                    contributor="",
                    agent=agent,
                    seen_at=_BEFORE_ALL,
                )


Harnesses: TypeAlias = Mapping[str, HarnessCounts]
"""Name of a harness -> its counts."""


def hash_of(repo: str) -> str:
    """Return the hash of a repository, regardless of the case of its name."""
    return digest(repo.casefold(), 4)


@cache
def shipped() -> Harnesses:
    """Return the counts that come with the package, of ``harnesses.json`` beside this module."""
    with open(f"{os.path.splitext(__file__)[0]}.json", "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, HarnessCounts])
