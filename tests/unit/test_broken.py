"""Rules that a turn of an agent broke."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contextgraph import AgentMemory
from contextgraph.knowledge import NewLesson
from contextgraph.knowledge.extraction import without_output
from contextgraph.model import (
    About,
    Action,
    LessonFacts,
    LessonKind,
    Origin,
    Quotation,
    RawTrajectory,
    Step,
)
from contextgraph.trace.ordered import names_ruled_out

SHOP = "acme/shop"
LINT = "Run `golangci-lint run` after every change of Go code."
PUSH = "Never push to the release branch or anywhere else: no `git push`."


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with AgentMemory.open(":memory:") as opened:
        yield opened


def keep(
    memory: AgentMemory,
    text: str,
    subject: str = "",
    kind: LessonKind = LessonKind.RULE,
    paths: tuple[str, ...] = (),
    session: str = "s",
    symbols: tuple[str, ...] = (),
    programs: tuple[str, ...] = (),
) -> str:
    """Keep an active lesson that a model wrote down, and return its id."""
    steps = (Step(0, "", Action("bash", "ls"), "ok"),)
    run = memory.learn(RawTrajectory("claude-code", session, SHOP, text, steps)).trajectory_id
    quote = Quotation(text, run, session, -1, datetime(2026, 3, 2, tzinfo=UTC))
    about = About(paths, symbols, programs, subject=subject)
    facts = LessonFacts(kind, Origin.DISTILLED, about, (quote,), is_active=True)
    new, known = memory.lessons.keep([NewLesson(text, facts)], SHOP)
    return (*new, *known)[0]


def broken(memory: AgentMemory, *actions: str) -> tuple[str, ...]:
    """Return what is said at the end of a turn with these *actions*: commands, or ``edit FILE``."""
    run = memory.live(repo=SHOP, task="", session="one")
    run.resume(
        Step(index, "", action(text), "ok", exit_code=0) for index, text in enumerate(actions)
    )
    return run.broken()


def action(text: str) -> Action:
    verb, _, file = text.partition(" ")
    if verb != "edit":
        return Action("Bash", text, {"command": text})
    given = {"file_path": file, "old_string": "a", "new_string": "b"}
    return Action("Edit", f"Edit {file}", given)


@pytest.mark.parametrize(
    ("actions", "is_broken"),
    [
        (["edit main.go"], True),
        (["golangci-lint run", "edit main.go"], True),
        (["edit main.go", "golangci-lint run ./pkg/..."], False),
        (["edit main.go", "cd sub && golangci-lint run 2>&1 | head -50"], False),
        (["edit main.go", "go build ./... && go vet ./..."], False),
        (["edit main.go", "go build ./..."], True),
        (["edit main.go", "golangci-lint run", "edit docs/PLAN.md"], False),
        (["edit README.md"], False),
        (["go build ./..."], False),
        (["edit /tmp/scratch/main.go"], False),
    ],
)
def test_a_check_counts_by_program_and_meaning_for_the_files_that_it_covers(
    memory: AgentMemory, actions: list[str], is_broken: bool
) -> None:
    keep(memory, LINT)
    lines = broken(memory, *actions)
    assert bool(lines) is is_broken
    assert all("main.go" in line and "golangci-lint run" in line for line in lines)


@pytest.mark.parametrize(
    ("rule", "actions", "is_broken"),
    [
        ("Always run `make check` after you change code in lib/.", ["edit lib/a.py"], True),
        ("Always run `make check` after you change code in lib/.", ["edit bin/a.py"], False),
        ("Run `make check` after every change except in lib/v/.", ["edit lib/a.py"], True),
        ("Run `make check` after every change except in lib/v/.", ["edit lib/v/a.py"], False),
        ("Run `make check` after each change outside `v/` and w/", ["edit w/a.py"], False),
        ("Run `make check` after each change in lib/, except lib/v/", ["edit lib/a.py"], True),
        ("Run `make check` after each change in lib/, except lib/v/", ["edit a.py"], False),
        ("Always run `make test` after each edit", ["edit a.py", "make test"], False),
        ("Always run `npm test` after each edit", ["edit a.ts", "npm run lint"], True),
        ("Always run `just gen` after you change `api/`", ["edit api/a.yaml", "just fmt"], True),
        ("Always run `just gen` after you change `api/`", ["edit api/a.yaml", "just gen"], False),
        ("Always run `just gen` after you change the code", ["edit api/a.py"], False),
        ("Always run golangci-lint after every change", ["edit main.go"], True),
        ("Always run golangci-lint after every change", ["edit shop.py"], False),
        ("Always run go test after every change", ["edit a.go", "golangci-lint run"], True),
        ("Always run go test after every change", ["edit a.go", "go test ./..."], False),
        ("Always run the linter after each change of Go code", ["edit main.go"], True),
        ("Always run the linter after each change of Go code", ["edit shop.py"], False),
        ("Always run `make lint` after each change of TypeScript", ["edit shop.py"], False),
    ],
)
def test_a_rule_names_the_command_and_the_folder_that_it_is_about(
    memory: AgentMemory, rule: str, actions: list[str], is_broken: bool
) -> None:
    keep(memory, rule)
    assert bool(broken(memory, *actions)) is is_broken


def test_a_check_before_a_commit_is_missing_only_where_something_was_committed(
    memory: AgentMemory,
) -> None:
    keep(memory, "The tests have to pass before you commit: run `pytest`.")
    assert not broken(memory, "edit shop.py")
    assert not broken(memory, "edit shop.py", "pytest -q tests", "git commit -am x")
    assert broken(memory, "edit shop.py", "git commit -am x")


@pytest.mark.parametrize(
    "rule",
    [
        "The agent never runs `git push`.",
        "The agent does not start `git push` itself.",
        "Do not commit, and no `git push`.",
        "Do not push with `--tags`.",
    ],
)
def test_a_command_is_ruled_out_where_a_negation_stands_before_it(
    memory: AgentMemory, rule: str
) -> None:
    keep(memory, rule)
    assert broken(memory, "git push --tags")
    assert not broken(memory, "git status")


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("Never push without running `make lint`.", "make lint"),
        ("Don't forget to run `ruff check`.", "ruff check"),
        ("Never skip `make lint`.", "make lint"),
        ("Never use `npm`, `pnpm` is faster.", "pnpm install"),
        ("Do not use `npm` instead of `pnpm`.", "pnpm install"),
        ("Never run `pytest` directly, always `uv run pytest`.", "uv run pytest -q"),
        ("Never commit without an edit of `docs/log.md`.", "edit docs/log.md"),
        ("Edit `docs/log.md` instead of gen/log.md.", "edit docs/log.md"),
    ],
)
def test_what_a_rule_asks_for_is_not_broken_by_doing_it(
    memory: AgentMemory, rule: str, line: str
) -> None:
    keep(memory, rule, paths=("docs/log.md",))
    assert not broken(memory, line)
    # A rule of a file is said at an edit of it.
    is_said = memory.live(repo=SHOP, task="").before(action(line)) is not None
    assert not is_said or line.startswith("edit")


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("Do not use `npm` instead of `pnpm`.", "npm install"),
        ("Never run `pytest` directly, always `uv run pytest`.", "pytest -q"),
        ("Edit `docs/log.md` instead of `gen/log.md`.", "edit gen/log.md"),
        ("`gen/log.md` must not be edited.", "edit gen/log.md"),
        ("Don't use `npm` and don't use `yarn`.", "yarn install"),
        ("Do not use `npm` and avoid `yarn`.", "yarn install"),
        ("Never use `npm`, `yarn` or `bun`.", "yarn install"),
        ("Never use `git add -A`, `git add .` or `git commit -a`.", "git commit -a -m x"),
        ("Use pnpm, never npm, yarn or bun.", "bun install"),
    ],
)
def test_what_a_rule_rules_out_beside_what_it_asks_for_is_broken(
    memory: AgentMemory, rule: str, line: str
) -> None:
    keep(memory, rule, paths=("docs/log.md", "gen/log.md"))
    assert broken(memory, line)


def test_a_command_that_a_rule_rules_out_is_named_once(memory: AgentMemory) -> None:
    keep(memory, PUSH)
    (line,) = broken(memory, f"cd {'a' * 90} && git status; git push origin main")
    assert "this turn ran `git push origin main`" in line
    assert "2026-03-02" in line
    assert not broken(memory, "git push origin main")
    assert not broken(memory, "git log")


@pytest.mark.parametrize(
    "rule",
    [
        "Never push before the tests pass.",
        "Ask me first, never push yourself unless I say so.",
        "Lint the whole project: linting a file alone reports false issues.",
        "Tests are table-driven where it helps.",
        "Do not run the linter after each change.",
    ],
)
def test_a_rule_with_a_condition_or_of_another_kind_is_broken_by_nothing(
    memory: AgentMemory, rule: str
) -> None:
    keep(memory, rule)
    assert not broken(memory, "edit main.go", "git push", "git commit -am x")


@pytest.mark.parametrize(
    ("file", "is_broken"),
    [("gen/a.py", True), ("lib/gen/deep/a.py", True), ("regen/a.py", False), ("gen.py", False)],
)
def test_a_folder_is_left_alone_with_what_is_in_it(
    memory: AgentMemory, file: str, *, is_broken: bool
) -> None:
    rule = "Never edit files in gen/ by hand."
    keep(memory, rule)
    assert bool(broken(memory, f"edit {file}")) is is_broken
    shown = memory.live(repo=SHOP, task="").before(action(f"edit {file}")) or ""
    assert (rule in shown) is is_broken


def test_a_name_that_is_ruled_out_in_one_file_may_be_used_in_another(memory: AgentMemory) -> None:
    rule = "Never use pandas in export.py, it starts too slowly."
    keep(memory, rule, paths=("export.py",))
    for file, is_meant in (("lib/export.py", True), ("report.py", False), ("my_export.py", False)):
        written = {"file_path": file, "content": "import pandas"}
        shown = memory.live(repo=SHOP, task="").before(Action("Write", f"Write {file}", written))
        assert (rule in (shown or "")) is is_meant


def test_what_a_person_wrote_begins_a_turn(memory: AgentMemory) -> None:
    keep(memory, LINT)
    run = memory.live(repo=SHOP, task="")
    edited = Step(0, "", action("edit main.go"), "ok", exit_code=0)
    run.resume([Step(0, "", action("edit main.go"), "ok", exit_code=0, user_message="Go on.")])
    assert run.broken() == ()
    run.resume([edited])
    assert run.broken()


def test_a_start_has_an_index_of_subjects_which_a_search_opens(memory: AgentMemory) -> None:
    subjects = ["width of columns", "export batches", "release notes", "names of flags", "retries"]
    for subject in subjects:
        keep(memory, f"The {subject} stay as decided in the plan.", subject, LessonKind.DECISION)
    text = memory.live(repo=SHOP, task="").start()
    assert all(subject in text for subject in subjects)
    assert "contextgraph lessons --about" in text
    (first, *_) = memory.lessons.about("export batches", SHOP)
    assert first.text == "The export batches stay as decided in the plan."
    assert memory.live(repo="acme/other", task="").start() == ""


def test_a_repeated_rule_is_said_at_the_start_unless_agents_read_it_by_themselves(
    memory: AgentMemory, tmp_path: Path
) -> None:
    rule = "Person decides: options are presented, not chosen."
    keep(memory, rule)
    assert memory.live(repo=SHOP, task="").start() == ""
    for session in "tu":
        keep(memory, rule, session=session)
    keep(memory, "The width of columns is 12.", kind=LessonKind.DECISION)
    text = memory.live(repo=SHOP, task="").start()
    assert rule in text
    assert "width" not in text
    assert rule in memory.live(repo=SHOP, task="", workdir=tmp_path).start()
    (tmp_path / "CLAUDE.md").write_text("# Rules\n- The person decides; options are presented.\n")
    assert memory.live(repo=SHOP, task="", workdir=tmp_path).start() == ""


def test_a_lesson_about_a_file_that_is_gone_is_silent(memory: AgentMemory, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    file = tmp_path / "shop" / "totals.py"
    file.write_text("x = 1\n")
    keep(memory, "Totals in shop/totals.py are rounded up.", "totals", paths=("shop/totals.py",))
    keep(memory, "No file shop/sums.py: sums stay with totals.", "sums", paths=("shop/sums.py",))
    asked = "How are totals in shop/totals.py rounded?"

    def shown(request: str) -> str | None:
        return memory.live(repo=SHOP, task="", workdir=tmp_path).prompt(request)

    assert "rounded up" in (shown(asked) or "")
    file.unlink()
    assert "rounded up" not in (shown(asked) or "")
    assert "No file shop/sums.py" in (shown("Put the sums into shop/sums.py") or "")


def test_a_long_request_that_shares_words_with_a_lesson_in_passing_brings_none(
    memory: AgentMemory,
) -> None:
    keep(memory, "Totals in shop/totals.py are rounded up.", "totals", paths=("shop/totals.py",))
    request = "The totals of the shop are off by a cent."
    plan = (
        "The importer of the warehouse reads prices from the catalogue and writes a ledger. "
        "The courier takes labels from the printer and a manifest from dispatch. "
        "The cashier puts vouchers into the safe of the kiosk and keeps a journal."
    )
    assert "rounded up" in (memory.live(repo=SHOP, task="").prompt(request) or "")
    assert memory.live(repo=SHOP, task="").prompt(f"{request} {plan}") is None


def test_a_rule_to_check_all_is_said_before_a_command_that_checks_a_part(
    memory: AgentMemory,
) -> None:
    rule = "Lint the whole project: linting a file alone reports false issues."
    keep(memory, rule)
    run = memory.live(repo=SHOP, task="")
    assert run.before("golangci-lint run 2>&1 | head -50") is None
    assert rule in (run.before("golangci-lint run ./pkg/shop") or "")


@pytest.mark.parametrize(
    ("kind", "text", "actions"),
    [
        (
            LessonKind.DECISION,
            "Guests cannot use the flag of `shopctl run` with `run`.",
            ["just run"],
        ),
        (
            LessonKind.DECISION,
            "Hints come from `sed -i`, but not of readers like `cat`.",
            ["cat a.py"],
        ),
        (LessonKind.FACT, "The importer never calls `curl`.", ["curl localhost"]),
        (LessonKind.CHECKLIST, "A change of README.md goes with shop.py.", ["edit README.md"]),
        (
            LessonKind.DECISION,
            "The importer takes `cwd`, not `b`, as its folder.",
            ["edit shop.py"],
        ),
    ],
)
def test_what_only_mentions_a_command_or_a_name_is_not_broken(
    memory: AgentMemory, kind: LessonKind, text: str, actions: list[str]
) -> None:
    keep(memory, text, kind=kind, paths=("README.md",) if kind is LessonKind.CHECKLIST else ())
    assert not broken(memory, *actions)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (LessonKind.DECISION, "`ci.yml` runs linting (`ruff check`) and testing (`pytest`)."),
        (LessonKind.RULE, "Tool use is readable: LS as a path, PYTEST as its name."),
        (LessonKind.RULE, "The reader names types, such as `ruff` and `pytest`, of the tools."),
        (LessonKind.RULE, "`check` is not exported, as pytested names are."),
        (LessonKind.FACT, "Run with `pytest`, the shop is open."),
        (LessonKind.FACT, "`pytest -A` ends with an error, use `pytest -ra`."),
    ],
)
def test_what_only_mentions_a_program_is_not_said_before_it_runs(
    memory: AgentMemory, kind: LessonKind, text: str
) -> None:
    keep(memory, text, kind=kind)
    run = memory.live(repo=SHOP, task="")
    assert run.before("ls -l && pytest -q a.py && ruff check a.py") is None


@pytest.mark.parametrize(
    ("kind", "text", "line", "is_said"),
    [
        (LessonKind.FACT, "`cat -A` is an illegal option here: use `od -c`.", "cat -A a.py", True),
        (LessonKind.FACT, "`cat -A` is an illegal option here: use `od -c`.", "cat a.py", False),
        (LessonKind.RULE, "Never use `gh pr diff` with a path.", "gh pr diff 7 -- a.py", True),
        (LessonKind.RULE, "Never use `gh pr diff` with a path.", "gh pr view 7", False),
        (LessonKind.RULE, "Always run `ruff check` with `--fix`.", "ruff check a.py", True),
    ],
)
def test_a_lesson_on_one_form_of_a_command_is_silent_before_another(
    memory: AgentMemory, kind: LessonKind, text: str, line: str, is_said: bool
) -> None:
    keep(memory, text, kind=kind, programs=tuple(line.split()[:1]))
    run = memory.live(repo=SHOP, task="")
    assert (text in (run.before(line) or "")) is is_said


def before_edit(memory: AgentMemory, file: str, written: str, session: str = "") -> str:
    """Return what is said before *file* is edited, in a *session*."""
    given = {"file_path": file, "old_string": "a", "new_string": written}
    run = memory.live(repo=SHOP, task="", session=session)
    return run.before(Action("Edit", f"Edit {file}", given)) or ""


def test_an_edit_is_shown_a_decision_on_a_symbol_where_it_is_touched(memory: AgentMemory) -> None:
    text = "`check_flags()` refuses two flags at once, tested in the style of `tests/a_test.py`."
    keep(
        memory, text, kind=LessonKind.DECISION, paths=("tests/a_test.py",), symbols=("check_flags",)
    )
    for session in "abcd":
        written = "assert check_flags(both) == 2"
        assert text in before_edit(memory, "/shop/tests/a_test.py", written, session)
    for written in ("assert total(flags) == 2", "assert recheck_flags(both) == 2"):
        assert not before_edit(memory, "/shop/tests/a_test.py", written)


def test_an_edit_is_shown_nothing_about_a_file_of_the_same_name_elsewhere(
    memory: AgentMemory,
) -> None:
    text = "Totals in lib/tax/session.py are rounded up."
    keep(memory, text, kind=LessonKind.DECISION, paths=("lib/tax/session.py",))
    assert text in before_edit(memory, "/home/me/shop/lib/tax/session.py", "totals = 1")
    assert text in before_edit(memory, "tax/session.py", "totals = 1")
    assert text in before_edit(memory, r"C:\shop\lib\tax\session.py", "totals = 1")
    for file in ("/home/me/shop/lib/price/session.py", r"C:\shop\lib\price\session.py"):
        assert not before_edit(memory, file, "totals = rounded()")


@pytest.mark.parametrize(
    ("kind", "said"),
    [(LessonKind.DECISION, [True, True, False]), (LessonKind.RULE, [True, True, True])],
)
def test_a_decision_is_said_before_edits_of_two_sessions_and_a_rule_of_all(
    memory: AgentMemory, kind: LessonKind, said: list[bool]
) -> None:
    keep(memory, "Totals in shop.py are rounded up.", kind=kind, paths=("shop.py",))
    assert [bool(before_edit(memory, "shop.py", "x = 1", name)) for name in "abc"] == said


@pytest.mark.parametrize(
    ("kind", "said"),
    [(LessonKind.DECISION, [False] * 3), (LessonKind.RULE, [True] * 3)],
)
def test_a_repeated_decision_is_said_at_no_start_and_a_repeated_rule_at_all(
    memory: AgentMemory, kind: LessonKind, said: list[bool]
) -> None:
    for session in "stu":
        keep(memory, "Totals are rounded up.", kind=kind, session=session)
    starts = [memory.live(repo=SHOP, task="", session=name).start() for name in "abc"]
    assert [bool(start) for start in starts] == said


def test_lines_of_a_program_in_a_request_bring_no_lesson(memory: AgentMemory) -> None:
    keep(memory, "Files of the page are named by version, as in CLI-VERSION.md.", "files")
    lines = ["page check", *(f"📦 Version of the CLI files: {number}.1.2" for number in range(9))]
    request = "\n".join(["This is not good.", "", "$ page check", *lines])
    assert memory.live(repo=SHOP, task="").prompt("How are files of the page named by version?")
    assert memory.live(repo=SHOP, task="").prompt(request) is None
    assert without_output(request) == "This is not good.\npage check"


def test_files_that_a_request_mentions_bring_their_lessons(memory: AgentMemory) -> None:
    text = "Totals of export.py are rounded up to cents before tax."
    keep(memory, text, "export totals", kind=LessonKind.DECISION, paths=("shop/lib/export.py",))
    names = ("export", "tax", "cents", "totals")
    request = "\n".join(["Why are these as they are?", *(f"@shop/lib/{one}.py" for one in names)])
    assert text in (memory.live(repo=SHOP, task="").prompt(request) or "")


def test_an_empty_code_span_in_a_rule_names_no_program(memory: AgentMemory) -> None:
    keep(memory, "The span ` ` of the page is never cut before the tests run.")
    assert memory.live(repo=SHOP, task="").before("python -m pytest -q") is None


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        ("Never rely on `acme/dates` for times.", ["acme/dates"]),
        ("Prices are computed in shop/prices, not in shop/common.", []),
    ],
)
def test_a_module_that_nothing_relies_on_is_no_place(rule: str, names: list[str]) -> None:
    assert [one.name for one in names_ruled_out(rule)] == names
