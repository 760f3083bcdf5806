"""Statements about a command that an agent is to run.

"Use uv, never pip" is about `pip install`, "run the linter with `just lint`" about `eslint .`, and
"never push to main" about `git push`. What a command complies with is not said before it. Light:
hooks read it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from contextgraph.text import regex, stem, stems
from contextgraph.trace.shell import TEST_RUNNER, Command, commands_in

_TOKEN = regex(
    r"`[^`\n]+`|[.~@/]{0,8}[A-Za-z][\w+-]*(?:[./](?=\w)[\w+-]+)*(?:['’]\w+|/(?!\w))?|[,;:.!?()–—\n]"
)
_MARKS = frozenset(",;:.!?()–—\n")
# A word after one of these is what is run, or what it is run with.
_RUN = frozenset({"run", "running", "execute", "invoke"})
_WITH = frozenset({"use", "using", "with", "via", "through", "prefer", "call", "by", "do"})
# Each of these negates what follows, or reverses a negation before it: "never push without".
_REVERSING = frozenset({"avoid", "stop", "forget", "without", "than", "instead"})
_NOT = _REVERSING | frozenset(
    {"never", "not", "no", "don't", "dont", "shouldn't", "mustn't", "cannot", "can't"}
)
# "Runs" describes what something else does, but "never runs" rules out.
_RUNNING = frozenset({*map(stem, _RUN | _WITH), "start"})
# An order to use something stands after one of these, or at the beginning of a clause. "You use",
# "we use" and "still using" only describe.
_USE = frozenset({"use", "prefer"})
_ALLOWING = frozenset(
    {"", "always", "please", "just", "on", "to", "can", "may", "should", "must", "let's", "now"}
)
ORDERING = frozenset(map(stem, _USE | _ALLOWING | _NOT))
"""The stems of words that order the use of something, or forbid it."""
_FOLLOWING = 3
# A word after one of these, or at the beginning of a clause, is what is to be done.
_TELLING = frozenset(
    {"always", "just", "only", "please", "to", "i", "we", "you", "then", "and", "or", "before"}
    | {"after", "until", "must", "should", "i'll"}
)
_FILLERS = frozenset(
    {"the", "our", "a", "an", "all", "any", "full", "whole", "plain", "bare", "ever", "of", "your"}
    | {"directly", "yourself", "these", "those", "unit", "integration"}
)
# Who says so restricts also what is done as they say.
_BOUNDS = frozenset(
    {"before", "after", "unless", "until", "ask", "only", "first", "except", "when", "myself", "i"}
)
# What follows a program that is meant whatever it is to do.
_ALONE = frozenset(
    {"myself", "yourself", "instead", "here", "there", "only", "never", "now", "at"} | {"against"}
)

_FLAG = regex(r"(?<![\w-])--?[A-Za-z][\w-]*")
# Programs whose names are English words mean nothing without their subcommand.
_PLAIN = frozenset(
    "go make just find time sort test cut head tail watch touch install node less more which who "
    "date cat yes do done true false for if kill set split join file read write echo env at patch "
    "bash sh python python3 look source type screen task act black export test".split()
)
# The words after these are no subcommands.
_WITHOUT_VERBS = (_PLAIN - {"go", "make", "just", "python", "python3"}) | frozenset(
    "grep rg sed awk ls rm mv cp mkdir chmod cd wc nl curl wget printf xargs sqlite3".split()
)
# What is done to code as well as by commands: a second word has to agree.
_COMMON = frozenset(
    "add remov updat creat delet list show view check build test start stop get set instal status "
    "log diff sync edit clean open close init config new appli read write find move copi echo "
    "format search print sort run use drop".split()
)
# Who asks for all of it is content with a command that names no part.
_WHOLE = frozenset({"whole", "entire", "complete"})
_FEWEST_LETTERS = 4
# "The command is `make lint`", "when `make lint` fails".
_NAMING = frozenset({"is", "are", "when", "if"})
# After these a list goes on, or text in brackets begins or ends.
_GOES_ON = frozenset({",", "(", ")"})
# Between a negation and the name that must not be used.
_PUTTING = (
    _RUN
    | _WITH
    | frozenset(
        "add adding import importing introduce introducing write writing have depend on into in "
        "put putting rely relying create creating bring bringing".split()
    )
)
# A folder after these is where something does not belong, and may be named there.
_PLACES = frozenset({"in", "into"})
_LISTING = frozenset({",", "or", "and", "nor"})
_CHANGING = frozenset(
    {stem(word) for word in "edit touch change modify alter rewrite reformat update".split()}
)
_ENDING = frozenset({stem(word) for word in "delete remove rename move drop".split()})
_UNTOUCHED = frozenset({"alone", "untouched", "unchanged", "frozen", "read-only"})
_NAME = regex(r"[\w./()-]*[a-z\d][_./][\w./]*\w[\w./()-]*|[a-z]+[A-Z]\w+")
_CALL = regex(r"(?<![`\w.])([A-Za-z_][\w.]*)\(\)(?!`)")


class _Word(NamedTuple):
    """A *word*, or the command of a code span, with the words around it in its clause.

    *lead* is the one before it, but for fillers such as "the"; *is_direct* where there are none.
    *is_negated*: by what stands before it in its clause.
    """

    word: str
    lead: str
    following: str
    is_direct: bool
    is_negated: bool


def bears_on_command(text: str, line: str, repo: str = "") -> bool:
    """Return True where *text* says how to run, or not to run, a command of the shell *line*.

    Not where that complies, nor of the program that *repo* makes.
    """
    said = [*_words(text)]
    flags = {*_FLAG.findall(text)}
    restricts = any(one.word.casefold() in _BOUNDS for one in said)
    restricts = not flags <= {*line.split()} if flags else restricts
    return any(
        _is_ordered(said, command, restricts=restricts)
        for command in commands_in(line)
        if not command.text.startswith(("./", "/", "../"))
        and not _is_own(command.program.partition(" ")[0], repo)
    )


def is_about_form(text: str, line: str) -> bool:
    """Return True where the shell *line* has all words of a code span of *text* on its program.

    Also where there is no such span: `cat -A` says nothing about another way to run `cat`.
    """
    typed = {
        command.program.partition(" ")[0]: command.text.split() for command in commands_in(line)
    }
    spans = [span.strip("`").split() for span in _TOKEN.findall(text) if span.startswith("`")]
    forms = [span for span in spans if span and span[0] in typed]
    return not forms or any({*form} <= {*typed[form[0]]} for form in forms)


def _is_own(program: str, repo: str) -> bool:
    """Return whether the repository makes *program*, as its name says."""
    name = program.rpartition("/")[2].casefold()
    return len(name) >= _FEWEST_LETTERS and name in repo.casefold().split("/")[-1]


def _is_ordered(said: Sequence[_Word], command: Command, *, restricts: bool) -> bool:
    program, _, verb = command.program.partition(" ")
    is_narrow = any("/" in word or "." in word for word in command.words)
    if not is_narrow and any(one.word.casefold() in _WHOLE for one in said):
        return False
    named = [verb] if verb else []
    if program not in _WITHOUT_VERBS:
        named += [word for word in command.words[:2] if word.replace("-", "").isalpha()]
    mentions = [one for one in said if _is_mention(one, program, named)]
    if not restricts and any(
        _is_replacement(said, one, command) if one.is_negated else _is_done(one, command)
        for one in mentions
    ):
        return False
    return bool(mentions) or any(_is_operation(one, program, named, command) for one in said)


def _is_mention(one: _Word, program: str, named: Sequence[str]) -> bool:
    """Return whether *one* is the program itself, alone or with this subcommand."""
    first, *rest = one.word.strip("`").split() or [""]
    if one.word.startswith("`"):
        other, *after = [word for word in rest if not word.startswith("-")] or [""]
        # `gh pr diff` is not `gh pr view`.
        verbs = [other, *(word for word in after[:1] if word.isalpha())]
        is_told = _is_led(one) or one.lead in _NAMING
        return first == program and (not other or {*verbs} <= {*named}) and is_told
    if not _is_name(one.word, program) or not _is_led(one):
        return False
    is_of_it = bool(named) and stem(one.following.casefold()) == stem(named[0])
    is_alone = one.following.casefold() in _ALONE or not stems(one.following)
    return is_of_it if program in _PLAIN else is_of_it or is_alone


def _is_done(one: _Word, command: Command) -> bool:
    """Return whether *one* orders to run *command*."""
    typed, ordered = {command.program, *command.text.split()}, one.word.strip("`").split()
    is_order = one.word.startswith("`") or one.lead in _RUN | _WITH | {""}
    return is_order and typed.issuperset(ordered)


def _is_operation(one: _Word, program: str, named: Sequence[str], command: Command) -> bool:
    """Return whether *one* is what the command does: "run the linter", "never push"."""
    if one.word.startswith("`") or not _is_led(one) or len(one.word) < _FEWEST_LETTERS:
        return False
    # "The linter" is what lints, and "exported" is no order.
    named_so = stem(one.word.casefold())
    done = named_so.removesuffix("er")
    if one.word.endswith("ed") or (done != named_so and one.lead not in _RUN):
        return False
    own = {stem(part) for part in (*program.split("-"), *named)} - {"go", "just"}
    own |= {"test"} if command.name == TEST_RUNNER else set()
    if one.word.casefold() == program or not (
        done in own or (len(done) >= _FEWEST_LETTERS and done in program)
    ):
        return False
    return one.lead in _RUN or (one.is_direct and done not in _COMMON)


def _is_name(word: str, program: str) -> bool:
    """Return whether *word* is *program*, or that with a capital letter: `LS` is not `ls`."""
    return word in (program, program.capitalize())


def _is_led(one: _Word) -> bool:
    is_told = not one.lead or one.lead in _RUN | _WITH | _NOT | _TELLING
    return is_told or (one.is_negated and stem(one.lead) in _RUNNING)


def _words(text: str) -> Iterator[_Word]:
    last: _Word | None = None
    for before, clause in _clauses(text):
        is_list = bool(last and last.word.startswith("`")) or before == "("
        is_command = bool(clause) and clause[0].startswith("`")
        goes_on = before in _GOES_ON and (is_list or not is_command)
        lead, negated = (last.lead, last.is_negated) if last and goes_on else ("", False)
        words = [*_of_clause(clause, lead, negated=negated and _is_enumeration(clause))]
        yield from words
        last = words[-1] if words else last


def _clauses(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the clauses of *text*, each after the mark before it."""
    before, clause = ".", list[str]()
    for token in (*_TOKEN.findall(text.replace("’", "'")), "."):
        if token in _MARKS:
            yield before, clause
            before, clause = token, []
        else:
            clause.append(token)


def _is_enumeration(clause: Sequence[str]) -> bool:
    """Return whether *clause* may go on with a list: "`b`", "`b` or `c`"."""
    joined = [word for word in clause if word.casefold() not in _LISTING]
    is_joined = len(clause) == 2 * len(joined) - 1 > 1
    return is_joined or (len(joined) == 1 and joined[0].startswith("`"))


def _of_clause(clause: Sequence[str], lead: str = "", *, negated: bool = False) -> Iterator[_Word]:
    """Yield the words of *clause*.

    The next item of a list has the *lead* of the item before, and is *negated* as that is.
    """
    listed = lead
    for place, word in enumerate(clause):
        lower = word.casefold()
        following = clause[place + 1] if place + 1 < len(clause) else ""
        if lower not in _LISTING:
            is_direct = not place or clause[place - 1].casefold() == lead
            yield _Word(word, lead, following, is_direct, negated)
            listed = lead
        negated = _negates(lower, clause[place - 1] if place else "", after=negated)
        if lower not in _FILLERS:
            lead = listed if lower in _LISTING else lower


def _negates(word: str, before: str, *, after: bool) -> bool:
    """Return whether what follows *word* is negated.

    It stands behind the word *before*, and *after* a negation or none.
    """
    if word in _REVERSING and before not in _LISTING:
        return not after
    return after or word in _NOT


def restricts(text: str) -> bool:
    """Return True if *text* forbids something whenever it is done."""
    return not _is_bound(text) and any(one.is_negated for one in _words(text))


def forbids(text: str, line: str, repo: str = "") -> bool:
    """Return True if *text* forbids a command of the shell *line* outright.

    Not if it only forbids it in some way or at some time, nor the program that *repo* makes.
    """
    if not restricts(text):
        return False
    said = [*_words(text)]
    return any(
        _is_forbidden(one, command) and not _is_replacement(said, one, command)
        for command in commands_in(line)
        if not _is_own(command.program.partition(" ")[0], repo)
        for one in said
        if one.is_negated
    )


def _is_replacement(said: Sequence[_Word], one: _Word, command: Command) -> bool:
    """Return whether *command* has the form that is to be used in place of *one*.

    "Never run `pytest` directly, use `uv run pytest`."
    """
    words, ruled_out = {*command.text.split()}, {*one.word.strip("`").split()}
    forms = ({*other.word.strip("`").split()} for other in said if not other.is_negated)
    return any(ruled_out < form <= words for form in forms)


def _is_forbidden(one: _Word, command: Command) -> bool:
    program, _, verb = command.program.partition(" ")
    is_span = one.word.startswith("`")
    if not _is_led(one):
        return False
    if is_span:
        parts = one.word.strip("`").split() or [""]
        is_it = parts[0] == program or all(part.startswith("-") for part in parts)
        return is_it and {*parts} <= {program, verb, *command.text.split()}
    if program in _PLAIN or not _is_name(one.word, program):
        return False
    return not one.following or one.following.casefold() in _ALONE


class RuledOut(NamedTuple):
    """A *name* that must not be used; *is_plain*: a word of small letters, maybe of a module."""

    name: str
    is_plain: bool


def names_ruled_out(text: str, known: Sequence[str] = ()) -> Iterator[RuledOut]:
    """Yield the names that *text* forbids to use, whenever and wherever something is written.

    Those in code spans, or that look like names, or are *known* as such: "never import `yaml`",
    "use the logger instead of print()". Plain words, too: "use httpx, never requests".
    """
    if _is_bound(text):
        return
    is_negated, is_meant, is_next, before = False, False, False, ""
    last: RuledOut | None = None
    for token in _TOKEN.findall(_CALL.sub(r"`\1()`", text.replace("’", "'"))):
        word = token.casefold()
        # A word in small letters is a word of the sentence, whatever else it names.
        is_known = token in known and not token.islower()
        is_name = token.startswith("`") or bool(_NAME.fullmatch(token)) or is_known
        is_place = "/" in token and before in _PLACES
        previous, before = before, word
        is_negated = is_negated and token not in _MARKS
        if word in _NOT:
            is_negated = _negates(word, previous, after=is_negated)
            is_meant, last = is_negated, None
        elif is_place:
            is_meant = False
        elif is_meant and is_name and not (last and last.is_plain):
            last = RuledOut(token.strip("`"), is_plain=False)
            yield last
        elif word in _FILLERS:
            continue
        elif last and word in _LISTING:
            is_next = True
            continue
        elif is_meant and word not in _PUTTING and token.islower() and _continues(last, is_next):
            last = RuledOut(token, is_plain=True)
            yield last
        else:
            is_meant = is_meant and not last and word in _PUTTING
        is_next = False


def orders_use(text: str, name: str) -> bool:
    """Return True if *text* orders or allows the use of *name*: "from now on use `yaml`".

    Not if it does so under a condition, or at some time.
    """
    for _, clause in _clauses(text):
        said = [*_of_clause(clause)]
        if any(one.word.casefold() in _BOUNDS for one in said):
            continue
        for place, one in enumerate(said):
            if one.word.casefold() in _USE and one.lead in _ALLOWING and not one.is_negated:
                used = said[place + 1 : place + 1 + _FOLLOWING]
                if any(it.word.strip("`") == name and not it.is_negated for it in used):
                    return True
    return False


def _continues(last: RuledOut | None, is_next: bool) -> bool:
    """Return whether a plain word may be ruled out: the first one, or the next of a list."""
    return last is None or (last.is_plain and is_next)


class LeftAlone(NamedTuple):
    """A *path* that is not to be changed, or *only_kept*: not to be deleted or moved."""

    path: str
    only_kept: bool


def left_alone(text: str, known: Sequence[str] = ()) -> Iterator[LeftAlone]:
    """Yield the files and folders that *text* says to leave as they are; *known* are paths."""
    if _is_bound(text):
        return
    paths = {path.strip("/") for path in known}
    for _, tokens in _clauses(text):
        clause = [one.strip("`") for one in tokens]
        said = [*_of_clause(clause)]
        words = [one.word.casefold() for one in said]
        done = {*map(stem, words)}
        is_changed, is_ended = not _CHANGING.isdisjoint(done), not _ENDING.isdisjoint(done)
        is_untouched = not _UNTOUCHED.isdisjoint(words)
        first = next((place for place, word in enumerate(words) if word in _NOT), -1)
        # "x must not be edited", but not "edit x instead of y".
        is_denied_later = not (_NOT - _REVERSING).isdisjoint(words)
        for place, one in enumerate(said):
            path = one.word.strip("/")
            if path not in paths and "/" not in one.word:
                continue
            if first < 0:
                is_left = is_kept = is_untouched
            else:
                is_negated = one.is_negated or (place < first and is_denied_later)
                is_left, is_kept = is_negated and is_changed, is_negated and is_ended
            if is_left or is_kept:
                yield LeftAlone(path, not is_left)


def _is_bound(text: str) -> bool:
    """Return whether *text* holds under a condition, or at some time."""
    return any(one.word.casefold() in _BOUNDS for one in _words(text))
