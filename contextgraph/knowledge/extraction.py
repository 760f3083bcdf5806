"""Finds what people decided, corrected, required or ruled out in a recorded session.

Only what a person typed is read, and what the agent proposed and the person confirmed. The rules
are wordings of English (and a few of Chinese) that weigh for or against a sentence; none knows a
project.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import blake2b

from msgspec import Struct, field

from contextgraph.knowledge.durability import (
    LEAST,
    SURE,
    asks_to_agree,
    is_standing,
    manner_stems,
    probability,
    signs,
    stands_alone,
)
from contextgraph.knowledge.ways import GUIDE, ways_in
from contextgraph.model import LessonKind, RawTrajectory
from contextgraph.text import compiled, regex, stems, words
from contextgraph.values import replace

# Nobody types a message of more characters twice.
_TYPED = 200
# Longer messages are plans, logs or issues that were pasted; a longer statement is a paragraph.
_LONGEST_MESSAGE, _LONGEST_STATEMENT, _LONGEST_AGREED = 2_400, 320, 1_000
# A first request is the task; only a short one can lay down a rule.
_LONGEST_RULE = 400
_LONGEST_CONFIRMATION, _LONGEST_CHOICE, _LONGEST_PROPOSAL = 400, 80, 700
# A confirmation says little more, and what is restated in few words says nothing.
_MOST_ADDED, _FEWEST_RESTATED = 6, 8
_LONGEST_TITLE, _LONGEST_CONTEXT, _MOST_ABOUT, _TOPIC = 400, 300, 8, 150
# A statement of so few words needs what it answers; a question of so many stems is clear.
_UNCLEAR, _CLEAR, _LONGEST_SAID = 7, 4, 200

# What stands in a message though nobody typed it.
_BLOCK = regex(
    r"```.*?(?:```|\Z)|<([\w-]+)[^>]*>.*?(?:</\1>|\Z)|\[(?:Image|Request interrupted)[^\]]*\]",
    re.DOTALL,
)
_PROGRAM = regex(
    r"^\s*<(?:command-|local-command-|bash-|system-reminder|task-notification|teammate)|^Caveat:"
    r"|tool calls?\b.*\b(?:continue|use one)|function call|session is being continued from"
    r"|continue working on the task|finish the interaction|^## Context\b|image: source"
    r"|your (?:last|previous) (?:output|response)|^Base directory for this skill",
    re.IGNORECASE,
)
_HEADING = regex(r"^#{1,4} \S", re.MULTILINE)
_PASTED = regex(
    r"""(?:>|\s{2,}\S|\t|\||[+-]{1,3}\s*[+-]|@@|\$\ |%\ |(?:time|level|ts)=|\d{4}[-/]\d\d
    |\[?\d\d[:/]\d\d|Traceback|File\ "|at\ \w+[.(]|(?:ERROR|WARN|INFO|DEBUG)\b|[\[{]"?\S*$
    |.*\b(?:[Ee]rror|FAIL|PASS|SKIP):\ |["“]
    |\S+:\d+(?::\d+)?:\s|.*\[\d+/\d+\]\s*$|.*\bavailable\ at:\ |Line\ \d+\ -
    |[\u2100-\u2bff]|[\w.`]+\s*:?=\s*\S.*[(;)]`?\s*$
    |[^\w\s"'`(@/*_~<>$%+.,:;!?#&\[{|=^-]
    |https?://\S+\s*$|[~./@][\w./-]+\s*$|\S*/\S*/\S+\s*$)""",
    re.VERBOSE,
)
# What follows such a line was written by another.
_PASTE_FOLLOWS = regex(
    r"(?:reviews?|comments?|says?|said|wrote|errors?|logs?|output|results?|message|prints?|shows?"
    r"|got|seeing|this|these(?: \d+)?|following)[^.!?\n]{0,40}:\s*$",
    re.IGNORECASE,
)
_REVIEW = regex(
    r"\b(?:review|reviewer|copilot|bot)(?:['’]s)? (?:comment|feedback|note|suggestion)s?\b"
    r"|\b(?:comment|feedback|review|suggestion)s? (?:from|by) (?:a |the |an )?\w+"
    r"|\b(?:reviewer|copilot|coderabbit) (?:says?|said|wrote|asks?)\b",
    re.IGNORECASE,
)
# From such a mark to the end of the paragraph it is a finding that was listed elsewhere.
_FINDING = regex(r"[⚠✅❌❗🔴🟡🟢]|\s{2,}(?:[-•]|\d+[.)])\s|:\s+\d+[.)]\s")
# A terminal breaks a line within a sentence and indents the rest; a reviewer advises politely.
_COPIED = regex(r"^.{60,}\n {1,4}[^\W\d_]|\b[Cc]onsider [a-z]+ing\b", re.MULTILINE)
# Answers to several questions of an agent stand in one line.
_ANSWERS = regex(r", (?=[^,\n]*\(Recommended\))|(?<=\(Recommended\)), ")
_QUOTED = regex(r"[\"“]([^\"”\n]{15,})[\"”]")
_STRAIGHT, _CURLY = regex(r"\w'\w"), regex(r"\w’\w")

_SENTENCE = regex(
    r"(?<=[.!?])(?<!\.\.\.)(?<!\b\d\.)(?<!vs\.)(?<!e\.g\.)(?<!i\.e\.)[\"')\]]*\s+|\n+|(?<=[。！？])"
)
_BULLET = regex(r"^(?:[-*•]|\d+[.)]|\(\w\))\s+")
_WORD = r"[\u4e00-\u9fff]{2}|[^\W\u4e00-\u9fff]+(?:['’]\w+)?"

_NEGATED = (
    r"(?:don['’]?t|do not|never|stop|avoid|no more|must ?n['’]?t|no need (?:to|for)|quit"
    r"|shouldn['’]?t|should not|cannot|can['’]?t|won['’]?t|not)"
)
# What follows a negation where somebody only says how it is.
_SEES = (
    r"(?:see|get|know|think|understand|love|like|remember|believe|recall|care|sure|very|really"
    r"|actually|seem|look|work|even)\b"
)
_NUMERALS = "one|two|three|four|five|six|seven|eight|nine|ten|twelve|half|twice|zero"
_UNITS = (
    r"ms|s|sec\w*|min\w*|h|hours?|days?|weeks?|months?|chars?|characters|tries|attempts|times"
    r"|units?|digits?|bytes|kb|mb|gb|x"
)
_MANNER = (
    r"\b(?:(?:ask|discuss|check|confirm)(?: it| this| that)? (?:with )?me"
    r"|you are to|convention|preferred (?:\w+ )?(?:way"
    r"|approach|pattern|style|form|method)|responsib\w+ of|belongs? (?:in|to|on)"
    r"|(?:is|are)(?: not|n['’]t)? (?:a|the) goal|the priority is|takes? precedence"
    r"|that['’]?s what .{2,40} (?:is|are) for)\b"
)
# How people state what holds beyond the moment, and how much each wording says.
_CUES: dict[str, tuple[float, str]] = {
    "lasting": (
        2.0,
        (
            r"\b(?:always|never|from (?:now|here|today|this point) on|in (?:the )?future"
            r"|going forward|every time|each time"
            r"|by default|at all times|no exceptions|permanently|deliberate(?:ly)?|on purpose"
            r"|intentional(?:ly)?|(?<!i )(?<!you )remember|keep in mind|no longer|any ?more)\b"
            r"|(?:总是|始终|永远|以后|记住|务必)"
        ),
    ),
    "ruled out": (
        1.6,
        (
            rf"(?:^|[,;:–—-]\s*|\b(?:and|but|so|please|we|i|just|ok|you)\s+){_NEGATED}\s+(?!{_SEES})\w+"
            r"|^(?:no|not)\b[ ,–—-]+\w+|\brather than\b|\binstead(?: of)?\b|\bas opposed to\b"
            r"|,\s+not\b|\b(?:this|that|it)(?:['’]s| is) (?:wrong|incorrect)\b"
            r"|\bin place of\b|\b(?:it|that|this|they) (?:doesn|don)['’]?t need\b"
            r"|(?:不要|不能|不准|别再|请勿|而不是)"
        ),
    ),
    "duty": (
        1.4,
        (
            r"\b(?:every|each|all)\b[^.!?]{1,40}\bneeds?\b"
            r"|\b(?:must|should|shall|has to|have to|needs? to|ought to|required?|stays?|remains?"
            r"|make sure|ensure|be sure|(?:is|are)(?: not|n['’]t)? allowed|insists?|forbidden"
            r"|counts? as|means?|becomes?|goes?(?! (?:so|too) far)|wins?|appl(?:y|ies))\b"
            r"|(?:必须|应该|改用|优先使用)"
        ),
    ),
    "bound": (
        1.4,
        (
            r"\b(?:only|exactly|at (?:most|least)|no more than|up to|within|except|unless|both"
            r"|neither|either|all of|none of|the rest|inclusive|exclusive|strictly|each|every)\b"
        ),
    ),
    "order": (
        1.0,
        (
            r"\b(?:first|then|last|before|after|ascending|descending|newest|oldest|highest|lowest"
            r"|longest|shortest|tie(?:s|break\w*)?|wins|precedence|priority|order(?:ed)? by)\b"
        ),
    ),
    # How to work with the person, and what is taken to be right in general.
    "manner": (1.4, _MANNER),
    "number": (1.2, rf"(?<![\w#.])\$?\d+(?:[.,]\d+)?(?:%|\s?(?:{_UNITS}))?\b|\b(?:{_NUMERALS})\b"),
    "name": (
        0.6,
        (
            r"`[^`]+`|\b\w+_\w+\b|(?-i:\b[a-z]+[A-Z]\w+)|\b[\w/]+\.[a-z]{2,4}\b|'[^']{1,30}'"
            r"|\"[^\"]{1,30}\"|(?<!\w)--?[a-z][\w-]+"
        ),
    ),
    "decided": (
        2.0,
        (
            r"\b(?:decid\w+|agreed|settled|standardi[sz]ed|ruled"
            r"|(?:our|the) (?:policy|rule|convention|standard)(?: is)?"
            r"|let['’]?s (?!see\b|look|talk|explore|consider|return|continue|discuss|think|try|find"
            r"|check|start|begin|get|go\b|review|figure|understand|commit|push|run|test|fix|address"
            r"|work on|do (?:it|that|this|\d))\w+|let['’]?s go with"
            r"|we (?:just |only |really )?(?:use|want|prefer|never|always|only|keep|go with|agreed"
            r"|don['’]?t (?:want|need|use|do|allow|have to))"
            r"|we(?:['’]re| are) going to (?!proceed|look|talk|discuss|see\b|go\b|need|have)"
            r"|i (?:want|prefer)|i['’]d (?:rather|prefer|like)|go with|stick (?:with|to)"
            r"|just (?:use|do|make|have|drop|put|keep|follow)|(?:should|must) (?:be|live)|call it"
            r"|leave (?:it|them|that) (?:at|as)?)\b"
        ),
    ),
    "changed": (
        2.0,
        (
            r"\b(?:instead|moved to|moving to|switch(?:ed|ing)? (?:to|over)|dropped?"
            r"|changed our mind|amend\w*|supersed\w*|replac\w+|now (?:use|we|it)|used to"
            r"|revis\w+|scratch that|correction|on second thought|actually)\b"
        ),
    ),
    "imperative": (
        0.8,
        (
            r"^(?:please |and |so |but |also,? |then |ok(?:ay)?,? |just |only |still |no[,.]? "
            r"|yes[,.]? |yeah,? |yup,? )*(?:use|keep|change|show|hide|print|output|make|put|drop"
            r"|remove|add|call|name|rename|return|treat|ignore"
            r"|match|write|follow|leave|order|sort|prefer|skip|move|split|store|log|round|map|cap"
            r"|limit|pin|mask|normali[sz]e|preserve|allow|require|reject|raise|set|start|stop|record"
            r"|apply|count|include|exclude|default|fall back|switch|never|don['’]?t|do not|avoid"
            r"|you (?:should|must|need to|have to))\b"
        ),
    ),
}
# What the agent restated at the end says it best.
_RESTATED = 6.0
_PREFERENCE = regex(r"\b(?:prefer|i(?:['’]d)? (?:like|want|rather)|rather)\b", re.IGNORECASE)
_CONSTRAINTS = frozenset({"lasting", "ruled out", "bound"})
# Without one of these cues, an answer or a correction, a sentence only says how something is.
_DIRECTS = frozenset({"lasting", "ruled out", "duty", "decided", "changed", "imperative", "manner"})
_QUESTION = regex(
    r"[?？]\W*$|^(?:so |and |but |ok,? |wait,? |now |hmm,? |uh+,? )*(?:what|who|where|when(?!.*, )"
    r"|why|how|which|is|are|am|do|does|did|was|were|can|could|would|will|shall|should (?:i|we)"
    r"|have (?:you|we))\b(?!n['’]t\b)(?:[^.]|\.(?=\w)|\bvs\.)*\Z",
    re.IGNORECASE,
)
# Asks nothing: what should have been known is held against the agent.
_REPROACH = regex(
    r"\b(?:why (?:did|do) i have to|why so many|(?:don|did|have|has)n?['’]?t (?:you|we|i) (?:just"
    r"|already|read|say|tell|agree|decide)\w*|is ?n['’]?t(?: \w+){1,4} right there"
    r"|(?:does|is|do|was)n['’]?t seem (?:very|so|that|too)|how (?:often|many times)"
    r"|did i not|i (?:already )?told you|as i (?:already )?said"
    r"|you (?:keep|always) (?:forget|\w+ing)"
    r"|i thought (?:we|our|the (?:idea|plan|point|rule))"
    r"|you just (?:duplicat|copi|repeat|ignor|remov|add)\w*)\b",
    re.IGNORECASE,
)
# So does a question about what was done against a way of working.
_ACCUSES = regex(r"^\W*(?:\w+[, ]+)?(?:why|did|have|are|do)n?(?:['’]?t)?\b", re.IGNORECASE)
_REFUSES = regex(
    r"^\W*(?:no|nope|nah|not|wrong|stop|wait|uh+|dude|whoa|actually|incorrect|but)\b",
    re.IGNORECASE,
)
_CONFIRMS = regex(
    r"^\W*(?:(?P<weak>ok(?:ay)?|sure|great|good|fine|k)|yes|yup|yep|yeah|yea|right|exactly|correct"
    r"|agreed?|perfect|sounds good|that['’]?s (?:it|right|correct|fine|good"
    r"|the (?:rule|one|policy))|ship it|bake it(?: in)?|do it|go(?: ahead)?(?: with (?:it|that))?"
    r"|lgtm|confirmed?|precisely|works for me|mmmk|love it|approved?|that works|make it so|deal)\b",
    re.IGNORECASE,
)
_RESERVED = regex(r"\bbut\b|\blet['’]?s (?:talk|discuss|see|look)|\?|:\s*$|\.\.\.", re.IGNORECASE)
_CHOICE = regex(
    r"^\W*(?:(?:ok|okay|yes|yup|yep|yeah|let['’]?s|go|do|with|option|plan(?: out)?|choice"
    r"|address|fix|take|implement|items?|issues?|i (?:pick|choose|prefer|like)|number|no\.?|#)\W+)*"
    r"(?P<picks>(?:[A-D]|\d{1,3})(?:\s*(?:,|/|and|&)\s*(?:[A-D]|\d{1,3}))*)(?![\w.])(?!.*\d)",
    re.IGNORECASE,
)
_ITEM = regex(
    r"^\s*(?:[-*]\s*)?(?:\*\*)?(?:option\s+|#)?\(?(?P<name>[A-D]|\d{1,3})[.):\]]\**\s+(?P<text>.+)$",
    re.MULTILINE | re.IGNORECASE,
)
_PICKED = regex(r"[A-D]\b|\d+")
# How an agent restates what was said, proposes, and reports what it did.
_RECAP = regex(
    r"^\W*(?:settled|final(?:i[sz]ed)? (?:rule|policy|\w+ (?:rule|policy))|(?:full |final )?recap"
    r"|amended|new rule|agreed|to (?:confirm|summari[sz]e|recap)|got it|understood)\b",
    re.IGNORECASE,
)
_PROPOSAL = regex(
    r"\b(?:i['’](?:d|ll)|i (?:will|would|propose|suggest|recommend)|let['’]?s"
    r"|we (?:should|could|can|will)(?!['’]t)|should|the (?:natural|right|obvious|safest|simplest)"
    r" (?:fix|move|choice|rule)|so (?:the|we)|must)\b",
    re.IGNORECASE,
)
_REPORT = regex(
    r"^\W*(?:added|updated|created|fixed|changed|removed|moved|renamed|implemented|done|refactored"
    r"|all \w+ pass|tests? pass|summary)\b|\b(?:let me|i should|should have|now let)\b",
    re.IGNORECASE,
)
_FIXES = regex(r"\W*(?:\w+,? )?(?:address|fix|do|take|implement)\b", re.IGNORECASE)
# A choice that says nothing without the list.
_PICK = regex(r"\W*[A-D1-9]\W*", re.IGNORECASE)
# Says what it is about by pointing at it.
_POINTS = regex(r"\b(?:it|its|that|this|those|these|there|them|they|the one)\b", re.IGNORECASE)
# Goes with the sentence before it.
_DEPENDENT = regex(
    r"^(?:then|and|but|or|not(?! sure)|because|so|that|this|it|they|those|these|otherwise"
    r"|everything else|same|both|if not|which|with|the (?:latter|former))\b",
    re.IGNORECASE,
)
_REFERS = regex(rf"(?:\S+\s+){{0,5}}@?\S*{GUIDE}\W*", re.IGNORECASE)
_OFFERS = regex(
    r"\b(?:(?:should|shall) i|(?:want|like) me to|want to (?:do|tackle|start))\b", re.IGNORECASE
)
# What can be handed on as it was said: not a question, a scolding, or about what it points at.
_ORDERS = regex(
    r"\b(?:we|you|they|it|everything|everyone|nobody|\w\w+)(?: (?!i\b)\w+)? (?:should|must|shall"
    r"|need to|ha(?:s|ve) to|(?:is|are) (?:not )?to|are going to|never|always|do not|don['’]t)\b"
    r"|^(?:\w+,? )?(?:never|always|be sure|make sure|ensure|let['’]?s|do not|don['’]?t)\b",
    re.IGNORECASE,
)
_NO_WORDING = regex(
    r"[!?]|\.\.|^that\b|\b(?:this|these|those|them|there|that['’]s|they['’]re)\b", re.IGNORECASE
)
_AMENDS = regex(
    r"\b(?:amend\w*|supersed\w*|revis(?:ed|ing|ion)|chang(?:e|ed|ing) (?:our|my) minds?"
    r"|no longer|from now on|instead of the (?:old|previous|earlier)|scratch that"
    r"|(?:rule|policy|convention|agreement|decision|plan) from (?:last|the|a)"
    r"|(?:earlier|previous|old|last (?:week|month|quarter|year)['’]s?) (?:rule|decision|policy"
    r"|convention|plan|agreement)|we (?:used to|moved|switched)|turns out)\b",
    re.IGNORECASE,
)
_RULE_IN_TASK = (
    r"\b(?:from now on|preferred (?:\w+ )?(?:way|approach|pattern)|the priority is"
    r"|takes? precedence|we (?:really |just |now |also )?(?:do not|don['’]?t) want|instead want"
    r"|n['’]t what we want|but (?:here )?we (?:only |just )?(?:want|need)"
)
_LASTING_RULE = regex(
    _RULE_IN_TASK + r"|remember|keep in mind|going forward|in future|we (?:decided|agreed)"
    r"|(?:^|should |must |shall |we |you |to |please |and |or |, ?|; ?)(?:always|never))\b",
    re.IGNORECASE,
)
_OURS = regex(r"\b(?:we|me|I)\b")
_RULE_IN_LONG_TASK = regex(_RULE_IN_TASK + r")\b", re.IGNORECASE)
_FILE = regex(
    r"(?<![\w/:.])(?:[\w.-]+/)*[\w-]+\.(?:py|pyi|ipynb|js|jsx|ts|tsx|mjs|vue|svelte|go|mod|sum|rs|java"
    r"|kt|scala|rb|php|c|h|cc|cpp|hpp|cs|swift|sh|bash|md|rst|txt|toml|ya?ml|json|jsonl|cfg|ini|sql"
    r"|html|css|scss|proto|lock|xml|csv|env)\b(?![/:.]\w)"
)
_SYMBOL = regex(
    r"`([A-Za-z_][\w.]{2,60})(?:\([^`]*\))?`|\b([A-Za-z]\w*_\w+)\b|\b([a-z]+[A-Z]\w+"
    r"|[A-Z][a-z0-9]+(?:[A-Z]\w*)+)\b|\b([a-z]\w+)\(\)"
)


class Said(Struct, frozen=True):
    """A statement in a session, verbatim, said after the step *step* (-1: at the start).

    *context* is what it answers or confirms. *about* are files, symbols and words, *weight* is how
    many wordings speak for it, *confidence* how likely it is a decision; *by_agent*: the agent said
    so, and a person confirmed it. *pasted* is as in `Quotation`.
    """

    kind: LessonKind
    text: str
    step: int
    at: datetime | None
    context: str = ""
    about: tuple[str, ...] = ()
    weight: float = 0.0
    by_agent: bool = False
    confidence: float = 1.0
    pasted: str = ""


class SaidInRun(Struct, frozen=True):
    """The *statements* of a session, and its *title*: how it began, and its words."""

    statements: tuple[Said, ...]
    title: str


class _Exchange(Struct, frozen=True):
    """A turn: what a person *said* after the agent wrote *before*; they *typed* a part of it.

    *items* are those of the last list that the agent wrote, by name; *is_task*: it is the request.
    """

    before: str
    said: str
    typed: str
    step: int
    at: datetime | None
    items: Mapping[str, str] = field(default_factory=dict)
    is_task: bool = False

    def lays_down(self, text: str) -> bool:
        """Return whether *text* in a first request is a rule; most of a long one is the task."""
        if len(self.said) > _LONGEST_RULE:
            is_way = bool(ways_in(text)) and bool(_OURS.search(text))
            return is_way or bool(_RULE_IN_LONG_TASK.search(text))
        return bool(_LASTING_RULE.search(text) or ways_in(text))


def statements_in(run: RawTrajectory) -> SaidInRun:
    """Return the statements of people in *run*; each sentence once.

    Not the task, questions, pasted texts, what programs wrote, nor instructions of the moment.
    """
    exchanges, last = _exchanges(run)
    found: dict[str, Said] = {}
    for exchange in exchanges:
        pasted = _pasted(exchange.said)
        for said in _statements_of(exchange):
            found.setdefault(_normal(said.text), replace(said, pasted=pasted))
    if found and (restated := _recap(last, exchanges)):
        said = Said(LessonKind.DECISION, restated, exchanges[-1].step + 1, exchanges[-1].at)
        found.setdefault(_normal(restated), replace(said, weight=_RESTATED, by_agent=True))
    return SaidInRun(
        tuple(replace(said, about=_about(said)) for said in found.values()),
        title=_topic(run.task, exchanges, last),
    )


def _pasted(message: str) -> str:
    """Return a digest of a *message* that nobody types twice; empty for a shorter one."""
    words = " ".join(message.casefold().split())
    if len(words) <= _TYPED:
        return ""
    return blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _topic(task: str, exchanges: Sequence[_Exchange], last: str) -> str:
    """The first request, and the words that the session used most."""
    opening = " ".join(_BLOCK.sub(" ", task).split())[:_LONGEST_TITLE]
    turns = [text for one in exchanges for text in (one.before, one.typed)]
    counts = Counter(words(_BLOCK.sub(" ", "\n".join([*turns, last]))))
    for word in words(opening):
        counts.pop(word, None)
    return "\n".join(
        filter(None, [opening, " ".join(word for word, _ in counts.most_common(_TOPIC))])
    )


def is_worded_as_rule(text: str) -> bool:
    """Return whether *text* directs in words that hold without the turn in which it was said."""
    orders = _ORDERS.search(text) or "imperative" in _cues_in(text)
    return bool(orders) and not _NO_WORDING.search(text)


def amends(text: str) -> bool:
    """Whether *text* says that it changes what was decided earlier."""
    return bool(_AMENDS.search(text))


def _exchanges(run: RawTrajectory) -> tuple[list[_Exchange], str]:
    """Return what people said in *run*, and what the agent wrote after the last turn."""
    messages = Counter(step.user_message for step in run.steps if step.user_message)
    is_straight = any(_STRAIGHT.search(_BLOCK.sub(" ", text)) for text in (run.task, *messages))
    pasted = partial(_is_pasted, is_straight=is_straight)
    exchanges = [_first_exchange(run, pasted)]
    before: list[str] = []
    items = exchanges[0].items
    for step in run.steps:
        before += filter(None, [step.thought])
        said = step.user_message
        # What programs write does not come between an agent and the person who answers it.
        if said and not _PROGRAM.search(said) and _normal(_BLOCK.sub(" ", said)):
            agent = "\n\n".join(before)
            items = _items(agent) or items
            if messages[said] == 1:  # a program says the same again
                typed = _typed(agent, said, pasted)
                exchanges.append(_Exchange(agent, said, typed, step.index, step.timestamp, items))
            before = []
    return exchanges, "\n\n".join(before)


def _first_exchange(run: RawTrajectory, pasted: Callable[[str], bool]) -> _Exchange:
    """Return the request of *run*, or what a person said to go on with what it inherited."""
    inherited = run.inherited
    if inherited is None:
        typed = _typed("", run.task, pasted)
        return _Exchange("", run.task, typed, -1, run.started_at, is_task=True)
    before = inherited.before
    typed = "" if inherited.with_request else _typed(before, run.task, pasted)
    return _Exchange(before, run.task, typed, -1, run.started_at, _items(before))


def _statements_of(exchange: _Exchange) -> Iterator[Said]:
    text = exchange.typed
    if not text:
        return
    if exchange.is_task and not exchange.lays_down(text):
        return
    sentences = [*_sentences(text)]
    asked = _last_question(exchange.before)
    corrects = bool(exchange.before) and bool(_REFUSES.match(sentences[0]))
    answers = bool(asked) and not _QUESTION.search(sentences[0])
    yield from _own(exchange, sentences, asked if answers else "", corrects=corrects)
    if exchange.before and len(text) <= _LONGEST_CONFIRMATION:
        yield from _confirmed(exchange, text, asked)


def _own(
    exchange: _Exchange, sentences: Sequence[str], asked: str, *, corrects: bool
) -> Iterator[Said]:
    """The statements in a person's own *sentences*, which may answer what the agent *asked*."""
    rated = [
        _rated(sentence, answers=bool(asked) and index < 2, corrects=corrects and index < 3)
        for index, sentence in enumerate(sentences)
    ]
    start = 0
    while start < len(sentences):
        end, text = start + 1, sentences[start]
        weight, cues = rated[start]
        # A fragment and a sentence that leans on the one before it are one statement.
        while (
            end < len(sentences)
            and len(text) + len(sentences[end]) < _LONGEST_STATEMENT
            and (_is_fragment(text) or _leans(sentences[end], rated[end][0]))
        ):
            weight, cues = max(weight, rated[end][0]) + 0.3, cues | rated[end][1]
            text, end = f"{text} {sentences[end]}", end + 1
        length, is_reply = _word_count(text), bool(asked) and start < 2
        is_short = is_reply and length <= 8 and "number" in cues and not _PICK.fullmatch(text)
        least = 3 if is_reply or corrects or "lasting" in cues else 4
        is_task = exchange.is_task and not exchange.lays_down(text)
        # "Yes, delete them" lets the agent do what it offered; "same file" alone says nothing.
        is_go_ahead = is_reply and bool(_OFFERS.search(asked)) and not cues & _CONSTRAINTS
        is_go_ahead = is_go_ahead and bool(
            _CONFIRMS.match(text) or (cues.isdisjoint(_DIRECTS) and length <= 2 * _UNCLEAR)
        )
        says = (is_reply or corrects) and bool(cues or length > _UNCLEAR)
        directs = says or not cues.isdisjoint(_DIRECTS)
        directs = directs or bool(_REPROACH.search(text) or ways_in(text))
        is_about = not manner_stems().issuperset(stems(text))
        is_rule = directs and not is_go_ahead and is_about and length >= least
        confidence = _confidence(text, cues, corrects=corrects and start < 3, answers=is_reply)
        is_rule = is_rule and (
            confidence >= LEAST or (exchange.is_task and exchange.lays_down(text))
        )
        if (is_short or is_rule) and len(text) <= 2 * _LONGEST_STATEMENT and not is_task:
            is_kept = _PREFERENCE.search(text) or cues & _CONSTRAINTS
            kind = LessonKind.RULE if is_kept else LessonKind.DECISION
            is_unclear = length <= _UNCLEAR or bool(_POINTS.search(text))
            context = asked if is_reply and len(stems(asked)) >= _CLEAR else ""
            if is_unclear and (start or not context):
                context = sentences[start - 1] if start else _last_said(exchange.before)
            context = context[:_LONGEST_CONTEXT]
            said = Said(kind, text, exchange.step, exchange.at, context, weight=weight)
            yield replace(said, confidence=confidence)
        start = end


def _confirmed(exchange: _Exchange, text: str, asked: str) -> Iterator[Said]:
    """Return what the agent proposed and a person confirmed or chose with *text*."""
    choice = _CHOICE.match(text)
    picks = _PICKED.findall(choice["picks"].upper()) if choice else ()
    if choice and _FIXES.match(text) and not text[choice.end() :].strip(" .!"):
        return  # what was to be done about a finding is done
    chosen = [exchange.items[one] for one in picks if one in exchange.items]
    agreed = partial(Said, LessonKind.DECISION, step=exchange.step, at=exchange.at, by_agent=True)
    context = text[:_LONGEST_CHOICE]
    if chosen and len(text) <= _LONGEST_CHOICE:
        for item in chosen:
            confidence = _confidence(item, _cues_in(item), corrects=False, answers=True)
            if confidence >= LEAST:
                yield agreed(item, context=context, weight=2.2, confidence=confidence)
    elif (
        _is_confirmation(text)
        and not _RESERVED.search(text)
        and not (asked and len(text) > _LONGEST_CONFIRMATION // 2)
    ):
        for proposed in _proposals(exchange.before)[:2]:
            yield agreed(proposed, context=context, weight=2.2)


def _is_confirmation(text: str) -> bool:
    """Return True for a *text* that says yes and little more."""
    rest, is_weak = next(_sentences(text)), True
    while match := _CONFIRMS.match(rest):
        rest, is_weak = rest[match.end() :], is_weak and bool(match["weak"])
    if is_weak and rest == text:
        return False
    return _word_count(rest) <= (0 if is_weak else _MOST_ADDED)


def _rated(sentence: str, *, answers: bool, corrects: bool) -> tuple[float, frozenset[str]]:
    """Return how much *sentence* says if it is a statement, and the names of its cues."""
    cues = _cues_in(sentence)
    return sum(_CUES[cue][0] for cue in cues) + 1.2 * answers + 0.8 * corrects, cues


def _confidence(text: str, cues: Collection[str], *, corrects: bool, answers: bool) -> float:
    """Return how likely *text* is a decision: 0 for a question, unless it asks to agree.

    A reproach and what requires a way of working are kept, as they often are a rule's repetition.
    """
    ways = ways_in(text)
    is_reproach = bool(_REPROACH.search(text) or (ways and _ACCUSES.search(text)))
    if text.endswith(("...", ":")):
        return 0.0
    if _QUESTION.search(text) and not (asks_to_agree(text) or is_reproach):
        return 0.0
    found = signs(text, negates="ruled out" in cues, corrects=corrects, answers=answers)
    least = SURE if is_standing(text) else LEAST if ways or is_reproach else 0.0
    most = 1.0 if stands_alone(text) else math.nextafter(SURE, 0)
    return min(max(probability(found), least), most)


def _cues_in(sentence: str) -> frozenset[str]:
    return frozenset(
        name
        for name, (_, pattern) in _CUES.items()
        if compiled(pattern, re.IGNORECASE).search(sentence)
    )


def _is_fragment(text: str) -> bool:
    """Whether *text* is too short to stand alone: "Right.", "Seven."."""
    return _word_count(text) < 4 and text[-1] in ".!,;"


def _leans(sentence: str, weight: float) -> bool:
    if _REFERS.fullmatch(sentence):
        return True
    return bool(_DEPENDENT.match(sentence)) and weight > 0.5 and not _QUESTION.search(sentence)


def _typed(before: str, said: str, pasted_whole: Callable[[str], bool]) -> str:
    """Return what a person typed, without pasted or quoted text."""
    agent = _normal(before)
    message = _ANSWERS.sub("\n", _BLOCK.sub("\n", said))
    message = _QUOTED.sub(lambda match: " " if _normal(match[1]) in agent else match[0], message)
    if (
        _PROGRAM.search(said)
        or len(message) > _LONGEST_MESSAGE
        or len(_HEADING.findall(message)) > 1
    ):
        return ""
    lines, pasted = list[str](), False
    for paragraph in re.split(r"\n\s*\n", message):
        # The paragraph after "a reviewer says:" is what they say.
        is_pasted, pasted = pasted or pasted_whole(paragraph), False
        typed = _FINDING.split(paragraph, 1)[0]
        for line in [] if is_pasted else typed.split("\n"):
            normal = _normal(line)
            if not normal or _PASTED.match(line):
                continue
            if len(normal.split()) >= 5 and normal in agent:
                continue
            review = _REVIEW.search(line)
            lines.append((line[: review.start()] if review else line).strip())
            if review or _PASTE_FOLLOWS.search(line):
                pasted = True
                break
    return "\n".join(filter(None, lines)) if any(map(_normal, lines)) else ""


def _is_pasted(paragraph: str, *, is_straight: bool) -> bool:
    """Return True for a *paragraph* of another; who types straight quotes types no curly ones."""
    return bool(_COPIED.search(paragraph) or (is_straight and _CURLY.search(paragraph)))


def _last_question(before: str) -> str:
    """The question with which the agent ended, empty where it asked none."""
    questions = [
        one for one in _sentences(_BLOCK.sub("\n", before)) if one.rstrip("*_ )")[-1:] == "?"
    ]
    end = _normal(before.strip()[-600:])
    return questions[-1] if questions and _normal(questions[-1])[-40:] in end else ""


def _last_said(before: str) -> str:
    """The last sentences of the agent, as many as there is room for."""
    said = ""
    for sentence in reversed([*_sentences(_BLOCK.sub("\n", before))]):
        if len(said) + len(sentence) >= _LONGEST_SAID:
            break
        said = f"{sentence} {said}".strip()
    return said


def _proposals(before: str) -> list[str]:
    """The sentences of the agent that propose or settle something, the clearest first."""
    text = _BLOCK.sub("\n", before)
    least = 1.0 if len(text) < _LONGEST_PROPOSAL else 3.0
    rated = []
    for sentence in _sentences(text):
        if (
            _QUESTION.search(sentence)
            or _REPORT.search(sentence)
            or not 25 <= len(sentence) <= _LONGEST_AGREED
            or sentence.endswith(":")
            or "*:" in sentence[-4:]
        ):
            continue
        weight = sum(_CUES[cue][0] for cue in _cues_in(sentence))
        if (_PROPOSAL.search(sentence) and weight >= least) or (
            _RECAP.search(sentence) and weight >= 3
        ):
            rated.append((weight + 3 * bool(_RECAP.search(sentence)), sentence))
    return [sentence for _, sentence in sorted(rated, key=lambda pair: -pair[0])]


def _recap(last: str, exchanges: Sequence[_Exchange]) -> str:
    """Return the agent's restatement after the last turn of a person."""
    if len(exchanges) < 2:
        return ""
    said = {*stems(" ".join(f"{one.said}\n{one.before[-2_000:]}" for one in exchanges[1:]))}
    sentences = [*_sentences(_BLOCK.sub("\n", last))]
    for start, sentence in enumerate(sentences):
        if not _RECAP.search(sentence):
            continue
        restated: list[str] = []
        for one in sentences[start:]:
            own = {*stems(one)}
            share = len(own & said) / len(own) if own else 0.0
            if _QUESTION.search(one) or _REPORT.search(one) or share < (0.4 if restated else 0.25):
                break
            restated.append(one)
        text = " ".join(restated)[:_LONGEST_AGREED]
        if _word_count(text) >= _FEWEST_RESTATED and _cues_in(text) - {"name"}:
            return text
    return ""


def _items(before: str) -> dict[str, str]:
    """The items of the agent's list, by the names that people choose them by: "B", "12"."""
    items = {match["name"].upper(): match["text"].strip() for match in _ITEM.finditer(before)}
    return items if len(items) > 1 else {}


def _about(said: Said) -> tuple[str, ...]:
    """The files, symbols and rare words that *said* is about."""
    text = f"{said.text}\n{said.context}"
    symbols = [next(filter(None, match.groups())) for match in _SYMBOL.finditer(text)]
    named = dict.fromkeys([*files_in(text), *symbols])
    shared = {stem for name in named for stem in stems(name)}
    plain = (word for word in re.findall(r"[A-Za-z]{5,}", said.text) if stems(word))
    words = {stems(word)[0]: word.lower() for word in plain if not {*stems(word)} & shared}
    longest = sorted(words.values(), key=lambda word: (-len(word), word))[:4]
    return (*[*named][:_MOST_ABOUT], *longest)[: _MOST_ABOUT + 2]


def files_in(text: str) -> tuple[str, ...]:
    """The names and paths of files in *text*, each once."""
    return tuple(dict.fromkeys(match[0] for match in _FILE.finditer(text)))


def _sentences(text: str) -> Iterator[str]:
    for part in _SENTENCE.split(text):
        if sentence := _BULLET.sub("", " ".join(part.split())):
            yield sentence


def _word_count(text: str) -> int:
    return len(compiled(_WORD).findall(text))


def _normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
