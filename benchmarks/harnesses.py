"""Fit the counts of harnesses: ``python -m benchmarks.harnesses --write runs.jsonl.gz more/``.

Of each error that a run verifiably cleared the remedy is counted, by the harness of the run, where
its patterns mean the same in any project and tasks of at least three repositories did it; of a
remedy of several actions that was rarer, the one that most repositories did alone. What names a
thing of a project is left out: a template or circumstances that fewer repositories have, and a
template with a word of the command that failed. Nor are programs counted that a machine has in
place of others. Writes ``contextgraph/advising/harnesses.json``.

Without ``--write`` the counts are judged, as an agent with an empty memory asks for advice:
repositories are divided into five parts, and the errors of each are answered by counts of the
others. Prints, of all cleared errors, how many got an answer and how often its first line is what
cleared the error.
"""

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from contextgraph.advising import harnesses
from contextgraph.advising.channels import Channel, by_harness, harness
from contextgraph.advising.evidence import AGENT_TOOLS
from contextgraph.advising.gate import does_the_same, remedy_of
from contextgraph.advising.harnesses import HarnessCounts, Row, hash_of
from contextgraph.advising.pipeline import MemoryRetriever
from contextgraph.learning import masked
from contextgraph.learning.gate_fitting import cleared_errors
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import ErrorSignature, RemedyKind, RemedyPattern
from contextgraph.model.values import replace
from contextgraph.readers import read
from contextgraph.text import words
from contextgraph.trace import (
    Trace,
    circumstances_of,
    could_apply,
    is_general,
    is_hazardous,
    names_in,
    states_of,
    trace,
)

# Below so many repositories a remedy, a template or a circumstance may be of one project.
LEAST_REPOSITORIES = 3
# Of one type of error so many instances are enough to know the shares, and quick to count.
MOST_INSTANCES = 64
PARTS = 5

Key = TypeVar("Key", bound=Hashable)
_PROGRAM = re.compile(r"[A-Za-z][\w.+ -]*").fullmatch


class Cleared(Struct, frozen=True):
    """An error that a run of *instance* cleared by *patterns*."""

    repo: str
    instance: str
    error: ErrorSignature
    attempt: str
    circumstances: tuple[str, ...]
    patterns: tuple[RemedyPattern, ...]


def main() -> None:
    """Fit and write, or judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.harnesses", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="recorded runs")
    parser.add_argument("--write", action="store_true", help="write the counts of all runs")
    arguments = parser.parse_args()
    runs = [raw for path in arguments.paths for raw in read(path, on_error=_say, on_skip=_say)]
    traced = [trace(masked(raw)[0]) for raw in runs]
    if arguments.write:
        counts = {name: fitted(of) for name, of in sorted(by_harness_of(traced).items())}
        Path(harnesses.__file__).with_suffix(".json").write_bytes(_text(counts))
        for name, of in counts.items():
            print(f"{name}: {len(of.rows)} rows, {len(of.repositories)} instances")
        return
    for name, by_name in sorted(by_harness_of(traced).items()):
        _judge(name, by_name)


def by_harness_of(runs: Iterable[Trace]) -> dict[str, list[Trace]]:
    """Return *runs* by the harness of their agents."""
    found: dict[str, list[Trace]] = defaultdict(list)
    for run in runs:
        found[harness(run.raw.agent)].append(run)
    return found


def fitted(runs: Sequence[Trace]) -> HarnessCounts:
    """Return the counts of what *runs*, all of one harness, did about errors."""
    done = [one for run in runs for one in _cleared(run)]
    alone: Counter[tuple[object, ...]] = Counter()
    for kind, of in _grouped(done, lambda one: (*_kind(one), one.patterns)).items():
        alone[kind] = _repositories(of)
    kept = [replace(one, patterns=patterns) for one in done if (patterns := _common(one, alone))]
    templates = {
        template
        for template, of in _grouped(kept, lambda one: one.error.template).items()
        if _repositories(of) >= LEAST_REPOSITORIES and not _names_an_argument(of)
    }
    circumstances = {
        known
        for known, of in _grouped(kept, lambda one: one.circumstances).items()
        if _repositories(of) >= LEAST_REPOSITORIES
    }
    rows: dict[Row, set[str]] = defaultdict(set)
    counted: dict[tuple[object, ...], set[str]] = defaultdict(set)
    # By their hashes: in no order that says which came first.
    for one in sorted(kept, key=lambda one: hash_of(one.instance)):
        of_kind = counted[_kind(one)]
        if one.instance in of_kind or len(of_kind) < MOST_INSTANCES:
            of_kind.add(one.instance)
            template = one.error.template if one.error.template in templates else ""
            known = one.circumstances if one.circumstances in circumstances else ()
            error = one.error
            row = Row(error.family, error.error_type, one.patterns, (), template, known)
            rows[row].add(one.instance)
    repos = {one.instance: hash_of(one.repo) for one in kept}
    did: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for row, who in rows.items():
        did[row.family, row.error_type, row.patterns].update(repos[one] for one in who)
    rows = {
        row: who
        for row, who in rows.items()
        if len(did[row.family, row.error_type, row.patterns]) >= LEAST_REPOSITORIES
    }
    instances = sorted({one for of in rows.values() for one in of}, key=hash_of)
    numbers = {instance: number for number, instance in enumerate(instances)}
    return HarnessCounts(
        repositories=tuple(map(repos.__getitem__, instances)),
        rows=tuple(
            replace(row, instances=tuple(sorted(numbers[one] for one in of)))
            for row, of in sorted(rows.items(), key=lambda item: repr(item[0]))
        ),
    )


def _cleared(run: Trace) -> Iterator[Cleared]:
    """Yield what *run* verifiably cleared by something that can be said in any project."""
    states = list(states_of(run.raw))
    for recovery in run.recoveries:
        state = states[recovery.error_step - run.steps[0].index + 1]
        names = names_in(recovery.error.error_type, recovery.error.message)
        patterns = tuple(
            dict.fromkeys(
                action.pattern
                for action in recovery.actions
                if is_general(action.pattern)
                and could_apply(action.pattern, state.last_action, names, state.last_outcome)
            )
        )
        if not recovery.verified or recovery.workaround or not patterns:
            continue
        # What went with it did not clear the error.
        if any(_is_of_machine(action.pattern) for action in recovery.actions):
            continue
        if is_hazardous([action.general for action in recovery.actions]):
            continue
        yield Cleared(
            run.raw.repo,
            run.raw.instance_id,
            recovery.error,
            state.last_action,
            circumstances_of(recovery.error, state.last_action, state.last_outcome),
            patterns,
        )


def _is_of_machine(pattern: RemedyPattern) -> bool:
    """Return whether *pattern* names programs that a machine has or not: no harness brings them."""
    programs = {pattern.target, pattern.replaced}
    is_of_tools = not programs.isdisjoint(AGENT_TOOLS)
    return pattern.kind is RemedyKind.USE and not is_of_tools and all(map(_PROGRAM, programs))


def _kind(one: Cleared) -> tuple[object, ...]:
    return one.error.family, one.error.error_type


def _grouped(done: Iterable[Cleared], key: Callable[[Cleared], Key]) -> dict[Key, list[Cleared]]:
    groups: dict[Key, list[Cleared]] = defaultdict(list)
    for one in done:
        groups[key(one)].append(one)
    return groups


def _repositories(done: Iterable[Cleared]) -> int:
    return len({one.repo.casefold() for one in done})


def _common(
    one: Cleared, repositories: Mapping[tuple[object, ...], int]
) -> tuple[RemedyPattern, ...]:
    """Return the patterns of *one* that enough repositories share, or the one most did alone."""
    ways = [one.patterns, *((pattern,) for pattern in one.patterns)]
    enough = [way for way in ways if repositories[*_kind(one), way] >= LEAST_REPOSITORIES]
    if one.patterns in enough:
        return one.patterns
    return max(enough, key=lambda way: repositories[*_kind(one), way], default=())


def _names_an_argument(done: Sequence[Cleared]) -> bool:
    """Return whether the template of *done* mostly has a word of the commands that failed."""
    named = sum(
        not {*words(one.error.template)}.isdisjoint(
            part for argument in one.attempt.split()[1:] for part in words(argument)
        )
        for one in done
    )
    return 2 * named > len(done)


def _text(counts: Mapping[str, HarnessCounts]) -> bytes:
    """Return *counts* as JSON with a line for each row."""
    known = []
    for name, of in counts.items():
        rows = b",\n".join(map(msgspec.json.encode, of.rows))
        head = msgspec.json.encode(name), msgspec.json.encode(of.repositories)
        known.append(b'%s: {"repositories": %s, "rows": [\n%s\n]}' % (*head, rows))
    return b"{%s}\n" % b",\n".join(known)


def _judge(name: str, runs: Sequence[Trace]) -> None:
    errors = answered = right = 0
    wrong: Counter[str] = Counter()
    for part in range(PARTS):
        held = [run for run in runs if int(hash_of(run.raw.repo), 16) % PARTS == part]
        counts = fitted([run for run in runs if int(hash_of(run.raw.repo), 16) % PARTS != part])
        channel = Channel(at_error=partial(by_harness, harnesses={name: counts}))
        with AgentMemory.open(":memory:") as memory:
            retriever = MemoryRetriever(memory.store, channels={"harness": channel})
            for run in held:
                for state, done, names in cleared_errors(run):
                    errors += 1
                    shown = retriever.retrieve(state).ranked
                    answered += bool(shown)
                    if shown and does_the_same(done, remedy_of(shown[0].actions, ""), names):
                        right += 1
                    elif shown:
                        wrong[shown[0].description] += 1
    print(
        f"{name}: {errors} errors, answered {answered / max(1, errors):.3f}, "
        f"first right {right / max(1, answered):.3f}"
    )
    for text, count in wrong.most_common(8):
        print(f"  {count:3} {text}")


def _say(error: Exception) -> None:
    print(f"left out: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
