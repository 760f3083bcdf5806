"""Properties of the bundle of any run."""

from hypothesis import given, strategies as st

from contextgraph.learning import bundle_of, fragment_id, masked, trajectory_id
from contextgraph.model import Outcome
from contextgraph.model.values import replace
from tests.builders import NO_MODULE, NOON, run

TURNS = st.sampled_from(
    [
        ("ls", "README.md", 0),
        ("cat lib/tariffs.py", "def rate(): ...", 0),
        ("sed -i 's/a/b/' lib/tariffs.py", "", 0),
        ("python reproduce.py", NO_MODULE, 1),
        ("python reproduce.py", "total: 12", 0),
        ("python -m pytest", "E   assert 1 == 2\n=== 1 failed in 0.1s ===", 1),
        ("python -m pytest", "=== 3 passed in 0.1s ===", 0),
        ("gti status", "bash: gti: command not found", 127),
        ("git diff", "", 0),
    ]
)
RUNS = st.lists(TURNS, max_size=25).map(run)


@given(RUNS)
def test_fragments_cover_every_step_once_and_in_order(raw):
    fragments = bundle_of(raw, NOON).fragments
    covered = [i for fragment in fragments for i in range(fragment.start, fragment.end + 1)]
    assert covered == list(range(len(raw.steps)))
    assert [fragment.order for fragment in fragments] == list(range(len(fragments)))


@given(RUNS)
def test_every_edge_has_both_its_ends_in_the_bundle(raw):
    bundle = bundle_of(raw, NOON)
    fragments = {fragment.id: fragment for fragment in bundle.fragments}
    errors = {error.id for error in bundle.errors}
    assert {edge.error_id for edge in bundle.caused} == errors
    assert {edge.error_id for edge in bundle.recovered} <= errors
    for edge in bundle.caused:
        home = fragments[edge.fragment_id]
        assert all(home.start <= step <= home.end for step in edge.steps)
    for recovered in bundle.recovered:
        home = fragments[recovered.fragment_id]
        assert recovered.error_step < recovered.cleared_step
        assert home.start <= recovered.cleared_step <= home.end


@given(RUNS)
def test_ids_are_unique_within_a_bundle(raw):
    bundle = bundle_of(raw, NOON)
    fragments = [fragment.id for fragment in bundle.fragments]
    assert len(set(fragments)) == len(fragments)
    assert len({error.id for error in bundle.errors}) == len(bundle.errors)
    assert fragments == [
        fragment_id(bundle.trajectory.id, fragment.start, fragment.end)
        for fragment in bundle.fragments
    ]


@given(RUNS, st.sampled_from(Outcome), st.text(max_size=9))
def test_the_id_of_a_run_depends_neither_on_thoughts_nor_on_the_outcome(raw, outcome, text):
    steps = tuple(replace(step, thought=text, cwd=text) for step in raw.steps)
    changed = replace(raw, steps=steps, outcome=outcome, system_prompt=text, source=text)
    assert trajectory_id(changed) == trajectory_id(raw)


@given(RUNS)
def test_learning_from_the_stored_run_gives_the_same_bundle(raw):
    bundle = bundle_of(raw, NOON)
    assert bundle_of(bundle.raw, NOON, identity=bundle.trajectory.id) == bundle


@given(st.text(max_size=200))
def test_masking_a_run_twice_changes_nothing_more(text):
    raw = run([(text, text, 0)], task=text)
    once = masked(raw)[0]
    assert masked(once)[0] == once


# Joined at run time, so that no scanner takes this file for a leak.
SECRET = "gh" + "p_" + "Zx81Kd93" * 5
PARTS = st.sampled_from(
    [
        *(
            SECRET,
            SECRET[:3],
            "password=",
            "Tr0ub4dor&3xyz",
            '"',
            "\n",
            " ",
            "é",
            "\u0130",
            "token:",
        ),
        *("https://me:", "s3cr3tpass9", "@host", "</cg-memory>", "PRIVATE KEY-----"),
        *("\x1b[1m", "token:"),
    ]
)
TEXTS = st.lists(PARTS, max_size=6).map("".join)


@given(st.lists(TEXTS, max_size=5), TEXTS)
def test_each_text_of_a_run_is_masked_independently(observations, task):
    separately = [masked(run([("ls", text, 0)]))[0].steps[0].observation for text in observations]
    whole = replace(run([("ls", text, 0) for text in observations]), task=task)
    assert [step.observation for step in masked(whole)[0].steps] == separately
