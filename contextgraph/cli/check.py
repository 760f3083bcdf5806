"""``contextgraph check``: a change against what is known, for hooks of git and for CI."""

import sys
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from contextgraph.cli.commands import Common, common_options, described, flag, option, report_unread
from contextgraph.cli.output import DONE, FAILED, emit, fail, print_text, warn
from contextgraph.service.records import record_of
from contextgraph.system.processes import replacing
from contextgraph.text import neutral, number_of

if TYPE_CHECKING:
    from contextgraph.knowledge.check import Checked, Checker, Finding
    from contextgraph.knowledge.judging import Judge
    from contextgraph.memory.agent_memory import AgentMemory
    from contextgraph.readers.repository import GitFolder

_STDIN, _HEAD, _MOST_BYTES = "-", "HEAD", 1 << 26
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
# The titles of findings, for SARIF.
_TITLES = {
    "command": "A command that a lesson rules out",
    "name": "A name that a lesson rules out was added",
    "file": "A file that a lesson leaves alone was changed",
    "value": "A value that a lesson states was changed",
    "check": "A check that a lesson orders did not run",
    "checklist": "A file that is changed together with others",
    "touched": "A lesson about what was changed",
    "citation": "A lesson cites what is gone",
    "judged": "A lesson that a change breaks, as a language model judges",
    "unjudged": "A language model gave no usable answer",
    "question": "A saved question has another answer",
}


@common_options()
def check(  # noqa: PLR0913  (the change, who judges it, and where to)
    common: Common,
    *,
    diff: Annotated[
        str | None,
        described(
            "--diff",
            metavar="[BASE]",
            is_flag=False,
            flag_value=_HEAD,
            help="The change since this commit, HEAD by default; - reads a unified diff.",
        ),
    ] = None,
    staged: Annotated[bool, flag("Only what is staged for the next commit.")] = False,
    ran: Annotated[
        list[str] | None, option("COMMAND", "A check that ran on the change (repeatable).")
    ] = None,
    by: Annotated[
        str, option("MODEL", "Let claude, codex, openai/MODEL or a command judge the rest.")
    ] = "",
    write_requests: Annotated[
        Path | None, option("FOLDER", "Write what a model would be asked into a file instead.")
    ] = None,
    read_answers: Annotated[
        Path | None, option("FOLDER", "Read the answer beside that file (NAME.json).")
    ] = None,
    sarif: Annotated[Path | None, option("FILE", "Also write the findings as SARIF 2.1.0.")] = None,
    ask: Annotated[
        str, option("QUESTION", "Save this question with its answers, to be checked later.")
    ] = "",
) -> None:
    """Check a change against what is known.

    Which lessons it breaks: a name that is ruled out, a file that is to be left alone, a value, a
    check that did not run, a checklist of which a part is missing; and which it touches. Which
    files and symbols that lessons cite are gone, and which saved questions (in
    .contextgraph/questions) have another answer. Without --diff only these. Words and structure
    decide; what they cannot a model may judge (--by), which is said. Ends with 1 where something is
    broken or an answer changed.

    \b
    Example:
      contextgraph check --diff
      contextgraph check --diff origin/main --ran pytest --sarif out.sarif
      contextgraph check --ask 'How many rows has a batch?'
    """
    from contextgraph.errors import MemoryNotFoundError
    from contextgraph.knowledge.check import Checked
    from contextgraph.knowledge.entries import questions_in
    from contextgraph.knowledge.team import root_of, trusts_lessons
    from contextgraph.readers.repository import repository_name

    if (by or write_requests or read_answers) and not (diff or staged):
        raise click.BadParameter("a model judges a change: give --diff or --staged, too")
    root = root_of(Path.cwd())
    patch = _patch(diff or _HEAD, root, staged=staged) if diff or staged else None
    questions, damaged = questions_in(root) if trusts_lessons(root) else ([], {})
    for error in damaged.values():
        warn(str(error))
    found = Checked((), 0)
    try:
        with common.open_repository(repository_name(root)) as memory:
            checker = memory.checker(root)
            if ask:
                _save(common, root, checker, ask)
                return
            findings = [*checker.questions(questions)]
            if patch is None:
                findings += checker.citations()
            else:
                judge = _judge(common, memory, by, write_requests, read_answers)
                findings += checker.change(patch, ran or (), judge)
            found = Checked(tuple(findings), len(checker.active), len(questions))
    except MemoryNotFoundError:
        if ask or common.store:
            raise
    if sarif:
        with replacing(sarif) as part:  # it quotes what people said: for its owner alone
            part.write_bytes(_encoded(_sarif(found.findings)))
        common.exported(sarif)
    if common.as_json:
        emit(record_of(found))
    else:
        _print(found)
    report_unread(Path(root))
    raise click.exceptions.Exit(FAILED if found.is_broken else DONE)


def _patch(base: str, root: str, *, staged: bool) -> str:
    """Return the unified diff to check."""
    from contextgraph.readers.repository import GitFolder
    from contextgraph.trace.steps import files_changed

    if base == _STDIN:
        patch = sys.stdin.buffer.read(_MOST_BYTES).decode("utf-8", "replace")
        if patch.strip() and not files_changed(patch):
            fail("standard input: line 1: no unified diff, it names no file")
        return patch
    git = GitFolder.around(root)
    if git is None:
        fail(f"{root} is no git repository; --diff - reads a unified diff")
    return git.diff(_commit(git, base), staged=staged)


def _commit(git: "GitFolder", base: str) -> str:
    if base == _HEAD and not git.head():
        return git.output("hash-object", "-t", "tree", "--stdin").strip()
    commit = git.commit_of(base)
    if not commit:
        fail(f"{base} is no commit of {git.root}")
    return commit


def _judge(
    common: Common, memory: "AgentMemory", by: str, written: Path | None, answered: Path | None
) -> "Judge | None":
    """Return the model *by*, or the files in its place; None where none is chosen."""
    from contextgraph.inference.answering import answerer_of
    from contextgraph.inference.chat import prompt_text
    from contextgraph.knowledge.judging import PROMPT, Judge, request_name
    from contextgraph.learning.distilling import FILE

    def write(text: str) -> str:
        assert written is not None
        written.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = written / f"{request_name(text)}.txt"
        with replacing(file) as part:  # for its owner alone
            part.write_text(text, "utf-8")
        common.exported(file)
        return "[]"

    def read(text: str) -> str:
        assert answered is not None
        file = answered / f"{request_name(text)}.json"
        if not file.is_file():
            fail(f"{file} is not there: nobody answered what is asked of this change")
        try:
            return file.read_text("utf-8")
        except UnicodeDecodeError as error:
            fail(f"{file}: not UTF-8 at byte {error.start}; it is not read")

    if sum(map(bool, (by, written, answered))) > 1:
        raise click.BadParameter("give one of --by, --write-requests, --read-answers")
    if by:
        answerer = answerer_of(by, memory.chat_of)
        return Judge(answerer.name, prompt_text(PROMPT), lambda text: answerer(text).text)
    if written or answered:
        return Judge(FILE, prompt_text(PROMPT), write if written else read)
    return None


def _save(common: Common, root: str, checker: "Checker", asked: str) -> None:
    from contextgraph.knowledge.entries import Question, question_file
    from contextgraph.system.intake import leaves
    from contextgraph.text import mask_secrets

    answers = tuple(checker.answers(asked)[:1])
    if not answers:
        fail("no lesson of this repository answers that")
    path, text = question_file(Question(" ".join(asked.split()), answers))
    if mask_secrets(text) != text:
        fail("it holds a secret, and is not written into a repository")
    file = Path(root, path)
    if leaves(file, root):
        fail(f"{path} is behind a link to outside the repository, and is not written")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    common.exported(file)
    common.answer({"file": path, "answers": [*answers]}, f'{path}: "{answers[0]}"')


def _print(found: "Checked") -> None:
    from contextgraph.knowledge.check import Level

    for one in found.findings:
        place = f"{one.file}:{one.line}: " if one.file else ""
        print(neutral(f"{place}{one.level}: {one.message}"))
    levels = Counter(one.level for one in found.findings)
    counts = [number_of(levels[level], level) for level in Level if levels[level]]
    listed = ", ".join(counts) or "no finding"
    print_text((f"{listed} by {number_of(found.lessons, 'lesson')} of this repository", "dim"))


def _sarif(findings: "Sequence[Finding]") -> dict[str, Any]:
    used = dict.fromkeys(one.rule for one in findings)
    results = [
        {
            "ruleId": one.rule,
            "level": str(one.level),
            "message": {"text": neutral(one.message)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": one.file, "uriBaseId": "%SRCROOT%"},
                        "region": {"startLine": one.line},
                    }
                }
            ][: bool(one.file)],
            "partialFingerprints": {"lesson": one.lesson or one.file},
        }
        for one in findings
    ]
    rules = [{"id": rule, "shortDescription": {"text": _TITLES[rule]}} for rule in used]
    driver = {
        "name": "ContextGraph",
        "version": version("contextgraph-memory"),
        "rules": rules,
    }
    return {
        "$schema": _SARIF,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _encoded(value: dict[str, Any]) -> bytes:
    import orjson

    return orjson.dumps(value, option=orjson.OPT_INDENT_2)
