"""Owners of messages: what a fork or a resumed session repeats was said and done once.

Forks, resumed sessions and sub-agents begin with the history of another session, or with its end
since it was compacted, often under other ids and with other times. Each message belongs to one
session, the first that had it under the same id or after the same messages; of the others only what
follows is kept. Where a session with an earlier claim is learned
later, the others give up what it owns, so that the order of learning changes nothing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from hashlib import blake2b
from itertools import takewhile
from typing import NamedTuple

from contextgraph.model import Inherited, Outcome, RawTrajectory, Step, is_subagent
from contextgraph.model.values import replace

# Two people may begin with the same words and the same command. A copy has a message with the same
# id or written at the same time in common with its owner, or so many messages, the request among
# them, or two of which the second is so long, or it has nothing else, and so long replies.
_LEAST, _LEAST_LENGTH = 3, 200
# Clients cut long results, but not their beginning.
_RESULT = 160
_LAST = datetime.max.replace(tzinfo=UTC)


class _Message(NamedTuple):
    """A request, a reply or a command, with the thought before it and its result.

    *step* is the index of its step, -1 of the task; *said*: a person wrote it, else *done* is the
    step. *key* is what no other message has: the id that its client gave it, else the time at which
    it was written.
    """

    text: str
    step: int
    said: bool
    key: str = ""
    done: Step | None = None

    @property
    def thought(self) -> str:
        """The thought before it; few messages are compared so far."""
        return _plain(self.done.thought) if self.done else ""

    @property
    def result(self) -> str:
        """The beginning of its result."""
        shown = (self.done.observation or "") if self.done else ""
        return _plain(shown[: 2 * _RESULT])[:_RESULT]

    def is_same(self, other: "_Message") -> bool:
        """Return True for equal texts, unless the thoughts or the results differ.

        Some clients keep no thoughts, and some cut results. Where the agent thought the same, or
        the keys are the same, it was the same moment.
        """
        if self.text != other.text:
            return False
        if self.key and self.key == other.key:
            return True
        thoughts, results = (self.thought, other.thought), (self.result, other.result)
        if all(thoughts):
            if not (thoughts[0] in thoughts[1] or thoughts[1] in thoughts[0]):
                return False
            if thoughts[0] == thoughts[1]:
                return True
        return not all(results) or results[0] == results[1]


class Share(NamedTuple):
    """The *messages* at the beginning of a session that another one owns.

    *within* is the digest of the beginning of that one which ends there, where it is another.
    """

    messages: int
    within: str = ""


class Session:
    """A run of a client, without secrets, as the chain of its messages; *source* supplied it."""

    def __init__(self, raw: RawTrajectory, source: str = "") -> None:
        self.raw, self.source = raw, source
        self._inherited = raw.inherited or Inherited()

    @cached_property
    def _messages(self) -> Sequence[_Message]:
        """The messages that *raw* has itself; none where it is no session of a client."""
        if not self.raw.session:
            return ()
        return [message for message in _messages_of(self.raw) if message.text]

    @cached_property
    def _chain(self) -> dict[int, str]:
        """Number of messages from the beginning -> digest of these; from the first of its own."""
        digest, chain = self._inherited.digest, dict[int, str]()
        for place, message in enumerate(self._messages, self._inherited.messages + 1):
            content = f"{digest}\n{message.text}".encode("utf-8", "surrogatepass")
            chain[place] = digest = blake2b(content, digest_size=12).hexdigest()
        return chain

    @property
    def beginnings(self) -> Collection[str]:
        """Return the digests of all its beginnings: a session that goes on has one of them."""
        return self._chain.values()

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """The digests of all beginnings that are long enough to be known by, and its keys."""
        return (*self._telling, *self._places)

    @cached_property
    def _telling(self) -> tuple[str, ...]:
        """The digests of beginnings that make a copy, or do where there is nothing else."""
        return tuple(
            digest
            for place, digest in self._chain.items()
            if self._is_telling(place) or self._replied(place) >= _RESULT
        )

    @cached_property
    def _places(self) -> Mapping[str, int]:
        """The keys of its own messages, each with the place of the first that has it."""
        placed = reversed([*enumerate(self._messages)])
        return {message.key: place for place, message in placed if message.key}

    @property
    def marks(self) -> tuple[str, ...]:
        """Return the *digests* by which it is found: of one that repeats any of its own messages.

        Beginnings get further apart, so that a long session has few of them. A copy of its end
        begins where a person spoke; the message or the reply to it has a key.
        """
        powers = range(len(self._telling).bit_length())
        keys, was_said = dict[str, None](), True
        for message in self._messages:
            if message.key and (message.said or was_said):
                keys[message.key] = None
            was_said = message.said
        return (*(self._telling[(1 << power) - 1] for power in powers), *keys)

    def _is_telling(self, place: int) -> bool:
        if place >= _LEAST:
            return True
        own = self._messages[1:place]
        return place == 2 and sum(len(message.text) for message in own) >= _LEAST_LENGTH

    def _replied(self, place: int) -> int:
        """The number of characters that the first *place* messages have besides what was asked."""
        replies = [one for one in self._messages[: max(0, place - self.inherited)] if not one.said]
        return sum(len(one.text) + len(one.thought) + len(one.result) for one in replies)

    def precedes(self, other: "Session") -> bool:
        """Return True where this session owns what both have.

        Nobody speaks to a sub-agent but an agent, and what others supply takes nothing away from
        the owner of the memory.
        """
        return self._rank < other._rank

    @property
    def _rank(self) -> tuple[bool, bool, datetime, str]:
        began = self._inherited.began_at or self.raw.started_at or _LAST
        began = began if began.tzinfo else began.replace(tzinfo=UTC)
        return is_subagent(self.raw.agent), bool(self.source), began, self.raw.session

    def goes_on_as(self, other: "Session", shared: int) -> bool:
        """Return True for a log of the session of *other* that was not yet complete.

        *shared* messages are in both.
        """
        is_same = (self.raw.session, self.raw.agent) == (other.raw.session, other.raw.agent)
        is_open = self.raw.outcome is Outcome.UNKNOWN and not self.raw.exit_status
        return is_same and is_open and self.length in (shared, self._within(other)[1].messages)

    @property
    def length(self) -> int:
        """The number of its messages, with those that it inherited."""
        return self._inherited.messages + len(self._messages)

    @property
    def inherited(self) -> int:
        """The number of messages at its beginning that another session is known to own."""
        return self._inherited.messages

    def shared(self, other: "Session") -> int:
        """Return how many messages both begin with; 0 for too few to call one a copy."""
        first, second = sorted((self, other), key=lambda one: one._inherited.messages)
        start = second._inherited.messages
        if start and start != first._inherited.messages:
            if first._chain.get(start) != second._inherited.digest:
                return 0
        elif first._inherited.digest != second._inherited.digest:
            return 0
        rest = first._messages[start - first._inherited.messages :]
        pairs = [*zip(rest, second._messages, strict=False)]
        same = [one for one, _ in takewhile(lambda pair: pair[0].is_same(pair[1]), pairs)]
        place = start + len(same)
        is_copy = (
            not same
            or first._is_telling(place)
            or any(one.key and one.key in second._places for one in same)
            or (place in (first.length, second.length) and first._repeats(second, place))
        )
        return place if place and is_copy else 0

    def _repeats(self, other: "Session", place: int) -> bool:
        """Return True where the first *place* messages, all that one has, have the same results."""
        whole = self._replied(place) >= _RESULT
        pairs = zip(self._messages[:place], other._messages[:place], strict=False)
        return whole and all(one.result == two.result for one, two in pairs)

    def owned_by(self, other: "Session", shared: int) -> Share:
        """Return what *other* owns of it, where both begin with *shared* messages.

        A session that goes on from where another one was compacted is its copy, whichever began
        first by its times.
        """
        return max(Share(0 if self.precedes(other) else shared), self._continued_in(other))

    def _continued_in(self, other: "Session") -> Share:
        """Return its share in *other*, with whose end it begins, or in which a person went back."""
        at, share = self._within(other)
        is_later = other._rank[:2] > self._rank[:2] if at else not other.precedes(self)
        return Share(0) if is_later else share

    def _within(self, other: "Session") -> tuple[int, Share]:
        """Return where in *other* it begins, as the keys say, and its share that stands there.

        Requests that stand only here count as copied, too: in the other session a person went back
        before them.
        """
        keyed = ((place, one.key) for place, one in enumerate(self._messages) if one.key)
        first, key = next(keyed, (0, ""))
        begin = at = other._places.get(key, -1) - first
        if at < 0:
            return 0, Share(0)
        same = 0
        for place, message in enumerate(self._messages):
            if at < len(other._messages) and message.is_same(other._messages[at]):
                same, at = place + 1, at + 1
            elif not (message.said and self._goes_on(place, at, other)):
                break
        if same <= first:
            return 0, Share(0)
        return begin, Share(self.inherited + same, other._chain[other.inherited + at])

    def _goes_on(self, place: int, at: int, other: "Session") -> bool:
        """Return whether the message after *place* is that at *at* of *other*, as keys say."""
        later = self._messages[place + 1 : place + 2]
        return any(one.key and other._places.get(one.key) == at for one in later)

    def without(self, share: Share) -> RawTrajectory | None:
        """Return *raw* without its *share* of another; None where nothing else was done.

        Its task is then what a person asked for next, or before that.
        """
        own = share.messages - self._inherited.messages
        if own <= 0:
            return self.raw
        if own >= len(self._messages):
            return None
        before, first = self._messages[:own], self._messages[own]
        start = first.step + 1 if first.said else first.step
        if not (later := self.raw.steps[start:]):
            return None  # nobody has answered yet
        asked = first if first.said else next((one for one in reversed(before) if one.said), None)
        steps = tuple(replace(step, index=index) for index, step in enumerate(later))
        times = [step.timestamp for step in steps]
        if first.said:
            times.insert(0, self.raw.steps[first.step].messaged_at)
        return replace(
            self.raw,
            task=_request(self.raw, asked.step) if asked else self.raw.task,
            steps=steps,
            started_at=next(filter(None, times), self.raw.started_at),
            advised={key: step - start for key, step in self.raw.advised.items() if step >= start},
            inherited=Inherited(
                share.messages,
                self._chain[share.messages],
                self._inherited.began_at or self.raw.started_at,
                with_request=not first.said,
                before=_replied(before, self.raw),
                within=share.within,
            ),
        )


def _request(raw: RawTrajectory, step: int) -> str:
    return (raw.steps[step].user_message or "") if step >= 0 else raw.task


def _replied(messages: Sequence[_Message], raw: RawTrajectory) -> str:
    """Return what the agent wrote since a person spoke last."""
    since = takewhile(lambda message: not message.said, reversed(messages))
    thoughts = [raw.steps[message.step].thought for message in since]
    return "\n\n".join(filter(None, reversed(thoughts)))


def _messages_of(raw: RawTrajectory) -> Iterator[_Message]:
    if not (raw.inherited and raw.inherited.with_request):
        yield _Message(_plain(raw.task), -1, said=True, key=raw.opening_id)
    for step in raw.steps:
        text = _plain(step.action.text) or _plain(step.thought)
        key = step.client_id or _moment(step.timestamp, text)
        yield _Message(text, step.index, said=False, key=key, done=step)
        if step.user_message:
            words = _plain(step.user_message)
            key = step.message_id or _moment(step.messaged_at, words)
            yield _Message(words, step.index, said=True, key=key)


def _moment(time: datetime | None, text: str) -> str:
    """Return what stands for a *text* written at a *time*; empty where no moment is known.

    Two sessions may do the same in the same second, as where a program starts them.
    """
    if time is None or not time.microsecond:
        return ""
    content = f"{time.timestamp()} {text}".encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=8).hexdigest()


def _plain(text: str) -> str:
    return " ".join(text.split())
