"""Moatless: search trees; the path to one leaf is the run.

The path is that to the finished leaf with the highest reward, the first of several; where none is
finished, that to the deepest leaf. Rewards are a model's opinion and no outcome.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from contextgraph.model import Json, RawTrajectory
from contextgraph.readers.conversation import (
    Call,
    Result,
    Thought,
    Turn,
    UserMessage,
    conversation_of,
    shown,
)
from contextgraph.readers.fields import (
    Row,
    row_at,
    rows_at,
    text,
    text_or_none,
)
from contextgraph.readers.format import Format, Place

NAME = "moatless"

_THOUGHTS = ("scratch_pad", "thoughts", "thought")
_NO_ARGUMENTS = frozenset({*_THOUGHTS, "action_args_class", "action_name", "is_terminal"})


@dataclass(frozen=True, slots=True)
class _Node:
    row: Row
    parent: "_Node | None"
    depth: int
    is_leaf: bool

    @property
    def rank(self) -> tuple[bool, float, int]:
        """What makes the path to this node the run: finished, reward, depth."""
        reward = self.row.get("reward")
        value = reward.get("value") if isinstance(reward, dict) else reward
        number = float(value) if isinstance(value, int | float) else 0.0
        return _is_finished(self.row), number, self.depth


def recognises(value: object) -> bool:
    """Whether *value* has nodes with parents, a tree of children, or transitions of states."""
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


def runs(value: Row, place: Place) -> Iterator[RawTrajectory]:
    """The run along the chosen path of the tree."""
    path = _path(list(_nodes(value)))
    root = path[0] if path else {}
    info, metadata = row_at(value, "info"), row_at(value, "metadata")
    task = text(root, "message") or text(root, "user_message") or text(value, "initial_message")
    agent = row_at(value, "agent") or row_at(value, "assistant")
    models = (text(row_at(row, "properties"), "model") for row in path)
    known = RawTrajectory(
        source_format=NAME,
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
        if key not in _NO_ARGUMENTS and value is not None
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


FORMAT = Format(
    NAME,
    "object with nodes (node_id, parent_id), a root with children, or transitions",
    "one path of the tree: to the finished leaf of highest reward, else to the deepest; task, "
    "thoughts, actions, observations, requests for correction as errors, patch, model",
    recognises,
    runs,
)
