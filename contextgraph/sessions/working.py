"""Working memory: a summary of the run so far, within a budget of tokens."""

import json
from collections import deque
from collections.abc import Mapping, Sequence

from contextgraph.model import Action, Json, Phase, State, Step
from contextgraph.text import clip, clip_tokens, count_tokens
from contextgraph.trace import ActionKind, StateTracker, StepReader, StepTrace, error_of
from contextgraph.trace.wording import one_line

MAX_TOKENS = 2_000
WHOLE_ROUNDS = 3
# The most that each part of the fixed zone takes of the budget.
_RULES_SHARE, _TRIGGER_SHARE, _STATE_SHARE = 0.4, 0.2, 0.15
# What is left for the last rounds where older ones have lines, too.
_ROUNDS_SHARE = 0.75
_FILES_NAMED = 8
_LINE_CHARS, _ERROR_CHARS = 160, 400
_SHELL_ARGUMENTS = ("command", "cmd", "code")
_EXIT_CODES = ("exit_code", "exit", "returncode")
_FILE_KINDS = frozenset({ActionKind.VIEW, ActionKind.EDIT, ActionKind.CREATE})


class WorkingMemory:
    """The run of one agent in at most *max_tokens* of prompt, at constant cost for each call.

    Fixed: rules, trigger, focus, the open error and the files of the run; they are only clipped
    where they exceed their share. Sliding: the last three rounds, clipped in the middle where they
    do not fit, and one line for each older one, the latest first to get a place.
    """

    def __init__(self, max_tokens: int = MAX_TOKENS) -> None:
        self._max_tokens = max_tokens
        self._trigger = ""
        self._focus = ""
        self._rules: list[str] = []
        self._lines: list[str] = []
        self._recent: deque[str] = deque(maxlen=WHOLE_ROUNDS)
        self._thought = ""
        self._reader = StepReader()
        self._tracker = StateTracker(State(phase=Phase.UNDERSTANDING))
        self._changed: dict[str, None] = {}
        self._file = ""

    def add_trigger(
        self, trigger_type: str, payload: "Mapping[str, Json] | str", focus: str = ""
    ) -> None:
        """Set what started the run, such as an issue, and what to attend to."""
        text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
        self._trigger, self._focus = f"{trigger_type}: {text}", focus

    def inject(self, instruction: str) -> None:
        """Add a rule that stays in the prompt until the end of the run."""
        self._rules.append(instruction)

    def add_llm_response(self, content: str) -> None:
        """Add a message of the model; it belongs to the call that follows."""
        self._thought = "\n".join(filter(None, (self._thought, content)))

    def add_function_call(
        self, name: str, args: "Mapping[str, Json]", result: "Mapping[str, Json] | str"
    ) -> None:
        """Add a call of the tool *name* and its *result*: its text, or fields with an exit code."""
        fields = {"output": result} if isinstance(result, str) else dict(result)
        codes = [fields.pop(field) for field in _EXIT_CODES if isinstance(fields.get(field), int)]
        self.add_step(
            Step(
                index=len(self._lines),
                thought=self._thought,
                action=Action(name, _action_text(name, args), args),
                observation="\n".join(map(_field_text, fields.values())),
                exit_code=int(str(codes[0])) if codes else None,
            )
        )

    def add_step(self, step: Step) -> None:
        """Add a step of a run as readers give it."""
        read = self._reader.push(step)
        self._tracker.push(read)
        if read.reading.kind in _FILE_KINDS and read.reading.targets:
            self._file = read.reading.targets[0]
        if read.succeeded:
            for file in read.reading.changed:
                self._changed.pop(file, None)
                self._changed[file] = None
        self._lines.append(_line_of(read))
        self._recent.append(_round_of(step))
        self._thought = ""

    def to_prompt_section(self) -> str:
        """The section for the prompt, empty where nothing was added."""
        fixed = self._fixed()
        left = self._max_tokens - _cost(fixed)
        older = self._lines[: -len(self._recent)] if self._recent else []
        rounds = _shared(self._recent, int(left * _ROUNDS_SHARE) if older else left)
        lines = _latest([f"- {line}" for line in older], left - _cost(rounds))
        return "\n".join((*fixed, *lines, *rounds))

    def _fixed(self) -> list[str]:
        """The lines of the fixed zone, each part within its share."""
        for_rules = self._share(_RULES_SHARE)
        rules = [clip_tokens(f"Rule: {rule}", for_rules // 2) for rule in self._rules]
        trigger = [f"Focus: {self._focus}"] if self._focus else []
        trigger += [self._trigger] if self._trigger else []
        return [
            *_latest(rules, for_rules),
            *_shared(trigger, self._share(_TRIGGER_SHARE)),
            *_shared(self._state_lines(), self._share(_STATE_SHARE)),
        ]

    def _state_lines(self) -> list[str]:
        error = error_of(self._tracker.state)
        files = [*self._changed][-_FILES_NAMED:]
        place = f" ({error.location})" if error and error.location else ""
        lines = (
            error and f"Open error: {error.error_type}: {clip(error.message, _ERROR_CHARS)}{place}",
            self._file and f"File at hand: {self._file}",
            files and f"Changed: {', '.join(files)}",
        )
        return [line for line in lines if line]

    def _share(self, share: float) -> int:
        return int(self._max_tokens * share)


def _action_text(name: str, args: "Mapping[str, Json]") -> str:
    command = next(
        (args[argument] for argument in _SHELL_ARGUMENTS if isinstance(args.get(argument), str)),
        None,
    )
    if isinstance(command, str):
        return command
    return f"{name} {json.dumps(dict(args), ensure_ascii=False)}" if args else name


def _round_of(step: Step) -> str:
    """A round in full: what the agent thought and did, and the answer."""
    parts = (step.thought.strip(), f"$ {step.action.text}", step.observation or "")
    return "\n".join(part for part in parts if part)


def _field_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _line_of(read: StepTrace) -> str:
    """What a step did and how it ended, in one line."""
    did = one_line(read.step.action.text, _LINE_CHARS)
    if read.error:
        return f"{did} -> {one_line(f'{read.error.error_type}: {read.error.message}', _LINE_CHARS)}"
    last = (read.step.observation or "").strip().rpartition("\n")[2]
    return f"{did} -> {one_line(last, _LINE_CHARS) or 'no output'}"


def _cost(texts: Sequence[str]) -> int:
    """The tokens of *texts* with a line end after each: at most that many when they are joined."""
    return sum(count_tokens(f"{text}\n") for text in texts)


def _shared(texts: Sequence[str], tokens: int) -> list[str]:
    """*texts* within *tokens*: short ones whole, the others with equal parts, cut in the middle."""
    shown = dict.fromkeys(range(len(texts)), "")
    for done, index in enumerate(sorted(shown, key=lambda position: count_tokens(texts[position]))):
        part = tokens // (len(texts) - done)
        shown[index] = clip_tokens(texts[index], part - count_tokens("\n"))
        tokens -= _cost([shown[index]]) if shown[index] else 0
    return [text for text in shown.values() if text]


def _latest(lines: Sequence[str], tokens: int) -> list[str]:
    """As many of the last *lines* as fit into *tokens*, and how many do not."""
    fitting: list[str] = []
    left = tokens - _cost([_omitted(len(lines))])
    for line in reversed(lines):
        if (cost := _cost([line])) > left:
            break
        left -= cost
        fitting.append(line)
    if left >= 0 and len(fitting) < len(lines):
        fitting.append(_omitted(len(lines) - len(fitting)))
    return fitting[::-1]


def _omitted(count: int) -> str:
    return f"({count} earlier ones omitted)"
