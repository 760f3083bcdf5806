"""Files that were cut or altered."""

import contextlib
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from hypothesis import given, settings, strategies as st

from contextgraph.errors import ReadError
from contextgraph.model import RawTrajectory
from contextgraph.readers import SkippedError, read, write_jsonl
from tests.deadline import deadline
from tests.profiles import examples

SAMPLES = Path(__file__).parents[1] / "data" / "readers"


def _content(folder: Path) -> bytes:
    """The largest file of a format, a whole run; of a run in a folder its files by name."""
    if files := [path for path in folder.iterdir() if path.is_file()]:
        return max(files, key=lambda path: path.stat().st_size).read_bytes()
    (run,) = folder.iterdir()
    texts = {path.name: path.read_text() for path in run.iterdir()}
    return orjson.dumps(
        {name: orjson.loads(t) if name.endswith(".json") else t for name, t in texts.items()}
    )


CONTENTS = {folder.name: _content(folder) for folder in sorted(SAMPLES.iterdir())}
RUNS = [
    RawTrajectory("sweagent", f"teapot__kettle-{number}", "teapot/kettle", "Boil. " * number)
    for number in range(1, 30)
]
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstandard": zstandard.compress,
}


def _written() -> bytes:
    file = io.BytesIO()
    write_jsonl(RUNS, file)
    return file.getvalue()


WRITTEN = _written()


def _parquet() -> bytes:
    pa = pytest.importorskip("pyarrow")
    file = io.BytesIO()
    turns = [{"role": "user", "text": "x"}, {"role": "ai", "text": "```\nls\n```"}]
    rows = [{"instance_id": f"a__b-{i}", "target": True, "trajectory": turns} for i in range(40)]
    pytest.importorskip("pyarrow.parquet").write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged")


def read_bytes(folder: Path, content: bytes) -> tuple[list[RawTrajectory], list[ReadError]]:
    path = folder / "runs"
    path.write_bytes(content)
    errors: list[ReadError] = []
    return list(read(path, on_error=errors.append)), errors


def altered(data: st.DataObject, content: bytes) -> tuple[bytes, int]:
    at = data.draw(st.integers(0, len(content) - 1))
    return content[:at] + bytes([data.draw(st.integers(0, 255))]) + content[at + 1 :], at


@given(cut=st.integers(0, len(WRITTEN)))
def test_cutting_jsonl_costs_only_the_line_that_was_cut(folder, cut):
    runs, errors = read_bytes(folder, WRITTEN[:cut])
    *_, last = WRITTEN[:cut].split(b"\n")
    is_whole = not last or last in WRITTEN.splitlines()
    assert runs == RUNS[: WRITTEN[: cut + 1].count(b"\n")]
    assert len(errors) == (0 if cut and is_whole else 1)


@given(data=st.data())
def test_altering_a_byte_of_jsonl_costs_at_most_the_lines_it_is_in(folder, data):
    damaged, at = altered(data, WRITTEN)
    runs, _ = read_bytes(folder, damaged)
    line = WRITTEN[:at].count(b"\n")
    after = len(RUNS) - line - 1 - (WRITTEN[at : at + 1] == b"\n")
    assert runs[:line] == RUNS[:line]
    assert after <= 0 or runs[-after:] == RUNS[-after:]


@pytest.mark.parametrize("packer", ["gzip", "zstandard"])
@given(data=st.data())
def test_what_comes_before_the_cut_in_an_archive_is_read_and_the_cut_reported(packer, folder, data):
    parts = [PACKERS[packer](line + b"\n") for line in WRITTEN.splitlines()]
    keep = data.draw(st.integers(1, len(parts) - 1))
    cut = data.draw(st.integers(2, len(parts[keep]) - 1))
    runs, errors = read_bytes(folder, b"".join(parts[:keep]) + parts[keep][:cut])
    assert runs[:keep] == RUNS[:keep]
    assert len(errors) == 1


@pytest.mark.parametrize("name", CONTENTS)
@settings(max_examples=examples(0.15))
@given(data=st.data(), packer=st.sampled_from(["gzip", "zstandard"]))
def test_an_archive_that_was_cut_is_one_failure(name, folder, data, packer):
    content = PACKERS[packer](CONTENTS[name])
    cut = data.draw(st.integers(4, len(content) - 1))
    _, of_whole = read_bytes(folder, content)
    _, errors = read_bytes(folder, content[:cut])
    assert "ends early" in errors[-1].reason
    failures = [error for error in errors if not isinstance(error, SkippedError)]
    assert len(failures) <= len(of_whole) + 1


def test_an_archive_that_was_cut_after_the_first_line_of_its_document_is_one_failure(folder):
    content = zlib.compressobj(wbits=31)
    cut = content.compress(b"{\n") + content.flush(zlib.Z_SYNC_FLUSH)
    _, errors = read_bytes(folder, cut)
    assert [error.reason for error in errors] == ["gzip data ends early"]


@pytest.mark.parametrize("packer", ["gzip", "zstandard"])
@given(data=st.data())
def test_what_comes_before_the_damage_in_an_archive_is_read(packer, folder, data):
    parts = [PACKERS[packer](line + b"\n") for line in WRITTEN.splitlines()]
    number = data.draw(st.integers(1, len(parts) - 1))
    parts[number], _ = altered(data, parts[number])
    runs, _ = read_bytes(folder, b"".join(parts))
    assert runs[:number] == RUNS[:number]


@pytest.mark.parametrize("name", CONTENTS)
@settings(max_examples=examples(0.3))
@given(data=st.data(), packer=st.sampled_from(list(PACKERS)))
def test_a_damaged_sample_raises_nothing_but_read_errors(name, folder, data, packer):
    content = PACKERS[packer](CONTENTS[name])
    start, end = (data.draw(st.integers(0, len(content))) for _ in range(2))
    read_bytes(folder, content[:start])
    read_bytes(folder, content[:start] + content[end:])  # without a piece, or with one twice
    read_bytes(folder, altered(data, content)[0])


def parsed(content: bytes) -> list[Any]:
    """The JSON values of *content*, without the lines that are damaged on purpose."""
    with contextlib.suppress(orjson.JSONDecodeError):
        return [orjson.loads(content)]
    values = []
    for line in content.splitlines():
        with contextlib.suppress(orjson.JSONDecodeError):
            values.append(orjson.loads(line))
    return values


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each object or list in *value*, with each of its keys or positions."""
    keys = range(len(value)) if isinstance(value, list) else value
    for key in keys if isinstance(value, dict | list) else ():
        yield value, key
        yield from places_in(value[key])


ODD = st.sampled_from(
    'null true 0 -1 1.5 "" "x" [] {} [1] [[]] [{}] {"a":1} {"type":"text"} {"content":null} '
    '[{"role":"assistant"}]'.split()
)
IN_JSON = [name for name, content in CONTENTS.items() if parsed(content)]


@pytest.mark.parametrize("name", IN_JSON)
@settings(max_examples=examples(0.4))
@given(data=st.data())
def test_values_of_the_wrong_type_give_a_result_or_an_error_with_file_and_reason(
    name, folder, data
):
    values = parsed(CONTENTS[name])
    for _ in range(data.draw(st.integers(1, 3))):
        inside, key = data.draw(st.sampled_from(list(places_in(values))))
        if inside is values or data.draw(st.booleans()):
            inside[key] = orjson.loads(data.draw(ODD))
        else:
            del inside[key]
    runs, errors = read_bytes(folder, b"\n".join(map(orjson.dumps, values)))
    assert runs or errors
    assert all(error.source and error.reason for error in errors)


PUMPED = st.sampled_from(
    [
        *("\n", " ", "a", "<issue>", " <system-reminder>a\n", "{", "```\n", "<feedback> "),
        *("<file></file><original>", "<read_file><a>", "p\n```\n<<<<< SEARCH\n=====\n"),
    ]
)


@pytest.mark.parametrize("name", IN_JSON)
@settings(max_examples=examples(0.2))
@given(data=st.data(), unit=PUMPED)
def test_a_long_text_in_any_place_is_read_in_time(name, folder, data, unit):
    values = parsed(CONTENTS[name])
    texts = [(one, key) for one, key in places_in(values) if isinstance(one[key], str)]
    inside, key = data.draw(st.sampled_from(texts))
    inside[key] += unit * (200_000 // len(unit))
    with deadline():
        runs, errors = read_bytes(folder, b"\n".join(map(orjson.dumps, values)))
    assert runs or errors


@given(data=st.data())
def test_damaged_parquet_raises_nothing_but_read_errors(folder, data):
    content = _parquet()
    read_bytes(folder, content[: data.draw(st.integers(0, len(content)))])
    read_bytes(folder, altered(data, content)[0])
