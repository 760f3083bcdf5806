"""Which files of a watched folder are due."""

import os
from pathlib import Path

import pytest

from contextgraph.errors import ReadError
from contextgraph.readers import Watch
from contextgraph.readers.sources import QUIET_SECONDS

NOON = 1_800_000_000.0
LATER = NOON + QUIET_SECONDS


def written(path: Path, text: str, at: float) -> None:
    path.write_text(text)
    os.utime(path, (at, at))


def due(watch: Watch, now: float) -> list[str]:
    return [Path(source.name).name for source in watch.due(now)]


def test_a_file_is_due_once_when_it_is_quiet(tmp_path: Path) -> None:
    written(tmp_path / "run.jsonl", "{}", NOON)
    watch = Watch([tmp_path])

    assert [due(watch, now) for now in (LATER - 1, LATER, LATER + 1)] == [[], ["run.jsonl"], []]


def test_a_file_that_has_grown_and_a_new_one_are_due(tmp_path: Path) -> None:
    written(tmp_path / "run.jsonl", "{}", NOON)
    written(tmp_path / "same.jsonl", "{}", NOON)
    watch = Watch([tmp_path])
    watch.due(LATER)
    written(tmp_path / "run.jsonl", "{}{}", LATER)
    written(tmp_path / "new.jsonl", "{}", LATER)

    assert due(watch, LATER) == []
    assert due(watch, LATER + QUIET_SECONDS) == ["new.jsonl", "run.jsonl"]


def test_a_run_of_several_files_is_due_as_a_whole(tmp_path: Path) -> None:
    events = tmp_path / "session" / "events"
    events.mkdir(parents=True)
    written(events / "0.json", "{}", NOON)
    watch = Watch([tmp_path])
    watch.due(LATER)
    written(events / "1.json", "{}", LATER)

    assert [len(source.parts) for source in watch.due(LATER + QUIET_SECONDS)] == [2]


def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="no such file"):
        Watch([tmp_path / "none"]).due(NOON)
