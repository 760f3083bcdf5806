"""Files, folders, globs and standard input; what is broken in them, and what is beside them."""

import contextlib
import gzip
import io
import os
import re
import socket
import sys
import tarfile
import threading
from pathlib import Path
from random import Random

import orjson
import pytest
import zstandard

from contextgraph import AgentMemory
from contextgraph.errors import MissingExtraError, ReadError
from contextgraph.model import RawTrajectory
from contextgraph.readers import FILE_WEIGHT, read, reading, size_of, write_jsonl
from contextgraph.readers.reading import divided
from contextgraph.readers.sources import SourceFile, sources
from contextgraph.system import intake
from contextgraph.system.intake import MAX_RUN_SIZE

RUNS = [
    RawTrajectory("sweagent", f"teapot__kettle-{number}", "teapot/kettle", f"Task {number}")
    for number in range(1, 4)
]


def lines() -> list[bytes]:
    file = io.BytesIO()
    write_jsonl(RUNS, file)
    return file.getvalue().splitlines()


def test_a_gap_in_the_steps_of_one_run_is_an_error_at_its_place(tmp_path: Path) -> None:
    step = {"thought": "", "action": {"tool": "bash", "text": "ls"}}
    first, odd, last = (orjson.loads(line) for line in lines())
    odd["steps"] = [{"index": 0, **step}, {"index": 4, **step}]
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, (first, odd, last))))
    runs, (error,) = read_all(path)
    assert len(runs) == 2
    assert (error.position, error.detail) == ("line 2", "step 1 has the index 4")


def row(instance_id: str) -> dict[str, object]:
    turns = [
        {"role": "user", "text": "ISSUE:\nx\n\nINSTRUCTIONS:"},
        {"role": "ai", "text": "```\nls\n```"},
    ]
    return {"instance_id": instance_id, "target": True, "trajectory": turns}


def instances(path: object) -> list[str]:
    return [run.instance_id for run in read(path)]  # type: ignore[arg-type]


def read_all(path: object) -> tuple[list[RawTrajectory], list[ReadError]]:
    errors: list[ReadError] = []
    return list(read(path, on_error=errors.append)), errors  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        b"\n".join(lines()),
        b"\xef\xbb\xbf" + b"\r\n\r\n".join(lines()) + b"\n\n",
        b"[" + b",".join(lines()) + b"]",
        b"[\n" + b",\n".join(lines()) + b"\n]\n",
        orjson.dumps([orjson.loads(line) for line in lines()], option=orjson.OPT_INDENT_2),
        gzip.compress(b"\n".join(lines())),
        gzip.compress(lines()[0] + b"\n") + gzip.compress(b"\n".join(lines()[1:])),
        zstandard.compress(b"\n".join(lines())),
    ],
    ids=["jsonl", "bom", "list", "list_by_line", "indented", "gzip", "gzip_members", "zstandard"],
)
def test_the_content_and_not_the_name_tells_how_to_read(tmp_path, content):
    path = tmp_path / "runs.txt"
    path.write_bytes(content)
    assert list(read(path)) == RUNS


def test_rows_of_parquet_are_read(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "rows"
    rows = [row(f"teapot__kettle-{number}") for number in range(40)]
    parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=17)
    assert instances(path) == [f"teapot__kettle-{number}" for number in range(40)]
    assert [run.source for run in read(path)][16] == f"{path}:17"


def arrow(path: Path, rows: list[dict[str, object]], **options: object) -> None:
    """Write *rows* as `datasets` does."""
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_stream(
        str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)
    ) as to:
        to.write_table(table, max_chunksize=17)


def test_a_data_set_that_was_saved_to_disk_is_read(tmp_path):
    folder = tmp_path / "data" / "train"
    folder.mkdir(parents=True)
    rows = [row(f"teapot__kettle-{number}") for number in range(40)]
    arrow(folder / "data-00000-of-00001.arrow", rows)
    arrow(folder / "cache-1f.arrow", rows[:3])
    (tmp_path / "data" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    (folder / "dataset_info.json").write_text('{"features": {}}')
    (folder / "state.json").write_text(
        '{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}'
    )
    skipped = list[ReadError]()
    runs = list(read(tmp_path / "data", on_skip=skipped.append))
    assert [run.instance_id for run in runs] == [str(item["instance_id"]) for item in rows]
    assert runs[16].source == f"{folder}/data-00000-of-00001.arrow:17"
    reasons = sorted(error.detail or error.kind for error in skipped)
    assert len(reasons) == 4
    assert set(reasons) == {"the cache of a data set", "the description of a data set"}


def test_a_stream_of_arrow_that_is_damaged_or_packed_is_refused(tmp_path):
    path = tmp_path / "rows.arrow"
    arrow(path, [row(f"teapot__kettle-{number}") for number in range(40)])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    runs, (error,) = read_all(path)
    assert runs
    assert "Arrow data is corrupt" in str(error)
    arrow(path, [{"messages": "z" * (3 << 20)}], compression="zstd")
    failed = list[ReadError]()
    assert list(read(path, on_error=failed.append, max_run_size=1 << 20)) == []
    assert "Arrow data of more than 200 times its size" in str(failed[-1])


@pytest.mark.parametrize(
    ("value", "rows", "dictionary", "reason"),
    [
        ("z" * (3 << 20), 1, False, "row group 1: parquet data of more than 200 times its size"),
        ("z" * (700 << 10), 100, True, "record 2: parquet data of more than 200 times its size"),
        (None, 1, False, r"record 1: larger than --max-run-size \(1 MiB\)"),
    ],
)
def test_parquet_that_would_fill_the_memory_is_refused(tmp_path, value, rows, dictionary, reason):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    noise = value or Random(1).randbytes(2 << 20).hex()
    path = tmp_path / "rows.parquet"
    table = pa.table({"messages": [noise] * rows})
    parquet.write_table(table, path, compression="zstd", use_dictionary=dictionary)
    failed: list[ReadError] = []

    runs = list(read(path, on_error=failed.append, max_run_size=1 << 20))

    assert runs == []
    assert re.search(reason, str(failed[-1]))


def in_parts(path: Path) -> tuple[int, list[str], list[ReadError]]:
    """How many parts a file has, and the runs and errors of them, one after another."""
    (whole,) = sources(path)
    parts = list(divided(whole, MAX_RUN_SIZE))
    assert sum(one.size for one in parts if isinstance(one, SourceFile)) == whole.size
    read_parts = [([], [one]) if isinstance(one, ReadError) else read_all(one) for one in parts]
    runs = [run.source for found, _ in read_parts for run in found]
    return len(parts), runs, [error for _, errors in read_parts for error in errors]


@pytest.mark.parametrize("damage", ["", "gzip", "cut"])
def test_the_parts_of_a_file_hold_what_all_of_it_does(tmp_path, damage):
    noise = Random(0)
    rows = [{**row(f"a__b-{number}"), "x": noise.randbytes(20_000).hex()} for number in range(80)]
    text = b"\n".join(
        [*map(orjson.dumps, rows[:70]), b'{"broken": ', *map(orjson.dumps, rows[70:]), b""]
    )
    packed = gzip.compress(text) if damage else text
    path = tmp_path / "rows.jsonl"
    path.write_bytes(packed[:-30_000] if damage == "cut" else packed)
    runs, errors = read_all(path)

    count, found, failed = in_parts(path)
    assert (count, len(runs)) == ((4, 78) if damage == "cut" else (3, 80))
    assert found == [run.source for run in runs]
    assert list(map(str, failed)) == list(map(str, errors)) != []


def test_the_parts_of_a_parquet_file_are_groups_of_rows(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    noise = Random(0)
    rows = [
        {"run": orjson.dumps({**row(f"a__b-{n}"), "x": noise.randbytes(20_000).hex()}).decode()}
        for n in range(40)
    ]
    path = tmp_path / "rows.parquet"
    parquet.write_table(
        pytest.importorskip("pyarrow").Table.from_pylist(rows), path, row_group_size=8
    )

    assert in_parts(path) == (5, [f"{path}:{number}" for number in range(1, 41)], [])


def test_a_session_is_read_as_a_whole(tmp_path):
    path = tmp_path / "session.jsonl"
    content = [{"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}}]
    events = [
        {"type": role, "sessionId": "s", "message": {"role": role, "content": words}}
        for role, words in [("user", "Fix it"), ("assistant", content)]
    ]
    filler = {**events[0], "isMeta": True, "x": "x" * 30_000}
    path.write_bytes(b"\n".join(map(orjson.dumps, [*events, *[filler] * 40])))

    assert in_parts(path) == (1, [str(path)], [])


def test_parquet_without_pyarrow_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1 and more")
    with pytest.raises(MissingExtraError, match=r"pip install 'contextgraph-memory\[parquet\]'"):
        list(read(path))


def test_standard_input_is_read_and_named_in_the_source(monkeypatch):
    rows = b"\n".join(orjson.dumps(row(f"a__b-{number}")) for number in (1, 2))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(rows))))
    assert [run.source for run in read("-")] == ["-:1", "-:2"]


def test_a_broken_line_is_reported_with_its_place_and_the_rest_goes_on(tmp_path):
    path = tmp_path / "runs.jsonl"
    first, second, third = lines()
    path.write_bytes(b"\n".join([first, b'{"contextgraph": 1,', second, b"", b"[1, 2", third]))
    runs, errors = read_all(path)
    assert runs == RUNS
    assert [(error.source, error.position) for error in errors] == [
        (str(path), "line 2"),
        (str(path), "line 5"),
    ]
    assert "invalid json" in errors[0].reason


def test_a_first_line_that_is_broken_costs_no_other(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b"\n".join([b'{"contextgraph": oops}', *lines()]))
    runs, errors = read_all(path)
    assert runs == RUNS
    assert [error.position for error in errors] == ["line 1"]


def test_without_a_handler_the_error_is_raised_where_it_is_met(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b"\n".join([lines()[0], b"{", lines()[1]]))
    reading = read(path)
    assert next(reading) == RUNS[0]
    with pytest.raises(ReadError, match="line 2"):
        next(reading)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_a_truncated_archive_gives_what_is_whole_and_then_the_byte_where_it_ends(
    tmp_path, compress
):
    path = tmp_path / "runs"
    noise = bytes(range(256)) * 4  # so that the end of the archive is beyond the first run
    packed = compress(lines()[0] + b"\n" + b'{"x": "' + noise.hex().encode() * 500 + b'"}')
    path.write_bytes(packed[:-9])
    runs, errors = read_all(path)
    assert runs == RUNS[:1]
    assert errors[-1].position == f"byte {len(packed) - 9}"
    assert "ends early" in errors[-1].reason


@pytest.mark.parametrize("name", ["runs.jsonl.gz", "runs.jsonl"])
def test_what_is_neither_text_nor_compressed_is_named_so(tmp_path, name):
    (tmp_path / name).write_bytes(bytes(range(128, 256)) * 3)
    assert "line 1: not text in UTF-8" in str(read_all(tmp_path / name)[1][0])


def test_an_archive_of_a_memory_is_for_import(tmp_path):
    with AgentMemory.open(tmp_path / "m.db") as memory:
        memory.learn(RUNS)
        memory.export(tmp_path / "memory.jsonl.zst")
    runs, (error,) = read_all(tmp_path / "memory.jsonl.zst")
    assert (runs, "`contextgraph import` reads it" in str(error)) == ([], True)


def test_a_tar_archive_is_refused(tmp_path):
    (tmp_path / "runs.jsonl").write_bytes(b"\n".join(lines()))
    with tarfile.open(tmp_path / "runs.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "runs.jsonl", "runs.jsonl")
    runs, (error,) = read_all(tmp_path / "runs.tar.gz")
    assert not runs
    assert "a tar archive: unpack it" in str(error)


def test_lone_surrogates_and_numbers_that_json_does_not_have_are_made_readable(tmp_path):
    path = tmp_path / "runs.jsonl"
    record = row("a__b-1") | {"score": float("nan")}
    text = str(orjson.dumps(record), "utf-8").replace('"ls', '"\\ud83d ls').replace("null", "NaN")
    path.write_text(text.replace("\\nls", "\\nls \\udc80"))
    (run,) = read(path)
    assert run.steps[0].action.text == "ls \ufffd"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"Some text\nabout kettles\n", "neither json nor parquet"),
        (b'{"resolved_ids": ["a__b-1"]}', "an evaluation report"),
        (b'{"instance_id": "a__b-1", "model_patch": "", "x": 1}', "predicted patches"),
    ],
)
def test_what_is_not_a_trajectory_is_an_error_by_name_and_skipped_in_a_folder(
    tmp_path, content, reason
):
    path = tmp_path / "thing.out"
    path.write_bytes(content)
    _, errors = read_all(path)
    assert [reason in str(error) for error in errors] == [True]
    assert read_all(tmp_path) == ([], [])
    assert read_all(tmp_path / "*.out") == ([], [])


@pytest.mark.parametrize("name", ["run.json", "runs.jsonl", "run.traj"])
@pytest.mark.parametrize("content", [b"{'role': 1}", b'tegraph": 1}\n', b"x\ny\nz"])
def test_a_file_named_json_whose_start_is_broken_fails_with_line_and_column(
    tmp_path, name, content
):
    (tmp_path / name).write_bytes(content)
    _, errors = read_all(tmp_path)
    assert [(error.source, error.position) for error in errors[:1]] == [
        (str(tmp_path / name), "line 1")
    ]
    assert re.search(r"invalid json: .*, column \d", errors[0].reason)


def test_json_of_no_known_format_in_a_folder_is_reported(tmp_path):
    (tmp_path / "other.json").write_text('{"steps": []}')
    _, errors = read_all(tmp_path)
    assert "unknown format: an object with 'steps'" in str(errors)


def test_a_log_of_another_kind_is_reported_line_by_line_and_runs_in_it_are_read(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"\n".join([b'{"type": "user"}'] * 3 + [lines()[0], b'{"type": "x"}']))
    runs, errors = read_all(path)
    assert runs == RUNS[:1]
    assert [error.position for error in errors] == ["line 1", "line 2", "line 3", "line 5"]


def test_a_folder_is_read_sorted_and_to_its_depths_without_hidden_files(tmp_path):
    for name, line in zip(("b/deep/run", "a.json", "c/.hidden"), lines(), strict=True):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(line)
    assert instances(tmp_path) == ["teapot__kettle-2", "teapot__kettle-1"]


def test_the_sessions_of_a_named_project_are_read_though_their_folder_is_hidden(tmp_path):
    names = (".specstory/history/run", "cli/.specstory/history/run", ".git/history/run")
    for name, line in zip((*names, ".specstory/run"), (*lines()[:2], b"{}", b"{}"), strict=True):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(line)
    assert instances(tmp_path) == ["teapot__kettle-1", "teapot__kettle-2"]


def test_a_glob_finds_files_and_folders_once(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "one.json").write_bytes(lines()[0])
    (tmp_path / "x.json").write_bytes(lines()[1])
    assert instances(tmp_path / "**") == ["teapot__kettle-2", "teapot__kettle-1"]


def test_a_path_with_nothing_behind_it_is_an_error(tmp_path):
    for path in (tmp_path / "absent", tmp_path / "*.none"):
        with pytest.raises(ReadError, match="no such file or folder"):
            list(read(path))


def test_many_paths_are_read_one_after_the_other(tmp_path):
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_bytes(lines()[0])
    second.write_bytes(lines()[1])
    assert list(read(second, first)) == [RUNS[1], RUNS[0]]


def test_the_bytes_reported_while_reading_add_up_to_the_size(tmp_path):
    (tmp_path / "runs.gz").write_bytes(gzip.compress(b"\n".join(lines())))
    (tmp_path / "README.md").write_text("Kettles" * 50_000)
    counted: list[int] = []
    assert list(read(tmp_path, on_bytes=counted.append)) == RUNS
    total = size_of([tmp_path], of_each_file=FILE_WEIGHT)
    assert sum(counted) == total == size_of(tmp_path.iterdir()) + 2 * FILE_WEIGHT


def test_a_record_without_instance_is_named_after_its_file_and_place(tmp_path):
    path = tmp_path / "night.jsonl"
    unnamed = orjson.dumps(row(""))
    path.write_bytes(unnamed + b"\n" + unnamed)
    assert instances(path) == ["night:1", "night:2"]
    named = tmp_path / "v2__teapot__kettle-9.Submitted.json"
    named.write_bytes(unnamed)
    (run,) = read(named)
    assert (run.instance_id, run.repo) == ("teapot__kettle-9", "teapot/kettle")
    assert run.source == str(named)


def test_an_unreadable_file_is_an_error(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "no such file" in str(read_all(loop)[1])
    assert "cannot be opened" in str(read_all(tmp_path)[1])


def test_paths_may_be_relative(tmp_path, monkeypatch):
    (tmp_path / "runs.json").write_bytes(orjson.dumps(row("a__b-1")))
    monkeypatch.chdir(tmp_path)
    assert [run.source for run in read("runs.json")] == ["runs.json"]
    assert [run.source for run in read(Path())] == ["./runs.json"]


def a_bomb(size: int) -> bytes:
    return b'{"contextgraph": 1, "task": "' + b"0" * size + b'"}'


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
@pytest.mark.parametrize("before", [b"", lines()[0] + b"\n", b"{\n"])
def test_a_run_larger_than_the_limit_ends_the_file(tmp_path, pack, before):
    path = tmp_path / "runs"
    path.write_bytes(pack(before + a_bomb(3 << 20)))
    errors: list[ReadError] = []
    runs = list(read(path, on_error=errors.append, max_run_size=1 << 20))
    assert runs == RUNS[: before.count(b"contextgraph")]
    assert [error.reason for error in errors] == [
        "larger than --max-run-size (1 MiB); the rest is not read"
    ]


def test_a_file_of_many_runs_may_be_larger_than_one_run(tmp_path):
    path = tmp_path / "runs"
    path.write_bytes(b"\n".join(lines()))
    assert list(read(path, max_run_size=path.stat().st_size // 2)) == RUNS


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_blank_lines_that_were_packed_to_nearly_nothing_are_not_all_read(tmp_path, compress):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(compress(b"\n" * (4 << 20)))
    errors: list[ReadError] = []
    assert not list(read(path, on_error=errors.append, max_run_size=1 << 20))
    assert "more than 200 times its size" in str(errors)


def test_json_that_is_nested_too_deeply_is_an_error(tmp_path):
    path = tmp_path / "deep.json"
    path.write_bytes(b'{"messages": ' + b"[" * 500 + b"]" * 500 + b"}")
    _, errors = read_all(path)
    assert "nested more than 100 levels deep" in str(errors)


def test_what_is_not_a_file_in_a_folder_is_skipped_with_its_reason(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "run").write_bytes(lines()[0])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run").write_bytes(lines()[1])
    os.mkfifo(folder / "report.json")
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "inside").symlink_to("run")
    (folder / "outside").symlink_to(tmp_path / "other")
    for path in (folder, folder / "*"):
        skipped: list[ReadError] = []
        assert list(read(path, on_skip=skipped.append)) == [RUNS[0], RUNS[0]]
        reasons = {Path(error.source).name: error.reason for error in skipped}
        assert reasons.pop("report.json") == "a pipe"
        assert set(reasons) == {"zero", "outside"}
        assert {"link to outside" in reason for reason in reasons.values()} == {True}


def test_folders_are_read_to_a_depth_of_a_hundred(tmp_path):
    inner = tmp_path
    for _ in range(100):
        inner /= "d"
    (inner / "d").mkdir(parents=True)
    for folder, line in zip((inner, inner / "d"), lines(), strict=False):
        (folder / "run").write_bytes(line)
    skipped: list[ReadError] = []
    assert list(read(tmp_path, on_skip=skipped.append)) == RUNS[:1]
    assert [error.reason for error in skipped] == ["nested more than 100 folders deep"]


def test_a_folder_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    (tmp_path / "run").write_bytes(lines()[0])
    (tmp_path / "closed").mkdir(mode=0o000)
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    skipped: list[ReadError] = []
    user = os.geteuid()
    with contextlib.ExitStack() as back:
        if user == 0:  # who may read everything
            os.seteuid(65534)
            back.callback(os.seteuid, user)
        assert list(read(".", on_skip=skipped.append)) == RUNS[:1]
    assert [str(error) for error in skipped] == ["./closed: cannot be opened: Permission denied"]


def test_links_out_of_a_folder_are_followed_where_that_is_wanted(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run").write_bytes(lines()[1])
    (folder / "outside").symlink_to(tmp_path / "other")
    (folder / "around").symlink_to(".")
    (folder / "zero").symlink_to("/dev/zero")
    skipped: list[ReadError] = []
    assert list(read(folder, follow_links=True, on_skip=skipped.append)) == [RUNS[1]]
    assert [error.reason for error in skipped] == ["a device"]


def test_what_the_kernel_makes_up_is_not_read(tmp_path):
    (tmp_path / "log.jsonl").symlink_to("/proc/self/status")
    skipped: list[ReadError] = []
    assert list(read(tmp_path, follow_links=True, on_skip=skipped.append)) == []
    assert [error.reason for error in skipped] == ["made up by the kernel"]


def test_a_pipe_that_is_named_is_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"\n".join(lines()),))
    writer.start()
    assert list(read(path)) == RUNS
    writer.join()


def test_a_socket_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket")
        assert "cannot be opened" in str(read_all("socket")[1])


@pytest.mark.parametrize(
    ("value", "reason"), [(b"[],", "1,000 lists and objects"), (b"1,", "2,000 values")]
)
def test_json_of_too_many_values_is_an_error(tmp_path, monkeypatch, value, reason):
    monkeypatch.setattr(intake, "_MAX_PARTS", 1000)
    monkeypatch.setattr(intake, "_MAX_VALUES", 2000)
    path = tmp_path / "many.json"
    path.write_bytes(b"[" + value * 2100 + b"1]")
    _, errors = read_all(path)
    assert f"more than {reason}" in str(errors)


def test_a_file_is_given_up_where_too_many_records_in_a_row_are_not_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_MAX_FRUITLESS", 3)
    path = tmp_path / "many.jsonl"
    path.write_text('{"a": 1}\n' * 20)
    runs, errors = read_all(path)
    assert not runs
    assert "the rest is not read" in errors[-1].reason
    assert len(errors) == 4
