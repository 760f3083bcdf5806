"""``contextgraph learn --reviews`` and ``--ci``: reviewers and failing jobs as teachers."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from contextgraph import AgentMemory, State
from contextgraph.model import Lesson, LessonStatus, RemedyKind
from tests.acceptance.command_line import Result, contextgraph
from tests.acceptance.test_cli_team import git
from tests.deadline import deadline

SHOP = "acme/shop"
RULE = "We never call requests directly from the views, always go through the gateway module."


def comment(text: str, **more: Any) -> Mapping[str, Any]:
    number = more.pop("number", 12)
    return {
        "user": {"login": more.pop("login", "grace"), "type": more.pop("type", "User")},
        "body": text,
        "path": "shop/views.py",
        "diff_hunk": "@@ -1,2 +1,3 @@\n import gateway\n+page = requests.get(ADDRESS)",
        "position": 2,
        "created_at": f"2026-03-02T12:00:{number:02}Z",
        "html_url": f"https://github.com/acme/shop/pull/{number}#discussion_r1",
        "author_association": "MEMBER",
        **more,
    }


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "views.py").write_text("import gateway\npage = requests.get(ADDRESS)\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "remote", "add", "origin", "https://github.com/acme/shop.git")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Begin")
    monkeypatch.chdir(folder)
    return folder


def learn(tmp_path: Path, *arguments: str | Path) -> Result:
    return contextgraph("learn", *arguments, "--store", tmp_path / "memory.db", "--json")


def reviewed(tmp_path: Path, *comments: Mapping[str, Any]) -> list[Lesson]:
    file = tmp_path / "comments.json"
    file.write_text(json.dumps(comments))
    assert learn(tmp_path, "--reviews", file).code == 0
    return lessons(tmp_path)


def lessons(tmp_path: Path) -> list[Lesson]:
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        return [*memory.lessons.of(SHOP)]


def test_a_comment_that_was_followed_is_a_lesson_of_its_reviewer(
    tmp_path: Path, checkout: Path
) -> None:
    (lesson,) = reviewed(tmp_path, comment(RULE, position=None))
    assert (lesson.text, lesson.status, lesson.repo) == (RULE, LessonStatus.ACTIVE, SHOP)
    (quote,) = lesson.evidence
    assert (quote.session, quote.speaker) == ("acme/shop#12", "grace")
    assert quote.context == "page = requests.get(ADDRESS)"
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        text = memory.live(repo=SHOP, task="").prompt("How do the views call requests directly?")
        assert "by github:grace" in (text or "")


def test_what_follows_is_read_from_the_code_as_it_is_now(tmp_path: Path, checkout: Path) -> None:
    (lesson,) = reviewed(tmp_path, comment(RULE))
    assert lesson.status is LessonStatus.PROPOSED
    (checkout / "shop" / "views.py").write_text("import gateway\npage = gateway.get(ADDRESS)\n")
    git(checkout, "commit", "-qam", "Use the gateway")
    (lesson,) = reviewed(tmp_path, comment(RULE))
    assert lesson.status is LessonStatus.ACTIVE


def test_what_two_reviews_say_is_active(tmp_path: Path, checkout: Path) -> None:
    (lesson,) = reviewed(tmp_path, comment(RULE), comment(RULE, number=14))
    assert (lesson.status, lesson.sessions) == (LessonStatus.ACTIVE, 2)


def test_who_is_addressed_is_not_part_of_the_lesson(tmp_path: Path, checkout: Path) -> None:
    (lesson,) = reviewed(tmp_path, comment(f"@ann @bob-1 nit: {RULE}", position=None))
    assert (lesson.text, lesson.status) == (RULE, LessonStatus.ACTIVE)


def test_what_follows_a_quotation_is_said_by_the_reviewer(tmp_path: Path, checkout: Path) -> None:
    said = comment(f"> Why not call it here?\n\n{RULE}", position=None)
    (lesson,) = reviewed(tmp_path, said)
    assert (lesson.text, lesson.status) == (RULE, LessonStatus.ACTIVE)


@pytest.mark.parametrize("unit", ["<!--", "![", "![]("])
def test_marks_without_end_in_a_comment_do_not_hold_up_learning(
    tmp_path: Path, checkout: Path, unit: str
) -> None:
    with deadline(20):
        (lesson,) = reviewed(tmp_path, comment(RULE), comment(unit * 60_000, number=14))
    assert lesson.text == RULE


@pytest.mark.parametrize(
    "said",
    [
        "Please rename this to `name` to reduce repetitiveness when accessing the value.",
        "The page needs the currency of the shop in its title.",
        "Style reference: https://example.org/guide#avoid-repetition",
    ],
)
def test_what_is_about_the_lines_beside_it_is_no_lesson(
    tmp_path: Path, checkout: Path, said: str
) -> None:
    assert reviewed(tmp_path, comment(said, position=None)) == []


def test_what_two_pull_requests_have_is_a_lesson(tmp_path: Path, checkout: Path) -> None:
    said = "The views need the currency of the shop in their titles."
    both = (comment(said, login=name, number=at) for at, name in enumerate(("grace", "ann")))
    assert {one.text for one in reviewed(tmp_path, *both)} == {said}
    link = "Style reference: https://example.org/guide#avoid-repetition"
    both = (comment(link, number=at) for at in (3, 4))
    assert {one.text for one in reviewed(tmp_path, *both)} == {said}


@pytest.mark.parametrize(
    "said",
    [
        comment(RULE, type="Bot"),
        comment(RULE, login="coderabbitai[bot]"),
        comment(RULE, in_reply_to_id=7, author_association="NONE"),
        comment(RULE, author_association="NONE"),
        comment(RULE, author_association="CONTRIBUTOR", position=None),
        comment(f"> {RULE}"),
        comment(f"```suggestion\n{RULE}\n```"),
        comment("LGTM"),
    ],
)
def test_bots_outsiders_and_quotes_are_left_out(
    tmp_path: Path, checkout: Path, said: Mapping[str, Any]
) -> None:
    assert reviewed(tmp_path, said) == []


BEGUN = comment("Why not requests?", id=7, login="ann", position=None)


@pytest.mark.parametrize(
    ("replies", "statuses"),
    [
        ([comment(RULE, in_reply_to_id=7, position=None)], [LessonStatus.PROPOSED]),
        ([comment(RULE, in_reply_to_id=8, position=None)], [LessonStatus.PROPOSED]),
        ([comment(RULE, in_reply_to_id=7, position=None, login="ann")], [LessonStatus.ACTIVE]),
        (
            [
                comment("I will rename it in the next commit.", in_reply_to_id=7, number=at)
                for at in (1, 2)
            ],
            [],
        ),
    ],
)
def test_a_reply_is_followed_only_where_it_goes_on_from_its_own_comment(
    tmp_path: Path,
    checkout: Path,
    replies: list[Mapping[str, Any]],
    statuses: list[LessonStatus],
) -> None:
    found = reviewed(tmp_path, BEGUN, *replies)
    assert [(one.text, one.status) for one in found] == [(RULE, status) for status in statuses]


def test_a_model_is_asked_of_a_reply_with_what_it_answers(tmp_path: Path, checkout: Path) -> None:
    file, folder = tmp_path / "comments.json", tmp_path / "asked"
    file.write_text(json.dumps([BEGUN, comment(SHORT, in_reply_to_id=7)]))
    distil(tmp_path, "--reviews", file, "--write-requests", folder)
    (asked,) = folder.glob("*grace*.txt")
    assert "in reply to: Why not requests?" in asked.read_text()


SHORT = "Not from the views, please: the gateway is there for that."
MADE = "Views of the shop call the gateway module, and requests is not called there."


def distil(tmp_path: Path, *arguments: str | Path) -> Result:
    store = tmp_path / "memory.db"
    return contextgraph("distil", *arguments, "--store", store, "--json")


def test_a_model_makes_a_lesson_of_comments_which_words_cannot(
    tmp_path: Path, checkout: Path
) -> None:
    file, folder = tmp_path / "comments.json", tmp_path / "asked"
    comments = [comment("Typo."), comment(SHORT, number=14, position=None)]
    file.write_text(json.dumps([*comments, comment("Nice!", login="ann")]))
    assert learn(tmp_path, "--reviews", file).code == 0
    assert lessons(tmp_path) == []
    asking = ("--reviews", file, "--write-requests", folder)
    assert distil(tmp_path, *asking).records[-1]["summary"]["requests"] == 2
    (asked,) = folder.glob("*grace*.txt")
    text = asked.read_text()
    place = "acme/shop#14, shop/views.py, line `page = requests.get(ADDRESS)`, changed afterwards"
    assert place in text
    item = {"kind": "rule", "lesson": MADE, "about": {"subject": "the gateway"}}
    quotes = ("the gateway is there for that", "words that nobody wrote")
    rows = [{**item, "evidence": [{"turn": 1, "quote": quote}]} for quote in quotes]
    asked.with_suffix(".json").write_text(json.dumps(rows))
    reading = ("--reviews", file, "--read-answers", folder)
    (receipt, _) = distil(tmp_path, *reading).records
    assert (receipt["kept"], [one["text"] for one in receipt["refused"]]) == (1, [MADE])
    (lesson,) = lessons(tmp_path)
    assert (lesson.text, lesson.status, lesson.contributor) == (
        MADE,
        LessonStatus.PROPOSED,
        "github:grace",
    )
    (quote,) = lesson.evidence
    assert (quote.run, quote.session, quote.speaker) == ("", "acme/shop#14", "grace")
    assert distil(tmp_path, *asking).records[-1]["summary"]["requests"] == 1
    assert MADE not in next(tmp_path.glob("*.distil/log.jsonl")).read_text()
    later = comment("We never call it twice.", number=15)
    for written in ([*comments, later], [later]):
        file.write_text(json.dumps(written))
        assert distil(tmp_path, *asking).records[-1]["summary"]["requests"] == 1


def test_a_model_is_asked_of_the_reviews_of_one_repository(tmp_path: Path, checkout: Path) -> None:
    file, folder = tmp_path / "comments.json", tmp_path / "asked"
    elsewhere = "https://github.com/acme/bank/pull/12#discussion_r1"
    file.write_text(json.dumps([comment(SHORT), comment(SHORT, html_url=elsewhere)]))
    asking = ("--reviews", file, "--write-requests", folder)
    assert distil(tmp_path, *asking, "--repo", SHOP).records[-1]["summary"]["requests"] == 1
    (asked,) = folder.glob("*.txt")
    assert "acme/bank" not in asked.read_text()
    for more in (("--since", "7d"), ("--methodologies",)):
        refused = distil(tmp_path, *asking, *more)
        assert (refused.code, f"{more[0]}" in refused.err) == (2, True)


def test_a_file_of_something_else_is_named(tmp_path: Path, checkout: Path) -> None:
    (tmp_path / "other.json").write_text('[{"id": 1}]')
    done = learn(tmp_path, "--reviews", tmp_path / "other.json")
    assert done.code == 1
    assert "no comment or review" in done.err


def test_pages_that_follow_each_other_are_read(tmp_path: Path, checkout: Path) -> None:
    page = json.dumps([comment(RULE, position=None)])
    (tmp_path / "pages.json").write_text(page + json.dumps([comment(RULE, number=13)]))
    (summary,) = learn(tmp_path, "--reviews", tmp_path / "pages.json").records
    assert summary["summary"]["comments"] == 2
    assert lessons(tmp_path)[0].sessions == 2


ERROR = """\
Traceback (most recent call last):
  File "/builds/shop/shop/check.py", line 1, in <module>
    import yaml
ModuleNotFoundError: No module named 'yaml'"""


def log(commit: str, minute: int, output: str, code: int, prefix: str = "") -> str:
    def stamped(lines: list[str]) -> Iterator[str]:
        for number, line in enumerate(lines):
            yield f"{prefix}2026-03-02T12:{minute:02}:{number % 60:02}.1234567Z {line}"

    ended = [f"##[error]Process completed with exit code {code}."] if code else []
    return "\n".join(
        stamped(
            [
                "Current runner version: '2.320.0'",
                "##[group]Run actions/checkout@v4",
                "##[endgroup]",
                "[command]/usr/bin/git log -1 --format=%H",
                commit,
                "##[group]Run pip install tools",
                "shell: /usr/bin/bash -e {0}",
                "##[endgroup]",
                "Successfully installed tools-1.0",
                "##[group]Run python check.py",
                "\x1b[36;1mpython check.py\x1b[0m",
                "shell: /usr/bin/bash -e {0}",
                "##[endgroup]",
                *output.splitlines(),
                *ended,
                "Post job cleanup.",
                "Cleaning up orphan processes",
            ]
        )
    )


@pytest.mark.parametrize("prefix", ["", "test (3.12)\tUNKNOWN STEP\t"])
def test_a_job_that_failed_is_cleared_by_the_next_commit(
    tmp_path: Path, checkout: Path, prefix: str
) -> None:
    (checkout / "check.py").write_text("import yaml\n")
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "Check")
    failed = git(checkout, "rev-parse", "HEAD").strip()
    (checkout / "check.py").write_text("import json\n")
    git(checkout, "commit", "-qam", "Check without yaml")
    passed = git(checkout, "rev-parse", "HEAD").strip()
    first, second = (tmp_path / f"{at}_test (3.12).txt" for at in (1, 2))
    first.write_text(log(failed, 1, ERROR, 1, prefix))
    second.write_text(log(passed, 9, "ok", 0, prefix))
    done = learn(tmp_path, "--ci", second, first)
    assert done.code == 0
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        (run,) = memory.store.runs.trajectories(memory.store.runs.ids()).values()
        raw = memory.store.runs.raw(run.id)
        assert raw is not None
        assert [step.exit_code for step in raw.steps] == [0, 1, 0, 0]
        assert (run.repo, run.contributor, run.instance_id) == (
            SHOP,
            "ci",
            f"test (3.12)@{failed[:12]}",
        )
        (recovery,) = memory.inspect(raw).trace.recoveries
        assert (recovery.error_step, recovery.cleared_step) == (1, 3)
        assert [action.kind for action in recovery.actions] == [RemedyKind.EDIT]
        state = State(repo=SHOP, current_error=ERROR.replace("/builds/shop/", "/src/"))
        assert [one.actions for one in memory.query(state).error_solutions] or memory.query(
            state
        ).suggestions


def test_a_failure_without_a_later_log_of_its_job_is_named(tmp_path: Path, checkout: Path) -> None:
    commits = [git(checkout, "rev-parse", "HEAD").strip()]
    git(checkout, "commit", "-q", "--allow-empty", "-m", "Next")
    commits.append(git(checkout, "rev-parse", "HEAD").strip())
    logs = [log(commits[0], 1, ERROR, 1), log(commits[1], 9, "ok", 0)]
    own, same = ("red.txt", "green.txt"), ("1_test.txt", "2_test.txt")
    said = {}
    for names in (own, same):
        files = [tmp_path / name for name in names]
        for file, text in zip(files, logs, strict=True):
            file.write_text(text)
        said[names] = learn(tmp_path, "--ci", *files).err
    assert "red failed, and no later log of a job of this name is here" in said[own]
    assert "1_NAME.txt" in said[own]
    assert said[same] == ""
