"""Finds sentences in which a person corrected, refused or decided something in a session."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from contextgraph.model import RawTrajectory, Step
from contextgraph.text import compiled

# Longer messages are plans, logs or issues that were pasted.
_LONGEST_MESSAGE, _LONGEST_SENTENCE, _FEWEST_WORDS = 1_200, 300, 4
_CODE = re.compile(rf"```.*?(?:```|\Z)|<([\w-]+)>.{{0,{_LONGEST_MESSAGE}}}?</\1>", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+|;\s")
_WORD = r"[\u4e00-\u9fff]{2}|[^\W\u4e00-\u9fff]+(?:['’]\w+)?"
_BULLET = re.compile(r"^(?:[-*•>]|\d+[.)])\s+")
_QUESTION = re.compile(
    r"[?？]\W*\Z|\A(?:so |and |but |ok,? |wait,? |now )*(?:what|who|where|when|why|how|which|is|"
    r"are|am|do|does|did|was|were|can|could|would|will|shall|should (?:i|we)|have (?:you|we))\b",
    re.IGNORECASE,
)
_NEGATED = r"(?:don['’]?t|do\ not|never|stop|avoid|no\ more|must\ ?n['’]?t|no\ need\ to|quit)"
# How people state what holds beyond the moment: for all times, a prohibition, a preference, a duty.
_LASTING = re.compile(
    rf"""\b(?:always|never|from\ now\ on|in\ (?:the\ )?future|going\ forward|every\ time
    |each\ time|by\ default|at\ all\ times|10+%+\ of\ the\ time)\b
    |\A(?:please|no|and|but|so|ok(?:ay)?|also|hey|stop|[,!.\s])*\b{_NEGATED}\ \w+
    |\b(?:and|but|please|so),?\ {_NEGATED}\ \w+
    |\A(?:no|not)\ (?!(?:i|we|you|it|that|this|problem|worries|thanks)\b)\w+\ \w+[^,]*\Z
    |\b(?!(?:i|we|it|this|that|also|still|just)\b)[\w/-]+
    \ (?:should|must|needs?\ to|has\ to|have\ to|ought\ to|shall)\b
    |\b(?:we|it|this|that)\ (?:should|must)\ (?:always|never|not|only)\b
    |\A(?:should|must|has\ to|needs\ to)\b
    |\b(?:instead\ of|rather\ than|not\ the\ \w+|as\ opposed\ to)\b
    |\A(?:\w+,?\ ){{0,2}}(?:prefer|use|keep|put|run|write|make\ sure|ensure|remember)\b.*
    \b(?:instead|not|only|for\ all|everywhere|each|every|unless|before|after|to\ not)\b
    |\b(?:i|we)\ (?:prefer|want\ (?:you|the|all|every|no)|like\ to|decided|agreed
    |(?:did|do)\ not\ (?:agree|want|use|like)|(?:didn|don)['’]?t\ (?:agree|want|use|like)
    |only\ use|use|always|never)\b
    |\b(?:remember|keep\ in\ mind|note\ that|make\ sure|be\ sure\ to)\b
    |(?:不要|不能|不准|别再|请勿|总是|始终|永远|以后|必须|应该|改用|而不是|记住|务必|优先使用)""",
    re.IGNORECASE | re.VERBOSE,
)
# Of the moment: it ends with the step that it is about.
_MOMENTARY = re.compile(
    r"\A(?:please |now |then |ok,? )*(?:stop|wait|resume|continue|go ahead|go on|try again|do it|"
    r"let me|i will|i['’]ll|you should be (?:good|able)|it should (?:work|be fine))\b(?! \w+ing\b)",
    re.IGNORECASE,
)
# What programs write instead of a person, in logs of agents that run unattended.
_PROGRAM = re.compile(
    r"tool calls?|function call|continue working on the task|finish the interaction|"
    r"your (?:last|previous) (?:output|response)|image: source|caveat:",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Correction:
    """A sentence of a person after the step *step* of a run."""

    text: str
    step: int


def corrections_in(run: RawTrajectory) -> Iterator[Correction]:
    """What people said in *run* that may hold for later sessions, too; each sentence once.

    The task itself is not read, nor questions, pasted texts and instructions of the moment.
    """
    messages = [step.user_message for step in run.steps if step.user_message]
    repeated = {message for message in messages if messages.count(message) > 1}  # by a program
    corrections = chain.from_iterable(
        _of_step(step) for step in run.steps if step.user_message not in repeated
    )
    seen = set[str]()
    for correction in corrections:
        if (known := correction.text.casefold()) not in seen:
            seen.add(known)
            yield correction


def _of_step(step: Step) -> Iterator[Correction]:
    message = _CODE.sub("\n", step.user_message or "")
    if len(message) > _LONGEST_MESSAGE or _PROGRAM.search(message):
        return
    for part in _SENTENCE.split(message):
        sentence = " ".join(_BULLET.sub("", part.strip()).split())
        if _is_lasting(sentence):
            yield Correction(sentence, step.index)


def _is_lasting(sentence: str) -> bool:
    if len(compiled(_WORD).findall(sentence)) < _FEWEST_WORDS or len(sentence) > _LONGEST_SENTENCE:
        return False
    if _QUESTION.search(sentence) or _MOMENTARY.search(sentence):
        return False
    return bool(_LASTING.search(sentence))
