"""``python -m benchmarks.together CHANGELOG…``: whether checklists of commits hold in later ones.

A changelog is one of a project, as ``git log --stat`` or GNU's tools write it, such as Debian's
``/usr/share/doc/*/changelog.gz``. The first 70 % of its commits give the checklists. In the others
a finding is right where the commit changed all that the checklist names.
"""

import argparse
import gzip
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from contextgraph.knowledge.broken import is_at
from contextgraph.knowledge.counted import Commit, checklists

_FEWEST, _WIDEST, _LEARNED = 200, 30, 0.7
_COMMIT = re.compile(r"commit [0-9a-f]{7,}|\d{4}-\d\d-\d\d\s+\S")
_STAT = re.compile(r" (?P<files>[^.=\s][^=\s]*) +\| +(?:\d+|Bin)\b")
_GNU = re.compile(r"\s+\* (?P<files>[^:(\[<]+)")
_FILE = re.compile(r"[\w.+-]+(?:/[\w.+-]+)*")
_PLAIN = frozenset({"NEWS", "README", "Makefile", "AUTHORS", "THANKS", "TODO"})
_SPAN = re.compile(r"`([^`]+)`")


class Judged(NamedTuple):
    """A checklist: its *kind*, and how many of its findings in later commits are right or wrong."""

    kind: str
    right: int
    wrong: int


def main() -> None:
    """Print the counts of each project, and of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("changelogs", type=Path, nargs="+")
    seen, total = set[str](), Counter[str]()
    for path in parser.parse_args().changelogs:
        text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
        commits = [] if text in seen else [*_commits(text)]
        seen.add(text)
        if len(commits) < _FEWEST:
            continue
        counts = Counter[str]()
        for one in judged(commits):
            counts[f"{one.kind}: lists"] += 1
            counts[f"{one.kind}: right"] += one.right
            counts[f"{one.kind}: wrong"] += one.wrong
        print(f"{path.parent.name}, {len(commits)} commits: {dict(counts)}")
        total += counts
    print(f"all: {dict(sorted(total.items()))}")


def judged(commits: Sequence[Commit]) -> Iterator[Judged]:
    """Yield the checklists of the earlier *commits*, by how they hold in the later ones."""
    split = int(len(commits) * _LEARNED)
    earlier, later = commits[:split], commits[split:]
    there = {name for one in earlier for name in one.files}
    for text, facts in checklists(earlier[::-1], there):
        place = facts.about.paths[0]
        if place.endswith("/"):
            continue  # a new folder is said at a request alone
        named = _SPAN.findall(text)[1:]
        found = [
            all(any(is_at(file, name) for file in one.files) for name in named)
            for one in later
            if len(one.files) <= _WIDEST
            and any(is_at(file, place) for file in (one.added if "*" in place else one.files))
        ]
        yield Judged("new" if "*" in place else "file", sum(found), len(found) - sum(found))


def _commits(text: str) -> Iterator[Commit]:
    """Yield the commits that a changelog has, the earliest first."""
    listed: list[dict[str, None]] = []
    for line in text.splitlines():
        if _COMMIT.match(line):
            listed.append({})
        elif listed and (match := _STAT.match(line) or _GNU.match(line)):
            names = re.split(r"[,\s]+", match["files"].strip().rstrip(",."))
            listed[-1] |= dict.fromkeys(filter(_is_file, names))
    known, now = set[str](), datetime.now(UTC)
    for number, files in enumerate(filter(None, reversed(listed))):
        yield Commit(f"{number:012}", "", now, "", [*files], [*(files.keys() - known)])
        known |= files.keys()


def _is_file(name: str) -> bool:
    return bool(_FILE.fullmatch(name)) and ("." in name or "/" in name or name in _PLAIN)


if __name__ == "__main__":
    main()
