"""Harnesses of benchmarks: OpenHands, Agentless, AutoCodeRover, Moatless Tools, trae-agent."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from contextgraph.errors import ReadError
from contextgraph.model import Json, RawTrajectory
from contextgraph.readers.conversation import (
    Call,
    Prompt,
    Result,
    Thought,
    Turn,
    UserMessage,
    conversation_of,
    each_row,
    finished_run,
    shown,
    time_in,
)
from contextgraph.readers.format import (
    Format,
    Kept,
    Place,
    Row,
    content_text,
    integer,
    loose_text,
    row_at,
    rows_at,
    text,
    text_or_none,
)
from contextgraph.readers.tool_calls import Tagged, json_arguments, tagged, tool_call
from contextgraph.text import may_be_fenced, regex

OPENHANDS = "openhands"

_NOISE = frozenset(
    {"system", "recall", "change_agent_state", "agent_state_changed", "null", "condensation"}
)
_EVENT_KEYS = frozenset({"source", "args", "message", "extras", "content", "cause", "thought"})
# What events hold besides the arguments of a call.
_NO_ARGUMENTS = frozenset(
    {"thought", "image_urls", "blocking", "keep_prompt", "is_input", "hidden", "confirmation_state"}
    | {"kernel_init_code", "include_extra", "impl_source", "security_risk", "summary", "kind"}
    | {"action", "id", "timestamp", "source", "message", "background", "translated_ipython_code"}
)
_EDITOR_COMMANDS = ("view", "create", "str_replace", "insert", "undo_edit")
# Of kinds of V1 whose name does not end with "Event".
_V1_KINDS = ("Condensation", "CondensationRequest", "UserRejectObservation")


def is_event(value: object) -> bool:
    """Return True if *value* is an event of V0 or V1."""
    if not isinstance(value, dict):
        return False
    kind = value.get("kind")
    if isinstance(kind, str) and (kind.endswith("Event") or kind in _V1_KINDS):
        return "source" in value or "timestamp" in value
    named = isinstance(value.get("action"), str) != isinstance(value.get("observation"), str)
    return named and not _EVENT_KEYS.isdisjoint(value) and "role" not in value


def recognises(value: object) -> bool:
    """Return True if *value* is a list of events or pairs of them, or an evaluated row."""
    events = value.get("history") if isinstance(value, dict) else value
    if not isinstance(events, list) or not events:
        return False
    first = events[0][0] if isinstance(events[0], list) and events[0] else events[0]
    return is_event(first)


def runs(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run in *value*; a malformed event is an error, and the others are read."""
    row: Row = value if isinstance(value, dict) else {}
    # Evaluations of 2024 logged events as pairs of action and observation.
    entries = row["history"] if row else value
    events = [one for entry in entries for one in (entry if isinstance(entry, list) else [entry])]
    turns, seen = list[Turn](), set[str]()

    def take(event: Row) -> None:
        turns.extend((*_event_turns(event, seen), *_prompts(event)))

    yield from each_row(events, take, f"{OPENHANDS} event", place)
    yield _run(row, events, turns, place)


def _run(row: Row, events: Sequence[Any], turns: Sequence[Turn], place: Place) -> RawTrajectory:
    instance = row_at(row, "instance") or row_at(row, "swe_instance")
    metadata = row_at(row, "metadata")
    result = row_at(row, "test_result")
    calls = (row_at(event, "tool_call_metadata") for event in events if isinstance(event, dict))
    models = (loose_text(row_at(call, "model_response"), "model") for call in calls)
    known = RawTrajectory(
        source_format=OPENHANDS,
        instance_id=loose_text(row, "instance_id"),
        repo=loose_text(instance, "repo"),
        task=loose_text(instance, "problem_statement") or loose_text(row_at(row, "issue"), "body"),
        agent="OpenHands",
        model=loose_text(row_at(metadata, "llm_config"), "model")
        or loose_text(metadata, "model_name")
        or next(filter(None, models), ""),
        exit_status=loose_text(row, "error").partition("\n")[0] or None,
        patch=loose_text(result, "git_patch") or loose_text(row, "git_patch") or None,
    )
    if not known.task and not any(isinstance(turn, UserMessage) for turn in turns):
        turns = [UserMessage(loose_text(row, "instruction")), *turns]
    return conversation_of(turns).run(known, place)


def _prompts(event: Row) -> Iterator[Prompt]:
    if event.get("action") == "system":
        yield Prompt(loose_text(row_at(event, "args"), "content"))
    if isinstance(prompt := event.get("system_prompt"), dict):
        yield Prompt(loose_text(prompt, "text"))
    if may_be_fenced(shown := content_text(event, "extended_content")):
        # What hooks showed: stripped before learning; its ids say what this run was shown.
        yield Prompt(shown)


def _event_turns(event: Row, seen: set[str]) -> Iterator[Turn]:
    if "kind" in event and "action" not in event and "observation" not in event:
        return _message_turns(event)
    if "kind" in event:
        return _sdk_turns(event, seen)
    if isinstance(event.get("action"), str):
        return _action_turns(event, seen)
    return _observation_turns(event)


def _action_turns(event: Row, seen: set[str]) -> Iterator[Turn]:
    name, args = text(event, "action"), row_at(event, "args") or event
    if name in _NOISE:
        return
    if name == "message":
        words = loose_text(args, "content") or loose_text(event, "message")
        is_agent = event.get("source", "agent") == "agent"
        yield (
            Thought(words, time_in(event)) if is_agent else UserMessage(words, time=time_in(event))
        )
        return
    metadata = row_at(event, "tool_call_metadata")
    reply = _reply(metadata)
    # Of several calls in one reply each event repeats its text.
    reply_id = loose_text(row_at(metadata, "model_response"), "id")
    if not reply_id or reply_id not in seen:
        yield Thought(loose_text(args, "thought") or content_text(reply), time_in(event))
    seen.add(reply_id)
    call_id = loose_text(metadata, "tool_call_id")
    calls = (call for call in rows_at(reply, "tool_calls") if call.get("id") == call_id)
    tool, arguments = next(map(tool_call, calls), ("", {}))
    if not arguments:
        arguments = {k: v for k, v in args.items() if k not in _NO_ARGUMENTS and v is not None}
    is_editor = arguments.get("command") in _EDITOR_COMMANDS and name in ("edit", "read", "write")
    tool = tool or ("str_replace_editor" if is_editor else name)
    yield Call(tool, arguments, str(event.get("id", "")), time_in(event))


def _reply(metadata: Row) -> Row:
    choices = rows_at(row_at(metadata, "model_response"), "choices")
    return row_at(choices[0], "message") if choices else {}


def _observation_turns(event: Row) -> Iterator[Turn]:
    name, extras = text(event, "observation"), row_at(event, "extras") or event
    if name in _NOISE:
        return
    metadata = row_at(extras, "metadata")
    code = integer(metadata if "exit_code" in metadata else extras, "exit_code")
    yield Result(
        content_text(event),
        str(event["cause"]) if event.get("cause") is not None else "",
        exit_code=None if code == -1 else code,
        is_error=True if name == "error" or event.get("success") is False else None,
        cwd=loose_text(metadata, "working_dir") or None,
        denied=name == "user_rejected",
    )


def _message_turns(event: Row) -> Iterator[Turn]:
    """The turns of a V1 event that is neither a call nor a result."""
    message = row_at(event, "llm_message")
    if event.get("kind") == "AgentErrorEvent":
        yield Result(loose_text(event, "error"), loose_text(event, "tool_call_id"), is_error=True)
    elif event.get("kind") == "UserRejectObservation":
        reason = loose_text(event, "rejection_reason")
        yield Result(reason, loose_text(event, "tool_call_id"), denied=True)
    elif message.get("role") == "assistant":
        yield Thought(content_text(message), time_in(event))
    elif message.get("role") == "user":
        yield UserMessage(content_text(message), time=time_in(event))


def _sdk_turns(event: Row, seen: set[str]) -> Iterator[Turn]:
    """The turns of a call or result of V1; calls of one reply share ``llm_response_id``."""
    if event.get("kind") == "ActionEvent":
        reply = loose_text(event, "llm_response_id")
        if not reply or reply not in seen:
            yield Thought(loose_text(event, "reasoning_content"), time_in(event))
            yield Thought(content_text(event, "thought"), time_in(event))
        seen.add(reply)
        arguments = json_arguments(row_at(event, "tool_call").get("arguments"))
        if not arguments and isinstance(event.get("action"), dict):
            arguments = row_at(event, "action")
        named: dict[str, Json] = {k: v for k, v in arguments.items() if k not in _NO_ARGUMENTS}
        tool = loose_text(event, "tool_name")
        yield Call(tool, named, loose_text(event, "tool_call_id"), time_in(event))
        return
    observation = row_at(event, "observation")
    metadata = row_at(observation, "metadata")
    code = integer(observation, "exit_code")
    yield Result(
        content_text(observation),
        loose_text(event, "tool_call_id"),
        exit_code=None if code == -1 else code,
        is_error=True if observation.get("is_error") is True else None,
        cwd=loose_text(metadata, "working_dir") or None,
        denied=event.get("kind") == "UserRejectObservation",
    )


AGENTLESS = "agentless"
AUTOCODEROVER = "autocoderover"

# The stages of Agentless that locate a change, with the fields of their dialogue and findings.
_STAGES = (
    ("locate_files", "file_traj", "found_files"),
    ("locate_code", "related_loc_traj", "found_related_locs"),
    ("locate_edits", "edit_loc_traj", "found_edit_locs"),
)
_PROBLEM = regex(r"### GitHub Problem Description ###\n(?P<task>.*?)\n###(?:\n|\Z)", re.DOTALL)
_ROUND = regex(r"conversation_round_(\d+)\.json")
_PATCH_DIALOGUE = regex(r"debug_agent_write_patch_(\d+)\.json")
_FOUND = regex(r"^Result of (?P<tool>\w+)\((?P<arguments>.*)\):\n", re.MULTILINE)
_CHANGE = ("file", "original", "patched")


def is_agentless(value: object) -> bool:
    """Return True if *value* is a row of Agentless: of locations found, or of a repair."""
    if not isinstance(value, dict) or "instance_id" not in value:
        return False
    return "found_files" in value or value.keys() >= {"raw_model_patch", "original_file_content"}


def agentless_runs(row: Row, place: Place) -> Iterator[RawTrajectory]:
    """Yield the run of one row: a step for each stage that it holds."""
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
    """Return True if *value* holds the files of a task's folder, by name."""
    if not isinstance(value, dict) or "meta.json" not in value:
        return False
    return any(map(_ROUND.fullmatch, value))


def autocoderover_runs(files: Mapping[str, Any], place: Place) -> Iterator[RawTrajectory]:
    """Yield the run of one task. The developer's patch and tests beside it are left out."""
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


# Moatless: the run is the path to the finished leaf with the highest reward, the first of several;
# where none is finished, that to the deepest leaf. Rewards are a model's opinion and no outcome.

MOATLESS = "moatless"

_THOUGHTS = ("scratch_pad", "thoughts", "thought")
_MOATLESS_FACTS = frozenset({*_THOUGHTS, "action_args_class", "action_name", "is_terminal"})


class _Node(Struct, frozen=True):
    row: Row
    parent: "_Node | None"
    depth: int
    is_leaf: bool

    @property
    def rank(self) -> tuple[bool, float, int]:
        """Rank the path to this node as the run: finished, reward, depth."""
        reward = self.row.get("reward")
        value = reward.get("value") if isinstance(reward, dict) else reward
        number = float(value) if isinstance(value, int | float) else 0.0
        return _is_finished(self.row), number, self.depth


def is_moatless(value: object) -> bool:
    """Return True if *value* has nodes with parents, children, or transitions of states."""
    if not isinstance(value, dict):
        return False
    root, nodes, transitions = value.get("root"), value.get("nodes"), value.get("transitions")
    if isinstance(root, dict):
        return isinstance(root.get("children"), list)
    for rows, name in ((nodes, "node_id"), (transitions, "actions")):
        if isinstance(rows, list) and rows:
            # The first transition, Pending, has no actions.
            return any(isinstance(row, dict) and name in row for row in rows[:2])
    return False


def moatless_runs(value: Row, place: Place) -> Iterator[RawTrajectory]:
    """Yield the run along the chosen path of the tree."""
    path = _path(list(_nodes(value)))
    root = path[0] if path else {}
    info, metadata = row_at(value, "info"), row_at(value, "metadata")
    task = text(root, "message") or text(root, "user_message") or text(value, "initial_message")
    agent = row_at(value, "agent") or row_at(value, "assistant")
    models = (text(row_at(row, "properties"), "model") for row in path)
    known = RawTrajectory(
        source_format=MOATLESS,
        instance_id=text(metadata, "instance_id") or text(info, "instance_id"),
        repo="",
        task="",
        agent="Moatless",
        model=text(row_at(agent, "completion"), "model") or next(filter(None, models), ""),
        exit_status=text(info, "status") or None,
        patch=_patch(path) or text(info, "submission") or None,
        system_prompt=text(agent, "system_prompt"),
    )
    turns = [UserMessage(task), *(turn for row in path for turn in _turns(row))]
    yield conversation_of(turns).run(known, place)


def _nodes(value: Row) -> Iterator[_Node]:
    if isinstance(value.get("root"), dict):
        waiting: list[tuple[Row, _Node | None]] = [(row_at(value, "root"), None)]
        while waiting:
            row, parent = waiting.pop(0)
            children = rows_at(row, "children")
            node = _Node(row, parent, parent.depth + 1 if parent else 0, not children)
            yield node
            waiting += [(child, node) for child in children]
        return
    is_new = "nodes" in value
    rows = rows_at(value, "nodes" if is_new else "transitions")
    id_name, parent_name = ("node_id", "parent_id") if is_new else ("id", "previous_state_id")
    parents = {row.get(parent_name) for row in rows if _is_id(row.get(parent_name))}
    known: dict[object, _Node] = {}
    for row in rows:
        id_, parent_id = row.get(id_name), row.get(parent_name)
        above = known.get(parent_id) if _is_id(parent_id) else None
        is_leaf = not _is_id(id_) or id_ not in parents
        node = _Node(row, above, above.depth + 1 if above else 0, is_leaf)
        if _is_id(id_):
            known[id_] = node
        yield node


def _is_id(value: object) -> bool:
    return isinstance(value, int | str)


def _path(nodes: Sequence[_Node]) -> list[Row]:
    """The nodes from the root to the leaf that the policy chooses."""
    leaves = [node for node in nodes if node.is_leaf]
    node: _Node | None = max(leaves or nodes, key=lambda leaf: leaf.rank, default=None)
    path = list[Row]()
    while node:
        path.append(node.row)
        node = node.parent
    return path[::-1]


def _is_finished(row: Row) -> bool:
    if row.get("name") in ("Finished", "Rejected"):
        return True
    observation = row.get("observation")
    inside = isinstance(observation, dict) and observation.get("terminal") is True
    return inside or row.get("terminal") is True


def _turns(row: Row) -> Iterator[Turn]:
    """The turns of a node: of its one action, its list of them, or its requests and responses."""
    if isinstance(row.get("action"), dict):
        yield from _action(row_at(row, "action"), row.get("observation"))
    for step in rows_at(row, "action_steps"):
        yield from _action(row_at(step, "action"), step.get("observation"))
    for step in rows_at(row, "actions"):
        request, response = row_at(step, "request"), row_at(step, "response")
        yield from _action(request, response.get("output"), text(row, "name"))


def _action(action: Row, observation: object, name: str = "") -> Iterator[Turn]:
    yield Thought(next(filter(None, (text(action, thought) for thought in _THOUGHTS)), ""))
    arguments: Mapping[str, Json] = {
        key: value
        for key, value in action.items()
        if key not in _MOATLESS_FACTS and value is not None
    }
    # Some actions were never answered: the id keeps the next answer from them.
    id_ = str(id(action))
    yield Call(name or _tool(action), arguments, id_)
    if isinstance(observation, dict):
        failed = observation.get("expect_correction") is True
        message = text_or_none(observation, "message") or text(observation, "summary")
        yield Result(message or shown(observation), id_, is_error=True if failed else None)
    elif observation is not None:
        yield Result(shown(observation), id_)


def _tool(action: Row) -> str:
    """The name of the action: ``moatless.actions.find_class.FindClassArgs`` is FindClass.

    The editor of Claude keeps the name by which its commands are known.
    """
    if "command" in action and "path" in action:
        return "str_replace_editor"
    last = text(action, "action_args_class").rpartition(".")[2] or text(action, "action_name")
    return last.removesuffix("Arguments").removesuffix("Args")


def _patch(path: Sequence[Row]) -> str:
    """The patches of the files as the last node has them."""
    for row in reversed(path):
        context = row.get("file_context")
        files = rows_at(context, "files") if isinstance(context, dict) else ()
        if patches := [patch for file in files if (patch := text(file, "patch"))]:
            return "\n".join(patches)
    return ""


# trae-agent: one object a run

TRAE = "trae-agent"


def is_trae(value: object) -> bool:
    """Return True if *value* is a trajectory of trae-agent."""
    return isinstance(value, dict) and isinstance(value.get("agent_steps"), list)


def trae_runs(value: Row, place: Place) -> Iterator[RawTrajectory]:
    """Yield the run of one object."""
    turns: list[Turn] = [UserMessage(text(value, "task"), time=time_in(value, "start_time"))]
    for step in rows_at(value, "agent_steps"):
        time, reply = time_in(step), row_at(step, "llm_response")
        turns.append(Thought(loose_text(reply, "content"), time))
        for call in rows_at(step, "tool_calls") or rows_at(reply, "tool_calls"):
            arguments = json_arguments(call.get("arguments"))
            turns.append(Call(text(call, "name"), arguments, text(call, "call_id"), time))
        for result in rows_at(step, "tool_results"):
            output = "\n".join(filter(None, (text(result, "result"), text(result, "error"))))
            failed = True if result.get("success") is False else None
            turns.append(Result(output, text(result, "call_id"), is_error=failed))
    facts = {"model": text(value, "model")}
    yield finished_run(TRAE, turns, facts, place)


FORMATS = (
    Format(
        OPENHANDS,
        "events with action or observation (V0: event store, trajectory list, output.jsonl with "
        "history, also as pairs) or with kind (V1 SDK: events folder or events.jsonl)",
        "task, thoughts, tool calls, results, exit codes, errors, times, directory, model, patch, "
        "outcome of an evaluated row, denied calls, user messages",
        recognises,
        runs,
        is_part=is_event,
        omits="images, token counts, the state of the agent, condensations",
        kept=(Kept(".openhands", ("sessions/*/events", "conversations/*/events")),),
    ),
    Format(
        MOATLESS,
        "object with nodes (node_id, parent_id), a root with children, or transitions",
        "one path of the tree: to the finished leaf of highest reward, else to the deepest; task, "
        "thoughts, actions, observations, requests for correction as errors, patch, model",
        is_moatless,
        moatless_runs,
        omits="other branches of the tree, token counts",
    ),
    Format(
        AGENTLESS,
        "rows with found_files (locations), or with raw_model_patch and original_file_content",
        "one step for each stage: files, code and lines located, the repair; task, patch",
        is_agentless,
        agentless_runs,
        omits="rejected samples, token counts",
    ),
    Format(
        AUTOCODEROVER,
        "folder with meta.json and conversation_round_N.json",
        "task, searches with results and failures, the patch written, how it was extracted, model",
        is_autocoderover,
        autocoderover_runs,
        omits="costs, patches that were not applied",
    ),
    Format(
        TRAE,
        "object with task and agent_steps (trajectory_*.json)",
        "task, thoughts, tool calls, results, errors, times, model",
        is_trae,
        trae_runs,
        experimental=True,
        omits="llm_interactions, which repeat the steps; reflections, token counts",
    ),
)
