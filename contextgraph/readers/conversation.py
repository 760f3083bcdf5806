"""The turns of a conversation between a person, an agent and its tools, as steps of a run."""

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

import orjson
from msgspec import Struct, field

from contextgraph.errors import ReadError
from contextgraph.model import (
    NOTHING_SPENT,
    Action,
    Inherited,
    Json,
    RawTrajectory,
    Spent,
    Step,
    is_subagent,
)
from contextgraph.model.values import replace
from contextgraph.readers.envelopes import coalesce, output_in, said, task_in
from contextgraph.readers.format import (
    EmptyRunError,
    NotUnderstoodError,
    Place,
    Row,
    as_row,
    content_text,
    loose_text,
    repo_named,
    row_at,
    text,
)
from contextgraph.readers.repository import folder_worked_in, instance_in, repository_name
from contextgraph.readers.tool_calls import action_for, json_arguments
from contextgraph.text import clean, iso_time, regex
from contextgraph.trace.answered import answers_in

_CALLS = ("tool_use", "tool-call", "toolRequest", "tool_call", "toolCall")
_RESULTS = ("tool_result", "tool-result", "toolResponse")
_BLOCKS = (*_CALLS, *_RESULTS, "thinking", "reasoning")
_GOES_TO = regex(
    r"""\s*cd\s+(?:(?P<q>["'])(?P<quoted>[^"'\n]+)(?P=q)|(?P<plain>[^\s;&|"'$~]+))\s*(?:&&|;)"""
)
_GOOGLE = frozenset({"functionCall", "functionResponse"})
# The names that agents give to the tool of a call, to its arguments, and to its id.
_TOOLS = ("name", "toolName", "function_name")
_ARGUMENTS = ("input", "args", "arguments", "rawArgs", "params")
_IDS = ("id", "toolCallId", "tool_call_id")
# Those that they give to the id of a message, and what is in an id that was drawn, not counted.
_MESSAGE_IDS = ("uuid", "id", "messageId", "bubbleId")
_SCRAMBLED = regex(r"[0-9a-f]{8}|(?=[A-Za-z]*\d)[A-Za-z0-9]{10}")


class Thought(Struct, frozen=True):
    """Text or reasoning of the model besides tool calls; *message* is the id of its message."""

    text: str
    time: datetime | None = None
    message: str = ""


class Call(Struct, frozen=True):
    """A call of a tool; *id* is what its result refers to, empty if results come in order.

    *message* is the id of the message in which it stands.
    """

    tool: str
    arguments: Mapping[str, Json]
    id: str = ""
    time: datetime | None = None
    message: str = ""


class Result(Struct, frozen=True):
    """Result of a tool. A call that the user *denied* is not an error.

    One that *continues* another adds its text and exit code, as of a command in the background.
    A *cancelled* call was never made: the client wrote its result.
    """

    text: str
    id: str = ""
    exit_code: int | None = None
    is_error: bool | None = None
    cwd: str | None = None
    denied: bool = False
    interrupted: bool = False
    continues: bool = False
    cancelled: bool = False


class UserMessage(Struct, frozen=True):
    """Text of a person's turn; *interrupted* where they stopped the agent.

    *message* is the id of the message.
    """

    text: str
    interrupted: bool = False
    time: datetime | None = None
    message: str = ""


class Prompt(Struct, frozen=True):
    """Text shown to the model besides requests: system prompt, and what hooks added."""

    text: str


class Undone(Struct, frozen=True):
    """A person went back: their last *requests* count as not said."""

    requests: int


class Bill(Struct, frozen=True):
    """Tokens of a *reply*; of several bills with one name the last counts."""

    spent: Spent
    reply: str = ""


Turn: TypeAlias = Thought | Call | Result | UserMessage | Prompt | Undone | Bill


def of_message(turns: Iterable[Turn], id_: str) -> Iterator[Turn]:
    """Yield *turns* as those of the message that its client calls *id_*.

    Calls have ids of their own, by which they are known where these are drawn.
    """
    for turn in turns:
        if isinstance(turn, Call):
            named = _drawn(turn.id) or id_ or turn.message
            yield Call(turn.tool, turn.arguments, turn.id, turn.time, named)
        elif isinstance(turn, Thought):
            yield Thought(turn.text, turn.time, id_ or turn.message)
        elif isinstance(turn, UserMessage):
            yield UserMessage(turn.text, turn.interrupted, turn.time, id_ or turn.message)
        else:
            yield turn


@lru_cache(maxsize=64)  # asked for each block of a message, and again for the step
def _drawn(id_: str) -> str:
    """Return *id_*; empty where it may be counted again in each session."""
    return id_ if _SCRAMBLED.search(id_) else ""


def _message_id(row: Row) -> str:
    """Return the id that a client gives to the message in a line."""
    return next(filter(None, (loose_text(row, name) for name in _MESSAGE_IDS)), "")


def _client_id(*ids: str) -> str:
    """Return what stands for the first of *ids* that no other message has; empty without one."""
    from hashlib import blake2b  # slow to load

    given = next(filter(None, map(_drawn, ids)), "")
    return blake2b(given.encode(errors="replace"), digest_size=8).hexdigest() if given else ""


class Conversation(NamedTuple):
    """The first request of a conversation, the steps that followed it, and its prompts."""

    task: str
    steps: tuple[Step, ...]
    prompt: str = ""
    asked_at: datetime | None = None
    asked_as: str = ""
    spent: Spent = NOTHING_SPENT

    def run(
        self,
        known: RawTrajectory,
        place: Place,
        *,
        folder: str | None = None,
        remote: str = "",
        session: str = "",
    ) -> RawTrajectory:
        """*known*, with the steps and what the first request and *place* say of task and origin.

        *folder* is where the run worked, *remote* the URL of its repository, *session* an id that
        names it where there is no instance. Where a client here keeps the log, no text in it names
        another repository than that of the folder. Raises EmptyRunError where no tool was called
        and nobody answered a person.
        """
        if not any(step.action.text for step in self.steps) and not self._is_talk(known.agent):
            raise EmptyRunError(place.file, place.position, "nobody spoke, nothing to learn")
        folder = folder_worked_in(folder, [_visited(step, folder) for step in self.steps])
        is_placed = place.is_kept and bool(folder)
        named = "" if is_placed else instance_in(self.task) or place.instance_in_name()
        instance_id = known.instance_id or place.instance or named or session or place.instance_id()
        task = "" if is_placed else self.task
        repo = known.repo or repository_name(
            folder, task=task, instance_id=instance_id, remote=remote
        )
        return replace(
            known,
            instance_id=instance_id,
            repo=repo or repo_named(instance_id),
            task=clean(known.task or task_in(self.task) or self.task).strip(),
            steps=self.steps,
            started_at=known.started_at
            or next((step.timestamp for step in self.steps if step.timestamp), self.asked_at),
            source=place.source,
            system_prompt=known.system_prompt or self.prompt,
            session=session,
            folder=folder or "",
            opening_id=self.asked_as,
            spent=self.spent if known.spent == NOTHING_SPENT else known.spent,
        )

    def _is_talk(self, agent: str) -> bool:
        """Return True if a person spoke and was answered; sub-agents are spoken to by agents."""
        is_answered = any(step.thought for step in self.steps)
        return bool(self.task) and is_answered and not is_subagent(agent)


def _visited(step: Step, folder: str | None) -> str | None:
    """The folder that *step* worked in: where its command goes first, or that of the file named."""
    at = step.cwd or folder
    if at and (gone := _GOES_TO.match(step.action.text)):
        return posixpath.normpath(posixpath.join(at, gone["quoted"] or gone["plain"]))
    file = step.action.arguments.get("file_path")
    is_named = isinstance(file, str) and file.startswith("/")
    return posixpath.dirname(str(file)) if is_named else step.cwd


class Tree:
    """The lines of a log by their ids, with the requests that stand in them.

    A person who goes back in a conversation and writes another request opens a second branch below
    the same parent; the request that they left counts as not said. One who goes back to before
    their first request opens a second tree, which the log has to name: a log that was cut has
    several trees as well.
    """

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._requests: list[tuple[str, UserMessage]] = []
        self._leaf = ""

    def add(self, id_: str, parent: str, turns: Iterable[Turn]) -> None:
        """Add the line *id_* below *parent*, with its *turns*."""
        if not id_ or id_ in self._parents:
            return
        self._parents[id_] = parent
        for turn in turns:
            if isinstance(turn, UserMessage) and turn.text.strip():
                self._requests.append((id_, turn))

    def goes_on_at(self, leaf: str) -> None:
        """Note the line at which the conversation goes on."""
        self._leaf = leaf

    def _root(self, id_: str) -> str:
        """The first line above *id_*; empty where the way up does not end at one."""
        seen = set[str]()
        while (parent := self._parents.get(id_)) and id_ not in seen:
            seen.add(id_)
            id_ = parent
        return id_ if self._parents.get(id_) == "" else ""

    def _other_trees(self) -> Mapping[str, UserMessage]:
        """The requests of trees that were left for the one of the leaf, each with its first."""
        root = self._root(self._leaf) if self._leaf in self._parents else ""
        first = next((message for id_, message in self._requests if id_ == root), None)
        if not first:
            return {}
        order = list(self._parents)
        earlier = {id_ for id_ in order[: order.index(root)] if self._root(id_)}
        return {id_: first for id_, _ in self._requests if id_ in earlier}

    def rewound(self) -> Mapping[int, UserMessage]:
        """Return the requests that were left, by `id`, each with the one that took its place."""
        below = [self._parents[id_] for id_, _ in self._requests]
        if self._leaf not in self._parents and len(set(below)) == len(below):
            return {}  # nothing was said twice after one line
        order = {id_: number for number, id_ in enumerate(self._parents)}
        last = dict(order)
        for id_, parent in reversed(self._parents.items()):
            if parent in last and order[parent] < order[id_]:
                last[parent] = max(last[parent], last[id_])
        left, newest = dict(self._other_trees()), dict[str, tuple[int, UserMessage]]()
        for id_, message in reversed(self._requests):
            parent = self._parents[id_]
            if parent in newest and last[id_] < newest[parent][0]:
                left[id_] = newest[parent][1]
            elif parent:
                newest[parent] = order[id_], message
        for id_, parent in self._parents.items():  # what was asked below it was left, too
            if parent in left:
                left.setdefault(id_, left[parent])
        return {id(message): left[id_] for id_, message in self._requests if id_ in left}


def without(rewound: Mapping[int, UserMessage], turns: Sequence[Turn]) -> list[Turn]:
    """*turns* without requests that were *rewound*; the task gives its place to its successor."""
    kept, moved = list[Turn](), set[int]()
    for turn in turns:
        successor = rewound.get(id(turn))
        if successor is None:
            kept += [] if id(turn) in moved else [turn]
        elif any(isinstance(other, UserMessage) for other in kept):
            kept.append(UserMessage(""))  # which ends the reply before it
        else:
            kept.append(successor)
            moved.add(id(successor))
    return kept


def lines_run(
    name: str,
    turns_of: Callable[[Row], Iterable[Turn]],
    facts_of: Callable[[Row], Mapping[str, str]],
    lines: Iterable[Any],
    place: Place,
    unknown_kind: Callable[[Row], str] = lambda _: "",
    ids_of: Callable[[Row], tuple[str, str]] = lambda row: (_message_id(row), ""),
    begun: Iterable[Turn] = (),
) -> Iterator[RawTrajectory | ReadError]:
    """Yield the run of a history of lines; *facts_of* returns facts of a line.

    *ids_of* gives the id of the message in a line, and that of the line which it follows where a
    person may go back to one. *unknown_kind* names the kind of a line that the
    reader does not know; where nothing else was said, they are reported, and the session is not
    taken for an empty one. *begun* are turns before those of the lines.
    """
    turns, facts, unknown, tree = [*begun], dict[str, str](), Counter[str](), Tree()

    def take(row: Row) -> None:
        facts.update({k: v for k, v in facts_of(row).items() if v and k not in facts})
        id_, parent = ids_of(row)
        new = list(of_message(turns_of(row), id_))
        turns.extend(new)
        if parent:
            tree.add(id_, parent, new)
        unknown.update(filter(None, [unknown_kind(row)]))

    yield from each_row(lines, take, f"{name} line", place)
    try:
        yield finished_run(name, without(tree.rewound(), turns), facts, place)
    except EmptyRunError:
        if unknown:
            raise not_understood(name, unknown, place, facts.get("version", "")) from None
        raise


def not_understood(
    name: str, unknown: Mapping[str, int], place: Place, version: str
) -> NotUnderstoodError:
    """Return the error for a session with only *unknown* kinds of lines, each with its number."""
    kinds = ", ".join(f"{kind!r} ({count})" for kind, count in unknown.items())
    written_by = f"{name} {version}" if version else name
    return NotUnderstoodError(
        place.file,
        place.position,
        "not understood",
        f"{sum(unknown.values())} lines of unknown kinds, written by {written_by}: {kinds[:200]}",
        records=sum(unknown.values()),
        version=version,
    )


def each_row(
    values: Iterable[Any], take: Callable[[Row], None], what: str, place: Place
) -> Iterator[ReadError]:
    """Pass each of *values* to *take*; an error of its own for each of the wrong shape."""
    kind = what.rpartition(" ")[2]
    for index, value in enumerate(values):
        try:
            take(as_row(value, kind))
        except ValueError as error:
            yield ReadError(place.file, place.part(index), f"malformed {what}", str(error))


def finished_run(
    name: str, turns: Iterable[Turn], facts: Mapping[str, str], place: Place
) -> RawTrajectory:
    """Return the run of *turns* in the format *name*. Raises EmptyRunError as `Conversation.run`.

    *facts* are known of it: ``agent`` (else *name*), ``model``, ``folder``, ``remote``,
    ``session`` and ``exit_status``.
    """
    known = RawTrajectory(
        name,
        instance_id="",
        repo="",
        task="",
        agent=facts.get("agent", name),
        model=facts.get("model", ""),
        exit_status=facts.get("exit_status") or None,
    )
    return conversation_of(turns).run(
        known,
        place,
        folder=facts.get("folder") or None,
        remote=facts.get("remote", ""),
        session=facts.get("session", ""),
    )


def inherited_of(turns: Sequence[Turn]) -> Inherited:
    """Return what a fork is known to have taken over from another session, which owns *turns*."""
    since = takewhile(lambda turn: not isinstance(turn, UserMessage), reversed(turns))
    thoughts = [turn.text for turn in since if isinstance(turn, Thought)]
    return Inherited(before="\n\n".join(reversed(thoughts)))


def conversation_of(turns: Iterable[Turn]) -> Conversation:
    """Return the steps of *turns*: one for each call, and for each reply without a call.

    What a person writes before the first step is the task, later it belongs to the step before.
    A result whose call is lost, or was never understood, is that of a step without action.
    """
    builder = _Builder()
    for turn in _without_replays(_without_undone(turns)):
        builder.add(turn)
    return builder.finished()


def _without_undone(turns: Iterable[Turn]) -> Sequence[Turn]:
    """*turns* without the requests that were taken back; the next one takes their place."""
    turns = list(turns)
    if Undone not in map(type, turns):
        return turns
    kept, said, left = list[Turn](), list[UserMessage](), list[UserMessage]()
    successors = dict[int, UserMessage]()
    for turn in turns:
        if isinstance(turn, Undone):
            for _ in range(min(turn.requests, len(said))):
                left.append(said.pop())
            continue
        kept.append(turn)
        if isinstance(turn, UserMessage) and turn.text.strip():
            successors |= {id(request): turn for request in left}
            left.clear()
            said.append(turn)
    if left and said:  # nothing was asked since
        gone = {id(request) for request in left}
        kept = [turn for turn in kept if id(turn) not in gone]
    return without(successors, kept) if successors else kept


def _without_replays(turns: Sequence[Turn]) -> Iterator[Turn]:
    """*turns* without copies of their beginning: some clients append a whole history again."""
    requests = [i for i, turn in enumerate(turns) if isinstance(turn, UserMessage)]
    asked = [_content(turns[i]) for i in requests]
    if asked.count(next(iter(asked), None)) < 2:
        yield from turns
        return
    said, first = [_content(turn) for turn in turns], requests[0]
    kept, at = list[object](), 0
    while at < len(turns):
        copied = 0
        if at > first and said[at] == said[first]:
            pairs = zip(said[at:], kept[first:], strict=False)
            copied = next((i for i, (one, other) in enumerate(pairs) if one != other), len(kept))
            copied = min(copied, len(kept) - first, len(turns) - at)
        if copied > 1:
            at += copied
            continue
        kept.append(said[at])
        yield turns[at]
        at += 1


def _content(turn: Turn) -> object:
    """Return the content of *turn*, without its ids and time."""
    match turn:
        case Call():
            return turn.tool, turn.arguments
        case Undone() | Bill():
            return turn
    return type(turn), turn.text


class _Draft(Struct):
    thought: str
    action: Action
    time: datetime | None = None
    result: Result | None = None
    messages: list[str] = field(default_factory=list)
    messaged_at: datetime | None = None
    interrupted: bool = False
    client_id: str = ""
    message_id: str = ""

    def step(self, index: int) -> Step:
        result = self.result
        output = None if result is None else output_in(result.text)
        return Step(
            index=index,
            thought=self.thought,
            action=self.action,
            observation=output.text if output else None,
            exit_code=coalesce(result.exit_code, output.exit_code) if result and output else None,
            is_error=result.is_error if result and not result.denied else None,
            cwd=coalesce(result.cwd, output.cwd) if result and output else None,
            timestamp=self.time,
            user_message="\n\n".join(self.messages) or None,
            messaged_at=self.messaged_at,
            interrupted=self.interrupted or bool(result and result.interrupted),
            denied=bool(result and result.denied),
            client_id=self.client_id,
            message_id=self.message_id,
        )


class _Builder:
    def __init__(self) -> None:
        self._task: list[str] = []
        self._asked_at: datetime | None = None
        self._asked_as = ""
        self._prompts: list[str] = []
        self._bills: dict[str, Spent] = {}
        self._drafts: list[_Draft] = []
        self._thoughts: list[Thought] = []
        self._unanswered: dict[str, _Draft] = {}
        self._answered: dict[str, _Draft] = {}
        self._in_order: list[_Draft] = []

    def add(self, turn: Turn) -> None:
        match turn:
            case Thought():
                if turn.text.strip():
                    self._thoughts.append(turn)
            case Call():
                self._call(turn)
            case Result():
                self._result(turn)
            case UserMessage():
                self._message(turn)
            case Prompt():
                self._prompts += filter(None, [turn.text])
            case Bill():
                self._bills[turn.reply or f"{len(self._bills)}"] = turn.spent

    def finished(self) -> Conversation:
        self._end_reply()
        steps = tuple(draft.step(index) for index, draft in enumerate(self._drafts))
        prompt = "\n".join(self._prompts)
        spent = sum(self._bills.values(), NOTHING_SPENT)
        task = "\n\n".join(self._task)
        return Conversation(task, steps, prompt, self._asked_at, self._asked_as, spent)

    def _call(self, call: Call) -> None:
        action = action_for(call.tool, call.arguments)
        waiting = self._unanswered.get(call.id)
        if waiting and waiting.action == action:  # logged once when it began, once when it ended
            self._thoughts.clear()
            return
        draft = self._draft(action, call.time, call.message)
        if call.id:
            self._unanswered[call.id] = draft
        else:
            self._in_order.append(draft)

    def _result(self, result: Result) -> None:
        draft = self._unanswered.pop(result.id, None) if result.id else None
        if draft is None and self._in_order and not result.id:
            draft = self._in_order.pop(0)
        if draft is None and result.id in self._answered:
            # Otherwise it is a copy.
            if result.continues and (first := self._answered[result.id].result):
                self._answered[result.id].result = _continued(first, result)
            return
        if draft is None:
            draft = self._draft(Action("", ""), None)
        if result.id:
            self._answered[result.id] = draft
        if result.cancelled:
            self._without(draft)
            return
        draft.result = result
        answers = answers_in(draft.action, result.text)
        draft.messages += [words] if (words := "\n".join(one.words for one in answers)) else []

    def _without(self, cancelled: _Draft) -> None:
        """Take out a step that did not happen; what was thought before it stays."""
        self._drafts = [draft for draft in self._drafts if draft is not cancelled]
        if cancelled.thought:
            self._thoughts.append(Thought(cancelled.thought, cancelled.time))

    def _message(self, message: UserMessage) -> None:
        self._end_reply()
        text = said(clean(message.text).strip())
        if not self._drafts:
            self._task += [text] if text and text not in self._task else []
            self._asked_at = self._asked_at or (message.time if text else None)
            self._asked_as = self._asked_as or _client_id(message.message if text else "")
            return
        last = self._drafts[-1]
        last.interrupted |= message.interrupted
        if text and text not in last.messages:  # else it was interrupted, and sent again
            last.messages.append(text)
            last.messaged_at = last.messaged_at or message.time
            last.message_id = last.message_id or _client_id(message.message)

    def _end_reply(self) -> None:
        """A reply that called no tool is a step of its own."""
        if self._thoughts:
            self._draft(Action("", ""), None)

    def _draft(self, action: Action, time: datetime | None, *ids: str) -> _Draft:
        thought = "\n\n".join(clean(thought.text).strip() for thought in self._thoughts)
        time = time or next((thought.time for thought in self._thoughts if thought.time), None)
        client_id = _client_id(*ids, *(thought.message for thought in self._thoughts))
        self._thoughts.clear()
        self._drafts.append(_Draft(thought, action, time, client_id=client_id))
        return self._drafts[-1]


def _continued(first: Result, rest: Result) -> Result:
    outputs = (output_in(first.text), output_in(rest.text))
    words = "\n".join(output.text.strip("\n") for output in outputs if output.text.strip())
    exit_code = coalesce(rest.exit_code, outputs[1].exit_code)
    return replace(first, text=words, exit_code=exit_code, is_error=rest.is_error)


def time_in(row: Row, name: str = "timestamp") -> datetime | None:
    """Return the time at *name*: ISO 8601, or seconds or milliseconds since 1970; else None.

    A time without a zone is taken for UTC.
    """
    value = row.get(name)
    try:
        if isinstance(value, str):
            return iso_time(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def has_blocks(content: object) -> bool:
    """Return True if *content* is a list with calls, results or reasoning among its blocks."""
    if not isinstance(content, list):
        return False
    return any(
        isinstance(block, dict) and (block.get("type") in _BLOCKS or not _GOOGLE.isdisjoint(block))
        for block in content
    )


def block_turns(
    blocks: Sequence[Row], *, is_agent: bool, time: datetime | None = None
) -> Iterator[Turn]:
    """Yield the turns of the *blocks* of one message."""
    for block in blocks:
        kind = block.get("type")
        if kind in _CALLS or "functionCall" in block:
            yield _call(block, time)
        elif kind in _RESULTS or "functionResponse" in block:
            yield _result(block)
        elif kind in ("thinking", "reasoning") or block.get("thought") is True:
            yield Thought(text(block, "thinking") or text(block, "text"), time)
        elif isinstance(words := block.get("text"), str) and words.strip():
            yield Thought(words, time) if is_agent else UserMessage(words, time=time)


def call_in(row: Row, time: datetime | None = None) -> Call:
    """Return the call that *row* describes, under any of the names that agents use."""
    given = (json_arguments(row.get(name)) for name in _ARGUMENTS)
    return Call(_first(row, _TOOLS), next(filter(None, given), {}), _first(row, _IDS), time)


def _first(row: Row, names: Sequence[str]) -> str:
    for name in names:
        if found := text(row, name):
            return found
    return ""


def _call(block: Row, time: datetime | None) -> Call:
    if "functionCall" in block:
        call = call_in(row_at(block, "functionCall"), time)
    elif "toolCall" in block:  # Goose, where a call may be an error of the model
        call = call_in(row_at(row_at(block, "toolCall"), "value"), time)
    else:
        return call_in(block, time)
    return replace(call, id=_first(block, _IDS) or call.id)


def _result(block: Row) -> Result:
    id_ = text(block, "tool_use_id") or _first(block, _IDS)
    is_error = block.get("is_error")
    content: Any = block.get("content", block.get("result", block.get("output")))
    if "functionResponse" in block:
        answer = row_at(block, "functionResponse")
        id_ = id_ or text(answer, "id")
        response = row_at(answer, "response")
        is_error = True if "error" in response else None
        content = response.get("output", response.get("error", response))
    elif "toolResult" in block:
        outcome = row_at(block, "toolResult")
        is_error = True if outcome.get("status") == "error" else None
        content = outcome.get("value", outcome.get("error"))
        if isinstance(content, dict):
            is_error = content.get("isError") or is_error
            content = content.get("content", content)
    return Result(shown(content), id_, is_error=is_error if isinstance(is_error, bool) else None)


def shown(content: object) -> str:
    """Return the text of a result: as it is, of its parts, or the JSON of anything else."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    if any(isinstance(part, dict) and "text" in part for part in parts):
        return content_text({"content": parts})
    if isinstance(content, dict):
        for name in ("value", "message"):
            if isinstance(content.get(name), str):
                return str(content[name])
    return orjson.dumps(content).decode()
