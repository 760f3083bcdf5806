"""The id of a run, and the run without secrets, by which it is known."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from contextgraph.lazy import dataclass, regex, replace
from contextgraph.model import (
    Action,
    ErrorSignature,
    Json,
    RawTrajectory,
    Step,
    texts_in,
)
from contextgraph.text import (
    clean,
    is_plain,
    mask_after,
    mask_secrets,
    may_be_fenced,
    may_hold_secrets,
    strip_fenced,
)
from contextgraph.trace import ActionKind, read_action

_SEPARATOR = b"\x1f"


@dataclass(frozen=True, slots=True)
class RunIds:
    """The id of a run, and the ids by which a memory may know it, or its beginning, already.

    *beginnings* are the ids of the run broken off after each of its commands but the last, and
    after what a person said since, the longest first.
    """

    id: str
    beginnings: tuple[str, ...] = ()


def trajectory_id(raw: RawTrajectory) -> str:
    """The id of a run: of its instance, its agent and the commands that it ran.

    Neither the observations, the model nor the outcome take part, nor does a submission at the end:
    a run that was observed live has the id of its log. Secrets are masked first, so that a stored
    run gives the same id. A run without commands is known by its task and patch. What a person said
    after the last command continues the run.
    """
    return run_ids(raw).id


def run_ids(raw: RawTrajectory) -> RunIds:
    """The id of *raw*, and those by which it may be known already."""
    acted, said = _commands(raw)
    instance_id, agent, *texts = masked_texts((raw.instance_id, raw.agent, *acted, *said))
    texts = [" ".join(text.split()) for text in texts]
    commands = [command for command in texts[: len(acted)] if command]
    said = [words for words in texts[len(acted) :] if words]
    # One digest that grows by a command at a time.
    growing, ids = blake2b(digest_size=12), list[str]()
    if commands:
        growing.update(_encoded((instance_id, agent)))
    else:
        growing.update(_encoded((instance_id, agent, *masked_texts((raw.task, raw.patch or "")))))
        ids.append(f"trj_{growing.hexdigest()}")
    for part in (*commands, *said):
        growing.update(_SEPARATOR + _encoded((part,)))
        ids.append(f"trj_{growing.hexdigest()}")
    return RunIds(ids[-1], tuple(ids[-2::-1]))


def former_trajectory_id(raw: RawTrajectory) -> str:
    """The id that version 0.1 gave *raw*, a run as it was read."""
    parts = [raw.instance_id, raw.agent, raw.model]
    parts += _with_observations(raw.steps) if raw.steps else (raw.task, raw.patch or "")
    return _digest("trj", parts)


def fragment_id(trajectory: str, start: int, end: int) -> str:
    """The id of the fragment of *trajectory* from step *start* to *end*."""
    return _digest("frg", (trajectory, str(start), str(end)))


def error_id(signature: ErrorSignature) -> str:
    """The id of the error pattern that *signature* is one of, at template level."""
    return _error_id(signature.family, signature.error_type, signature.template)


# A bundle asks for the id of each error several times, and agents meet the same ones.
@lru_cache(maxsize=2048)
def _error_id(family: str, error_type: str, template: str) -> str:
    return _digest("err", (family, error_type, template))


def _commands(raw: RawTrajectory) -> tuple[list[str], list[str]]:
    """The commands of *raw*, without a final submission, and what a person said after the last."""
    last = len(raw.steps)
    while last and _is_submission(raw.steps[last - 1]):
        last -= 1
    said = [step.user_message for step in raw.steps[max(last - 1, 0) :] if step.user_message]
    return [step.action.text for step in raw.steps[:last]], said


def _is_submission(step: Step) -> bool:
    if not step.action.text.strip():
        return True
    return read_action(step.action, None, None).kind is ActionKind.SUBMIT


def _with_observations(steps: Sequence[Step]) -> Iterable[str]:
    for step in steps:
        yield " ".join(step.action.text.split())
        yield " ".join((step.observation or "").split())


def _digest(prefix: str, parts: Iterable[str]) -> str:
    return f"{prefix}_{blake2b(_encoded(parts), digest_size=12).hexdigest()}"


def _encoded(parts: Iterable[str]) -> bytes:
    # surrogatepass: a log may hold half a surrogate pair, and must still have an id
    return _SEPARATOR.join(part.encode("utf-8", "surrogatepass") for part in parts)


# A value is masked by the name that it goes by, though it may not be a secret by itself.
_SECRET_NAME = regex(
    r"pass|pwd|secret|token|key|auth|cookie|senha|contrase|parola|wachtwoord|kennwort|[^\x00-\x7f]",
    re.IGNORECASE,
)
_OPTION_NAME = regex(r"--?[\w-]{0,40}(?:pass\w{0,6}|token|secret|key)\Z|-[pu]\Z", re.IGNORECASE)


def masked(
    raw: RawTrajectory, *, with_playbooks: bool = False
) -> tuple[RawTrajectory, Mapping[str, int]]:
    """*raw* fit to be stored, and context id -> the step in which its text was found first.

    Before the first step that is -1.

    What this product itself put into the run is taken out, unless *with_playbooks*: it must not
    learn from itself.
    """
    texts = tuple(_texts(raw))
    names = frozenset(_names(raw))
    keys = frozenset(filter(_SECRET_NAME.search, names))
    suspects = _suspects((*texts, *names))
    if not suspects and not keys:
        return raw, raw.advised
    mask = _Mask(suspects, keys, with_playbooks)
    safe = replace(
        raw,
        task=mask.text(raw.task),
        system_prompt=mask.text(raw.system_prompt),
        patch=mask.maybe(raw.patch),
        steps=tuple(map(mask.step, raw.steps)),
        instance_id=mask.text(raw.instance_id),
        repo=mask.text(raw.repo),
        agent=mask.text(raw.agent),
        model=mask.text(raw.model),
        exit_status=mask.maybe(raw.exit_status),
        source=mask.text(raw.source),
        content_hashes={mask.text(path): digest for path, digest in raw.content_hashes.items()},
    )
    safe = replace(safe, advised={**raw.advised, **mask.contexts})
    return safe, safe.advised


def masked_texts(texts: Sequence[str]) -> list[str]:
    """*texts* of a run as `masked` leaves them."""
    mask = _Mask(_suspects(texts), frozenset(), with_playbooks=False)
    return [mask.text(text) for text in texts]


def unmasked_values(raw: RawTrajectory) -> int:
    """How many values of *raw*, as an older version stored it, this version would mask."""
    fit = masked(raw)[0]
    if fit == raw:
        return 0
    before, after = ((*_texts(run), *_names(run)) for run in (raw, fit))
    # Keys that are masked may become one.
    return max(1, sum(old != new for old, new in zip(before, after, strict=False)))


def _suspects(texts: Sequence[str]) -> frozenset[str]:
    """Select the *texts* that may have to be changed.

    All are looked at together, which is a third of the work; a quarter of real runs is repetition.
    """
    unfit: list[str] = []
    distinct = dict.fromkeys(texts)
    # Other characters than ASCII are rare, and would make a slow text of the whole.
    for group in (
        [text for text in distinct if text.isascii()],
        [text for text in distinct if not text.isascii()],
    ):
        whole = "\n".join(group)
        if not is_plain(whole) or may_be_fenced(whole):
            unfit += [text for text in group if not is_plain(text) or may_be_fenced(text)]
        unfit += [group[index] for index in may_hold_secrets(group, whole)]
    return frozenset(unfit)


def _texts(raw: RawTrajectory) -> Iterator[str]:
    """All that is free text in *raw*."""
    yield from (raw.task, raw.system_prompt, raw.patch or "")
    for step in raw.steps:
        yield from (step.thought, step.action.text, step.observation or "")
        yield step.user_message or ""
        for value in step.action.arguments.values():
            yield from texts_in(value)


def _names(raw: RawTrajectory) -> Iterator[str]:
    """The short texts of *raw*, which repeat: names, keys of arguments, paths."""
    yield from (raw.instance_id, raw.repo, raw.agent, raw.model, raw.exit_status or "", raw.source)
    yield from (raw.session, *raw.content_hashes)
    for step in raw.steps:
        yield from (step.action.tool, step.cwd or "", step.open_file or "")
        yield from _keys_in(step.action.arguments)


def _keys_in(value: "Json | Mapping[str, Json]") -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from value
        for item in value.values():
            yield from _keys_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys_in(item)


class _Mask:
    """Masks the texts of one run; those that are not among its *suspects* are left as they are.

    *keys* are the names of arguments that make a secret of their value.
    """

    def __init__(
        self, suspects: frozenset[str], keys: frozenset[str], with_playbooks: bool
    ) -> None:
        self._suspects = suspects
        self._keys = keys
        self._with_playbooks = with_playbooks
        self.contexts: dict[str, int] = {}
        self._step = -1

    def text(self, text: str) -> str:
        """A text or a name of the run."""
        return self._fit(text) if text in self._suspects else text

    def maybe(self, text: str | None) -> str | None:
        """A text that may be missing."""
        return None if text is None else self.text(text)

    def step(self, step: Step) -> Step:
        """*step*, itself where nothing in it changes, as in most."""
        self._step = step.index
        made: dict[str, Any] = {
            "thought": self.text(step.thought),
            "action": self._action(step.action),
            "observation": self.maybe(step.observation),
            "user_message": self.maybe(step.user_message),
            "cwd": self.maybe(step.cwd),
            "open_file": self.maybe(step.open_file),
        }
        if all(value is getattr(step, name) for name, value in made.items()):
            return step
        return replace(step, **made)

    def _action(self, action: Action) -> Action:
        tool, text = self.text(action.tool), self.text(action.text)
        arguments = self._arguments(action.arguments)
        if tool == action.tool and text is action.text and arguments == action.arguments:
            return action
        return Action(tool, text, arguments)

    def _arguments(self, arguments: Mapping[str, Json]) -> dict[str, Json]:
        return {
            self.text(key): self._named(key, value) if key in self._keys else self._value(value)
            for key, value in arguments.items()
        }

    def _named(self, key: str, value: Json) -> Json:
        """*value* as the value of *key*: `hunter2!` is a secret where its name is `password`."""
        if not isinstance(value, str):
            return self._value(value)
        return mask_after(f'"{key}": "', self._fit(value))

    def _value(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return self._items(value)
        if isinstance(value, dict):
            return self._arguments(value)
        return value

    def _items(self, items: list[Json]) -> list[Json]:
        """Items of a list; each after an option such as `--password` is the value of it."""
        fit: list[Json] = []
        before: Json = None
        for item in items:
            option = isinstance(before, str) and _OPTION_NAME.match(before)
            if option and isinstance(item, str):
                fit.append(mask_after(f'curl "{before}" "', self._fit(item)))
            else:
                fit.append(self._value(item))
            before = item
        return fit

    def _fit(self, text: str) -> str:
        own = clean(text)
        if self._with_playbooks:
            return mask_secrets(own)
        own, contexts = strip_fenced(own)
        for context in contexts:
            self.contexts.setdefault(context, self._step)
        return mask_secrets(own)
