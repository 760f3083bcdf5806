"""Ways of working that people require of coding agents, whatever the project is.

"Keep it DRY" and "why is this code here twice?" give one rule in words that share nothing. What
people have to say again is often of a few kinds, each of which can be known by its wordings.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from contextgraph.text import compiled, regex

# One to five words further in the same sentence.
_ON = r"(?:[^\w.!?]+[\w'’]+){0,4}?[^\w.!?]+"
_NO = (
    r"\b(?:no(?! more than\b)|not|never|\w+n['’]t|dont|stop|quit|avoid|without|no more"
    r"|why (?:did|do|are|have|would) you|why (?:is|are) there|who (?:told|asked) you to)\b"
)
_NO_ON = rf"{_NO}(?:{_ON}|\s+)"
# The end of a clause, where a verb has no object or a noun is no part of a longer one.
_END = r"\W*(?:$|[.,!?;:)\n])"
_CHANGE = (
    r"(?:cod(?:e|ing)|implement\w*|edit\w*|chang(?:e|es|ing)|modify\w*|writ(?:e|ing)|touch\w*"
    r"|fix\w*|do(?:ing)? any\w*|start\w*|proceed\w*)\b"
)
_CODE = r"(?:code|logic|functions?|helpers?|methods?|class(?:es)?|implementations?)\b"
_LOGIC = r"(?:code|logic|functions?|helpers?|methods?|implementations?)\b(?! keys?\b)"
_PATH = r"@?[\w./-]*\w\.[a-z]{1,4}\b"
_TESTS = r"(?:tests?|test suite)\b"
# Not "test data", nor any other thing that is not the tests of the code.
_WRITTEN = (
    rf"tests?\b(?={_END}|\s+(?:for|in|of|to|that|yet|here|too|with|covering|as|and|before|first"
    r"|please|would|at|on)\b)"
)
_CHECKS = (
    r"\b(?:lint\w*|formatter|type ?check\w*|format (?:the |all |your |of )*(?:code|files?|it)"
    r"|(?:run|apply) (?:the |a )?format\w*)\b"
)
_APPROVED = (
    r"\b(?:until|unless|before|while)\s+(?:\w+\s+)?(?:i|we|you|my|me|us|your|everything"
    r"|plan\w*|told"
    r"|approv\w*|ask\w*|agree\w*|review\w*|confirm\w*|discuss\w*|underst\w*|read\w*|explor\w*"
    r"|investigat\w*|finish\w*)\b"
)
# "Don't commit generated files" says what, "don't commit" that it is not for the agent to do.
_ANYTHING = (
    rf"(?={_END}|\s+(?:(?:to (?:git|github|main|master|dev\w*|remote|origin)|to (?:the"
    r"|my) (?:\w+ )?"
    r"(?:repo\w*|remote|branch|upstream)|anything|any(?: of)?|it|this|that|these|them|stuff|things"
    r"|(?:(?:the|your|my|any|all|those|these) )*(?:changes|work|code)(?! (?:that|which|to)\b)"
    r"|and|or"
    r"|nor|unless|until|yet|again|yourself|by yourself|on (?:your|my)|automatically|directly|now"
    r"|here|ever|at all|please|for (?:me|us|now|you)|so|when i|if i|before (?:i|we|my|asking)"
    r"|without (?:my|me|asking|permission|approval|being|explicit))\b(?! the (?:offset|stack)\b)))"
)
_GIT = (
    rf"git\b(?={_END}|\s+(?:commands?|here|for|yourself|at all|to|without|unless|commits?|push|in"
    r"|and|or|operations?|anything|stuff)\b)"
)
# What lies between "don't" and "a new file" where one is not to be made.
_MAKE = (
    r"(?:\W+(?:more|any|an?|the|so|many|please|just|you|to|creat\w+|add\w*|mak\w+|writ\w+|need\w*"
    r"|want\w*|introduc\w+|split\w*|into|put\w*|it|this|that|in|generat\w+|have|use|using|new))*\W+"
)
_WORK = (
    r"(?:^|[.!?,;:(]\s*|\b(?:go|work\w*|do|proceed\w*|them|it|this|these|fix\w*|implement\w*"
    r"|changes?|tasks?|steps?|files?|phases?|tests?|issues?|conflicts?|errors?|bugs?|through"
    r"|items?|todos?|explain\w*"
    r"|me|think\w*|and|us|all)\s+(?:\w+\s+)?)"
)
# Who only refers to the instructions gives the rule in another sentence.
GUIDE = r"\b(?:CLAUDE|AGENTS|GEMINI|CONTRIBUTING|copilot-instructions)\.md\b"
_ANSWER = r"\b(?:answers?|replies|summar\w+|responses?|explanations?)\b"
_WAYS: Mapping[str, Sequence[str]] = {
    "ask before you decide": (
        (
            r"\b(?:ask|check with|consult|discuss(?: it| this| that)? with) me\b(?! (?:any"
            r"|your|where)\b)"
            r"(?!\?)"
        ),
        r"\balways ask\b.{0,20}\bquestions\b|\bquestions (?:first|before)\b",
        rf"\bwithout asking\b(?={_END}|\s+(?:me|us|first|for)\b)|\brun (?:it|that|this) by me\b",
        (
            rf"{_NO_ON}(?:decide\b|decisions?\b|(?:pick|choose)\b.{{0,40}}"
            r"\b(?:yourself|your own)\b)"
        ),
        r"(?<!and )\bi (?:decide|made (?:the )?decisions|make\b.{0,20}\bdecisions)\b",
    ),
    "version control is mine": (
        rf"{_NO_ON}(?<!force )(?<!force-)(?:git )?(?:commit(?:s|ting)?|push(?:ing)?)\b{_ANYTHING}",
        rf"{_NO_ON}(?:use|run|touch|using|running) {_GIT}",
        (
            r"\bi(?:['’]ll| will)?(?: always)?(?: do| run| handle| manage) (?:all )?(?:the |my )?"
            r"(?:git|commits?|committing)\b"
        ),
        r"\bi(?:['’]ll| will)? (?:commit|push)(?: \w+)? (?:myself|on my own)\b",
        r"\b(?:git|version control|commit(?:s|ting)) to me\b",
    ),
    "plan before you change": (
        rf"{_NO}{_ON}{_CHANGE}[^.!?]*(?:\byet\b|\bfirst\b(?={_END})|{_APPROVED})",
        (
            r"\bplan first\b|\bfirst,? plan\b|\bfirst\b.{0,20}\b(?:an?|the|your)"
            r"(?: (?:implementation|detailed|short|brief|written|new|concrete))? plan\b"
        ),
        (
            r"\bwait for (?:me\b|my (?:explicit )?(?:approval|go\b|ok|feedback|review|confirm|reply"
            r"|answer|response|word|signal|instruction|input|decision|permission|comments?))"
        ),
        r"\bbefore (?:doing|changing|touching) anything\b",
    ),
    "no duplication": (
        rf"(?-i:\bDRY\b)|\bduplicat\w*(?: (?!from\b)[\w-]+){{0,4}} {_CODE}",
        rf"\b{_CODE}.{{0,40}}\b(?:is|are|got|been) duplicated\b",
        rf"\byou (?:just |have )?duplicat\w*|{_NO}{_ON}(?:duplicate|duplication)\W*$",
        (
            r"\bcopy[ -/]+(?:and[ -])?past\w*\b(?! (?:must|should|works?|does|in|from|into|to"
            r"|button)\b)"
            rf"|\bcopied\b.{{0,20}}\b{_CODE}"
        ),
        rf"\brepeat\w*(?: (?:the|this|that|same|of|all|a|lot|so|much))* (?:{_CODE}|yourself\b)",
        rf"\bsame {_LOGIC}.{{0,30}}\b(?:again|both|over|places?)\b",
        r"\b(?:code|logic)\b.{0,25}\b(?:twice|(?:two|three|\d) times)\b(?! (?:as|per|a)\b)",
    ),
    "reuse what exists": (
        r"\bre-?us(?:e|ing)\b.{0,30}\b(?:exist\w*|already|we have)\b",
        rf"\breinvent\w*.{{0,12}}\bwheels?\b|{_NO_ON}reinvent\w*",
        (
            rf"\b(?:have|had|exists?|there['’]?s|there is)\b.{{0,12}}\b{_LOGIC}.{{0,12}}"
            r"\b(?:already|before|somewhere)\b"
        ),
        rf"\balready (?:have|had|exists? an?)\b[^.,;!?]{{0,20}}\b{_CODE}",
    ),
    "do it as elsewhere": (
        (
            r"\bfollow(?:ing)? the (?:existing |same |usual )?(?:patterns?|conventions?|style)\b"
            r"(?!\s*[`*'\"]| (?:channel|in order)\b)"
        ),
        (
            r"\b(?:how|like|the way|where(?! the other \w+[^s\W] )|(?<=[\w,] )as) (?:we"
            r"|the other\w*)(?: \w+)?"
            r" (?:do|does|did|handles?|have|has|use)\b"
            r".{0,40}\b(?:others?|everywhere|elsewhere|similar|already)\b"
        ),
    ),
    "change only what was asked": (
        rf"\b(?:only|just) {_CHANGE}.{{0,12}}\bwhat\b.{{0,12}}\b(?:ask|said|told|want)",
        rf"\b{_CHANGE}.{{0,40}}\bnothing else\b(?={_END})|\bscope creep\b",
        (
            r"\bunrelated (?:chang|edit|refactor)\w*"
            r"|(?:touch|chang|edit|modif|commit)\w*\b.{0,20}\bunrelated (?:fil|cod|thing)\w*"
        ),
        rf"{_NO}{_ON}ask(?:ed)? (?:you )?(?:for|to)\b",
        r"\bleave (?:the )?(?:rest|others?(?: \w+)?|everything else)\b.{0,8}\balone\b",
        (
            rf"{_NO}{_ON}(?:touch|modify|change|refactor)\w*\b.{{0,20}}\b(?:else"
            r"|other (?:files?|code"
            r"|parts?|things?|commands?|functions?|modules?|places?|tests?|lines?|stuff"
            r"|components?|pages?"
            r"|classes|methods?))\b"
        ),
    ),
    "few files": (
        (
            rf"{_NO}{_MAKE}(?:(?:new|another|separate|extra|more|additional)(?: \w+){{0,2}}|its own"
            r"|their own) (?:files?|modules?|scripts?)\b(?! (?:is|are|will|can|may|has|have)\b)"
        ),
        r"\btoo many files\b(?! open)|\bfile sprawl\b",
        r"\bwhy (?:another|a new|a separate)(?: [\w.]+)? (?:file|module|script)\b",
        rf"\bwhy (?:do|did|have) (?:we|you) (?:have|need|create|make|add)\w* (?:an? )?{_PATH}",
        rf"{_NO} (?:want|need|create|add|make) (?:an? |another |the )?{_PATH} file\b",
        rf"{_NO}{_ON}(?:add|create|make|need)\b.{{0,10}}\b(?:file|module) (?:just )?for\b",
    ),
    "few comments": (
        (
            r"(?:\bno(?: (?:more|new|extra|inline|code|unnecessary|obvious|redundant|such))*"
            r"|(?:\bstop (?:add|writ|put|leav)\w*|\bwithout|n['’]t (?:need|want|add|write|put"
            r"|leave)"
            r"|\b(?:not|never) (?:need|want|add|write|put|leave)|\bremov(?:e|ing)|\bdelet(?:e|ing)"
            r"|unnecessary|obvious|useless|needless|too many)(?:(?:[^\w.!?]+[\w'’]+){0,5}?))"
            r"\s+comments?\b(?! (?:on|from|by|of|the|table|section|return)\b)"
        ),
        r"\bcomments? (?:that|which) (?:say|state|explain|repeat|describe)\w*\b(?! the ban)",
        r"\bcomments? (?:should|must) (?:only )?explain",
    ),
    "run the tests": (
        rf"\brun{_ON}{_TESTS}[^.!?]{{0,15}}\b(?:before|after|every|always|when)\b",
        (
            r"\b(?:always|every time|each time|before|never\b[^.!?]{0,30}\b(?:without|until|unless"
            rf"|before))\b[^.!?]{{0,40}}\brun\w*{_ON}{_TESTS}"
        ),
        r"\brun (?:all|the (?:whole|full|entire)) (?:of the )?tests?\b",
        rf"\bdid(?:n['’]t| not)? (?:you )?run{_ON}tests?\b",
    ),
    "write tests": (
        (
            r"\b(?:where (?:are|is)|missing|forgot|should have|why (?:are|is) there no)"
            rf"(?: \w+){{0,3}} {_WRITTEN}"
        ),
        (
            r"\b(?:every|each|all|any|always|no|new)\b[^.!?]{0,30}"
            rf"\b(?:needs?|must have|gets?|without)(?: \w+){{0,2}} {_WRITTEN}"
        ),
        rf"\bneeds? (?:\w+ )?tests\b(?={_END}|\s+(?:for|too|that)\b)|\b(?:some|more) tests would\b",
    ),
    "run the linter": (
        rf"\b(?:always|before|after|each|every)\b[^.!?]{{0,40}}{_CHECKS}",
        rf"{_CHECKS}[^.!?]{{0,25}}\b(?:whole|entire|all|everything|before|after|every)\b",
    ),
    "be brief": (
        (
            rf"\b(?:short|brief|concise|terse|shorter)(?:,? \w+){{0,2}} {_ANSWER}"
            r"(?! (?:fields?|from|of|is|are|mean\w*|texts?|time\w*)\b)"
        ),
        (
            rf"\b(?:your|keep|make|give|all|these|those)(?: \w+)? {_ANSWER}(?! (?:of|from"
            r"|time\w*)\b)"
            r".{0,25}\b(?:short|brief|concise|too long|terse|shorter)\b"
        ),
        (
            rf"{_NO}{_ON}(?:summar(?:y|ies|i[sz]e|i[sz]ing)\b(?={_END}|\s+(?:at|after|when"
            r"|what|your"
            r"|every\w*|files?|documents?|docs|please|unless|until|or|and)\b)|long explanations?\b)"
        ),
        r"\b(?:be|keep it) (?:brief|short|concise|terse)\b(?! of\b)|\btoo (?:verbose|wordy)\b",
    ),
    "step by step": (
        rf"{_WORK}(?:(?:one|1) (?:by|at a) (?:one|1|time)|step by step|phase by phase)\b",
        (
            r"\b(?:stop\w*|pause|wait)\b.{0,12}\b(?:at|after|between) each (?:step|phase|file|task"
            r"|change|one|part|stage|item|point|section|commit|iteration)\b"
        ),
        r"\b(?:be|work\w*) (?:very )?incremental\w*",
    ),
    "do not guess": (
        (
            rf"{_NO_ON}(?:guess(?:es|ed|work|ing(?! game))?\b|assum(?:e|ing|ptions?)"
            r"|speculat\w+|invent(?:ing)?|hallucinat\w+"
            r"|mak(?:e|ing) (?:things|stuff|it) up)\b"
        ),
    ),
    "keep it simple": (
        r"\bover-?(?:engineer|complicat)\w*|\bkeep (?:it|this|things) simple\b",
        rf"\bsimplest thing\b(?={_END}| (?:that|which|possible|you)\b)",
        r"(?-i:\b(?:KISS|YAGNI)\b)",
    ),
    "no mocks": (
        rf"{_NO_ON}mock(?:s|ed|ing)?\b(?![- ]?(?:ups?|birds?|exams?|turtle|servers?|users?)\b)",
    ),
    "no new dependencies": (
        (
            rf"{_NO_ON}(?:(?:add|install)\w* )?(?:an? |any )?(?:new|extra|more|another) (?:\w+ )?"
            r"(?:dependenc\w+|librar(?:y|ies)|packages?)\b"
            r"(?! (?:is|are|fits?|fees?|labels?|cards?|per|on|for the)\b)"
        ),
    ),
    "no silent fallbacks": (
        rf"{_NO_ON}(?:silent )?fall ?backs?\b(?! (?:to|fonts?|images?|locales?|languages?)\b)",
        (
            rf"{_NO_ON}(?:swallow|hide|suppress)\w* (?:\w+ )?(?:errors?|exceptions?)\b"
            r"(?! (?:banners?|rows?|messages?|pages?)\b)"
        ),
    ),
    "no emojis": (rf"{_NO_ON}emojis?\b(?! (?:picker|support|keyboard|button|as|per)\b)",),
    "names in full words": (
        (
            rf"{_NO_ON}abbreviat(?:e|ed|ing|ions?)\b(?={_END}|\s+(?:names?|variables?|identifiers?"
            r"|words?|in|anything|it|them|for|functions?|methods?|classes|parameters?)\b)"
        ),
        (
            r"\b(?:descriptive|meaningful) (?:words|names)\b"
            r"|\b(?:use|prefer|write|want|choose)\w* (?:\w+ )?(?:full|whole) (?:words|names)\b"
            r"|\b(?:full|whole) (?:words|names) (?:in|for) (?:names?|variables?|identifiers?"
            r"|code)\b"
        ),
    ),
    "no compatibility layers": (
        (
            rf"{_NO_ON}(?:backwards?[ -]compat(?:ibility)?|shims?)\b"
            r"(?! (?:is|are|was|were|between)\b)"
        ),
    ),
}


# "The importer must not guess" is about what the code does, not about how an agent works.
_VERB = (
    r"(?:must|should|shall|may|can|could|will|would|do|does|did|has|have|had|is|are|was|were"
    r"|(?:has|have|needs?) to)"
)
_OTHER_SUBJECT = regex(
    r"(?:^|[.!?;:,\n]\s*)(?:(?:and|but|so|if|when|because)\s+)?"
    r"(?!(?:[\w'’-]+\s+){0,4}?(?:code|tests?|functions?|methods?|class(?:es)?|names?|answers?"
    r"|you)\b)"
    r"(?:(?:the|an?|our|its|each|every|version)\s+(?:[\w'’-]+\s+){1,4}?"
    r"|(?!(?:always|unless|yes|this|perhaps|thanks|sometimes|as|is|was|has|does|its|us)\b)"
    rf"[\w-]+s\s+){_VERB}(?:n['’]t)?\s+(?:always\s+)?$"
    r"|\b(?:there\s+(?:is|are|was|were)|users|customers|clients|people)\s+$",
    re.IGNORECASE,
)
_NEGATED_VERB = regex(rf"{_VERB}n['’]t\b", re.IGNORECASE)
_SUBJECT_CHARS = 120


@lru_cache(maxsize=1 << 12)
def ways_in(text: str) -> frozenset[str]:
    """The ways of working that *text* requires, by their names."""
    return frozenset(
        name
        for name, pattern in _patterns().items()
        if any(not _is_of_another(text, match.start()) for match in pattern.finditer(text))
    )


def _is_of_another(text: str, start: int) -> bool:
    """Return whether what *text* requires from *start* on is required of something else."""
    verb = _NEGATED_VERB.match(text, start)
    before = f"{text[:start]}{verb[0]} " if verb else text[:start]
    return _OTHER_SUBJECT.search(before[-_SUBJECT_CHARS:]) is not None


@cache
def _patterns() -> Mapping[str, "re.Pattern[str]"]:
    return {name: compiled("|".join(ways), re.IGNORECASE) for name, ways in _WAYS.items()}
