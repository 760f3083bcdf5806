"""The bundle of one run."""

from contextgraph.learning import bundle_of, inspect_run, trajectory_id
from contextgraph.model import FragmentOutcome, FragmentType, LoopEnding, LoopKind, Outcome, Phase
from contextgraph.text import fence
from contextgraph.trace import describe_remedy
from tests.builders import NO_MODULE, NOON, recovering_run, run

KEY = "AKIA" + "Q7XJ2M5TRWB4ZKLP"
FAILED_TEST = """=================================== FAILURES ===================================
    def test_total():
>       assert total() == 12
E       assert 11 == 12

tests/test_total.py:4: AssertionError
=========================== short test summary info ============================
FAILED tests/test_total.py::test_total - assert 11 == 12
============================== 1 failed in 0.02s ===============================
"""


def test_an_error_that_was_cleared_is_a_recovery_with_its_actions():
    bundle = bundle_of(recovering_run(), NOON)
    (recovered,) = bundle.recovered
    (error,) = bundle.errors
    assert error.error_type == "ModuleNotFoundError"
    assert recovered.error_id == error.id
    assert (recovered.error_step, recovered.cleared_step) == (1, 2)
    assert recovered.verified
    assert [one.target for one in recovered.actions] == ["PYTHONPATH=lib"]
    home = next(f for f in bundle.fragments if f.id == recovered.fragment_id)
    assert home.fragment_type is FragmentType.ERROR_RECOVERY
    assert home.outcome is FragmentOutcome.RECOVERED
    assert home.description.startswith("ModuleNotFoundError (No module named")
    assert home.description.endswith(describe_remedy(recovered.actions))


def test_a_fragment_starts_at_an_error_and_ends_at_its_recovery():
    ranges = [(f.start, f.end) for f in bundle_of(recovering_run(), NOON).fragments]
    assert ranges == [(0, 0), (1, 2)]


def test_an_error_that_was_never_cleared_is_a_failed_attempt():
    bundle = bundle_of(run([("ls", "", 0), ("python reproduce.py", NO_MODULE, 1)]), NOON)
    last = bundle.fragments[-1]
    assert last.fragment_type is FragmentType.FAILED_ATTEMPT
    assert last.outcome is FragmentOutcome.FAILED
    assert "ModuleNotFoundError" in last.description
    assert bundle.recovered == ()


def test_the_same_failure_repeated_is_a_loop_fragment():
    raw = run([("ls", "", 0), *[("python reproduce.py", NO_MODULE, 1)] * 5])
    last = bundle_of(raw, NOON).fragments[-1]
    assert last.fragment_type is FragmentType.LOOP
    assert (last.start, last.end) == (1, 5)
    assert "5 times `python reproduce.py`" in last.description


def test_editing_and_passing_tests_is_a_fix():
    raw = run(
        [
            ("python -m pytest", FAILED_TEST, 1),
            ("sed -i 's/11/12/' lib/total.py", "", 0),
            ("python -m pytest", "============ 3 passed in 0.01s ============", 0),
        ]
    )
    bundle = bundle_of(raw, NOON)
    assert bundle.trajectory.files == ("lib/total.py",)
    assert "lib/total.py" in bundle.trajectory.summary
    assert [r.cleared_step for r in bundle.recovered] == [2]


def test_a_fragment_touches_the_file_of_a_test_that_it_names():
    passed = "============ 1 passed in 0.01s ============"
    commands = ["cat tests/test_a.py", "pytest tests/test_a.py::TestA::test_b"]
    bundle = bundle_of(run([(command, passed, 0) for command in commands]), NOON)
    assert {file for one in bundle.fragments for file in one.files} == {"tests/test_a.py"}


def test_a_run_without_steps_is_an_imported_fix():
    patch = "--- a/lib/total.py\n+++ b/lib/total.py\n@@ -1 +1 @@\n-a\n+b\n"
    bundle = bundle_of(run([], patch=patch, outcome=Outcome.SOLVED), NOON)
    assert bundle.fragments == ()
    assert bundle.trajectory.files == ("lib/total.py",)
    assert bundle.trajectory.success is True


def test_two_imported_fixes_of_one_task_differ_by_their_patch():
    assert trajectory_id(run([], patch="a")) != trajectory_id(run([], patch="b"))


def test_no_secret_reaches_the_bundle():
    raw = run([(f"export AWS_ACCESS_KEY_ID={KEY}", f"set {KEY}", 0)], task=f"use {KEY}")
    assert KEY not in repr(bundle_of(raw, NOON))


def test_advice_in_a_run_is_removed_and_its_context_recorded():
    advice = fence("set PYTHONPATH to lib", "ctx_0123456789abcdef")
    bundle = bundle_of(run([("ls", f"README.md\n{advice}\n", 0)], task=f"Fix it\n{advice}"), NOON)
    assert [one.context_id for one in bundle.exposures] == ["ctx_0123456789abcdef"]
    assert "PYTHONPATH" not in repr(bundle.raw)


def test_the_summary_does_not_depend_on_the_outcome():
    solved, failed = (
        bundle_of(recovering_run(outcome=outcome), NOON).trajectory.summary
        for outcome in (Outcome.SOLVED, Outcome.FAILED)
    )
    assert solved == failed


def test_inspecting_reads_a_run_as_learning_does():
    inspection = inspect_run(recovering_run())
    assert inspection.fragments == bundle_of(recovering_run(), NOON).fragments
    assert next(step.phase for step in inspection.trace.steps) is Phase.UNDERSTANDING


def test_files_that_a_run_made_itself_are_not_among_those_it_changed():
    made = "--- /dev/null\n+++ b/reproduce.py\n@@ -0,0 +1 @@\n+print()\n"
    changed = "--- a/lib/total.py\n+++ b/lib/total.py\n@@ -1 +1 @@\n-a\n+b\n"
    steps = [("cat > reproduce.py <<'E'\nprint()\nE", "", 0), ("sed -i s/a/b/ total.py", "", 0)]
    assert bundle_of(run(steps), NOON).trajectory.files == ("total.py",)
    by_patch = bundle_of(run(steps, patch=made + changed), NOON)
    assert by_patch.trajectory.files == ("lib/total.py",)
    merged = bundle_of(run([], patch=made + changed), NOON)
    assert merged.trajectory.files == ("lib/total.py", "reproduce.py")


def the_description(*steps: tuple[str, str, int]) -> str:
    (fragment,) = bundle_of(run(list(steps)), NOON).fragments
    return fragment.description


def test_a_search_is_described_with_its_hits():
    found = "lib/a.py:3:def total():\nlib/b.py:9:total()"
    assert the_description(("grep -rn total lib", found, 0), ("grep -rn vat lib", "", 1)) == (
        "searched with `grep -rn total lib` (2 hits), `grep -rn vat lib` (nothing)"
    )


def test_a_command_is_described_with_its_result():
    assert the_description(("python reproduce.py", "loading\n12", 0)) == (
        "`python reproduce.py` ended with `12`"
    )
    assert the_description(("python reproduce.py", NO_MODULE, 1)).startswith(
        "`python reproduce.py` failed with ModuleNotFoundError: No module named"
    )


def test_a_written_script_is_described_by_its_first_lines():
    description = the_description(
        ("cat > reproduce.py <<'E'\nimport total\nprint(total.sum())\nE", "", 0)
    )
    assert description == "added `import total`, `print(total.sum())` in reproduce.py"


def test_a_summary_has_the_error_the_fix_and_the_end():
    raw = run(
        [
            ("python reproduce.py", NO_MODULE, 1),
            ("pip install total", "Successfully installed total-1.0", 0),
            ("python reproduce.py", "11", 0),
            ("sed -i 's/11/12/' lib/total.py", "", 0),
            ("python reproduce.py", "12", 0),
        ]
    )
    summary = bundle_of(raw, NOON).trajectory.summary
    parts = [
        "before the fix `python reproduce.py` failed with ModuleNotFoundError",
        "changed lib/total.py",
        "cleared: run `pip install total`",
        "in the end `python reproduce.py` ended with `12`",
    ]
    assert [part in summary for part in parts] == [True] * len(parts)
    assert sorted(parts, key=summary.index) == parts


def test_a_loop_says_what_was_repeated_and_how_it_ended():
    same = [("ls src", "ls: cannot access 'src': No such file or directory", 2)] * 4
    raw = run([*same, ("ls lib", "total.py", 0), ("cat lib/total.py", "11", 0)])
    (loop,) = (one for one in bundle_of(raw, NOON).fragments if one.loop_kind)
    assert (loop.loop_kind, loop.loop_command) == (LoopKind.SAME_COMMAND_SAME_ERROR, "ls")
    assert (loop.repetitions, loop.loop_ending) == (4, LoopEnding.LEFT)
    (stuck,) = (one for one in bundle_of(run(same), NOON).fragments if one.loop_kind)
    assert stuck.loop_ending is LoopEnding.RUN_ENDED
