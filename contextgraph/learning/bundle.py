"""All that a run teaches: its id, the run without secrets, its fragments and their sentences."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import groupby, islice
from typing import Any

from msgspec import Struct

from contextgraph.errors import ReadError
from contextgraph.model import (
    EXCEPTIONS,
    Action,
    ActionKind,
    Basis,
    Bundle,
    CausedError,
    Ending,
    ErrorPattern,
    ErrorSignature,
    Family,
    Fragment,
    FragmentOutcome,
    FragmentType,
    Json,
    LoopEnding,
    LoopInfo,
    Outcome,
    Phase,
    RawTrajectory,
    Recovered,
    SeenContext,
    Step,
    Trajectory,
    texts_in,
)
from contextgraph.model.error import recorded_family
from contextgraph.model.values import replace
from contextgraph.text import (
    clean,
    clip,
    cut,
    is_plain,
    mask_after,
    mask_secrets,
    may_be_fenced,
    may_hold_secrets,
    one_line,
    private_in,
    regex,
    strip_fenced,
    title_of,
    without_private,
)
from contextgraph.trace import (
    FolderCauses,
    Recovery,
    StepTrace,
    Trace,
    change_of,
    describe_change,
    describe_remedy,
    ending_of,
    error_id,
    facts_of_run,
    files_changed,
    files_created,
    is_edit,
    net_changes,
    patterns_cleared,
    patterns_tried,
    read_action,
    trace,
)

_SEPARATOR = b"\x1f"


class RunIds(Struct, frozen=True):
    """The id of a run, and the ids by which a memory may know it, or its beginning, already.

    *beginnings* are the ids of the run broken off after each of its commands but the last, and
    after what a person said since, the longest first.
    """

    id: str
    beginnings: tuple[str, ...] = ()


def trajectory_id(raw: RawTrajectory) -> str:
    """Return the id of a run of the owner, from its instance, agent and commands.

    Observations, model, outcome and a submission at the end take no part: a run that
    was observed live has the id of its log. Secrets are masked first, so that a stored run gives
    the same id. A run without commands is identified by its task and patch.
    """
    return run_ids(raw).id


def run_ids(raw: RawTrajectory, source: str = "") -> RunIds:
    """Return the id of *raw* as *source* supplies it, and those that it may have already.

    Named sources have copies of their own: reports and deletions of one change no copy of another.
    """
    acted, said = _commands(raw)
    instance_id, agent, *texts = masked_texts((raw.instance_id, raw.agent, *acted, *said))
    texts = [" ".join(text.split()) for text in texts]
    commands = [command for command in texts[: len(acted)] if command]
    said = [words for words in texts[len(acted) :] if words]
    # One digest that grows by a command at a time.
    growing, ids = blake2b(digest_size=12), list[str]()
    if source:
        growing.update(_encoded((source,)) + _SEPARATOR)
    if commands:
        growing.update(_encoded((instance_id, agent)))
    else:
        growing.update(_encoded((instance_id, agent, *masked_texts((raw.task, raw.patch or "")))))
        ids.append(f"trj_{growing.hexdigest()}")
    for part in (*commands, *said):
        growing.update(_SEPARATOR + _encoded((part,)))
        ids.append(f"trj_{growing.hexdigest()}")
    return RunIds(ids[-1], tuple(ids[-2::-1]))


def fragment_id(trajectory: str, start: int, end: int) -> str:
    """Return the id of the fragment of *trajectory* from step *start* to *end*."""
    return _digest("frg", (trajectory, str(start), str(end)))


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
# Tools that return the words of a person.
_ASKS = regex(r"ask_?(?:user|question|followup)|question|request_user_input", re.IGNORECASE)
# What was said in private is masked elsewhere from so many characters on, a line of it from more.
_SAID, _LONG_LINE, _MOST_LINES = 4, 16, 100
_OPTION_NAME = regex(r"--?[\w-]{0,40}(?:pass\w{0,6}|token|secret|key)\Z|-[pu]\Z", re.IGNORECASE)


def masked(
    raw: RawTrajectory, *, with_playbooks: bool = False
) -> tuple[RawTrajectory, Mapping[str, int]]:
    """Return *raw* fit to be stored, and by context id the first step with its text.

    Before the first step that is -1. Text that this product put into the run is removed, unless
    *with_playbooks*, as it must not learn from itself; so are private words of people.
    """
    raw = without_private_words(raw)
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
        session=mask.text(raw.session),
        folder=mask.text(raw.folder),
        content_hashes={mask.text(path): digest for path, digest in raw.content_hashes.items()},
    )
    safe = replace(safe, advised={**raw.advised, **mask.contexts})
    return safe, safe.advised


def without_private_words(raw: RawTrajectory) -> RawTrajectory:
    """Return *raw* without what people said between ``<private>`` and ``</private>``.

    In messages, and in what a tool returned that asked them, or that they refused. From there on it
    is masked where the run repeats it, or a long line of it, literally.
    """
    answered = [step.denied or bool(_ASKS.search(step.action.tool)) for step in raw.steps]
    heard = [step.user_message or "" for step in raw.steps]
    heard += [
        step.observation or "" for step, is_said in zip(raw.steps, answered, strict=True) if is_said
    ]
    if all(without_private(text) == text for text in (raw.task, *heard) if text):
        return raw
    task, private = private_in(raw.task)
    repeated = _Repeated(private)
    steps = list[Step]()
    for step, is_said in zip(raw.steps, answered, strict=True):
        said, private = private_in(step.user_message or "")
        shown, answer = private_in(step.observation or "" if is_said else "")
        repeated.add((*private, *answer))
        given = {"user_message": said} if private else {}
        given |= {"observation": shown} if answer else {}
        steps.append(repeated.step(replace(step, **given) if given else step))
    texts = {"task": task, "system_prompt": raw.system_prompt, "patch": raw.patch}
    safe = {name: text and repeated.text(text) for name, text in texts.items()}
    return replace(raw, **safe, steps=tuple(steps))


def masked_texts(texts: Sequence[str]) -> list[str]:
    """Return *texts* of a run as `masked` leaves them."""
    mask = _Mask(_suspects(texts), frozenset(), with_playbooks=False)
    return [mask.text(text) for text in texts]


def unmasked_values(raw: RawTrajectory) -> int:
    """Return how many values of *raw*, as an older version stored it, this version would mask."""
    fit = masked(raw)[0]
    if fit == raw:
        return 0
    before, after = ((*_texts(run), *_names(run)) for run in (raw, fit))
    # Keys that are masked may become one.
    return max(1, sum(old != new for old, new in zip(before, after, strict=False)))


class _Fit:
    """Texts that may stay as they are: prompts, files and commands are met again.

    All are let go where they have more than *most* characters.
    """

    def __init__(self, most: int = 4_000_000) -> None:
        self._most, self._size = most, 0
        self.texts: dict[str, None] = {}

    def add(self, texts: Sequence[str]) -> None:
        """Remember *texts*, which are not known yet."""
        self._size += sum(map(len, texts))
        if self._size > self._most:
            self._size, self.texts = 0, {}
        else:
            self.texts.update(dict.fromkeys(texts))


_fit = _Fit()


def _suspects(texts: Sequence[str]) -> frozenset[str]:
    """Select the *texts* that may have to be changed.

    All are looked at together, which is a third of the work; a quarter of real runs is repetition.
    """
    unfit: list[str] = []
    distinct = [text for text in dict.fromkeys(texts) if text not in _fit.texts]
    # Other characters than ASCII are rare, and would make a slow text of the whole.
    for group in (
        [text for text in distinct if text.isascii()],
        [text for text in distinct if not text.isascii()],
    ):
        whole = "\n".join(group)
        if not is_plain(whole) or may_be_fenced(whole):
            unfit += [text for text in group if not is_plain(text) or may_be_fenced(text)]
        unfit += [group[index] for index in may_hold_secrets(group, whole)]
    suspects = frozenset(unfit)
    _fit.add([text for text in distinct if text not in suspects])
    return suspects


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
    yield from (raw.session, raw.folder, *raw.content_hashes)
    for step in raw.steps:
        yield from (step.action.tool, step.cwd or "", step.open_file or "")
        yield from step.action.arguments
        yield from _keys_within(step.action.arguments.values())


def _keys_within(values: Iterable[Json]) -> Iterator[str]:
    for value in values:
        if isinstance(value, dict):
            yield from value
            yield from _keys_within(value.values())
        elif isinstance(value, list):
            yield from _keys_within(value)


class _Rewriting(ABC):
    """Changes the texts of the steps of a run."""

    @abstractmethod
    def text(self, text: str) -> str:
        """Return a text or a name of the run as it is to be kept."""

    def maybe(self, text: str | None) -> str | None:
        """Return a text as it is to be kept, or None if it is missing."""
        return None if text is None else self.text(text)

    def step(self, step: Step) -> Step:
        """Return *step* as it is to be kept; the same object if nothing in it changes."""
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
        return {self.text(key): self._argument(key, value) for key, value in arguments.items()}

    def _argument(self, _key: str, value: Json) -> Json:
        return self._value(value)

    def _value(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return self._items(value)
        if isinstance(value, dict):
            return self._arguments(value)
        return value

    def _items(self, items: list[Json]) -> list[Json]:
        return [*map(self._value, items)]


class _Repeated(_Rewriting):
    """Masks what was said in private where a run repeats it."""

    def __init__(self, private: Iterable[str]) -> None:
        self._known = dict[str, tuple[str, re.Pattern[str]]]()
        self.add(private)

    def add(self, private: Iterable[str]) -> None:
        """Mask these texts, too, and their long lines."""
        for text in private:
            lines = (line for line in text.splitlines() if len(line.strip()) >= _LONG_LINE)
            for part in (text, *islice(lines, _MOST_LINES)):
                words = part.split()
                if len(" ".join(words)) >= _SAID:
                    repeated = r"\s+".join(map(re.escape, words))
                    pattern = re.compile(rf"(?<!\w){repeated}(?!\w)")
                    self._known[" ".join(words)] = max(words, key=len), pattern

    def text(self, text: str) -> str:
        for longest, repeated in self._known.values():
            if longest in text:  # seldom, and quick to find
                text = repeated.sub("<secret:private>", text)
        return text


class _Mask(_Rewriting):
    """Masks the texts of one run; texts that are not among its *suspects* stay unchanged.

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
        return self._fit(text) if text in self._suspects else text

    def step(self, step: Step) -> Step:
        self._step = step.index
        return super().step(step)

    def _argument(self, key: str, value: Json) -> Json:
        return self._named(key, value) if key in self._keys else self._value(value)

    def _named(self, key: str, value: Json) -> Json:
        """*value* as the value of *key*: `hunter2!` is a secret where its name is `password`."""
        if not isinstance(value, str):
            return self._value(value)
        return mask_after(f'"{key}": "', self._fit(value))

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


ACTION_CHARS = 160
NAMED = 3
_COMMAND_CHARS = 80
_SHOWN_CHARS = 100
_MESSAGE_CHARS = 120
_FOUND = regex(r"Found (\d+) matches")
_NOTHING = ("No matches found", "Your command ran successfully and did not produce any output.")
_RULE = regex(r"^[=_ -]+|[=_ -]+$")


def action_line(step: StepTrace) -> str:
    """Return the action of *step* on one line of at most 160 characters."""
    lines = step.step.action.text.strip().splitlines() or [""]
    more = " …" if len(lines) > 1 else ""
    return cut(" ".join(lines[0].split()), ACTION_CHARS - len(more)) + more


def describe_steps(read: Trace, start: int, end: int) -> list[str]:
    """Describe the steps *start* to *end* (inclusive) of a run, in order."""
    clauses: list[str] = []
    for activity, group in groupby(read.steps[start : end + 1], key=_activity):
        steps = list(group)
        if activity == "look":
            clauses += _looks(steps)
        elif activity == "write":
            clauses += changes(read, steps)
        else:
            clauses += [_ran(step) for step in steps]
    return list(dict.fromkeys(clause for clause in clauses if clause))


def changes(read: Trace, steps: Sequence[StepTrace]) -> list[str]:
    """Describe the edits among *steps*, and the last refusal."""
    first = read.steps[0].index if read.steps else 0
    accepted = [step for step in steps if step.succeeded]
    made = [change_of(read.steps, step.index - first) for step in accepted if is_edit(step)]
    clauses = [describe_change(change) for change in net_changes(made)]
    if not clauses and accepted:
        clauses = [_touched(accepted)]
    if refused := [step for step in steps if step.error]:
        clauses.append(f"{_of(refused[-1])} was refused: {failure(refused[-1])}")
    return clauses or [f"{_of(step)} {outcome(step)}" for step in steps[-1:]]


def _touched(steps: Sequence[StepTrace]) -> str:
    """Describe the targets of edits that do not show their text."""
    if not (paths := _paths(steps)):
        return action_line(steps[-1])
    made = all(step.reading.kind is ActionKind.CREATE for step in steps)
    return f"{'created' if made else 'edited'} {some(paths)}"


def failure(step: StepTrace) -> str:
    """Return the error of *step* with its message; empty without one."""
    if step.error is None:
        return ""
    message = cut(step.error.message, _MESSAGE_CHARS)
    return f"{step.error.error_type}: {message}" if message else step.error.error_type


def outcome(step: StepTrace) -> str:
    """Return how a command ended."""
    if step.error is not None:
        return f"failed with {failure(step)}"
    if step.step.observation is None:
        return "got no answer"
    shown = step.step.observation.strip()
    if not shown or shown.startswith(_NOTHING):
        return "ran without output"
    last = shown.splitlines()[-1]
    return f"ended with `{cut(_RULE.sub('', last) or last, _SHOWN_CHARS)}`"


def some(names: Sequence[str]) -> str:
    """Return the first three of *names*, and the number of others."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _activity(step: StepTrace) -> str:
    if step.reading.kind.reads:
        return "look"
    return "write" if step.reading.kind.writes else "run"


def _looks(steps: Sequence[StepTrace]) -> list[str]:
    failed = [f"{_of(step)} {outcome(step)}" for step in steps if step.error]
    seen = [step for step in steps if not step.error]
    searches = [step for step in seen if step.reading.kind is ActionKind.SEARCH]
    searched = list(dict.fromkeys(f"{_of(step)} ({_found(step)})" for step in searches))
    clauses = [f"searched with {some(searched)}"] if searched else []
    if files := _paths([step for step in seen if step.reading.kind is ActionKind.VIEW]):
        clauses.append(f"read {some(files)}")
    elif seen and not searched:
        clauses.append(f"looked around with {_of(seen[0])}")
    return failed[:NAMED] + clauses


def _found(step: StepTrace) -> str:
    shown = (step.step.observation or "").strip()
    if not shown or shown.startswith(_NOTHING):
        return "nothing"
    match = _FOUND.match(shown)
    count = int(match[1]) if match else len(shown.splitlines())
    return "1 hit" if count == 1 else f"{count} hits"


def _ran(step: StepTrace) -> str:
    if step.reading.kind is ActionKind.SUBMIT:
        return "submitted"
    if step.reading.kind is ActionKind.DELETE and step.succeeded and (paths := _paths([step])):
        return f"deleted {some(paths)}"
    if step.reading.kind is ActionKind.THINK:
        return ""
    if not step.step.action.text.strip():  # a reply without a command
        return outcome(step) if step.error else ""
    if step.reading.kind is ActionKind.VCS and step.succeeded:
        return f"used {_of(step)}"
    return f"{_of(step)} {outcome(step)}"


def _of(step: StepTrace) -> str:
    if is_edit(step) and (paths := _paths([step])):
        return f"an edit of {paths[0]}"
    typed = action_line(step) if step.reading.kind.reads else step.reading.command
    return f"`{cut(' '.join((typed or action_line(step)).split()), _COMMAND_CHARS)}`"


def _paths(steps: Sequence[StepTrace]) -> list[str]:
    return list(dict.fromkeys(path for step in steps for path in step.reading.targets))


DESCRIPTION_CHARS = 600
SUMMARY_CHARS = 900
_TITLE_CHARS = 200
_CLAUSE_CHARS = 240
_ERROR_CHARS = 100

_FAMILIES_OF_RUNS = EXCEPTIONS - {Family.SYNTAX_ERROR} | {Family.BUILD}


def describe(
    read: Trace,
    start: int,
    end: int,
    kind: FragmentType,
    recoveries: Sequence[Recovery],
    loops: Sequence[LoopInfo],
) -> str:
    """Describe the fragment of steps *start* to *end*, in at most 600 characters."""
    sentences = [_recovery(recovery) for recovery in recoveries]
    if kind is FragmentType.LOOP:
        sentences = [_loop_sentence(loop, read.steps) for loop in loops] + sentences
    return cut(_joined(sentences or describe_steps(read, start, end)), DESCRIPTION_CHARS)


def summarise(read: Trace, files: Sequence[str]) -> str:
    """Summarise a run in at most 900 characters, without its outcome."""
    title = title_of(read.raw.task) or "no task text"
    sentences = [cut(title, _TITLE_CHARS), *_reproduced(read)]
    sentences.append(f"changed {some(files)}" if files else "changed no file")
    sentences += [cut(clause, _CLAUSE_CHARS) for clause in (*_fixes(read), *_cleared(read))]
    sentences += [_loop_sentence(loop, read.steps) for loop in read.loops[:NAMED]]
    return cut(_joined((*sentences, *_ended(read))), SUMMARY_CHARS)


def _reproduced(read: Trace) -> Iterator[str]:
    """Yield how the failure was reproduced before anything was changed."""
    tries = [
        step
        for step in read.steps
        if step.phase is Phase.REPRODUCING
        and step.reading.kind.runs
        and step.step.observation is not None
    ]
    if tries:
        shown = next((step for step in reversed(tries) if _shows_failure(step)), tries[-1])
        yield f"before the fix `{cut(shown.reading.command, 80)}` {outcome(shown)}"


def _shows_failure(step: StepTrace) -> bool:
    return step.error is not None and step.error.family in _FAMILIES_OF_RUNS


def _fixes(read: Trace) -> list[str]:
    """Describe the accepted edits of the project."""
    fixing = [step for step in read.steps if step.phase is Phase.FIXING and step.succeeded]
    return changes(read, fixing)[:2]


def _cleared(read: Trace) -> Iterator[str]:
    """Describe the errors that were cleared."""
    cleared = Counter(recovery.error.error_type for recovery in read.recoveries)
    if cleared:
        yield "cleared " + _counted(cleared)
    solved = (
        recovery for recovery in read.recoveries if recovery.verified and not recovery.workaround
    )
    of_runs = [recovery for recovery in solved if recovery.error.family in _FAMILIES_OF_RUNS]
    for recovery in of_runs[:2]:
        yield _recovery(recovery)


def _ended(read: Trace) -> Iterator[str]:
    """Describe the last run of a program, and the error that was open at the end."""
    runs = [step for step in read.steps if step.reading.kind.runs]
    if runs and runs[-1].phase is Phase.TESTING:
        yield f"in the end `{cut(runs[-1].reading.command, 80)}` {outcome(runs[-1])}"
    if read.steps and read.steps[-1].step.observation is None:
        before = read.steps[-2:-1]
    else:
        before = read.steps[-1:]
    for step in before:
        if step.error and step not in runs:
            yield f"stopped at {failure(step)}"


def _recovery(recovery: Recovery) -> str:
    """An error, and what cleared it."""
    message = cut(recovery.error.message, _ERROR_CHARS)
    error = recovery.error.error_type
    if recovery.error.family is Family.EDIT_REJECTED:
        error = "an edit was refused"
    remedy = describe_remedy(recovery.actions)
    return f"{error} ({message}), cleared: {remedy}" if message else f"{error}, cleared: {remedy}"


def _loop_sentence(loop: LoopInfo, steps: Sequence[StepTrace]) -> str:
    last = next((step for step in steps if step.index == loop.end), None)
    what = f"`{cut(action_line(last), 80)}`" if last else "the same steps"
    name = loop.kind.replace("_", " ")
    error = f", {failure(last)}" if last and last.error else ""
    return f"loop ({name}): {loop.repetitions} times {what}{error}"


def _counted(counter: Counter[str]) -> str:
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return some([f"{name} ({count}x)" if count > 1 else name for name, count in ordered])


def _joined(sentences: Iterable[str]) -> str:
    return "; ".join(sentence.strip().rstrip(".;") for sentence in sentences if sentence.strip())


# A recovery within this many steps is one fragment, whatever phases it passes through.
SHORT_RECOVERY = 8


def fragment_ranges(trace: Trace) -> tuple[tuple[int, int], ...]:
    """Return ranges (start, end inclusive) that cover every step of *trace* once, in order.

    A range starts at an error, at a change of phase and at a loop; it ends at a recovery and at
    the end of a loop. Short recoveries stay whole across phases.
    """
    count = len(trace.steps)
    starts = sorted({0} | {start for start in _starts(trace) if 0 < start < count})
    ranges = zip(starts, [start - 1 for start in starts[1:]] + [count - 1], strict=True)
    return tuple(ranges) if count else ()


def _starts(trace: Trace) -> set[int]:
    inside = _inside(trace.loops, trace.recoveries)
    starts = {loop.start for loop in trace.loops} | {loop.end + 1 for loop in trace.loops}
    looping = {i for loop in trace.loops for i in range(loop.start + 1, loop.end + 1)}
    starts |= {recovery.cleared_step + 1 for recovery in trace.recoveries} - looping
    for before, now in zip(trace.steps, trace.steps[1:], strict=False):
        i = now.step.index
        if i not in inside and (_new_error(before, now) or before.phase is not now.phase):
            starts.add(i)
    return starts


def _inside(loops: Sequence[LoopInfo], recoveries: Sequence[Recovery]) -> set[int]:
    """Steps at which nothing new starts, as they continue a loop or a short recovery."""
    spans = [(loop.start, loop.end) for loop in loops]
    spans += [
        (recovery.error_step, recovery.cleared_step)
        for recovery in recoveries
        if recovery.cleared_step - recovery.error_step <= SHORT_RECOVERY
    ]
    return {i for start, end in spans for i in range(start + 1, end + 1)}


def _new_error(before: StepTrace, now: StepTrace) -> bool:
    if now.error is None:
        return False
    return before.error is None or before.error.template != now.error.template


def classify(
    steps: Sequence[StepTrace], recoveries: Sequence[Recovery], loops: Sequence[LoopInfo]
) -> tuple[FragmentType, FragmentOutcome]:
    """Classify the fragment of *steps*, and how it ended.

    *recoveries* are those that end in it, *loops* those that lie in it.
    """
    if loops:
        outcome = FragmentOutcome.FAILED if steps[-1].error else FragmentOutcome.COMPLETED
        return FragmentType.LOOP, outcome
    if recoveries:
        return FragmentType.ERROR_RECOVERY, FragmentOutcome.RECOVERED
    if any(step.error for step in steps):
        return FragmentType.FAILED_ATTEMPT, FragmentOutcome.FAILED
    if any(step.phase is Phase.FIXING and step.reading.kind.changes_files for step in steps):
        return FragmentType.SUCCESSFUL_FIX, FragmentOutcome.COMPLETED
    return FragmentType.EXPLORATION, FragmentOutcome.COMPLETED


TASK_CHARS = 8_000
MESSAGE_CHARS = 600
MAX_ACTIONS = 12
MAX_FILES = 50


class Inspection(Struct, frozen=True):
    """The reading of a run: its trace, its fragments, and how it ended."""

    trace: Trace
    fragments: tuple[Fragment, ...]
    ending: Ending

    @property
    def title(self) -> str:
        """A line that says what was asked, as sessions have it."""
        raw = self.trace.raw
        return one_line(
            title_of("\n".join((raw.task, *(step.user_message or "" for step in raw.steps))))
            or raw.instance_id,
            _TITLE_CHARS,
        )


def inspect_run(raw: RawTrajectory) -> Inspection:
    """Return the reading of *raw*, with secrets masked."""
    read = trace(masked(raw)[0])
    known = Ending(raw.outcome, Basis(raw.outcome_source.value), "")
    guessed = ending_of(raw, read.steps).with_change(raw.change)
    ending = guessed if raw.outcome is Outcome.UNKNOWN else known
    return Inspection(read, fragments_of(read, trajectory_id(raw)), ending)


def bundle_of(raw: RawTrajectory, learned_at: datetime, identity: str | None = None) -> Bundle:
    """Return all that *raw* teaches; *identity* is its id if that is known, as of a masked run.

    Raises `ReadError` for a run that cannot be traced, so that others can be learned.
    """
    try:
        return _bundle_of(raw, learned_at, identity)
    except Exception as error:
        detail = raw.misnumbered or f"{type(error).__name__}: {error}"
        place = raw.source or raw.instance_id
        raise ReadError(place, "", "a run that cannot be learned", detail) from error


def _bundle_of(raw: RawTrajectory, learned_at: datetime, identity: str | None) -> Bundle:
    identity = identity or trajectory_id(raw)
    clean, seen = masked(raw)
    read = trace(clean)
    fragments = fragments_of(read, identity)
    errors = {error_id(step.error): step.error for step in read.steps if step.error}
    facts = facts_of_run(read)
    return Bundle(
        trajectory=_trajectory(read, identity, learned_at),
        fragments=fragments,
        errors=tuple(_pattern(key, errors[key]) for key in sorted(errors)),
        caused=tuple(edge for fragment in fragments for edge in _caused(fragment, read)),
        recovered=tuple(_recovered(one, fragments, seen.values()) for one in read.recoveries),
        facts=facts,
        raw=clean,
        exposures=tuple(
            SeenContext(
                context,
                step,
                patterns_tried(read.steps, step, clean.repo),
                patterns_cleared(read.recoveries, step, FolderCauses(clean)),
            )
            for context, step in seen.items()
        ),
    )


def fragments_of(read: Trace, identity: str) -> tuple[Fragment, ...]:
    """Return the fragments of the run *identity*, in order; they cover every step once.

    A conversation in which no tool was called has none.
    """
    if read.raw.is_talk:
        return ()
    return tuple(
        _fragment(read, identity, order, start, end)
        for order, (start, end) in enumerate(fragment_ranges(read))
    )


def _fragment(read: Trace, identity: str, order: int, start: int, end: int) -> Fragment:
    steps = read.steps[start : end + 1]
    recoveries = [recovery for recovery in read.recoveries if start <= recovery.cleared_step <= end]
    loops = [loop for loop in read.loops if start <= loop.start and loop.end <= end]
    kind, outcome = classify(steps, recoveries, loops)
    loop = max(loops, key=lambda loop: loop.repetitions, default=None)
    return Fragment(
        id=fragment_id(identity, start, end),
        trajectory_id=identity,
        order=order,
        start=start,
        end=end,
        fragment_type=kind,
        phase=steps[0].phase,
        outcome=outcome,
        description=describe(read, start, end, kind, recoveries, loops),
        action_sequence=tuple(action_line(step) for step in steps[:MAX_ACTIONS]),
        files=_targets(steps),
        open_file=steps[0].step.open_file,
        repo=read.raw.repo.casefold(),
        task_type=read.task_type,
        loop_kind=loop.kind if loop else None,
        loop_command=loop.command if loop else "",
        loop_cycle=loop.signatures if loop else (),
        loop_failing=loop.failing if loop else "",
        repetitions=loop.repetitions if loop else 0,
        loop_ending=_loop_ending(loop, read) if loop else None,
    )


def _loop_ending(loop: LoopInfo, read: Trace) -> LoopEnding:
    """Return the ending of *loop*: cleared if the error of one of its steps soon was."""
    if any(
        loop.start <= recovery.error_step <= loop.end <= recovery.cleared_step
        and recovery.cleared_step <= loop.end + SHORT_RECOVERY
        for recovery in read.recoveries
    ):
        return LoopEnding.CLEARED
    last = read.steps[-1].index
    return LoopEnding.RUN_ENDED if loop.end >= last - 1 else LoopEnding.LEFT


def _targets(steps: Sequence[StepTrace]) -> tuple[str, ...]:
    """Return the files that *steps* name; of a test, its file."""
    named = dict.fromkeys(
        target.partition("::")[0]
        for step in steps
        for target in step.reading.targets
        if "." in target and "://" not in target and "@" not in target
    )
    return tuple(named)[:MAX_FILES]


def _trajectory(read: Trace, identity: str, learned_at: datetime) -> Trajectory:
    raw = read.raw
    files, made = _changed(read)
    times = [step.timestamp for step in raw.steps if step.timestamp]
    return Trajectory(
        id=identity,
        instance_id=raw.instance_id,
        repo=raw.repo.casefold(),
        task=clip(raw.task, TASK_CHARS),
        task_type=read.task_type,
        outcome=raw.outcome,
        exit_status=raw.exit_status,
        total_steps=len(raw.steps),
        summary=summarise(read, files),
        files=tuple(file for file in files if file not in made)[:MAX_FILES],
        agent=raw.agent,
        model=raw.model,
        source_format=raw.source_format,
        source=raw.source,
        run_at=raw.started_at,
        learned_at=learned_at,
        outcome_source=raw.outcome_source,
        change=raw.change,
        course=read.course,
        session=raw.session,
        seconds=(max(times) - min(times)).total_seconds() if len(times) > 1 else None,
        spent=raw.spent,
        guess=ending_of(raw, read.steps),
        folder=raw.folder,
        title=one_line(
            title_of("\n".join((raw.task, *(step.user_message or "" for step in raw.steps))))
            or raw.instance_id,
            _TITLE_CHARS,
        ),
    )


def _changed(read: Trace) -> tuple[tuple[str, ...], frozenset[str]]:
    """The files that a run changed, and those of them that it made itself, which come last.

    A fix without steps was merged: the files that it made are now those of the project.
    """
    if patch := read.raw.patch:
        return files_changed(patch), files_created(patch) if read.steps else frozenset()
    accepted = [step for step in read.steps if step.reading.kind.writes and not step.error]
    made = frozenset(
        target
        for step in accepted
        if step.reading.kind is ActionKind.CREATE
        for target in step.reading.targets
    )
    targets = dict.fromkeys(target for step in accepted for target in step.reading.targets)
    return tuple(sorted(targets, key=made.__contains__)), made


def _pattern(identity: str, error: ErrorSignature) -> ErrorPattern:
    return ErrorPattern(
        id=identity,
        family=recorded_family(error),
        error_type=error.error_type,
        template=error.template,
        keywords=error.keywords,
        context=clip(error.message, MESSAGE_CHARS),
    )


def _caused(fragment: Fragment, read: Trace) -> list[CausedError]:
    met: dict[str, list[StepTrace]] = {}
    for step in read.steps[fragment.start : fragment.end + 1]:
        if step.error:
            met.setdefault(error_id(step.error), []).append(step)
    return [
        CausedError(
            fragment_id=fragment.id,
            error_id=error,
            steps=tuple(step.step.index for step in steps),
            locations=tuple(
                sorted({s.error.location for s in steps if s.error and s.error.location})
            ),
        )
        for error, steps in sorted(met.items())
    ]


def _recovered(
    recovery: Recovery, fragments: Sequence[Fragment], advised: Iterable[int]
) -> Recovered:
    between = range(recovery.error_step, recovery.cleared_step)
    home = next(f for f in fragments if f.start <= recovery.cleared_step <= f.end)
    return Recovered(
        fragment_id=home.id,
        error_id=error_id(recovery.error),
        error_step=recovery.error_step,
        cleared_step=recovery.cleared_step,
        message=clip(recovery.error.message, MESSAGE_CHARS),
        location=recovery.error.location,
        actions=recovery.actions,
        verified=recovery.verified,
        workaround=recovery.workaround,
        circumstances=recovery.circumstances,
        advised=any(step in between for step in advised),
    )


def renewed(bundle: Bundle, before: Trajectory) -> Bundle:
    """Return *bundle* with time and source of learning, which only the memory knows."""
    known = replace(bundle.trajectory, learned_at=before.learned_at, contributor=before.contributor)
    return replace(bundle, trajectory=known)
