"""Rates whether what a person said to an agent is a decision, or ends with the step it is about.

"Keep the old flag" outlives the turn in which it is said; "fix it and run the tests again" does
not. What sets them apart are signs of any sentence: whether a state or an act is asked for, whether
it is about a thing or about those who talk, how something is to be or what just happened, and
whether it points at what is on the screen.
"""

import re
from collections.abc import Mapping
from functools import cache

from contextgraph.fitted import fitted
from contextgraph.knowledge.ways import ways_in
from contextgraph.text import regex, stems

# From the first on it is kept; from the second on it is handed to agents without being confirmed.
LEAST, SURE = 0.05, 0.4
_MOST_WORDS = 40

# What stands before the verb of an order: "ok, let's", "no man, you should", "I want to".
_LEAD = (
    r"^\W*(?:(?:please|now|then|and|so|just|also|ok(?:ay)?|k|yes|yup|yeah|no|nope|man|dude|actually"
    r"|nice|great|good|very good|excellent|finally|again|but|well|right|instead|next"
    r"|after(?:wards| that)?)\b[\s,.!;:–—-]*)*"
    r"(?:let['’]?s\s+(?:just |also |now |go ahead and )*"
    r"|you (?:should|need to|must|can|may need to)\s+"
    r"|(?:can|could) you\s+(?:possibly |please |just )*"
    r"|i(?:['’]d| would)? (?:(?:want|need|like) (?:you )?to|rather)\s+(?:first )?|go ahead and\s+"
    r"|(?:so )?we (?:just |still |also )*(?:need to|should|can|have to|will)\s+"
    r"|(?:(?:make|be) sure|ensure) (?:that |to )?(?:you |we )?|feel free to\s+"
    r"|remember to\s+|try to\s+"
    r"|one at a time, )?"
)
# Not "it seems", "it was decided", "as it is": that points at nothing.
_IT = r"(?<!as )it(?!['’]?s? (?:seems|looks like|(?:is|was) (?:decided|agreed|better|best|fine)))"
_SIGNS: Mapping[str, str] = {
    # What is asked for: a single act, or how something is to be.
    "act": (
        rf"{_LEAD}(?:run|re-?run|test|try|check|look|read|re-?read|review|see|show|tell|explain"
        r"|describe|give|find|figure|investigate|analy[sz]e|debug|examine|compare|confirm|verify"
        r"|commit|push|pull|merge|open|start|begin|continue|proceed|go|do|finish|complete|plan"
        r"|discuss|fix|address|resolve|revert|undo|redo|restore|re-?generate|install|fetch|revisit"
        r"|focus|summari[sz]e|audit|ask|wait|reproduce|think|justify|work|clean|organi[sz]e|get"
        r"|take a|update|let me|implement|create|write|generate|build|add|design|set up|refactor"
        r"|put (?:a|an)|include|modify|improve|redesign|adjust|prepare|document"
        r"|make (?:a|an|the|some|more|your|another))\b"
    ),
    "state": (
        rf"{_LEAD}(?:use|keep|call|name|hide|treat|drop|remove|delete|rename|move|change|replace"
        r"|switch|default|prefer|allow|skip|leave|return|follow|stick|go with|have|stop|avoid|merge"
        r"|ignore|only|always|never|preserve|store|match|raise|order|limit|round|save|show|print"
        r"|require|reject|count|apply|fall ?back|don['’]?t|do not|make it|put)\b"
        r"(?! (?:it|this|that|these|those|them|both|all of"
        r"|the (?:first|second|third|last|other|next|previous|left|right))\b)"
    ),
    "wanted": (
        r"\b(?:we|i) (?:just |only |also |really |definitely |still )*(?:want|prefer|need(?! to)"
        r"|(?:don['’]?t|do not) (?:want|need|use|do)|use|keep|always|never|only|accept|support)\b"
        r"|^\W*(?:just )?(?:don['’]?t|do not) (?:want|need)\b"
        r"|\b(?:is|are) (?:not )?(?:the )?(?:goal|preferred)"
    ),
    "duty": (
        r"(?<!you )\b(?:should|must(?! have\b)|shall|has to|have to|needs? to|ought to"
        r"|can(?:not|['’]t)|may not|stays?|remains?|never|always|only)\b"
    ),
    "fact": (
        r"^(?:[\w@/`'\".*-]+\s+){1,6}(?:is|are|means|stays?|goes|gets?|wins|has|have|comes?|appl\w+"
        r"|takes?|uses?|supports?|belongs?|will|can)\b"
    ),
    "general": (
        r"\b(?:always|never|from (?:now|here|today|this point) on|in (?:the )?future|going forward"
        r"|every time|each time|by default|at all times|deliberate(?:ly)?|on purpose"
        r"|intentional(?:ly)?|keep in mind|no longer|any ?more|rule|policy|convention|decided"
        r"|agreed|settled|standardi[sz]ed|any|every|each|all|only|none|everything|anything|whatever"
        r"|in general|at all|both|either|neither|unless|except|exactly|at (?:least|most)|regardless"
        r"|first|then|last|before|after|ascending|descending|newest|oldest|highest|lowest|longest"
        r"|shortest|tie(?:s|break\w*)?|wins|precedence|priority|order(?:ed)? by)\b"
    ),
    "chosen": (
        r"\b(?:instead(?: of)?|rather than|not just|as opposed to|over|in place of|no longer"
        r"|used to)\b|,\s+not\b|->|→"
    ),
    # What it is about, if not a thing that it names.
    "speaker": (
        r"(?-i:\bI\b|\b[Mm]e\b)(?! (?:(?:don['’]?t|do not|just|only|also|really|would|['’]d) )*"
        r"(?:want|prefer|need|expect|decided|said|suggested|told|asked|like)\b)(?!['’]d)|\bmy\b"
    ),
    "agent": r"\byou(?:r|['’](?:re|ve|ll|d))?\b",
    "points": rf"\b(?:this|that|these|those|{_IT}|them|they)\b",
    "points first": (
        r"^\W*(?:(?:and|so|but|also|no|yes|yeah|ok(?:ay)?|what|well|now|instead|then|if|just|again"
        r"|right|maybe|exactly|anything|nothing|one|both)\b[\s,.!?;:–—-]*)*"
        rf"(?:{_IT}|this|that|these|those|they|them|there|he|she|here)(?:['’]\w+)?\b"
        r"(?! (?:way|time))"
        rf"|{_LEAD}[a-z]+ (?:it|this|that|these|those|them)\b"
    ),
    "item": (
        r"#\d|\b\d+(?:[,/] ?\d+)+|\bfor \d+\W*$|^\d{1,2}\b(?!\s*(?:%|x\b))"
        # Not the article: "A batch holds 640 rows".
        r"|(?-i:^(?:[B-D]\b|A\b(?=\W*$|[).:,])))|^[a-d]\)"
        r"|\(recommended\)"
        r"|\b(?:item|issue|line|phase|step|option|improvement|observation|comment|finding|point|task"
        r"|question|problem|part|section|frame|page|prompt)s? #?\d|^option [a-d\d]"
        r"|\bthe (?:first|second|third|last|other|next|previous|left|right)"
        r" (?:one|option|item|way)\b"
    ),
    # How it is said: of now or of what was, with doubt, as an answer to what was seen.
    "now": (
        r"\b(?:now|again|yet|currently|so far|already|today|next|at this point|for now|this time"
        r"|first pass|one at a time|here|still)\b"
    ),
    "past": (
        r"\b(?:was|were|did|ran|got|went|saw|didn['’]t|wasn['’]t|weren['’]t|had|been|tried|tested"
        r"|noticed|thought|happened|caught|stood)\b"
        r"|(?:\b(?:am|are|is|be)|['’](?:m|re|s)) (?!going to (?!proceed|look|go))(?:\w+ )?\w+ing\b"
    ),
    "fault": (
        r"\b(?:error\w*|fail(?:s|ed|ing|ure)?|bug\w*|broken|crash\w*|issue|problem|wrong|weird|bad"
        r"|stopped working|doesn['’]t work|invisible|not (?:visible|working|right)|worse"
        r"|too (?:big|small|slow|close|much|many)|does n['o’]t)\b"
    ),
    "doubt": (
        r"\b(?:maybe|perhaps|probably|might|could|would|seems?|think|guess|wonder|hmm|not sure"
        r"|must have (?:been )?\w+|presumably|suspect|feels?|looks? like|worth|hope|curious"
        r"|sometimes|potentially|likely)\b"
    ),
    "reaction": (
        r"^\W*(?:nice|great|good|awesome|perfect|cool|aha|ah|exactly|totally|okay|ok|gotcha|got it"
        r"|fair|makes sense|right|sorry|hmm+|uh+|wow|whoa|dude|what|really|definitely|always good"
        r"|well|potentially|anticipat\w+)\b"
    ),
    "cut": (
        r"(?-i:^[a-z]\b)|^(?:i\.e\.|e\.g\.|etc|namely|including|such as|for (?:example|instance)"
        r"|like\b|because|\W*-{2,}|\)|[a-z]\. |(?:then|or|which|with|even|not)\b)|(?:[:,]|\.\.\.)\Z"
    ),
}
# How people say that something is to be so; what it is about are the other words.
_MANNER_WORDS = (
    "ahead want need please okay just make sure use should seem yes no man dude like get go "
    "thing put also well still really actually let must have has do did doing done isn aren wasn "
    "didn "
    "doesn don why how what which all any some more so too very only not now then than rather "
    "instead one two first sorry hey hmm yeah yup fine good better way change add remove keep "
    "see look take give call sense right wrong anyway here there up out new same other latter "
    "former next per preferred approach convention thought idea point never always and but the are "
    "you your that whole"
)
# Says itself that it is a rule.
_STANDING = regex(
    r"\b(?:from (?:now|here|today|this point) on(?:wards?)?|going forward|as a rule|by default"
    r"|at all times)\b",
    re.IGNORECASE,
)
# What it points at, if nothing was named before; what begins in the middle of something.
_POINTER = regex(rf"\b(?:this|that|these|those|{_IT}|its|them|they)\b", re.IGNORECASE)
_CONTINUES = regex(
    r"\W*(?:instead(?! of)|rather(?! than)|otherwise|again|same|both|either|neither|namely"
    r"|including|in (?:this|that) case)\b",
    re.IGNORECASE,
)
_PATTERNS = {name: regex(wording, re.IGNORECASE) for name, wording in _SIGNS.items()}
_ASKS = regex(r"\?")
_ASKS_TO_AGREE = regex(
    r",\s*(?:no|yes|yeah|yea|right|ok(?:ay)?|correct|huh|wth|remember)\s*\?\W*$", re.IGNORECASE
)
# One of these says that something is to be so, or asks for it.
_SAYS = ("act", "state", "wanted", "duty", "fact", "general", "chosen", "negated")


@cache
def manner_stems() -> frozenset[str]:
    """The stems with which people say that something is to be so, whatever it is about."""
    return frozenset(stems(_MANNER_WORDS))


def asks_to_agree(text: str) -> bool:
    """Return whether *text* puts a decision as a question: "we keep both, right?"."""
    return bool(_ASKS_TO_AGREE.search(text))


def is_standing(text: str) -> bool:
    """Return whether *text* says of itself that it holds from now on."""
    return bool(_STANDING.search(text))


def stands_alone(text: str) -> bool:
    """Return whether *text* can be understood without what was said before it.

    It names something before it points at it, closes its brackets and quotes, does not begin in the
    middle, and is about no number of a list.
    """
    pointer = _POINTER.search(text)
    names_nothing = pointer and manner_stems().issuperset(stems(text[: pointer.start()]))
    is_cut = _is_open(text) or _CONTINUES.match(text) or _PATTERNS["item"].search(text)
    return not (names_nothing or is_cut)


def _is_open(text: str) -> bool:
    """Return whether a bracket or a quote of *text* has no second half."""
    return text.count("(") != text.count(")") or any(text.count(mark) % 2 for mark in '"`')


def signs(
    text: str, *, negates: bool = False, corrects: bool = False, answers: bool = False
) -> dict[str, float]:
    """Return what speaks for or against *text*, by name; most are 0 or 1.

    It *negates* if it rules something out, *corrects* the agent, or *answers* a question of it.
    """
    count = len(text.split())
    found = {name: float(bool(pattern.search(text))) for name, pattern in _PATTERNS.items()}
    found["cut"] = max(found["cut"], float(_is_open(text)))
    found["negated"] = float(negates)
    is_tagged = asks_to_agree(text)  # it hedges out of politeness
    found["doubt"] *= not is_tagged
    found |= {
        "words": min(count, _MOST_WORDS) / 20,
        "says nothing": float(not (any(found[name] for name in _SAYS) or ways_in(text))),
        "asks": float(bool(_ASKS.search(text)) and not is_tagged),
        "corrects": float(corrects),
        "answers": float(answers),
    }
    return found


def probability(found: Mapping[str, float]) -> float:
    """Return how likely it is that a sentence with these signs is a decision."""
    return fitted("decisions").probability(
        {**dict.fromkeys(fitted("decisions").weights, 0.0), **found}
    )
