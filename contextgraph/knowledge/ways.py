"""Ways of working that people require of coding agents, whatever the project is.

"Keep it DRY" and "why is this code here twice?" give one rule in words that share nothing. What
people have to say again is often of a few kinds, each of which can be known by its wordings.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from contextgraph.text import compiled

# One to five words further in the same sentence.
_ON = r"(?:[^\w.!?]+[\w'’]+){0,4}?[^\w.!?]+"
_NO = (
    r"\b(?:no|not|never|\w+n['’]t|dont|stop|quit|avoid|without|no more"
    r"|why (?:did|do|are|have|would) you|why (?:is|are) there|who (?:told|asked) you to)\b"
)
_NO_ON = rf"{_NO}(?:{_ON}|\s+)"
_CHANGE = (
    r"(?:cod(?:e|ing)|implement\w*|edit\w*|chang(?:e|es|ing)|modify\w*|writ(?:e|ing)|touch\w*"
    r"|fix\w*|do(?:ing)? any\w*|start\w*|proceed\w*)\b"
)
_CODE = r"(?:code|logic|functions?|helpers?|methods?|class(?:es)?|implementations?)\b"
_PATH = r"@?[\w./-]*\w\.[a-z]{1,4}\b"
_TESTS = r"(?:tests?|test suite)\b"
_CHECKS = r"\b(?:lint\w*|format(?:ter)?|type ?check\w*)\b"
# Who only refers to the instructions gives the rule in another sentence.
GUIDE = r"\b(?:CLAUDE|AGENTS|GEMINI|CONTRIBUTING|copilot-instructions)\.md\b"
_ANSWER = r"\b(?:answers?|replies|summar\w+|responses?|explanations?)\b"
_WAYS: Mapping[str, Sequence[str]] = {
    "ask before you decide": (
        r"\b(?:ask|check with|consult|discuss(?: it| this| that)? with) me\b(?! (?:any|your)\b)",
        r"\balways ask\b.{0,20}\bquestions\b|\bquestions (?:first|before)\b",
        r"\bwithout asking\b|\brun (?:it|that|this) by me\b",
        rf"{_NO_ON}(?:decide\b|decisions?\b|(?:pick|choose)\b.{{0,40}}\b(?:yourself|own)\b)",
        r"\bi (?:decide|ma[dk]e\b.{0,20}\bdecisions)\b",
    ),
    "version control is mine": (
        rf"{_NO_ON}(?:(?:git )?(?:commit(?!s? message)(?:ting)?|push(?:ing)?)\b(?! on\b))",
        rf"{_NO_ON}(?:use|run|touch|using|running) git\b",
        (
            r"\bi(?:['’]ll| will)?(?: always)?(?: do| run| handle| manage) (?:all )?(?:the |my )?"
            r"(?:git|commits?|committing)\b"
        ),
        r"\bi(?:['’]ll| will)? (?:commit|push)(?: \w+)? (?:myself|on my own)\b",
        r"\b(?:git|version control|commit(?:s|ting)) to me\b",
    ),
    "plan before you change": (
        rf"{_NO}{_ON}{_CHANGE}[^.!?]*\b(?:yet|until|while|before|first)\b",
        r"\bplan first\b|\bfirst\b.{0,20}\bplan\b|\bwait for (?:my|me)\b",
        r"\bbefore (?:doing|changing|touching) anything\b",
    ),
    "no duplication": (
        rf"(?-i:\bDRY\b)|\bduplicat\w*\b.{{0,40}}\b{_CODE}",
        rf"\b{_CODE}.{{0,40}}\b(?:is|are|got|been) duplicated\b",
        rf"\byou (?:just |have )?duplicat\w*|{_NO}{_ON}(?:duplicate|duplication)\W*$",
        rf"\bcopy[ -/]+(?:and[ -])?past\w*|\bcopied\b.{{0,20}}\b{_CODE}",
        rf"\brepeat\w*\b.{{0,25}}\b(?:{_CODE}|yourself\b)",
        rf"\bsame {_CODE}.{{0,30}}\b(?:again|both|over|places?)\b",
        r"\b(?:code|logic)\b.{0,25}\b(?:twice|(?:two|three|\d) times)\b",
    ),
    "reuse what exists": (
        r"\bre-?us(?:e|ing)\b.{0,30}\b(?:exist\w*|already|we have)\b|\breinvent\w*",
        (
            rf"\b(?:have|had|exists?|there['’]?s|there is)\b.{{0,12}}\b{_CODE}.{{0,12}}"
            r"\b(?:already|before|somewhere)\b"
        ),
        rf"\balready (?:have|had|exists?)\b.{{0,20}}\b{_CODE}",
    ),
    "do it as elsewhere": (
        r"\bfollow(?:ing)? the (?:existing |same |usual )?(?:patterns?|conventions?|style)\b",
        (
            r"\b(?:how|where|like|the way|as) (?:we|the other\w*)(?: \w+)?"
            r" (?:do|does|did|handles?|have|has|use)\b"
            r".{0,40}\b(?:others?|everywhere|elsewhere|similar|already)\b"
        ),
    ),
    "change only what was asked": (
        rf"\b(?:only|just) {_CHANGE}.{{0,12}}\bwhat\b.{{0,12}}\b(?:ask|said|told|want)",
        rf"\b{_CHANGE}.{{0,40}}\bnothing else\b|\bscope creep\b",
        r"\bunrelated (?:chang|edit|fil|cod|refactor|thing)\w*",
        rf"{_NO}{_ON}ask(?:ed)? (?:you )?(?:for|to)\b",
        r"\bleave (?:the )?(?:rest|others?(?: \w+)?|everything else)\b.{0,8}\balone\b",
        rf"{_NO}{_ON}(?:touch|modify|change|refactor)\w*\b.{{0,20}}\b(?:else|other)\b",
    ),
    "few files": (
        (
            rf"{_NO_ON}(?:(?:new|another|separate|extra|more|additional)(?: \w+){{0,2}}|its own"
            r"|their own) (?:files?|modules?|scripts?)\b"
        ),
        r"\btoo many files\b|\bfile sprawl\b",
        r"\bwhy (?:another|a new|a separate)(?: [\w.]+)? (?:file|module|script)\b",
        rf"\bwhy (?:do|did|have) (?:we|you) (?:have|need|create|make|add)\w* (?:an? )?{_PATH}",
        rf"{_NO} (?:want|need|create|add|make) (?:an? |another |the )?{_PATH} file\b",
        rf"{_NO}{_ON}(?:add|create|make|need)\b.{{0,10}}\b(?:file|module) (?:just )?for\b",
    ),
    "few comments": (
        (
            r"(?:\bno|\bstop|\bwithout|n['’]t (?:need|want|add|write|put|leave)|remov\w+|delet\w+"
            rf"|unnecessary|obvious|useless|needless|too many){_ON}comments?\b(?! (?:on|from|by)\b)"
        ),
        r"\bcomments? (?:that|which) (?:say|state|explain|repeat|describe)",
        r"\bcomments? (?:should|must) (?:only )?explain",
    ),
    "run the tests": (
        rf"\brun{_ON}{_TESTS}[^.!?]{{0,15}}\b(?:before|after|every|always|when)\b",
        rf"\b(?:always|never|every time|each time|before)\b[^.!?]{{0,40}}\brun\w*{_ON}{_TESTS}",
        r"\brun (?:all|the (?:whole|full|entire)) (?:of the )?tests?\b",
        rf"\bdid(?:n['’]t| not)? (?:you )?run{_ON}tests?\b",
    ),
    "write tests": (
        (
            r"\b(?:where (?:are|is)|missing|forgot|should have|why (?:are|is) there no)"
            r"(?: \w+){0,3} tests?\b"
        ),
        (
            r"\b(?:every|each|all|any|always|no|new)\b[^.!?]{0,30}"
            r"\b(?:needs?|must have|gets?|without)(?: \w+){0,2} tests?\b"
        ),
        r"\bneeds? (?:\w+ )?tests\b|\b(?:some|more) tests would\b",
    ),
    "run the linter": (
        rf"\b(?:always|before|after|each|every)\b[^.!?]{{0,40}}{_CHECKS}",
        rf"{_CHECKS}[^.!?]{{0,25}}\b(?:whole|entire|all|everything|before|after|every)\b",
    ),
    "be brief": (
        rf"\b(?:short|brief|concise|terse|shorter)\b.{{0,25}}{_ANSWER}",
        rf"{_ANSWER}.{{0,25}}\b(?:short|brief|concise|too long|terse|shorter)\b",
        rf"{_NO}{_ON}(?:summar(?:y|ies|i[sz]e)|long explanations?)\b",
        r"\b(?:be|keep it) (?:brief|short|concise|terse)\b|\btoo (?:verbose|wordy)\b",
    ),
    "step by step": (
        r"\b(?:one|1) (?:by|at a) (?:one|1|time)\b|\bstep by step\b|\bphase by phase\b",
        r"\b(?:stop\w*|pause|wait)\b.{0,12}\b(?:at|after|between) each\b",
        r"\b(?:be|work\w*) (?:very )?incremental\w*",
    ),
    "do not guess": (
        (
            rf"{_NO_ON}(?:guess\w*|assum(?:e|ing|ptions?)|speculat\w+|invent(?:ing)?|hallucinat\w+"
            r"|mak(?:e|ing) (?:things|stuff|it) up)\b"
        ),
    ),
    "keep it simple": (
        r"\bover-?(?:engineer|complicat)\w*|\bkeep (?:it|this|things) simple\b|\bsimplest thing\b",
        r"(?-i:\b(?:KISS|YAGNI)\b)",
    ),
    "no mocks": (rf"{_NO_ON}mock\w*\b",),
    "no new dependencies": (
        (
            rf"{_NO_ON}(?:(?:add|install)\w* )?(?:an? |any )?(?:new|extra|more|another) (?:\w+ )?"
            r"(?:dependenc\w+|librar\w+|packages?)\b"
        ),
    ),
    "no silent fallbacks": (
        rf"{_NO_ON}(?:silent )?fall ?backs?\b(?! to)",
        rf"{_NO_ON}(?:swallow|hide|suppress)\w* (?:\w+ )?(?:errors?|exceptions?)\b",
    ),
    "no emojis": (rf"{_NO_ON}emojis?\b",),
    "names in full words": (
        rf"{_NO_ON}abbreviat\w+|\b(?:full|whole|descriptive|meaningful) (?:words|names)\b",
    ),
    "no compatibility layers": (rf"{_NO_ON}(?:backwards?[ -]compat\w+|shims?\b)",),
}


@lru_cache(maxsize=1 << 12)
def ways_in(text: str) -> frozenset[str]:
    """The ways of working that *text* requires, by their names."""
    return frozenset(name for name, pattern in _patterns().items() if pattern.search(text))


@cache
def _patterns() -> Mapping[str, "re.Pattern[str]"]:
    return {name: compiled("|".join(ways), re.IGNORECASE) for name, ways in _WAYS.items()}
