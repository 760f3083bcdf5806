"""Programs with fixed stages in place of a loop: Agentless, AutoCodeRover."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextgraph.model import RawTrajectory
from contextgraph.readers.conversation import (
    Call,
    Result,
    Thought,
    Turn,
    UserMessage,
    conversation_of,
)
from contextgraph.readers.fields import (
    Row,
    content_text,
    row_at,
    rows_at,
    text,
)
from contextgraph.readers.format import Format, Place
from contextgraph.readers.tool_calls import Tagged, tagged

AGENTLESS = "agentless"
AUTOCODEROVER = "autocoderover"

# The stages of Agentless that locate a change, with the fields of their dialogue and findings.
_STAGES = (
    ("locate_files", "file_traj", "found_files"),
    ("locate_code", "related_loc_traj", "found_related_locs"),
    ("locate_edits", "edit_loc_traj", "found_edit_locs"),
)
_PROBLEM = re.compile(r"### GitHub Problem Description ###\n(?P<task>.*?)\n###(?:\n|\Z)", re.DOTALL)
_ROUND = re.compile(r"conversation_round_(\d+)\.json")
_PATCH_DIALOGUE = re.compile(r"debug_agent_write_patch_(\d+)\.json")
_FOUND = re.compile(r"^Result of (?P<tool>\w+)\((?P<arguments>.*)\):\n", re.MULTILINE)
_CHANGE = ("file", "original", "patched")


def is_agentless(value: object) -> bool:
    """Whether *value* is a row of Agentless: of locations found, or of a repair."""
    if not isinstance(value, dict) or "instance_id" not in value:
        return False
    return "found_files" in value or value.keys() >= {"raw_model_patch", "original_file_content"}


def agentless_runs(row: Row, place: Place) -> Iterator[RawTrajectory]:
    """The run of one row: a step for each stage that it holds."""
    known = RawTrajectory(
        source_format=AGENTLESS,
        instance_id=text(row, "instance_id"),
        repo="",
        task="",
        agent="Agentless",
        patch=text(row, "model_patch"),
    )
    yield conversation_of(_agentless_turns(row)).run(known, place)


def _agentless_turns(row: Row) -> Iterator[Turn]:
    if problem := _PROBLEM.search(text(row_at(row, "file_traj"), "prompt")):
        yield UserMessage(problem["task"].rstrip("\n"))
    for tool, dialogue, findings in _STAGES:
        if dialogue not in row and findings not in row:
            continue
        response = row_at(row, dialogue).get("response")
        first = response[0] if isinstance(response, list) and response else response
        yield Thought(first if isinstance(first, str) else "")
        yield Call(tool, {})
        yield Result("\n".join(_lines(row.get(findings))))
    if "raw_model_patch" in row:
        yield Call("repair", {"patch": text(row, "raw_model_patch")})
        yield Result(text(row, "model_patch") or "the patch is empty")


def _lines(value: object) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _lines(item)


def is_autocoderover(value: object) -> bool:
    """Whether *value* holds the files of a task's folder, by name."""
    if not isinstance(value, dict) or "meta.json" not in value:
        return False
    return any(map(_ROUND.fullmatch, value))


def autocoderover_runs(files: Mapping[str, Any], place: Place) -> Iterator[RawTrajectory]:
    """The run of one task. The developer's patch and tests beside it are left out."""
    info = row_at(row_at(files, "meta.json"), "task_info")
    statuses = row_at(files, "extract_status.json").get("extract_status")
    last = statuses[-1] if isinstance(statuses, list) and statuses else None
    known = RawTrajectory(
        source_format=AUTOCODEROVER,
        instance_id=text(info, "instance_id"),
        repo=text(info, "repo"),
        task=text(files, "problem_statement.txt") or text(info, "problem_statement"),
        agent="AutoCodeRover",
        model=text(row_at(files, "cost.json"), "model"),
        exit_status=last if isinstance(last, str) else None,
        patch=_last_patch(files),
    )
    yield conversation_of(_autocoderover_turns(files)).run(known, place)


def _autocoderover_turns(files: Mapping[str, Any]) -> Iterator[Turn]:
    calls = [call for layer in _layers(files) for call in layer]
    for message in _latest(files, _ROUND):
        words = content_text(message)
        if message.get("role") == "assistant":
            yield Thought(words)
        elif message.get("role") == "user":
            yield from _searches(words, calls)
    for message in _latest(files, _PATCH_DIALOGUE):
        words = content_text(message)
        if message.get("role") == "assistant" and (changes := list(_changes(words))):
            yield Thought(words[: changes[0][0].start])
            for change in changes:
                path, old, new = (part.text.strip("\n") for part in change)
                yield Call("write_patch", {"path": path, "old_str": old, "new_str": new})


def _changes(words: str) -> Iterator[Sequence[Tagged]]:
    """File, original and patched text of each change in *words*, in this order."""
    change: list[Tagged] = []
    for part in tagged(words, _CHANGE):
        is_next = not change or not words[change[-1].end : part.start].strip()
        if not (is_next and part.name == _CHANGE[len(change)]):
            change = []
        if part.name == _CHANGE[len(change)]:
            change.append(part)
        if len(change) == len(_CHANGE):
            yield change
            change = []


def _layers(files: Mapping[str, Any]) -> Iterator[list[Row]]:
    layers = files.get("tool_call_layers.json") or files.get("tool_call_sequence.json")
    for layer in layers if isinstance(layers, list) else ():
        calls = layer if isinstance(layer, list) else [layer]
        yield [call for call in calls if isinstance(call, dict)]


def _latest(files: Mapping[str, Any], name: re.Pattern[str]) -> Sequence[Row]:
    """The messages of the last file so named; each holds the whole dialogue up to then."""
    numbered = {int(match[1]): file for file in files if (match := name.fullmatch(file))}
    return rows_at(files, numbered[max(numbered)]) if numbered else ()


def _searches(words: str, calls: list[Row]) -> Iterator[Turn]:
    """The calls whose results a message reports one after the other."""
    results = list(_FOUND.finditer(words))
    ends = [*(result.start() for result in results[1:]), len(words)]
    for result, end in zip(results, ends, strict=False):
        call = next((c for c in calls if _is_reported(c, result)), None)
        if call is not None:
            calls.remove(call)
        arguments = row_at(call, "arguments") if call else {"query": result["arguments"]}
        failed = call is not None and call.get("call_ok") is False
        yield Call(result["tool"], arguments)
        yield Result(words[result.end() : end].strip(), is_error=True if failed else None)


def _is_reported(call: Row, result: re.Match[str]) -> bool:
    values = row_at(call, "arguments").values()
    is_same = text(call, "func_name") == result["tool"]
    return is_same and all(str(value) in result["arguments"] for value in values)


def _last_patch(files: Mapping[str, Any]) -> str:
    names = sorted(name for name in files if name.startswith("extracted_patch_"))
    return text(files, names[-1]) if names else ""


FORMATS = (
    Format(
        AGENTLESS,
        "rows with found_files (locations), or with raw_model_patch and original_file_content",
        "one step for each stage: files, code and lines located, the repair; task, patch",
        is_agentless,
        agentless_runs,
    ),
    Format(
        AUTOCODEROVER,
        "folder with meta.json and conversation_round_N.json",
        "task, searches with results and failures, the patch written, how it was extracted, model",
        is_autocoderover,
        autocoderover_runs,
    ),
)
