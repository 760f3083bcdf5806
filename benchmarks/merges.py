"""``python -m benchmarks.merges``: whether git merges what two people did to entries of lessons.

Each merge has its own entries, a history of two sides that add, edit, rename and delete them at
random, and what should become of it: an edit of another field on each side is no conflict; one of
the same field, or of what the other side deleted, is. Merged by git with its own settings.
"""

import argparse
import os
import random
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from contextgraph.knowledge.entries import Entry, entry_in, name_of, written
from contextgraph.model import LESSONS_FOLDER, About, LessonKind, LessonStatus, Quotation
from contextgraph.model.values import replace

_WORDS = """export batch rows partner invoice total rounding width column header footer retry queue
worker lease token cache index search column migration release branch commit review linter format
module package import logger warning failure customer address currency tariff discount basket order
payment refund shipment parcel weight label printer report archive backup restore schedule monitor
always never only before after first last every each whole instead because until unless
where keeps holds uses names reads writes sends takes returns raises rejects accepts""".split()
_NOW = datetime(2026, 3, 2, tzinfo=UTC)
_OURS, _THEIRS = "ours", "theirs"


class Counts(NamedTuple):
    """Counts of merges without a conflict, with an expected one, and of faults."""

    merged: int
    expected: int
    lost: int
    false_conflicts: int
    missed: int


class Side(NamedTuple):
    """The *files* of a side, and what it did: path -> the fields that it changed."""

    files: Mapping[str, str]
    changed: Mapping[str, Mapping[str, str]]
    renamed: Mapping[str, str]
    deleted: frozenset[str]


def entry(rng: random.Random) -> Entry:
    """Return an entry with random words."""

    def said(least: int, most: int) -> str:
        return " ".join(rng.choices(_WORDS, k=rng.randint(least, most)))

    at = _NOW + timedelta(minutes=rng.randrange(500_000))
    quotes = tuple(
        Quotation(said(4, 30), "", f"session-{rng.randrange(10**9)}", rng.randrange(90), at, "Ada")
        for _ in range(rng.randint(1, 2))
    )
    paths = tuple(f"{rng.choice(_WORDS)}/{rng.choice(_WORDS)}.py" for _ in range(rng.randint(0, 2)))
    about = About(tuple(dict.fromkeys(paths)), subject=said(1, 3))
    kind = rng.choice([*LessonKind])
    lesson = f"lesson_{rng.getrandbits(64):016x}"
    by = rng.choice(("Ada", "Grace"))
    text = f"{said(6, 30)}.".capitalize()
    return Entry(text, kind, LessonStatus.ACTIVE, about, at, quotes, by=by, lesson=lesson)


def _edited(rng: random.Random, one: Entry, field: str, side: str) -> Entry:
    about = one.about
    match field:
        case "text":
            return replace(one, text=f"{one.text[:-1]} {rng.choice(_WORDS)} {side}.")
        case "kind":
            others = [kind for kind in LessonKind if kind is not one.kind]
            return replace(one, kind=rng.choice(others))
        case "status":
            status = rng.choice((LessonStatus.PROPOSED, LessonStatus.SUPERSEDED))
            return replace(one, status=status)
        case "subject":
            return replace(one, about=replace(about, subject=f"{about.subject} {side}"))
        case "paths":
            return replace(one, about=replace(about, paths=(*about.paths, f"{side}/new.py")))
        case "programs":
            return replace(one, about=replace(about, programs=(f"make-{side}",)))
        case _:
            first, *rest = one.evidence
            quote = replace(first, quote=f"{first.quote} {side}")
            return replace(one, evidence=(quote, *rest))


_FIELDS = ("text", "kind", "status", "subject", "paths", "programs", "evidence")


def side_of(rng: random.Random, base: Mapping[str, Entry], side: str, new: Sequence[Entry]) -> Side:
    """Return what one side makes of *base*; it adds *new*."""
    files = dict(base)
    changed, renamed, deleted = dict[str, dict[str, str]](), dict[str, str](), set[str]()
    for path in base:
        action = rng.random()
        if action < 0.06:
            deleted.add(path)
            del files[path]
            continue
        if action < 0.3:
            fields = rng.sample(_FIELDS, rng.randint(1, 2))
            for field in fields:
                files[path] = _edited(rng, files[path], field, side)
            changed[path] = {field: str(_value(files[path], field)) for field in fields}
        if rng.random() < 0.05:
            renamed[path] = f"{LESSONS_FOLDER}/{rng.choice(_WORDS)}-{rng.getrandbits(32):08x}.md"
            files[renamed[path]] = files.pop(path)
    files |= {f"{LESSONS_FOLDER}/{name_of(one)}": one for one in new}
    return Side({path: written(one) for path, one in files.items()}, changed, renamed,
                frozenset(deleted))  # fmt: skip


def _value(one: Entry, field: str) -> object:
    known = {"subject": one.about.subject, "paths": one.about.paths, "programs": one.about.programs}
    return known[field] if field in known else getattr(one, field)


def conflicts(base: Mapping[str, Entry], ours: Side, theirs: Side) -> bool:
    """Return whether the two sides want different things of one entry."""
    for path in base:
        for one, other in ((ours, theirs), (theirs, ours)):
            if path in one.deleted and (path in other.changed or path in other.renamed):
                return True
        names = {side.renamed[path] for side in (ours, theirs) if path in side.renamed}
        fields, others = ours.changed.get(path, {}), theirs.changed.get(path, {})
        if len(names) > 1 or any(
            others.get(name, value) != value for name, value in fields.items()
        ):
            return True
    return False


def expected(base: Mapping[str, Entry], ours: Side, theirs: Side) -> dict[str, str]:
    """Return path -> text of what the merge has to hold, where nothing conflicts."""
    found = dict[str, str]()
    for path, one in base.items():
        if path in ours.deleted | theirs.deleted:
            continue
        name = ours.renamed.get(path) or theirs.renamed.get(path) or path
        both = one
        for side in (ours, theirs):
            at = side.renamed.get(path, path)
            own = entry_in(side.files[at], at, _NOW)
            for field in side.changed.get(path, ()):
                about = {"subject", "paths", "programs"}
                value = {field: _value(own, field)}
                both = (
                    replace(both, about=replace(both.about, **value))
                    if field in about
                    else replace(both, **value)
                )
        found[name] = written(both)
    names = {side.renamed.get(path, path) for side in (ours, theirs) for path in base}
    for side in (ours, theirs):
        found |= {path: text for path, text in side.files.items() if path not in names}
    return found


def merges(count: int, seed: int) -> Counts:
    """Return what became of *count* random merges."""
    rng = random.Random(seed)
    merged = met = lost = false = missed = 0
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}

        def git(*arguments: str, given: str = "") -> "subprocess.CompletedProcess[str]":
            return subprocess.run(
                ["git", *arguments], cwd=folder, env=environment, input=given, text=True,
                capture_output=True, check=False,
            )  # fmt: skip

        git("init", "-q", "--bare")
        cases = [*_cases(rng, count)]
        stream = "".join(
            _commits(number, base, ours, theirs)
            for number, (base, ours, theirs) in enumerate(cases)
        )
        git("fast-import", "--quiet", given=stream).check_returncode()
        for number, (base, ours, theirs) in enumerate(cases):
            done = git("merge-tree", "--write-tree", f"{number}-{_OURS}", f"{number}-{_THEIRS}")
            is_conflict = conflicts(base, ours, theirs)
            if done.returncode:
                met += is_conflict
                false += not is_conflict
                continue
            merged += 1
            missed += is_conflict
            listed = git("ls-tree", "-r", done.stdout.split()[0]).stdout.splitlines()
            blobs = {line.partition("\t")[2]: line.split()[2] for line in listed}
            wanted = expected(base, ours, theirs)
            texts = {path: git("cat-file", "blob", blob).stdout for path, blob in blobs.items()}
            lost += not is_conflict and texts != wanted
    return Counts(merged, met, lost, false, missed)


def _cases(rng: random.Random, count: int) -> Iterator[tuple[dict[str, Entry], Side, Side]]:
    for _ in range(count):
        listed = [entry(rng) for _ in range(rng.randint(3, 10))]
        base = {f"{LESSONS_FOLDER}/{name_of(one)}": one for one in listed}
        new = [[entry(rng) for _ in range(rng.randint(0, 3))] for _ in range(2)]
        if rng.random() < 0.3:  # both propose the same, one of them with other evidence
            both = entry(rng)
            new[0].append(both)
            new[1].append(both if rng.random() < 0.5 else replace(both, evidence=()))
        yield base, side_of(rng, base, _OURS, new[0]), side_of(rng, base, _THEIRS, new[1])


def _commits(number: int, base: Mapping[str, Entry], ours: Side, theirs: Side) -> str:
    def commit(name: str, parent: str, files: Mapping[str, str]) -> str:
        lines = [f"commit refs/heads/{number}-{name}", "committer Ada <ada@example.org> 0 +0000"]
        lines += ["data 0", *([f"from refs/heads/{number}-{parent}"] if parent else [])]
        lines += ["deleteall"]
        for path, text in files.items():
            lines += [f"M 100644 inline {path}", f"data {len(text.encode())}", text]
        return "\n".join((*lines, ""))

    texts = {path: written(one) for path, one in base.items()}
    return (
        commit("base", "", texts)
        + commit(_OURS, "base", ours.files)
        + commit(_THEIRS, "base", theirs.files)
    )


def main() -> None:
    """Print the counts of `--merges` merges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--merges", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(merges(given.merges, given.seed)._asdict())


if __name__ == "__main__":
    main()
