"""``contextgraph sessions`` and ``call outcome``."""

import json
import os
import subprocess
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from contextgraph import AgentMemory
from contextgraph.errors import AmbiguousRunError
from contextgraph.model import Action, Outcome, RawTrajectory, Step
from tests.acceptance.command_line import call, contextgraph, write_runs
from tests.builders import NOON, recovering_run, run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    runs = [
        recovering_run(1, agent="ann", outcome=Outcome.SOLVED, started_at=NOON),
        recovering_run(1, agent="bob", started_at=NOON + timedelta(days=1)),
        recovering_run(2, agent="ann", started_at=NOON + timedelta(days=2)),
    ]
    store = tmp_path / "memory.db"
    contextgraph("learn", write_runs(tmp_path / "runs.jsonl", runs), "--store", store)
    return store


def listed(store: Path, *options: str) -> list[tuple[str, str, str]]:
    found = contextgraph("sessions", "--store", store, "--json", *options).records
    return [(one["instance_id"], one["agent"], one["outcome"]) for one in found]


def stored(store: Path) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = call("trajectories", store).records[0]["trajectories"]
    return found


def test_sessions_are_listed_newest_first(store: Path) -> None:
    assert listed(store) == [
        ("acme__shop-2", "ann", "unknown"),
        ("acme__shop-1", "bob", "unknown"),
        ("acme__shop-1", "ann", "solved"),
    ]
    assert listed(store, "--limit", "1") == [("acme__shop-2", "ann", "unknown")]


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (("--repo", "ACME/shop"), 3),
        (("--agent", "ann"), 2),
        (("--outcome", "solved"), 1),
        (("--outcome", "unknown"), 2),
        (("--since", "2026-03-02"), 2),
        (("--until", "2026-03-02"), 1),
        (("--until", "2026-03-02T02:00:00+02:00"), 1),
        (("--agent", "ann", "--since", "2026-03-02"), 1),
        (("--since", "9999w"), 3),
        (("--until", "yesterday"), 3),
        (("--until", "last year"), 0),
        (("--until", "9999w"), 0),
    ],
)
def test_sessions_are_filtered(store: Path, options: tuple[str, ...], count: int) -> None:
    assert len(listed(store, *options)) == count


def test_people_read_titles_and_how_sessions_ended(store: Path) -> None:
    result = contextgraph("sessions", "--store", store, "--limit", "2")

    first, title, facts, *_ = result.out.splitlines()
    assert first == "2 sessions of 3"
    assert title.startswith("2026-03-03 12:00  ")
    identity, said = facts.split(maxsplit=1)
    assert said == "· acme/shop · unknown · ann · 3 steps"
    opened = contextgraph("sessions", "--open", identity, "--store", store).out
    assert opened == contextgraph("sessions", "--open", "--store", store).out
    shown = contextgraph(*opened.split()[1:])
    assert (shown.code, shown.out.splitlines()[0]) == (0, title.partition("  ")[2])
    run = contextgraph("runs", "--store", store, "--limit", "1").out.splitlines()
    assert (run[1].partition("  ")[2], run[2].split()[0]) == (title.partition("  ")[2], identity)
    unknown = contextgraph("sessions", "--open", "trj_none", "--store", store)
    assert (unknown.code, "no session trj_none" in unknown.err) == (1, True)
    assert contextgraph("sessions", "--store", store, "--agent", "x").out == "0 sessions\n"


def test_an_outcome_set_by_hand_precedes_what_is_learned_later(store: Path) -> None:
    done = call("outcome", store, instance_id="acme__shop-1", solved=False, agent="ann")
    again = contextgraph("learn", store.parent / "runs.jsonl", "--store", store)

    assert (done.code, len(done.records[0]["trajectories"])) == (0, 1)
    assert listed(store)[1:] == [
        ("acme__shop-1", "bob", "unknown"),
        ("acme__shop-1", "ann", "failed"),
    ]
    assert "failed as in the memory (by hand), not solved" in again.err


def test_by_hand_precedes_a_report_and_a_report_a_log(store: Path) -> None:
    runs, report = store.parent / "runs.jsonl", store.parent / "given" / "report.json"
    report.parent.mkdir()
    report.write_text('{"resolved_ids": ["acme__shop-2"], "unresolved_ids": ["acme__shop-1"]}')

    def outcomes_after(*command: str | Path) -> list[tuple[str, str | None]]:
        contextgraph(*command, "--store", store)
        found = contextgraph("sessions", "--agent", "ann", "--store", store, "--json").records
        by_id = {run["trajectory_id"]: run for run in stored(store)}
        runs = [by_id[one["id"]] for one in found]
        return [(run["outcome"], run["outcome_source"]) for run in runs]

    by_log, by_report = [("unknown", None), ("solved", "log")], [("solved", "report")]
    by_report += [("failed", "report")]
    assert outcomes_after("learn", runs) == by_log
    assert outcomes_after("learn", runs, "--outcomes", report) == by_report
    assert outcomes_after("learn", runs) == by_report
    by_hand = [("failed", "hand"), by_report[1]]
    failed = ("call", "outcome", "instance_id=acme__shop-2", "solved=false")
    assert outcomes_after(*failed) == by_hand
    assert outcomes_after("learn", runs, "--outcomes", report) == by_hand
    assert outcomes_after("call", "rebuild") == by_hand


def test_of_several_runs_one_must_be_named(store: Path) -> None:
    refused = call("outcome", store, instance_id="acme__shop-1", solved=True)
    with AgentMemory.open(str(store)) as memory, pytest.raises(AmbiguousRunError):
        memory.set_outcome("acme__shop-1", solved=True)
    (run,) = (
        run["trajectory_id"]
        for run in stored(store)
        if (run["instance_id"], run["agent"]) == ("acme__shop-1", "bob")
    )
    done = call("outcome", store, instance_id="acme__shop-1", solved=True, run=run)

    assert refused.code == 1
    assert "has several runs; name one" in refused.err
    assert done.records == [
        {"instance_id": "acme__shop-1", "outcome": "solved", "trajectories": [run]}
    ]
    assert ("acme__shop-1", "bob", "solved") in listed(store)


def test_an_unknown_instance_is_an_error(store: Path) -> None:
    result = call("outcome", store, instance_id="acme__shop-9", solved=True)

    assert result.code == 1
    assert "no such run of acme__shop-9" in result.err


def test_the_library_sets_outcomes(store: Path) -> None:
    with AgentMemory.open(str(store)) as memory:
        changed = memory.set_outcome("acme__shop-2", solved=True, agent="ann")

        assert memory.store.runs.trajectories(changed)[changed[0]].outcome is Outcome.SOLVED
        assert memory.set_outcome("acme__shop-2", solved=True, agent="bob") == []


ADDED = "    return round(sum(tariffs), 2)"


def commit(folder: Path, text: str, days: int, message: str = "change") -> None:
    """Commit *text* as the only file of the repository *folder*, so many *days* after noon."""
    (folder / "totals.py").write_text(text)
    when = (NOON + timedelta(days=days)).isoformat()
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    for command in (("add", "."), (*identity, "commit", "-qm", message)):
        subprocess.run(
            ["git", "-C", folder, *command],
            check=True,
            env={**os.environ, "GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when},
        )


def editing_run(folder: Path, number: int, added: str) -> RawTrajectory:
    """A run in *folder* at noon that adds a line to its file."""
    edit = Action(
        "Edit",
        "Edit totals.py",
        {"file_path": f"{folder}/totals.py", "old_string": "    pass", "new_string": added},
    )
    steps = (Step(0, "", edit, "The file was edited.", cwd=str(folder)),)
    return run([], steps=steps, instance_id=f"acme__shop-{number}", started_at=NOON)


def test_git_shows_whether_a_change_was_kept_or_reverted(tmp_path: Path) -> None:
    folder, store = tmp_path / "shop", tmp_path / "memory.db"
    subprocess.run(["git", "init", "-q", folder], check=True)
    commit(folder, "def total(tariffs):\n    pass\n", days=-1)
    given = [editing_run(folder, 1, ADDED), editing_run(folder, 2, "    return never_committed")]
    runs = write_runs(tmp_path / "runs.jsonl", given)

    def changes() -> list[tuple[str, str]]:
        contextgraph("learn", runs, "--git", "--store", store)
        return sorted((one["change"], one["outcome"]) for one in stored(store))

    assert changes() == [("unknown", "unknown")] * 2
    commit(folder, f"def total(tariffs):\n{ADDED}\n", days=1)
    assert changes() == [("held", "unknown"), ("unknown", "unknown")]
    assert "change held" in contextgraph("sessions", "--store", store).out
    assert (
        "1  runs whose change is held" in contextgraph("stats", "--details", "--store", store).out
    )
    assert "change held" in contextgraph("inspect", runs, "--git").out
    commit(folder, "def total(tariffs):\n    return sum(tariffs)\n", days=2)
    assert changes() == [("reverted", "unknown"), ("unknown", "unknown")]


def test_git_teaches_the_reasons_in_the_history_of_a_trusted_folder(tmp_path: Path) -> None:
    folder, store = tmp_path / "shop", tmp_path / "memory.db"
    subprocess.run(["git", "init", "-q", folder], check=True)
    why = "Round once\n\nRounding each line lost a cent in invoices of more than nine lines."
    commit(folder, "def total(tariffs):\n    pass\n", days=-1, message=why)
    refused = contextgraph("learn", folder, "--git", "--store", store)
    assert refused.code == 1
    assert "trust --histories" in refused.err
    contextgraph("trust", "--histories", folder, "--yes")
    learned = contextgraph("learn", folder, "--git", "--store", store)
    assert "1 lesson in the history" in learned.err
    (found,) = contextgraph("lessons", "local/shop", "--all", "--store", store, "--json").records
    assert found["text"] == why.replace("\n\n", ": ")


def test_git_runs_no_program_that_the_folder_of_a_run_configures(tmp_path: Path) -> None:
    folder, store, ran = tmp_path / "shop", tmp_path / "memory.db", tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(
        f"#!/bin/sh\ntouch {ran}\ncat > /dev/null\n"
        r"printf '\n[GNUPG:] SIG_CREATED ' >&2; printf '%b\n' '-----BEGIN PGP SIGNATURE-----'"
    )
    program.chmod(0o700)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "post-checkout"):
        (hooks / name).symlink_to(program)
    subprocess.run(["git", "init", "-q", folder], check=True)
    signed = {"gpg.program": str(program), "commit.gpgSign": "true"}
    programs = {
        "diff.shown.textconv": str(program),
        "diff.shown.command": str(program),
        "diff.external": str(program),
        "core.fsmonitor": str(program),
        "core.pager": str(program),
        "core.sshCommand": str(program),
        "core.hooksPath": str(hooks),
        "core.alternateRefsCommand": str(program),
        "filter.shown.clean": str(program),
        "filter.shown.smudge": str(program),
        "filter.shown.process": str(program),
        "filter.shown.required": "true",
        "gpg.ssh.program": str(program),
        "include.path": "../included",
        "protocol.ext.allow": "always",
        "remote.origin.url": f"ext::{program}",
        "remote.origin.uploadpack": str(program),
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
        "log.showSignature": "true",
    }
    for name, value in signed.items():
        subprocess.run(["git", "-C", folder, "config", name, value], check=True)
    (folder / ".gitattributes").write_text("* diff=shown filter=shown\n")
    (folder / "included").write_text(f"[core]\n\tfsmonitor = {program}\n\tpager = {program}\n")
    commit(folder, "def total(tariffs):\n    pass\n", days=-1)
    commit(folder, f"def total(tariffs):\n{ADDED}\n", days=1)
    assert ran.exists()
    ran.unlink()
    for name, value in programs.items():
        subprocess.run(["git", "-C", folder, "config", name, value], check=True)
    runs = write_runs(tmp_path / "runs.jsonl", [editing_run(folder, 1, ADDED)])
    contextgraph("learn", runs, "--git", "--store", store)
    (found,) = stored(store)
    assert (found["change"], ran.exists()) == ("held", False)
    for command in (("why", folder / "totals.py"), ("why", f"{folder}/totals.py:2")):
        contextgraph(*command, "--store", store)
    event = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(folder)}
    contextgraph("hook", "--store", store, stdin=json.dumps(event).encode())
    assert not ran.exists()


def test_sessions_of_an_unknown_repository_are_an_error(tmp_path: Path) -> None:
    store = tmp_path / "m.db"
    written = write_runs(tmp_path / "runs.jsonl", [recovering_run()])
    assert contextgraph("learn", written, "--store", store).code == 0
    for command in (("sessions", "--repo"), ("runs", "--repo"), ("last",), ("lessons",)):
        result = contextgraph(*command, "shops", "--store", store)
        assert result.code == 1
        assert "no session of the repository shops; nearest: acme/shop" in result.err
