"""Finds what people decided, corrected, required or ruled out in a recorded session.

Only what a person typed is read, and what the agent offered and the person chose. Pasted text is
known by its form; which sentences are lessons a fitted model says (`sentences`).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial

from msgspec import Struct, field

from contextgraph.knowledge.sentences import (
    LEAST,
    Place,
    is_standing_order,
    is_sure,
    is_whole,
    names_code,
    probability,
    stands_alone,
)
from contextgraph.model import About, RawTrajectory
from contextgraph.model.values import replace
from contextgraph.system.intake import loads
from contextgraph.text import digest, folded, regex, stems, words
from contextgraph.trace.answered import Answer, answers_of
from contextgraph.trace.checks import folders_in
from contextgraph.trace.ordered import ORDERING, left_alone, names_ruled_out, orders_use

# The stem of words about deciding.
_DECIDING = "decid"
# Nobody types a message of more characters twice.
_TYPED = 200
# Longer messages are plans, logs or issues that were pasted; a longer sentence is a paragraph.
_LONGEST_MESSAGE, _LONGEST_SENTENCE, _LONGEST_CHOICE = 2_400, 320, 80
_LONGEST_TITLE, _LONGEST_CONTEXT, _MOST_ABOUT, _TOPIC = 400, 300, 8, 150
# A sentence of fewer words says nothing without what it answers; one of so few may need it.
_FEWEST_WORDS, _UNCLEAR, _LONGEST_SAID = 4, 7, 200
# What is longer is proposed at most: of such sentences fewer can be understood later.
_MOST_WORDS = 45
# How much of a sentence of the agent's last words people said before it, so that it restates them.
_RESTATED, _FEWEST_RESTATED, _MOST_RESTATED = 0.45, 8, 3

# Of the answers to questions that agents ask through a tool so many are lessons. What an agent says
# of itself hardly is one: what it may do, what it recommends.
_ANSWERED, _OF_ITSELF = 0.8, regex(r"\b(?:I|me)\b")

# From so many lines of a program on a request has its output.
_OUTPUT = 4
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
_MENTION = regex(r"@[\w.~/]")
_HEADING = regex(r"^#{1,4} \S", re.MULTILINE)
_PASTED = regex(
    r"""(?:>|\s{2,}\S|\t|\||[+-]{1,3}\s*[+-]|@@|\$\ |%\ |(?:time|level|ts)=|\d{4}[-/]\d\d
    |\[?\d\d[:/]\d\d|Traceback|File\ "|at\ \w+[.(]|(?:ERROR|WARN|INFO|DEBUG)\b|[\[{]"?\S*$
    |.*\b(?:[Ee]rror|FAIL|PASS|SKIP):\ |["“]
    |\S+:\d+(?::\d+)?:\s|.*\[\d+/\d+\]\s*$|.*\bavailable\ at:\ |Line\ \d+\ -
    |[\u2100-\u2bff]|[\w.`]+\s*:?=\s*\S.*[(;)]`?\s*$
    |[^\w\s"'`(@/*_~<>$%+.,:;!?#&\[{|=^-]
    |.*\s\|\s+(?:grep|head|tail|sort|uniq|wc|cut|sed|awk|xargs|tee|jq)\b|.*>\s?/dev/null
    |https?://\S+\s*$|[~./@][\w./-]+\s*$|\S*/\S*/\S+\s*$)""",
    re.VERBOSE,
)
# A diff, whose lines begin with marks; a blank one may have lost its own.
_DIFF = regex(
    r"^(?:diff --git |@@ -\d|--- \S.*\n\+\+\+ ).*"
    r"(?:\n(?:[-+ @\\]|index |new |deleted ).*|\n(?=\n))*",
    re.MULTILINE,
)
# What follows such a line was written by another.
_PASTE_FOLLOWS = regex(
    r"(?:reviews?|comments?|says?|said|wrote|errors?|logs?|output|results?|message|prints?|shows?"
    r"|got|seeing|this|these(?: \d+)?|following)[^.!?\n]{0,40}:\s*$"
    r"|^\[Pasted text #\d+[^\]\n]*\]\s*$|^\S+ commented\b[^.!?\n]{0,40}$",
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
_QUOTED = regex(r"[\"“]([^\"”\n]{15,})[\"”]")
_CITED = regex(r"(?<=:)\s*[\"“][^\"”\n]{15,}[\"”]")
_STRAIGHT, _CURLY = regex(r"\w'\w"), regex(r"\w’\w")

_SENTENCE = regex(
    r"(?<=[.!?])(?<!\.\.\.)(?<!\b\d\.)(?<!vs\.)(?<!e\.g\.)(?<!i\.e\.)[\"')\]]*\s+|\n+"
    r"|(?<=[。！？])(?:(?<![A-Za-z0-9]。)|(?![A-Za-z0-9]))"  # between these it is a dot of a host
)
_BULLET = regex(r"^(?:[-*•]|\d+[.)]|\(\w\))\s+")
_WORD = regex(r"[\u4e00-\u9fff]{2}|[^\W\u4e00-\u9fff]+(?:['’]\w+)?")

# "2", "B and C", "option 3": what is chosen of a list, and little more.
_CHOICE = regex(
    r"^\W*(?:\w+\W+){0,3}?(?P<picks>(?:[A-D]|\d{1,2})(?:\s*(?:,|/|and|&)\s*(?:[A-D]|\d{1,2}))*)\W*$"
)
_ITEM = regex(
    r"^[^\S\n]*(?:[-*][^\S\n]*)?(?:\*\*)?(?:option\s+|#)?"
    r"\(?(?P<name>[A-D]|\d{1,3})[.):\]]\**\s+(?P<text>.+)$",
    re.MULTILINE | re.IGNORECASE,
)
_PICKED = regex(r"[A-D]\b|\d+")
_MARKED, _TYPED_WORD = regex(r"[`*]([^`*\s]+)[`*]"), regex(r"[^\s,;:.!]+")
_AMENDS = regex(
    r"\b(?:amend\w*|supersed\w*|revis(?:ed|ing|ion)|chang(?:e|ed|ing) (?:our|my) minds?"
    r"|no longer|from now on|instead of the (?:old|previous|earlier)|scratch that"
    r"|(?:rule|policy|convention|agreement|decision|plan) from (?:last|the|a)"
    r"|(?:earlier|previous|old|last (?:week|month|quarter|year)['’]s?) (?:rule|decision|policy"
    r"|convention|plan|agreement)|we (?:used to|moved|switched)|turns out)\b",
    re.IGNORECASE,
)
_FILE = regex(
    r"(?<![\w/:.])(?:[\w.-]+/)*(?:(?<!-)go\.work|[\w-]+\.(?:py|pyi|ipynb|js|jsx|ts|tsx|mjs|vue|svelte"
    r"|go|mod|sum|rs|java|kt|scala|rb|php|c|h|cc|cpp|hpp|cs|swift|sh|bash|md|rst|txt|toml|ya?ml|json"
    r"|jsonl|cfg|ini|sql|html|css|scss|proto|lock|xml|csv|env))(?:\.(?:example|sample|template|dist))?"
    r"\b(?![/:.]\w)"
)
_SLASHED = regex(r"(?<![\w./~-])[\w-][\w.-]*(?:/[\w-][\w-]*)+(?![\w/.-])")
_SYMBOL = regex(
    r"`([A-Za-z_][\w.]{2,60})(?:\([^`]*\))?`|\b([A-Za-z]\w*_\w+)\b|\b([a-z]+[A-Z]\w+"
    r"|[A-Z][a-z0-9]+(?:[A-Z]\w*)+)\b|\b([a-z]\w+)\(\)"
)


class Said(Struct, frozen=True):
    """A lesson in a session: *text*, by the exact words *quote*, after the step *step*.

    The step is -1 at the start. *context* is what the words answer, *confidence* how likely a
    reader wants it; *is_sure*: it may be shown before anybody reviewed it. *by_agent*: the agent
    said so, and a person chose it or had said it in pieces. *pasted* is as in `Quotation`.
    """

    text: str
    quote: str
    step: int
    at: datetime | None
    context: str = ""
    about: About = About()
    by_agent: bool = False
    confidence: float = 1.0
    is_sure: bool = False
    pasted: str = ""


class SaidInRun(Struct, frozen=True):
    """The *statements* of a session, and its *title*: how it began, and its words."""

    statements: tuple[Said, ...]
    title: str


class _Exchange(Struct, frozen=True):
    """A turn: what a person *said* after the agent wrote *before*; they *typed* a part of it.

    *items* are those of the last list that the agent wrote, by name; *is_task*: it is the request;
    *answers* are those to questions that the agent asked through a tool.
    """

    before: str
    said: str
    typed: str
    step: int
    at: datetime | None
    items: Mapping[str, str] = field(default_factory=dict)
    is_task: bool = False
    answers: Sequence[Answer] = ()


def statements_in(run: RawTrajectory) -> SaidInRun:
    """Return the lessons that people gave in *run*; each sentence once.

    Not pasted texts, nor what programs wrote, nor what a person took back.
    """
    exchanges, last = _exchanges(run)
    taken_back = _taken_back([one for each in exchanges for one in sentences_in(each.typed)])
    found: dict[str, Said] = {}
    for exchange in exchanges:
        pasted = _pasted(exchange.said)
        for said in (*_answered(exchange), *_own(exchange), *_chosen(exchange)):
            if said.quote not in taken_back:
                found.setdefault(_normal(said.text), replace(said, pasted=said.pasted or pasted))
    # Where an agent works, its last words report what it did.
    if not any(step.action.text for step in run.steps):
        for restated in _recaps(exchanges, last):
            found.setdefault(_normal(restated.text), restated)
    return SaidInRun(
        tuple(replace(said, about=_about(said, run)) for said in found.values()),
        title=_topic(run.task, exchanges, last),
    )


def _pasted(message: str) -> str:
    """Return a digest of a *message* that nobody types twice; empty for a shorter one."""
    return digest(folded(message)) if len(" ".join(message.split())) > _TYPED else ""


def opening_of(task: str) -> str:
    """Return the beginning of a request, without what stands in it though nobody typed it."""
    return " ".join(_BLOCK.sub(" ", task).split())[:_LONGEST_TITLE]


def _topic(task: str, exchanges: Sequence[_Exchange], last: str) -> str:
    """The first request, and the words that the session used most."""
    opening = opening_of(task)
    turns = [text for one in exchanges for text in (one.before, one.typed)]
    counts = Counter(words(_BLOCK.sub(" ", "\n".join([*turns, last]))))
    for word in words(opening):
        counts.pop(word, None)
    return "\n".join(
        filter(None, [opening, " ".join(word for word, _ in counts.most_common(_TOPIC))])
    )


def amends(text: str) -> bool:
    """Return True if *text* says that it changes an earlier decision."""
    return bool(_AMENDS.search(text))


def takes_back(later: str, earlier: str) -> bool:
    """Return whether *later* orders the use of what *earlier* rules out, or the reverse.

    Both are about the same: they name a file in common, or none, and one has all words of the
    other. Those that make *later* an order, such as "please", do not count.
    """
    pairs = ((later, earlier), (earlier, later))
    if "?" in later or not any(
        name in one and orders_use(one, name) for one, other in pairs for name in _ruled_out(other)
    ):
        return False
    files, other_files = map(set, map(files_in, pairs[0]))
    if files or other_files:
        return not files.isdisjoint(other_files)
    words, other_words = map(set, map(stems, pairs[0]))
    return words - ORDERING <= other_words or other_words <= words


@lru_cache(maxsize=1 << 12)
def _ruled_out(text: str) -> tuple[str, ...]:
    return tuple(one.name for one in names_ruled_out(text))


def _taken_back(sentences: Sequence[str]) -> set[str]:
    """Return those of *sentences* that a later one takes back; what is said again holds again."""
    last = {sentence: place for place, sentence in enumerate(sentences)}
    ruling_out = [sentence for sentence in last if _ruled_out(sentence)]
    pairs = ((one, other) for one in ruling_out for other in last if one != other)
    ordered = (sorted(pair, key=last.__getitem__) for pair in pairs)
    return {earlier for earlier, later in ordered if takes_back(later, earlier)}


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
                answers = answers_of(step)
                typed = _typed(agent, _own_words(said, answers), pasted)
                at = step.timestamp
                exchanges.append(
                    _Exchange(agent, said, typed, step.index, at, items, answers=answers)
                )
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


def sentences_of(run: RawTrajectory) -> Iterator[tuple[str, Place]]:
    """Yield the sentences that people typed in *run*, with their places."""
    for exchange in _exchanges(run)[0]:
        yield from _placed(exchange)


def _placed(exchange: _Exchange) -> Iterator[tuple[str, Place]]:
    text, before = exchange.typed, exchange.before
    sentences = [*sentences_in(text)]
    answers = bool(_last_question(before))
    for index, sentence in enumerate(sentences):
        place = Place(text, index, len(sentences), before, exchange.is_task, answers=answers)
        yield sentence, place


def _own(exchange: _Exchange) -> Iterator[Said]:
    """The sentences that a person typed in *exchange* and that are probably lessons."""
    asked = _last_question(exchange.before)
    sentences = [*sentences_in(exchange.typed)]
    for sentence, place in _placed(exchange):
        index = place.before
        is_standing = is_standing_order(sentence)
        is_kept = is_standing or any(left_alone(sentence, paths_in(sentence)))
        confidence = max(probability(sentence, place), LEAST if is_kept else 0)
        length = _word_count(sentence)
        said = Said(sentence, sentence, exchange.step, exchange.at)
        if index == 0 and (joined := _joined(asked, sentence, confidence)):
            yield replace(said, text=joined, context=asked, confidence=max(confidence, LEAST))
            continue
        if confidence < LEAST or len(sentence) > _LONGEST_SENTENCE or not is_whole(sentence):
            continue
        is_long = is_standing or length > _UNCLEAR
        sure = is_long and length <= _MOST_WORDS and is_sure(sentence, confidence)
        if length >= _FEWEST_WORDS or is_standing:
            before = sentences[index - 1] if index else asked or _last_said(exchange.before)
            context = before[:_LONGEST_CONTEXT] if length <= _UNCLEAR else ""
            yield replace(said, context=context, confidence=confidence, is_sure=sure)


def _answered(exchange: _Exchange) -> Iterator[Said]:
    """The questions of an agent with the answers that a person chose or wrote in a few words."""
    for one in filter(_is_clear, exchange.answers):
        asked = _asked(one)
        text = f"{asked} {one.meant}"
        is_clear = _word_count(asked) >= _UNCLEAR and stands_alone(asked) and names_code(text)
        yield Said(
            text,
            one.words,
            exchange.step,
            exchange.at,
            confidence=_ANSWERED,
            is_sure=is_clear and not _OF_ITSELF.search(text),
            pasted=digest(folded(text)),  # no agent asks in the same words twice
        )


def _asked(answer: Answer) -> str:
    """Return the question of *answer*; of a long one what asks, unless that is short."""
    question = answer.question
    if len(question) + len(answer.meant) < _LONGEST_SENTENCE:
        return question
    asking = " ".join(one for one in sentences_in(question) if one.endswith("?"))
    return asking if _word_count(asking) > _UNCLEAR else question


def _is_clear(answer: Answer) -> bool:
    """Return whether the question of *answer* and its words make one sentence that decides.

    Words about the deciding, such as when or by whom, leave it open.
    """
    is_short = answer.is_offered or len(answer.words) <= _LONGEST_CHOICE
    if _DECIDING in stems(answer.meant):
        return False
    fits = len(_asked(answer)) + len(answer.meant) < _LONGEST_SENTENCE
    return is_short and fits and "?" not in answer.words


def _joined(asked: str, answer: str, confidence: float) -> str:
    """Return the question *asked*, which gives a short *answer* its content, and that; or empty.

    An answer repeats a part of the question to choose it; one word is repeated to have it done.
    """
    length = _word_count(answer)
    is_clear = length < _FEWEST_WORDS and confidence >= LEAST
    chooses = length <= _UNCLEAR and len({*stems(asked)} & {*stems(answer)}) > 1
    return f"{asked} {answer}" if asked and "?" not in answer and (is_clear or chooses) else ""


def _chosen(exchange: _Exchange) -> Iterator[Said]:
    """The agent's sentences that a person chose in a few words: by name, or by a marked word.

    Where the agent did not ask, other words say what to do with an item: a finding is to be fixed.
    """
    text = exchange.typed
    if "?" in text or len(text) > _LONGEST_CHOICE:
        return
    choice = _CHOICE.match(text)
    picks = _PICKED.findall(choice["picks"]) if choice else []
    if not (_last_question(exchange.before) or (picks and choice and choice["picks"] == text)):
        return
    chosen = [exchange.items[name] for name in picks if name in exchange.items]
    if not chosen and _word_count(text) <= _FEWEST_WORDS:
        chosen = _marked(exchange.before, text)
    for item in chosen:
        confidence = probability(item, Place(item, agent=exchange.before))
        if confidence >= LEAST and is_whole(item):
            said = Said(item, text, exchange.step, exchange.at, context=text)
            yield replace(said, by_agent=True, confidence=confidence)


def _marked(before: str, answer: str) -> list[str]:
    """The sentences of the agent in which a word of *answer* is marked, as `p` is."""
    typed = {*_TYPED_WORD.findall(answer.casefold())}
    return [
        sentence
        for sentence in sentences_in(_BLOCK.sub("\n", before))
        if typed & {*(mark.casefold() for mark in _MARKED.findall(sentence))}
    ]


def _typed(before: str, said: str, pasted_whole: Callable[[str], bool]) -> str:
    """Return what a person typed, without pasted or quoted text."""
    agent = _normal(before)
    message = _CITED.sub(" …", _DIFF.sub("\n", _BLOCK.sub("\n", said)))
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
        is_pasted, pasted = pasted or pasted_whole(paragraph) or _is_json(paragraph), False
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


def without_output(request: str) -> str:
    """Return *request* without the lines of a program that were pasted into it.

    A plan stays whole, as does a request that has nothing else. So do mentions of files,
    `@lib/a.py`.
    """
    lines = [line for line in request.split("\n") if line.strip()]
    typed = [
        line for line in lines if _MENTION.match(line.strip()) or not _PASTED.match(line.strip())
    ]
    is_pasted = len(lines) - len(typed) >= _OUTPUT and len(_HEADING.findall(request)) <= 1
    return "\n".join(typed) if is_pasted and any(map(_normal, typed)) else request


def _own_words(said: str, answers: Sequence[Answer]) -> str:
    """*said* without the options that a person chose, and what has its content from a question."""
    if not answers:
        return said
    written = [one.words for one in answers if not (one.is_offered or _is_clear(one))]
    return "\n".join((*written, said.partition("\n\n")[2]))


def _is_pasted(paragraph: str, *, is_straight: bool) -> bool:
    """Return True for a *paragraph* of another; who types straight quotes types no curly ones."""
    return bool(_COPIED.search(paragraph) or (is_straight and _CURLY.search(paragraph)))


def _is_json(paragraph: str) -> bool:
    """Return whether *paragraph* is an object or a list of a program."""
    if not paragraph.lstrip().startswith(("{", "[")):
        return False
    try:
        return isinstance(loads(paragraph), dict | list)
    except ValueError:
        return False


def _last_question(before: str) -> str:
    """The question with which the agent ended, empty where it asked none."""
    questions = [
        one for one in sentences_in(_BLOCK.sub("\n", before)) if one.rstrip("*_ )")[-1:] == "?"
    ]
    end = _normal(before.strip()[-600:])
    return questions[-1] if questions and _normal(questions[-1])[-40:] in end else ""


def _last_said(before: str) -> str:
    """The last sentences of the agent, as many as there is room for."""
    said = ""
    for sentence in reversed([*sentences_in(_BLOCK.sub("\n", before))]):
        if len(said) + len(sentence) >= _LONGEST_SAID:
            break
        said = f"{sentence} {said}".strip()
    return said


def _recaps(exchanges: Sequence[_Exchange], last: str) -> Iterator[Said]:
    """The sentences of the agent that say again what people said, where nobody objected.

    They stand at the end, or before a few words that ask nothing.
    """
    for number, exchange in enumerate(exchanges[1:], start=1):
        if exchange.typed and "?" not in exchange.typed and len(exchange.typed) <= _LONGEST_CHOICE:
            yield from _restated(exchange.before, exchanges[:number], exchange.step, exchange.at)
    if len(exchanges) > 1:
        end = exchanges[-1]
        yield from _restated(last, exchanges, end.step + 1, end.at)


def _restated(
    agent: str, exchanges: Sequence[_Exchange], step: int, at: datetime | None
) -> list[Said]:
    said = {*stems(" ".join(f"{one.before} {one.typed}" for one in exchanges))}
    found: list[Said] = []
    for sentence in sentences_in(_BLOCK.sub("\n", agent)):
        own = {*stems(sentence)}
        if _word_count(sentence) < _FEWEST_RESTATED or len(own & said) < _RESTATED * len(own):
            continue
        confidence = probability(sentence, Place(sentence))
        if confidence >= LEAST and is_whole(sentence):
            said_so = Said(sentence, sentence, step, at, by_agent=True, confidence=confidence)
            is_settled = is_sure(sentence, confidence) and not _OF_ITSELF.search(sentence)
            found.append(replace(said_so, is_sure=is_settled))
    return sorted(found, key=lambda one: -one.confidence)[:_MOST_RESTATED]


def _items(before: str) -> dict[str, str]:
    """The items of the agent's list, by the names that people choose them by: "B", "12"."""
    items = {match["name"].upper(): match["text"].strip() for match in _ITEM.finditer(before)}
    return items if len(items) > 1 else {}


def _about(said: Said, run: RawTrajectory) -> About:
    """The paths and symbols that *said* names; what it answers may be about others.

    "and/or" looks like a folder: without a slash at its end one is known by the actions of *run*.
    """
    symbols = [next(filter(None, match.groups())) for match in _SYMBOL.finditer(said.text)]
    folders = [one for one in _SLASHED.findall(said.text) if _is_folder_of(one, run)]
    paths = tuple(dict.fromkeys((*paths_in(said.text), *folders)))
    named = tuple(name for name in dict.fromkeys(symbols) if name not in paths)
    return About(paths[:_MOST_ABOUT], named[:_MOST_ABOUT])


def _is_folder_of(path: str, run: RawTrajectory) -> bool:
    """Return whether an action of *run* names something in the folder *path*."""
    return any(f"{path}/" in f"{step.action.text} {step.action.arguments}" for step in run.steps)


def paths_in(text: str) -> tuple[str, ...]:
    """Return the files in *text*, and the folders that it writes with a slash at their end."""
    return (*files_in(text), *folders_in(text))


def files_in(text: str) -> tuple[str, ...]:
    """Return the names and paths of files in *text*, each once."""
    return tuple(dict.fromkeys(match[0] for match in _FILE.finditer(text)))


def sentences_in(text: str) -> Iterator[str]:
    """Yield the sentences of *text*, also where only a line ends."""
    for part in _SENTENCE.split(text):
        if sentence := _BULLET.sub("", " ".join(part.split())):
            yield sentence


def _word_count(text: str) -> int:
    return len(_WORD.findall(text))


def _normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
