"""Which failure an observation shows, in the words of the programs that were really run."""

import pytest

from contextgraph.model import Action, Family
from contextgraph.trace.signature import recognise, signature_of

CHAINED = """Kneading
Traceback (most recent call last):
  File "/bakery/bake.py", line 3, in outer
    try: inner()
         ^^^^^^^
  File "/bakery/bake.py", line 1, in inner
    def inner(): return {}["budget"]
                        ~~^^^^^^^^^^
KeyError: 'budget'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/bakery/bake.py", line 5, in <module>
    outer()
  File "/bakery/bake.py", line 4, in outer
    except KeyError as e: raise ValueError("no budget") from e
ValueError: no budget
Cleaning up
"""
GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "/bakery/bake.py", line 9, in <module>
  |     raise ExceptionGroup("several", [e])
  | ExceptionGroup: several (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/bakery/bake.py", line 2, in a
    |     def a(): raise TypeError("no flour")
    | TypeError: no flour
    +------------------------------------
"""
INTERLEAVED = """Traceback (most recent call last):
  File "/bakery/bake.py", line 5, in <module>
[1, 2]
    outer()
  File "/bakery/bake.py", line 4, in outer
done so far
    raise OvenError
bakery.errors.OvenError: cold
"""
BARE_SYNTAX = """  File "/bakery/bad.py", line 1
    def f(:
          ^
SyntaxError: invalid syntax
"""
REFUSED = """Your proposed edit has introduced new syntax error(s). Please read this.

ERRORS:
- F821 undefined name 'flour'
- E999 IndentationError: unexpected indent

This is how your edit would have looked if applied
[File: /bakery/bake.py (3 lines total)]
1:raise ValueError("Error")
"""
CRASHED_LINTER = """Your proposed edit has introduced new syntax error(s). Please read this.

ERRORS:
- (most recent call last):
- "/opt/bin/flake8", line 8, in <module>
- 'NoneType' object is not iterable

This is how your edit would have looked if applied
[File: /bakery/bake.py (1 lines total)]
"""
PYTEST = """.FF                                                                      [100%]
=================================== FAILURES ===================================
__________________________________ test_rise ___________________________________

>   def test_rise(): assert knead(2) == 1
E   assert 0 == 1
E    +  where 0 = knead(2)

test_bread.py:4: AssertionError
__________________________________ test_zero ___________________________________

>   def test_zero(): knead(0)

test_bread.py:5:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

>   def knead(n): return 1 // n
E   ZeroDivisionError: integer division or modulo by zero

test_bread.py:2: ZeroDivisionError
=========================== short test summary info ============================
FAILED test_bread.py::test_rise - assert 0 == 1
FAILED test_bread.py::test_zero - ZeroDivisionError: integer division or modu...
2 failed, 1 passed in 2.97s
"""
PYTEST_SETUP = """==================================== ERRORS ====================================
_________________________ ERROR at setup of test_oven __________________________
conftest.py:9: in oven
    return warm(0)
heat.py:7: in warm
    raise RuntimeError("oven is cold")
E   RuntimeError: oven is cold
=========================== short test summary info ============================
ERROR test_bread.py::test_oven - RuntimeError: oven is cold
========================= 3 passed, 1 error in 0.10s =========================
"""
PYTEST_COLLECT = """==================================== ERRORS ====================================
_______________________ ERROR collecting test_collect.py _______________________
ImportError while importing test module '/bakery/test_collect.py'.
Hint: make sure your test modules/packages have valid Python names.
Traceback:
/usr/lib/python3.11/importlib/__init__.py:126: in import_module
    return _bootstrap._gcd_import(name[level:], package, level)
test_collect.py:1: in <module>
    import sourdough
E   ModuleNotFoundError: No module named 'sourdough'
=========================== short test summary info ============================
ERROR test_collect.py
!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!
1 error in 3.33s
"""
PYTEST_NO_TRACEBACK = """FF                                          [100%]
=========================== short test summary info ============================
FAILED test_bread.py::test_zero - ZeroDivisionError: integer division or modu...
2 failed in 3.46s
"""
UNITTEST = """F.
======================================================================
FAIL: test_crust (__main__.Bread.test_crust)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/bakery/test_unit.py", line 3, in test_crust
    def test_crust(self): self.assertEqual("soft", "crisp")
AssertionError: 'soft' != 'crisp'
- soft
+ crisp


----------------------------------------------------------------------
Ran 2 tests in 0.001s

FAILED (failures=1)
"""
DOCTEST = """**********************************************************************
File "dough.py", line 4, in dough.rise
Failed example:
    rise(2)
Expected:
    3
Got:
    4
"""
ARGPARSE = """usage: bake [-h] [--hot]
bake: error: unrecognized arguments: --cold
"""
CLICK = """Usage: bake [OPTIONS]
Try 'bake --help' for help.

Error: No such option: --cold
"""
PIP = """ERROR: Could not find a version that satisfies the requirement flour (from versions: none)
ERROR: No matching distribution found for flour
"""
GCC = """bread.c: In function 'main':
bread.c:1:25: warning: implicit declaration of function 'knead'
bread.c:1:31: error: expected expression before ';' token
    1 | int main(void) { return knead(; }
make: *** [Makefile:2: bread] Error 1
"""
JAVAC = """Bread.java:1: error: ';' expected
public class Bread { int f() { return "soft" } }
1 error
"""
RUSTC = """   Compiling bread v0.1.0 (/bakery)
error[E0308]: mismatched types
 --> src/main.rs:1:26
  |
error: could not compile `bread` (bin "bread") due to 1 previous error
"""
GO_BUILD = """# bread
./main.go:3:15: declared and not used: x
./main.go:3:23: undefined: knead
"""
GO_TEST = """--- FAIL: TestKnead (0.00s)
    main_test.go:5: knead(1) = 1, want 2
FAIL
FAIL\tbread\t0.004s
"""
CARGO_TEST = """running 1 test
test rises ... FAILED

---- rises stdout ----

thread 'rises' (32469) panicked at src/main.rs:3:14:
assertion `left == right` failed
  left: 1
 right: 2

test result: FAILED. 0 passed; 1 failed; 0 ignored
"""
NODE = """/bakery/bake.js:1
function bake(o) { return o.temp.value }
                                 ^

TypeError: Cannot read properties of undefined (reading 'value')
    at bake (/bakery/bake.js:1:34)
    at Object.<anonymous> (/bakery/bake.js:2:1)
"""
JEST = """FAIL src/bread.test.js
  ● loaf › rises

    expect(received).toBe(expected) // Object.is equality

      at Object.toBe (src/bread.test.js:5:10)

Tests:       1 failed, 2 passed, 3 total
"""
VITEST = """ FAIL  src/bread.test.ts > rises
AssertionError: expected 1 to be 2
 ❯ src/bread.test.ts:5:13

 Test Files  1 failed (1)
      Tests  1 failed | 2 passed (3)
"""
JAVA = """Exception in thread "main" java.lang.NullPointerException: null
\tat Oven.main(Oven.java:1)
"""
MAVEN = """[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0
[ERROR] Failures:
[ERROR]   BreadTest.rises:12 expected:<1> but was:<2>
"""
TSC = "src/oven.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.\n"
LINK = "link.c:(.text+0xa): undefined reference to `knead'\ncollect2: error: ld returned 1\n"

BEHIND_USAGE = """Usage: search_file <search_term> [<file>]
Error: File name a.py not found. Please provide a valid file name.
"""
BEHIND_NOISE = """awk: cannot open a.py (No such file or directory)
/root/tools.sh: line 54: [: 3: unary operator expected
File a.py not found
"""
GTEST = """[ RUN      ] Oven.Heats
oven_test.cc:12: Failure
Expected equality of these values:
[  FAILED  ] Oven.Heats (0 ms)
"""

EXCEPTION, CRASH, TEST, SHELL, BUILD = (
    Family.PYTHON_EXCEPTION,
    Family.RUNTIME_EXCEPTION,
    Family.TEST_FAILURE,
    Family.SHELL,
    Family.BUILD,
)
FAILURES = [
    ("python bake.py", CHAINED, EXCEPTION, "ValueError", "/bakery/bake.py:4"),
    ("python bake.py", GROUP, EXCEPTION, "TypeError", "/bakery/bake.py:2"),
    ("python bake.py", INTERLEAVED, EXCEPTION, "OvenError", "/bakery/bake.py:4"),
    ("python bake.py", "re.error: bad\n", EXCEPTION, "re.error", None),
    ("python bake.py", "Error: no flour left\n", EXCEPTION, "printed error", None),
    ("python bake.py", "An error occurred: oven is off\ndone\n", EXCEPTION, "printed error", None),
    ("python bake.py", "Error: KeyError: 'yeast'\n", EXCEPTION, "KeyError", None),
    ("python bake.py", "Caught an IndexError: too short\n", EXCEPTION, "IndexError", None),
    ("python bake.py", "Error parsing the recipe.\n", EXCEPTION, "printed error", None),
    ("python bake.py", "Rye:\n  Error: no flour\n", EXCEPTION, "printed error", None),
    ("python bake.py", "Rye:\n  ✗ Error: KeyError: 'rye'\n", EXCEPTION, "KeyError", None),
    ("python bake.py", "✗ Error: no flour\n", EXCEPTION, "printed error", None),
    ("python bake.py", "Error occurred\n", EXCEPTION, "printed error", None),
    ("python bake.py", "Test failed: No error raised for rye\n", EXCEPTION, "printed error", None),
    ("python bake.py", "Kneading failed: no dough\n", EXCEPTION, "printed error", None),
    ("python bake.py", "1 validation error for Loaf\nsize\n", EXCEPTION, "printed error", None),
    ("python bad.py", BARE_SYNTAX, Family.SYNTAX_ERROR, "SyntaxError", "/bakery/bad.py:1"),
    ("edit 1:2\nx\nend_of_edit", REFUSED, Family.EDIT_REJECTED, "F821 undefined name", None),
    ("edit 1:2\nx\nend_of_edit", CRASHED_LINTER, Family.EDIT_REJECTED, "linter crashed", None),
    ("pytest", PYTEST, TEST, "AssertionError", "test_bread.py:4"),
    ("pytest", PYTEST_SETUP, TEST, "RuntimeError", "heat.py:7"),
    ("pytest", PYTEST_COLLECT, TEST, "ModuleNotFoundError", "test_collect.py:1"),
    ("pytest --tb=no", PYTEST_NO_TRACEBACK, TEST, "ZeroDivisionError", None),
    ("python test_unit.py", UNITTEST, TEST, "AssertionError", "/bakery/test_unit.py:3"),
    ("python -m doctest dough.py", DOCTEST, TEST, "doctest", "dough.py:4"),
    ("jest", JEST, TEST, "AssertionError", "src/bread.test.js:5"),
    ("npx vitest run", VITEST, TEST, "AssertionError", "src/bread.test.ts:5"),
    ("go test ./...", GO_TEST, TEST, "test failure", "main_test.go:5"),
    ("cargo test", CARGO_TEST, TEST, "panic", "src/main.rs:3"),
    ("mvn test", MAVEN, TEST, "test failure", "BreadTest.java:12"),
    ("bake --cold", ARGPARSE, Family.TOOL_USAGE, "argparse usage error", None),
    ("bake --cold", CLICK, Family.TOOL_USAGE, "argparse usage error", None),
    (
        "edit 1:",
        "Usage: edit <start_line>:<end_line>",
        Family.TOOL_USAGE,
        "tool: Usage: edit",
        None,
    ),
    (
        "goto 3",
        "No file open. Use the open command first.",
        Family.TOOL_USAGE,
        "tool: No file open",
        None,
    ),
    (
        "create a.py",
        "Error: File 'a.py' already exists.\n[File: a.py]",
        Family.TOOL_USAGE,
        "tool: File already exists",
        None,
    ),
    (
        "str_replace_editor str_replace a.py",
        "ERROR:\nParameter `old_str` is required for command: str_replace.",
        Family.TOOL_USAGE,
        "tool: Missing parameter",
        None,
    ),
    (
        "str_replace_editor show a.py",
        "Parameter 'command' is expected to be one of ['view', 'create'].",
        Family.TOOL_USAGE,
        "tool: Invalid command",
        None,
    ),
    (
        "python bake.py",
        "bakery.core.exceptions.OvenMisplaced: 'cellar' has no oven\n",
        Family.PYTHON_EXCEPTION,
        "OvenMisplaced",
        None,
    ),
    ("search_file x a.py", BEHIND_USAGE, Family.NOT_FOUND, "tool: File not found", None),
    ("open a.py 3", BEHIND_NOISE, Family.NOT_FOUND, "tool: File not found", None),
    ("./oven_test", GTEST, TEST, "test failure", "oven_test.cc:12"),
    ("open a.py", "File a.py not found", Family.NOT_FOUND, "tool: File not found", None),
    (
        'search_dir "x" src',
        "Directory src not found",
        Family.NOT_FOUND,
        "tool: Directory not found",
        None,
    ),
    (
        "knead",
        "/bin/bash: line 12: knead: command not found",
        SHELL,
        "bash: command not found",
        None,
    ),
    ("knead", "sh: 1: knead: not found", SHELL, "bash: command not found", None),
    ("", "knead: command not found", SHELL, "bash: command not found", None),
    ("./run", "./run: line 3: knead: command not found", SHELL, "bash: command not found", None),
    (
        "if; then",
        "bash: -c: line 1: syntax error near unexpected token `;'",
        SHELL,
        "bash: syntax error",
        None,
    ),
    (
        "ls oven",
        "ls: cannot access 'oven': No such file or directory",
        SHELL,
        "ls: No such file or directory",
        None,
    ),
    (
        "cat a.py",
        "cat: a.py: No such file or directory",
        SHELL,
        "cat: No such file or directory",
        None,
    ),
    (
        "sed -i s/a/ x",
        "sed: can't read x: No such file or directory",
        SHELL,
        "sed: No such file or directory",
        None,
    ),
    (
        "python no.py",
        "python: can't open file '/bakery/no.py': [Errno 2] No such file",
        SHELL,
        "python: can't open file",
        None,
    ),
    (
        "python -m oven",
        "/usr/bin/python: No module named oven",
        SHELL,
        "python -m: No module named",
        None,
    ),
    (
        "git status",
        "fatal: not a git repository (or any of the parent directories): .git",
        SHELL,
        "git: not a git repository",
        None,
    ),
    ("pip install flour", PIP, Family.ENVIRONMENT, "pip: No matching distribution found", None),
    (
        "curl localhost:1",
        "curl: (7) Failed to connect to localhost port 1: refused",
        Family.ENVIRONMENT,
        "curl: (7) Failed to connect",
        None,
    ),
    (
        "apt install x",
        "E: Unable to locate package x",
        Family.ENVIRONMENT,
        "apt: Unable to locate package",
        None,
    ),
    (
        "npm run x",
        "npm error code ENOENT\nnpm error path x",
        Family.ENVIRONMENT,
        "npm: ENOENT",
        None,
    ),
    ("python bake.py", "\nEXECUTION TIMED OUT", Family.TIMEOUT, "EXECUTION TIMED OUT", None),
    ("make", GCC, BUILD, "gcc: expected expression before token", "bread.c:1"),
    ("gcc link.c", LINK, BUILD, "ld: undefined reference to", None),
    (
        "make cake",
        "make: *** No rule to make target 'cake'.  Stop.",
        BUILD,
        "make: No rule to make target",
        None,
    ),
    ("javac Bread.java", JAVAC, BUILD, "javac: expected", "Bread.java:1"),
    ("cargo build", RUSTC, BUILD, "rustc: E0308", "src/main.rs:1"),
    ("go build ./...", GO_BUILD, BUILD, "go: declared and not used", "main.go:3"),
    ("tsc", TSC, BUILD, "tsc: TS2322", "src/oven.ts:3"),
    ("node bake.js", NODE, CRASH, "TypeError", "/bakery/bake.js:1"),
    ("java Oven", JAVA, CRASH, "NullPointerException", "Oven.java:1"),
]


@pytest.mark.parametrize(("command", "observation", "family", "error_type", "location"), FAILURES)
def test_a_failure_is_filed_under_family_type_and_place(
    command, observation, family, error_type, location
):
    signature = recognise(Action("bash", command), observation)

    assert signature is not None
    assert (signature.family, signature.error_type) == (family, error_type)
    assert signature.location == location


def test_the_bare_text_is_recognised_like_the_step():
    for command, observation, *_ in FAILURES:
        assert signature_of(observation) == recognise(Action("bash", command), observation)


HARMLESS = [
    ("open bake.py", "[File: /bakery/bake.py (9 lines total)]\n1:raise ValueError('Error: x')\n"),
    ("cat notes.md", CHAINED + "\nmore text of the notes\n" * 200),
    ("grep -rn Error oven", 'oven/a.py:3: raise KeyError("x")\noven/b.py:9: bash: x: not found'),
    ("git log -3", "commit 1\n\n    Fix ValueError: no budget\n"),
    ("ls", "errors.py\nexceptions.py\n"),
    ('search_dir "x" oven', 'No matches found for "x" in oven'),
    (
        "edit 1:1\nx\nend_of_edit",
        "[File: a.py (1 lines total)]\n1:raise KeyError\nFile updated. Please review",
    ),
    ("python bake.py", "Script completed successfully, no errors.\n"),
    ("find . | head -1", "./rye\nfind: ‘standard output’: Broken pipe\n"),
    ("python bake.py", "0 errors, 0 failed\nerrors: 0\n"),
    ("python bake.py", "ValueError raised as expected\n"),
    ("python bake.py", "Error: None\n"),
    ("pytest", "3 passed, 0 failed in 0.12s\n"),
    (
        "pytest",
        "Traceback (most recent call last):\nx\n====== 4 passed, 1 warning in 0.30s =======\n",
    ),
    ("python -m unittest", "ERROR: logged\n----\nRan 3 tests in 0.1s\n\nOK\n"),
    (
        "pip install dough",
        "ERROR: pip's dependency resolver does not take this into account\nInstalled",
    ),
    ("bake --help", "usage: bake [-h]\n\noptions:\n  --error  show errors\n"),
    ("python bake.py", "/bakery/bake.py:3: DeprecationWarning: old flour\n"),
    ("rm a.py", "Your command ran successfully and did not produce any output."),
    ("python bake.py", ""),
]


@pytest.mark.parametrize(("command", "observation"), HARMLESS)
def test_words_of_failure_in_harmless_output_are_not_failures(command, observation):
    assert recognise(Action("bash", command), observation) is None


def test_a_step_without_an_answer_shows_no_failure():
    assert recognise(Action("bash", "submit"), None, exit_code=1) is None


def test_an_exit_code_shows_a_failure_that_the_text_does_not():
    signature = recognise(Action("bash", "python bake.py"), "burnt\n", exit_code=3)

    assert signature is not None
    assert (signature.error_type, signature.message) == ("exit code 3", "burnt")


def test_an_exit_code_of_another_language_is_not_an_exception_of_python():
    signature = recognise(Action("bash", "node bake.js"), "burnt\n", exit_code=3)

    assert signature is not None
    assert signature.family is Family.RUNTIME_EXCEPTION


def test_the_flag_of_the_log_shows_a_failure():
    signature = recognise(Action("Task", "Task x", {"x": 1}), "it went wrong", is_error=True)

    assert signature is not None
    assert signature.message == "it went wrong"


@pytest.mark.parametrize("command", ["grep -rn yeast oven", "diff a b", "cd x && git diff --quiet"])
def test_exit_code_one_of_a_question_is_an_answer(command):
    assert recognise(Action("bash", command), "", exit_code=1) is None


def test_exit_code_123_of_xargs_says_that_grep_found_nothing():
    command = "find . -name '*.cfg' | xargs grep -l yeast"
    assert recognise(Action("bash", command), "", exit_code=123) is None


def test_a_file_that_does_not_compile_is_a_syntax_error_at_its_line():
    shown = "Sorry: IndentationError: unexpected indent (bake.py, line 7)"
    signature = recognise(Action("bash", "python -m py_compile bake.py"), shown, exit_code=1)

    assert signature is not None
    assert (signature.error_type, signature.location) == ("IndentationError", "bake.py:7")
    assert signature.message == "unexpected indent"


@pytest.mark.parametrize("command", ["cd test && python -c 'import oven'", "python find.py"])
def test_exit_code_one_of_anything_else_is_a_failure(command):
    assert recognise(Action("bash", command), "", exit_code=1) is not None


def test_a_failure_before_a_pipe_is_seen_though_the_exit_code_is_zero():
    signature = recognise(Action("bash", "pytest 2>&1 | tail -20"), PYTEST, exit_code=0)

    assert signature is not None
    assert signature.family is Family.TEST_FAILURE


def test_colours_do_not_hide_a_failure():
    coloured = "\x1b[31mERROR\x1b[39m: failed to bake\r\n"

    assert signature_of(coloured) == signature_of("ERROR: failed to bake\n")


def test_an_exception_that_the_interpreter_ignored_is_not_the_one_that_counts():
    text = CHAINED + (
        "Exception ignored in: <function Oven.__del__ at 0x7f>\n"
        'Traceback (most recent call last):\n  File "/x.py", line 1, in __del__\nTypeError: x\n'
    )

    signature = signature_of(text)

    assert signature is not None
    assert signature.error_type == "ValueError"


BROKEN_PTH = """Error processing line 1 of /venv/lib/bread-nspkg.pth:

  Traceback (most recent call last):
    File "/usr/lib/python3.8/site.py", line 169, in addpackage
      exec(line)
    File "<frozen importlib._bootstrap>", line 553, in module_from_spec
  AttributeError: 'NoneType' object has no attribute 'loader'

Remainder of file ignored
"""
DESTRUCTOR = """Exception ignored in: <function Oven.__del__ at 0x7f>
Traceback (most recent call last):
  File "/bakery/oven.py", line 4, in __del__
    self.close()
FileNotFoundError: [Errno 2] No such file or directory: 'oven.lock'
"""
BANNERS = [
    BROKEN_PTH,
    BROKEN_PTH * 2,
    DESTRUCTOR,
    "Exception ignored in: <stdout>\nBrokenPipeError: [Errno 32] Broken pipe\n",
    "Error in sitecustomize; set PYTHONVERBOSE for traceback:\nImportError: no flour\n",
    "bash: warning: setlocale: LC_ALL: cannot change locale (de_DE): No such file or directory\n",
]


@pytest.mark.parametrize("banner", BANNERS)
def test_what_an_interpreter_prints_although_it_goes_on_is_not_a_failure(banner):
    assert recognise(Action("bash", "python bake.py"), f"{banner}Bread: 3\n") is None
    assert signature_of(banner) is None


@pytest.mark.parametrize("banner", BANNERS)
def test_a_failure_beside_a_banner_is_the_one_that_counts(banner):
    assert signature_of(f"{banner}{CHAINED}") == signature_of(CHAINED)
    assert signature_of(f"{CHAINED}{banner}") == signature_of(CHAINED)


@pytest.mark.parametrize("lines", [slice(1, None), slice(3), slice(6)])
def test_a_banner_that_head_or_tail_cut_is_not_a_failure(lines):
    assert signature_of("\n".join(BROKEN_PTH.splitlines()[lines])) is None


def test_a_test_that_finds_a_banner_in_output_fails_for_its_own_reason():
    report = UNITTEST.replace("'soft' != 'crisp'", f"Stream should be empty: '{BROKEN_PTH}'")

    signature = signature_of(report)

    assert signature is not None
    assert (signature.error_type, signature.family) == ("AssertionError", Family.TEST_FAILURE)


AMBIGUOUS = "fatal: ambiguous argument 'main': unknown revision or path not in the working tree.\n"


def test_a_message_of_git_is_seen_behind_a_long_diff():
    diff = "diff --git a/oven.py b/oven.py\n" + "+    bake(bread)\n" * 400

    signature = recognise(Action("bash", "git diff main"), diff + AMBIGUOUS)

    assert signature is not None
    assert (signature.family, signature.error_type) == (Family.SHELL, "git: ambiguous argument")


def test_one_exception_of_another_language_agrees_with_its_test_report():
    crash, report = signature_of(NODE), signature_of(JEST)

    assert crash is not None
    assert report is not None
    assert crash.family is Family.RUNTIME_EXCEPTION
    assert report.family in {variant.family for variant in crash.variants()}


def test_what_a_program_prints_after_an_exception_is_not_its_message():
    raised = '  File "a.py", line 1, in f\nAssertionError\n'
    text = f"Traceback (most recent call last):\n{raised}Oven off\n"

    signature = signature_of(text)

    assert signature is not None
    assert signature.message == ""


def test_text_without_a_failure_has_no_signature():
    assert signature_of("all is well") is None
    assert signature_of("  \n") is None
