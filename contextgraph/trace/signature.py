"""Error signatures: whether an observation shows a failure, and what all that show it share.

Reports of tests are looked at first, then messages.
"""

import re
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from contextgraph.model import (
    Action,
    ActionKind,
    ErrorKind,
    ErrorSignature,
    Family,
    Step,
    recorded_family,
)
from contextgraph.model.values import replace
from contextgraph.text import regex
from contextgraph.trace.actions import ActionReading, read_action
from contextgraph.trace.programs import (
    BUILDS,
    CRASHES,
    GIT,
    GO_PANIC,
    INSTALLERS,
    NETWORK,
    PIP,
    PRINTED_ERROR,
    RUST_PANIC,
    SHELL_MESSAGE,
    TRACEBACK,
    USAGE_ERROR,
    Finding,
    Recogniser,
    Report,
    class_name,
    first_in,
    last_traceback,
    line_at,
    plain,
    refused_edit,
    timeout,
    tool_message,
    without_banners,
)

if TYPE_CHECKING:
    from contextgraph.model import State  # which a hook need not load


_failed_test = partial(Recogniser, Family.TEST_FAILURE)

_SUMMARY = regex(
    r"^(?:=+ )?((?:no tests ran|\d+ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?"
    r"|errors?|rerun|subtests? passed)\b)[^\n]{0,300}?) in \d[\d.:]*s?\b[^\n]*$",
    re.MULTILINE,
)
_BAD = regex(r"\b[1-9]\d* (?:failed|errors?)\b")
_SECTION = regex(r"^=+ (?:ERRORS|FAILURES) =+$", re.MULTILINE)
_BLOCK = regex(r"^_+ (?!_ )[^\n]* _+$|^_{3,} [^\n]*_$", re.MULTILINE)
_BLOCK_END = regex(
    r"^(?:_{2,} (?!_)[^\n]*_|={3,} [^\n]* ={3,}|-{5,} Captured [^\n]*)$", re.MULTILINE
)
_PLACE = regex(r"^([^\s:>][^:\n]{0,400}):(\d+): ?([^\n]*)$", re.MULTILINE)
_E_LINE = regex(r"^E   ([^\n]*)$", re.MULTILINE)
_RAISED = regex(r"\s*((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: ?(.*))?$", re.DOTALL)
_CLASS = regex(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*")
_LISTED = regex(r"^(?:FAILED|ERROR) (\S+?\.py\S*)(?: - ([^\n]*))?$", re.MULTILINE)
_VERBOSE = regex(r"^([^\s:]+\.py::\S+) (?:FAILED|ERROR)\b", re.MULTILINE)
_CONFTEST = "ImportError while loading conftest"
_NOT_COLLECTED = _failed_test(
    "pytest: {kind}",
    "ERROR: ",
    r"^(?:collecting \.\.\. )?ERROR: "
    r"(?P<kind>file or directory not found|file not found|not found|found no collectors for)"
    r":? (?P<message>[^\n]*)",
)
_INTERNAL = regex(
    r"^INTERNALERROR> ((?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception)\b)(?:: ([^\n]*))?", re.MULTILINE
)
_INTERNAL_PLACE = regex(r"^INTERNALERROR>   File \"([^\"\n]+)\", line (\d+)", re.MULTILINE)
_UNKNOWN = "test failure"
_RAN = regex(r"^Ran \d+ tests? in ", re.MULTILINE)
_FAILED = regex(r"^FAILED \([^\n]*\)", re.MULTILINE)
_UNITTEST_BLOCK = regex(r"^={20,}\n\[?((?:ERROR|FAIL)[^\n]*)$", re.MULTILINE)
_UNITTEST_END = regex(r"^={20,}$|^-{20,}\nRan ", re.MULTILINE)
DOCTEST = _failed_test(
    "doctest",
    "Failed example:",
    r"^\*{20,}\nFile \"(?P<file>[^\"\n]+)\", line (?P<line>\d+), in [^\n]*\n"
    r"Failed example:\n\s*(?P<message>[^\n]*)",
)
TOX = _failed_test(
    "tox: commands failed",
    ("tox", "commands failed"),
    r"^(?:ERROR: {3}|  )\S+: (?:commands failed|FAIL\b[^\n]*|could not install[^\n]*)",
)


def _pytest_failure(text: str) -> Finding | None:
    """The first failed, broken or uncollected test that a report of pytest names."""
    if "INTERNALERROR>" in text and (match := _INTERNAL.search(text)):
        places = _INTERNAL_PLACE.findall(text)
        location = f"{places[-1][0]}:{places[-1][1]}" if places else None
        return Finding(Family.PYTHON_EXCEPTION, class_name(match[1]), match[2] or "", location)
    if not _shows_failure(text):
        return _NOT_COLLECTED.find(text)
    section = _SECTION.search(text)
    if section and (block := _BLOCK.search(text, section.end())):
        end = _BLOCK_END.search(text, block.end())
        return _in_block(text[block.end() : end.start() if end else len(text)])
    return _listed(text)


def failed_tests(text: str) -> tuple[str, ...]:
    """Return the tests that a report of pytest or unittest names as failed or broken, each once."""
    if "FAIL" not in text and "ERROR" not in text:
        return ()
    of_pytest = [match[1] for match in _LISTED.finditer(text)]
    of_pytest += [match[1] for match in _VERBOSE.finditer(text)]
    of_unittest = [match[1].split(": ", 1)[-1] for match in _UNITTEST_BLOCK.finditer(text)]
    return tuple(dict.fromkeys((*of_pytest, *of_unittest)))


def _conftest_failure(text: str) -> Finding | None:
    """Why pytest could not even load its configuration."""
    return _in_block(text[text.find(_CONFTEST) :])


def _shows_failure(text: str) -> bool:
    if " in " in text and (summaries := _SUMMARY.findall(text, max(0, len(text) - 20_000))):
        return _BAD.search(summaries[-1]) is not None
    if "FAIL" not in text and "ERROR" not in text:
        return False
    return bool(_SECTION.search(text) or _VERBOSE.search(text) or _LISTED.search(text))


def _in_block(block: str) -> Finding:
    """The exception of one failure: its last place, and what its last ``E`` lines say."""
    places = list(_PLACE.finditer(block))
    location = f"{places[-1][1]}:{places[-1][2]}" if places else None
    raised = _last_error_line(block)
    if raised is None:
        native = last_traceback(block)
        if native is not None:
            return replace(native, family=Family.TEST_FAILURE)
        raised = ""
    named = places[-1][3] if places else ""
    error_type, message = _class_and_message(raised)
    if _CLASS.fullmatch(named) and not named.islower():
        error_type = class_name(named)
    return Finding(Family.TEST_FAILURE, error_type, message, location)


def _last_error_line(block: str) -> str | None:
    """The first line of the last run of ``E`` lines."""
    first, end = None, -2
    for match in _E_LINE.finditer(block):
        if match.start() != end + 1:
            first = match[1]
        end = match.end()
    return first


def _class_and_message(raised: str) -> tuple[str, str]:
    text = raised.strip()
    if text.startswith("assert ") or not text:
        return "AssertionError" if text else _UNKNOWN, text
    match = _RAISED.match(text)
    if match and (match[2] is not None or "Error" in text or "Exception" in text):
        return class_name(match[1]), match[2] or ""
    return _UNKNOWN, text


def _listed(text: str) -> Finding:
    """The first line of the short summary, where nothing more is shown."""
    match = _LISTED.search(text)
    if match is None or not match[2]:
        return Finding(Family.TEST_FAILURE, _UNKNOWN, match[1] if match else "")
    error_type, message = _class_and_message(match[2])
    return Finding(Family.TEST_FAILURE, error_type, message or match[1])


def _unittest_failure(text: str) -> Finding | None:
    """The first failed or broken test that a report of unittest names."""
    block = _UNITTEST_BLOCK.search(text)
    if block is None:
        failed = _FAILED.search(text)
        return Finding(Family.TEST_FAILURE, _UNKNOWN, failed.group()) if failed else None
    end = _UNITTEST_END.search(text, block.end())
    raised = last_traceback(text[block.end() : end.start() if end else len(text)])
    if raised is None:
        return Finding(Family.TEST_FAILURE, _UNKNOWN, block[1])
    return replace(raised, family=Family.TEST_FAILURE)


_FOREIGN_FAILED = "test failure"
_PASSED = regex(
    r"^(?:Tests: [^\n]{0,200}\d passed[^\n]*|[ \t]{1,20}Tests {2,9}\d+ passed[^\n]*"
    r"|test result: ok\.[^\n]*|\[INFO\] BUILD SUCCESS|BUILD SUCCESSFUL in [^\n]*"
    r"|100% tests passed[^\n]*|ok {2}\t[^\n]*"
    r"|PASS|[ \t]+\d+ passing(?: \([^\n]*)?|[#ℹ] fail 0)$",
    re.MULTILINE,
)
_GO_FAIL = regex(r"^([ \t]*)--- FAIL: (\S+)", re.MULTILINE)
_GO_PLACE = regex(r"^[ \t]+(\S+_test\.go:\d+): ?([^\n]*)", re.MULTILINE)
_GO_NEXT = regex(r"^(?:--- |=== RUN|FAIL|ok)", re.MULTILINE)
_GO_PACKAGE = regex(r"^FAIL\t\S+", re.MULTILINE)
_TESTIFY = regex(r"^[ \t]+Error:[ \t]+([^\n]*)", re.MULTILINE)
_RUST_FAILED = regex(r"^test result: FAILED|^error: test failed", re.MULTILINE)
_RUST_OUTPUT = regex(r"^---- [^\n]{1,400} stdout ----\n([^\n]+)", re.MULTILINE)
_SUREFIRE = regex(r"^(?:\[ERROR\] +)?Tests run: \d+, Failures: (\d+), Errors: (\d+)", re.MULTILINE)
_SUREFIRE_FIRST = regex(r"^\[ERROR\] +(\S+?)[.:](\w+):(\d+)(?:->\S+)? ([^\n]*)", re.MULTILINE)
_JAVA_EXCEPTION = regex(
    r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Failure))\b:? ?([^\n]*)", re.MULTILINE
)
_JS_TOTALS = (
    regex(
        r"^[ \t]*(?:(?:Tests|Test Suites|Test Files):? [^\n]{0,200}?\b[1-9]\d{0,8} failed"
        r"|Errors\s+[1-9]\d* errors?$)",
        re.MULTILINE,
    ),
    regex(r"^[ \t]+[1-9]\d* failing$", re.MULTILINE),
    regex(r"^(?:[ℹ#] fail [1-9]\d*|Failed tests:)$", re.MULTILINE),
)
# Where the report of the first failure starts, as the runners mark it.
_JS_STARTS = (
    regex(r"^ {2}● [^\n]*$", re.MULTILINE),
    regex(r"^[ \t]*FAIL {1,3}\S[^\n]*$|^⎯+ Unhandled (?!Errors)[^\n]*$", re.MULTILINE),
    _JS_TOTALS[1],
    regex(r"^(?:✖ failing|Failed) tests:$", re.MULTILINE),
)
_JS_NEXT = regex(r"^ {2}● |^[ \t]*Test(?:s| Suites| Files):? |^⎯{4,}", re.MULTILINE)
_JS_TEST = regex(r"^✖ ([^\n]*?)(?: \([\d.]+ms\))?$", re.MULTILINE)
_JS_EXCEPTION = regex(
    r"^\s{0,8}(\w*(?:Error|Exception)|[A-Z]\w+Rejection)(?: \[\w+\])?: "
    r"([^\n]*?(?::\n[^\n]*|$))",
    re.MULTILINE,
)
_JS_EXPECT = regex(r"^[ \t]+(expect\([^\n]*)", re.MULTILINE)
_JS_MESSAGE = regex(r"\n[ \t]*\n[ \t]*(?:thrown: \"?)?(\S[^\n]*)")
_JS_PLACE = regex(
    r"^[ \t]+(?:at (?:[^\n(]{0,200}\()?|❯ (?:[^\s:]{1,200} )?)(?:file://)?"
    r"((?!node:|internal/)[^\s():]{1,300}:\d+)[\d:)]*[^\n]*$",
    re.MULTILINE,
)
_JS_PARSER = regex(r"(\S+): (.*) \((\d+):\d+\)$")
_TAP = regex(r"^([ \t]*)not ok \d+(?: - )?(?![^\n]*# (?:TODO|SKIP))([^\n]*)", re.MULTILINE)
_TAP_DETAILS = regex(r"\n[ \t]+---\n((?:[ \t]++[^\n]*+\n){1,200}?)[ \t]+\.\.\.$", re.MULTILINE)
_TAP_PLACE = regex(r"^[ \t]+location: '([^'\n]+?:\d+)(?::\d+)?'", re.MULTILINE)
_TAP_FRAME = regex(
    r"^[ \t]+(?:[^\n(]{1,200} \()?(?:file://)?((?!node:|location)[^\s():']{1,300}:\d+):\d+\)?$",
    re.MULTILINE,
)
_TAP_CLASS = regex(r"^[ \t]+name: '(\w+)'", re.MULTILINE)
_TAP_MESSAGE = regex(r"^[ \t]+error: (?:\|-\n[ \t]+)?'?([^\n]*?)'?$", re.MULTILINE)


def _after_passed_tests(text: str) -> str:
    """Return the text after the last report that all tests passed (other languages).

    What tests print, and the exceptions that they expect, stand before it.
    """
    end = 0
    for match in _PASSED.finditer(text):
        end = match.end()
    return text[end:]


def _failure(error_type: str, message: str, location: str | None = None) -> Finding:
    return Finding(Family.TEST_FAILURE, error_type, message.strip(), location)


def _go(text: str) -> Finding | None:
    failed = _GO_FAIL.search(text)
    if (failed or _GO_PACKAGE.search(text)) and (panic := GO_PANIC.find(text)):
        return replace(panic, family=Family.TEST_FAILURE)
    if failed is None:
        return None
    name, end = _deepest_subtest(text, failed)
    following = _GO_NEXT.search(text, end)
    place = _GO_PLACE.search(text, end, following.start() if following else len(text))
    if place is None and (start := text.find(f"=== RUN   {name}\n")) >= 0:
        # With -v, output stands where it was printed, before the verdict.
        place = _GO_PLACE.search(text, start, failed.start())
    if place is None:
        return _failure(_FOREIGN_FAILED, name)
    testify = _TESTIFY.search(text, place.end(), place.end() + 2000)
    return _failure(_FOREIGN_FAILED, place[2] or (testify[1] if testify else ""), place[1])


def _deepest_subtest(text: str, failed: re.Match[str]) -> tuple[str, int]:
    """The subtest that the first failed test failed for, and where its line ends."""
    name, end = failed[2], failed.end()
    for match in _GO_FAIL.finditer(text, end):
        if not match[2].startswith(f"{name}/"):
            break
        name, end = match[2], match.end()
    return name, end


def _rust(text: str) -> Finding | None:
    if not _RUST_FAILED.search(text):
        return None
    if panic := RUST_PANIC.find(text):
        return replace(panic, family=Family.TEST_FAILURE)
    output = _RUST_OUTPUT.search(text)
    return _failure(_FOREIGN_FAILED, output[1] if output else line_at(text, text.find("FAILED")))


def _surefire(text: str) -> Finding | None:
    """Maven's report, which gives the totals of all tests before the first failure."""
    totals = _SUREFIRE.findall(text)
    if not any(failures != "0" or errors != "0" for failures, errors in totals):
        return None
    first = _SUREFIRE_FIRST.search(text)
    exception = _JAVA_EXCEPTION.search(text)
    error_type = exception[1] if exception else _FOREIGN_FAILED
    if first is None:
        return _failure(error_type, exception[2] if exception else "")
    return _failure(error_type, first[4], f"{first[1].rsplit('.', 1)[-1]}.java:{first[3]}")


def _javascript(text: str) -> Finding | None:
    """The first failed test of Jest, Vitest, Mocha or Node's own runner."""
    if not any(total.search(text) for total in _JS_TOTALS):
        return None
    if finding := _tap(text):
        return finding
    first = next((match for start in _JS_STARTS if (match := start.search(text))), None)
    if first is None:
        return _failure(_FOREIGN_FAILED, "")
    end = _JS_NEXT.search(text, first.end() + 1)
    block = text[first.end() : end.start() if end else len(text)]
    place = _JS_PLACE.search(block)
    location = place[1] if place else None
    exception, expected = _JS_EXCEPTION.search(block), _JS_EXPECT.search(block)
    if exception and (not expected or exception.start() < expected.start()):
        return _javascript_exception(exception[1], exception[2], location)
    if expected:
        return _failure("AssertionError", expected[1], location)
    return _without_exception(text, first.group(), block, location)


def _javascript_exception(error_type: str, message: str, location: str | None) -> Finding:
    """An exception in a test; a parser gives its place within the message."""
    if error_type == "SyntaxError" and (parsed := _JS_PARSER.match(message)):
        return _failure(error_type, parsed[2], f"{parsed[1]}:{parsed[3]}")
    return _failure(error_type, " ".join(message.split()), location)


def _without_exception(text: str, heading: str, block: str, location: str | None) -> Finding:
    """A failure without an exception: the first line of its report, else the name of the test."""
    if not heading.startswith("✖"):
        message = _JS_MESSAGE.match(block)
        return _failure(_FOREIGN_FAILED, message[1] if message else heading, location)
    if crash := first_in(CRASHES, text):
        return replace(crash, family=Family.TEST_FAILURE)
    test = _JS_TEST.search(block)
    return _failure(_FOREIGN_FAILED, test[1] if test else heading, location)


def _tap(text: str) -> Finding | None:
    """The first failed test of a report in the Test Anything Protocol."""
    if "not ok " not in text or not (failed := _TAP.search(text)):
        return None
    details = _TAP_DETAILS.match(text, failed.end())
    if details is None:
        return _failure(_FOREIGN_FAILED, failed[2])
    name = _TAP_CLASS.search(details[1])
    message = _TAP_MESSAGE.search(details[1])
    stack = details[1].find("stack: ")
    place = (stack >= 0 and _TAP_FRAME.search(details[1], stack)) or _TAP_PLACE.search(details[1])
    return _failure(
        name[1] if name else _FOREIGN_FAILED,
        message[1] if message else failed[2],
        place[1] if place else None,
    )


_NO_TESTS = _failed_test(
    "no tests found", "exiting with code 1", r"^No test(?: file)?s found, exiting with code 1$"
)
# GoogleTest, and runners that report like it.
_GOOGLE_TEST = (
    _failed_test(
        _FOREIGN_FAILED,
        "[  FAILED  ]",
        r"^(?P<place>[^\s:]{1,300}:\d+): Failure\n(?P<message>[^\n]*)",
    ),
    _failed_test(_FOREIGN_FAILED, "[  FAILED  ]", r"^\[ {2}FAILED {2}\] (?P<message>[^\n]*)"),
)
_CTEST = _failed_test(
    "ctest: {kind}",
    "The following tests FAILED",
    r"^The following tests FAILED:\n[ \t]*\d+ - (?P<message>\S+) \((?P<kind>[^)\n]*)\)",
)
_GRADLE = _failed_test(
    "{name}",
    " FAILED\n",
    r"^\S+ > (?P<detail>[^\n]+) FAILED\n[ \t]+(?:[\w.]+\.)?(?P<name>\w+)"
    r"(?:: (?P<message>[^\n]*?))? at (?P<file>\S+?):(?P<line>\d+)",
)
# Tests in other languages.
_FOREIGN = (
    Report((" fail", "Failed tests:", "Unhandled Errors"), _javascript),
    _NO_TESTS,
    *_GOOGLE_TEST,
    _CTEST,
    Report(("not ok ",), _tap),
    Report(("FAIL", "panic: "), _go),
    Report(("test result: FAILED", "error: test failed"), _rust),
    Report(("Tests run:",), _surefire),
    _GRADLE,
)


_TYPE_LENGTH, MESSAGE_LENGTH, TEMPLATE_LENGTH = 100, 300, 200
KEYWORDS = 3
_READ = 1000
# One mistake in the words of several versions of Python, and what only some of them add.
_VARIANTS = (
    (regex(r"(expected an indented block) after [^\n]* on line \d+"), r"\1"),
    (regex(r"(invalid syntax)\. (?:Perhaps|Maybe) [^\n]*"), r"\1"),
    (regex(r"EOL while scanning string literal"), "unterminated string literal"),
    (
        regex(r"EOF while scanning triple-quoted string literal"),
        "unterminated triple-quoted string literal",
    ),
    (regex(r" \(detected at line \d+\)"), ""),
    (regex(r"(cannot import name '[^']*') from '[^']*' \([^()\n]*\)"), r"\1"),
    (regex(r"\.? Did you mean:? [^\n]*\?"), ""),
    (regex(r"(unrecognized argument)s?: [^\n]*"), r"\1"),
)
_MASKED = regex(
    # Plain words, which nothing below matches, are skipped whole: that halves the time.
    r"""(?P<word>(?<!named\ )(?<!Directory\ )(?<!name\ )(?<!File\ )(?<!for\ )
        \b(?!arguments\b)[A-Za-z]++(?=\ (?!object\ has)|$))
    |(?P<mask><(?:url|time|name|path|hex|number)>)
    |(?P<url>\b[a-z][a-z0-9+.-]{1,10}://[^\s'"<>]++)
    |(?P<time>\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?
        |\b\d\d:\d\d:\d\d\b)
    |(?P<name>(?<!\w)(?:b|u|r|f)?'(?:[^'\\\n]|\\.){0,300}'(?!\w)|"(?:[^"\\\n]|\\.){0,300}"
        |`[^`'\n]{1,300}[`']
        |‘[^’\n]{1,300}’|“[^”\n]{1,300}”|(?:\b[A-Za-z_][\w.]*+)?(?=\(\))
        |(?<=\bmodule\ named\ )[\w.]++|\b\w++(?=\ object\ has\ no\ attribute\b)
        |(?<=valid\ object\ name\ )\S+)
    |(?P<path>(?<=Directory\ )\S+(?=\ not\ found)|(?<=File\ name\ )\S+(?=\ not\ found)
        |(?<=\bFile\ )\S+(?=\ not\ found)|(?<=distribution\ found\ for\ )\S+
        |[^\s<>'"]+(?=:\ (?:No\ such\ file|Permission\ denied|Is\ a\ dir|Not\ a\ dir))
        |(?<![\w>])(?:[A-Za-z]:\\|~?/|\.{1,2}/)[\w.@+-][^\s'"<>:,;()\[\]]*+
        |\b[\w.-]++(?:/[\w.@+-]++)+
        |\b[\w-]++\.(?:py|[jt]sx?|c|cc|cpp|h|go|rs|java|toml|ya?ml|json|cfg|ini|txt|md|whl|zip|gz)\b
        (?::\d++)*)
    |(?P<hex>\b0[xX][0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b)
    |(?P<number>(?<![\w.>])[vV+-]?\d++(?:[.,_]\d++)*(?:[eE][+-]?\d++)?
        (?:\.?(?:dev|post|rc|a|b)\d++)?(?!\w))
    |(?P<plural>(?<=argument)s\b)""",
    re.VERBOSE,
)
_NAMES = regex(r"<name>(?:(?:,|,? and|,? or) <name>)+")
_QUOTED_TEXT = regex(
    r"""(?<!\w)'([^'\n]{1,120})'|"([^"\n]{1,120})"|`([^`'\n]{1,120})[`']|‘([^’\n]{1,120})’"""
)
_IDENTIFIER = regex(r"[A-Za-z_][\w-]*(?:[./][\w-]+)*")
_CODE_LIKE = regex(r"\w_\w|[a-z][A-Z]|\w[./]\w|^[A-Z]{2,}$|__")
_WORD = regex(r"[A-Za-z][A-Za-z-]{2,}")
_BOILERPLATE = frozenset(
    "the and not for are was has had have can cannot could with from this that but you your its "
    "it's than then there their into only been does did don doesn name object type instance "
    "error errors exception traceback most recent call last file line module named attribute "
    "got given takes missing required positional keyword argument arguments failed failure "
    "unexpected invalid none true false expected value raise raised assert self code python "
    "found such directory must should while when during after before because using use please "
    "try".split()
)


def template_of(message: str, variants: Iterable[tuple[re.Pattern[str], str]] = _VARIANTS) -> str:
    """Return *message* with paths, numbers, ids, quoted names, addresses and times masked.

    At most 200 characters; the template of a template is itself. *variants* are replaced first.
    """
    text = message[:_READ]
    for pattern, replacement in variants:
        text = pattern.sub(replacement, text)
    text, before = " ".join(text.split()), None
    # Masking may bring two halves of a name together; a few rounds reach the form that stays.
    for _ in range(7):
        if text == before:
            break
        before, masked = text, _NAMES.sub("<name>", _MASKED.sub(_placeholder, text))
        text = masked.strip()[:TEMPLATE_LENGTH].rstrip()
    return text


def _placeholder(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "plural":
        return ""
    if kind in ("word", "mask") or not match.group():
        return match.group()
    return f"<{kind}>"


def keywords_of(message: str, error_type: str) -> tuple[str, ...]:
    """Return at most three words that set *message* apart: names first, then rare words.

    Where a message has only common words, these are better than none.
    """
    text = message[:_READ]
    quoted = (next(filter(None, match.groups())) for match in _QUOTED_TEXT.finditer(text))
    names = [word for part in quoted for word in _IDENTIFIER.findall(part)[:2]]
    names += [match[0] for match in _IDENTIFIER.finditer(text) if _CODE_LIKE.search(match[0])]
    # The last part of a path; a dotted name stays whole.
    candidates = [name.rsplit("/", 1)[-1][:60] for name in names]
    words = (word.lower() for word in _WORD.findall(text))
    candidates += [word for word in words if word not in _BOILERPLATE]
    known = {error_type, error_type.rsplit(".", 1)[-1]}
    chosen = _distinct([word for word in candidates if word not in known])
    return tuple(chosen or _distinct(_WORD.findall(text)))


def _distinct(words: list[str]) -> list[str]:
    """The first few *words*, none of them part of another."""
    chosen: list[str] = []
    joined = ""
    for word in words:
        if word.lower() not in joined:
            chosen.append(word)
            joined = f"{joined} {word.lower()}"
        if len(chosen) == KEYWORDS:
            break
    return chosen


# Agents meet the same message many times, and masking it is the most expensive part of a step.
@lru_cache(maxsize=2048)
def signature_for(finding: Finding) -> ErrorSignature:
    """Return the signature of a *finding*."""
    message = finding.message.strip()[:MESSAGE_LENGTH]
    error_type = finding.error_type[:_TYPE_LENGTH]
    return ErrorSignature(
        finding.family,
        error_type,
        message,
        template_of(message),
        keywords_of(message, error_type),
        finding.location,
    )


def error_id(error: ErrorKind) -> str:
    """Return the id of the error pattern that *error* is one of, at template level."""
    return _error_id(recorded_family(error), error.error_type, error.template)


# A bundle asks for the id of each error several times, and agents meet the same ones.
@lru_cache(maxsize=2048)
def _error_id(*parts: str) -> str:
    from hashlib import blake2b  # which a hook need not load

    # surrogatepass: a log may hold half a surrogate pair, and must still have an id
    text = b"\x1f".join(part.encode("utf-8", "surrogatepass") for part in parts)
    return f"err_{blake2b(text, digest_size=12).hexdigest()}"


_SHOWN_BY_GIT = regex(r"git (?:-\S+ )*(?:diff|show|log|blame|grep|status|ls-files|cat-file)\b")
_EDGE = 1500

_TESTS = (
    Report(("FAIL", "ERROR", " failed", " error"), _pytest_failure),
    Report(("=====",), _unittest_failure),
    DOCTEST,
    *_FOREIGN,
)
# Of the messages of git the first row has those that nothing else words so.
_DISPLAYED = (SHELL_MESSAGE, GIT[0])
_OF_GIT = (*NETWORK, SHELL_MESSAGE, *GIT)
_OF_INSTALLER = (PIP, *INSTALLERS)
_PROGRAMS = (
    Report((_CONFTEST,), _conftest_failure),
    Report((TRACEBACK, "SyntaxError", "IndentationError", "TabError"), last_traceback),
    *INSTALLERS,
    *NETWORK,
    TOX,
    *BUILDS,
    *CRASHES,
    USAGE_ERROR,
    *_DISPLAYED,
    PRINTED_ERROR,
)
# What begins like this is neither a refusal nor a message of a tool.
_NO_TOOL_MESSAGE = ("[File: ", "Found ", "No matches found", "Traceback ", "Your command ran")

# Commands whose exit code 1, or 123 of xargs, is an answer: nothing found, files differ, test is
# false.
_ANSWER_BY_EXIT_CODE = regex(
    r"(?:^|[;&|(!\n])[ \t]*(?:(?:git|sudo|then|if|xargs(?: -\S+)*)[ \t]+)?"
    r"(?:[ef]?grep|rg|ag|diff|cmp|test|which|find|pgrep|type|command|\[)(?:[ \t]|$)"
)

# The family of a failure that only the log states.
_FAMILY_OF_KIND = {
    ActionKind.TEST: Family.TEST_FAILURE,
    ActionKind.INSTALL: Family.ENVIRONMENT,
    ActionKind.RUN: Family.PYTHON_EXCEPTION,
}
_OTHER_RUNTIMES = frozenset(
    {"node", "deno", "ts-node", "tsx", "java", "go", "cargo", "ruby", "perl", "php", "julia"}
)
_CACHED_TEXT = 50_000  # longer answers are not kept in memory


def recognise(
    action: Action,
    observation: str | None,
    *,
    exit_code: int | None = None,
    is_error: bool | None = None,
    reading: ActionReading | None = None,
) -> ErrorSignature | None:
    """Return the failure in *observation*; None if the action succeeded or has no answer.

    *exit_code* and *is_error* are what the log itself says; *reading* is what *action*
    does, where that is known already.
    """
    if observation is None:
        return None
    reading = reading or read_action(action, None, None)
    text = plain(observation)
    is_display = _is_display(reading)
    if not is_display:
        text = without_banners(text)
    find = _found if len(text) <= _CACHED_TEXT else _found.__wrapped__
    finding = find(text, reading.kind, is_display=is_display)
    if finding is None and _is_logged_failure(action, exit_code, is_error):
        finding = _unexplained(reading, text, exit_code)
    return signature_for(finding) if finding else None


def error_at(step: Step, reading: ActionReading) -> ErrorSignature | None:
    """Return the failure that *step* shows, whose action does what *reading* says."""
    return recognise(
        step.action,
        step.observation,
        exit_code=step.exit_code,
        is_error=step.is_error,
        reading=reading,
    )


def signature_of(text: str) -> ErrorSignature | None:
    """Return the failure that *text* shows by itself: a traceback, a line, a whole observation."""
    text = without_banners(plain(text))
    finding = (
        timeout(text)
        or refused_edit(text)
        or tool_message(text)
        or first_in(_TESTS, text)
        or first_in(_PROGRAMS, _after_passed_tests(text))
    )
    return signature_for(finding) if finding else None


# People paste the message of an exception without its type.
_PYTHON_MESSAGES = (
    (regex(r"No module named "), "ModuleNotFoundError"),
    (regex(r"cannot import name "), "ImportError"),
    (regex(r"name '\w+' is not defined"), "NameError"),
    (
        regex(r"(?:'\w+' object|module '[\w.]+'|type object '\w+') has no attribute "),
        "AttributeError",
    ),
)


def error_of(state: "State") -> ErrorSignature | None:
    """Return the failure that the current error of *state* shows, None where it is not recognised.

    Where it is the answer to the last action it is read as such, as in recorded runs.
    """
    if state.last_action.strip() and state.current_error:
        action = action_in(state)
        reading = read_action(action, None, state.open_file or None)
        error = recognise(action, state.current_error, reading=reading)
        if error and error.message[:80] in (state.last_outcome or state.current_error):
            return error
    error = signature_of(state.current_error)
    if error is None:
        for message, kind in _PYTHON_MESSAGES:
            if message.match(state.current_error):
                return signature_of(f"{kind}: {state.current_error}")
    return error


def action_in(state: "State") -> Action:
    """Return the last action of *state*, whose tool is its first word."""
    return Action(next(iter(state.last_action.split(maxsplit=1)), ""), state.last_action)


# A quarter of the answers of SWE-agent, an eighth of those of Claude Code, were given before.
@lru_cache(maxsize=128)
def _found(text: str, kind: ActionKind, *, is_display: bool) -> Finding | None:
    if not text or text.isspace():
        return None
    if finding := timeout(text):
        return finding
    if not text.startswith(_NO_TOOL_MESSAGE) and (
        finding := refused_edit(text) or tool_message(text)
    ):
        return finding
    if is_display:
        # Before or after what was displayed.
        edges = [text] if "[File: " not in text[:_EDGE] else []
        if len(text) > 2 * _EDGE and edges:
            edges = [text[:_EDGE], text[text.rfind("\n", 0, -_EDGE) + 1 :]]
        messages = (first_in(_DISPLAYED, edge) for edge in edges)
        return next(filter(None, messages), None)
    if kind is ActionKind.INSTALL and (finding := first_in(_OF_INSTALLER, text)):
        return finding
    if kind is ActionKind.VCS:
        return first_in(_OF_GIT, text)
    if finding := first_in(_TESTS, text):
        return finding
    # pytest, unittest or a relative ran to a verdict.
    has_tests = (
        (" in " in text and _SUMMARY.search(text, max(0, len(text) - 5000)))
        or "test session starts" in text
        or "short test summary info" in text
        or ("Ran " in text and _RAN.search(text))
    )
    return None if has_tests else first_in(_PROGRAMS, _after_passed_tests(text))


def _is_display(reading: ActionReading) -> bool:
    """True where the output is text that was requested, or a file as it is after an edit."""
    kind = reading.kind
    if kind.changes_files or kind is ActionKind.SUBMIT:
        return reading.verb != "python"
    if kind is ActionKind.VCS:
        return _SHOWN_BY_GIT.match(reading.command) is not None
    return kind.is_passive


def _is_logged_failure(action: Action, exit_code: int | None, is_error: bool | None) -> bool:
    """Return what the log says, without exit codes that only answer a question with no."""
    if exit_code is None:
        return bool(is_error)
    if exit_code == 0:
        return False
    return not (exit_code in (1, 123) and _ANSWER_BY_EXIT_CODE.search(action.text))


def _unexplained(reading: ActionReading, text: str, exit_code: int | None) -> Finding:
    """A failure that the log states and the text does not explain."""
    lines = [line for line in text[-2000:].splitlines() if line.strip()]
    message = lines[-1].strip() if lines else ""
    if exit_code in (124, -1):
        return Finding(Family.TIMEOUT, "command timed out", message)
    error_type = "failed" if exit_code is None else f"exit code {exit_code}"
    if reading.kind is ActionKind.RUN and reading.verb in _OTHER_RUNTIMES:
        return Finding(Family.RUNTIME_EXCEPTION, error_type, message)
    if family := _FAMILY_OF_KIND.get(reading.kind):
        return Finding(family, error_type, message)
    return Finding(Family.SHELL, f"{reading.verb or 'command'}: {error_type}", message)
