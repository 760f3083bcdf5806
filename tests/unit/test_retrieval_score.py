"""Evidence, and what the gate makes of it."""

from dataclasses import replace

import pytest

from contextgraph.model import ErrorSignature, Family, ScopeLevel, SignatureLevel
from contextgraph.retrieval import CONSERVATIVE
from contextgraph.retrieval.score import (
    about_another,
    likeness,
    on_topic,
    overlap,
    recovery_evidence,
)
from tests.builders import recovery

ASKED = ErrorSignature(
    family=Family.PYTHON_EXCEPTION,
    error_type="ModuleNotFoundError",
    message="No module named 'tariffs'",
    template="No module named <name>",
    location="/shop/reproduce.py:1",
)


def evidence(asked=ASKED, repo="acme/shop", **fields):
    return recovery_evidence(asked, recovery(**fields), repo)


def admits(evidence, level, scope=ScopeLevel.REPO, repositories=1, about=False, another=False):
    return CONSERVATIVE.admits_recovery(
        evidence,
        level,
        scope,
        repositories=repositories,
        on_topic=about,
        about_another=another,
    )


def test_what_was_done_in_another_repository_must_be_on_topic_or_have_worked_in_two():
    level, elsewhere = SignatureLevel.TEMPLATE, ScopeLevel.GENERAL
    assert admits(0.9, level)
    assert not admits(0.9, level, elsewhere)
    assert admits(0.9, level, elsewhere, repositories=2)
    assert admits(0.9, level, elsewhere, about=True)


def test_a_recovery_is_on_topic_when_what_was_done_names_what_the_error_is_about():
    asked = replace(ASKED, keywords=("tariffs",))
    assert not on_topic(asked, recovery().recovered)
    assert on_topic(asked, recovery(what="installed tariffs").recovered)


def test_what_was_done_about_another_name_is_never_shown():
    assert not admits(0.99, SignatureLevel.TEMPLATE, another=True)


@pytest.mark.parametrize(
    ("asked", "cleared", "another"),
    [
        ("No module named 'tariffs'", "No module named 'numpy'", True),
        ("No module named 'tariffs'", "No module named 'tariffs'", False),
        ("'Cart' has no attribute 'tax'", "'Order' has no attribute 'tax'", False),
        ("unexpected indent", "No module named 'numpy'", False),
        ("No module named 'tariffs'", "unexpected indent", False),
    ],
)
def test_an_error_is_about_another_name_when_it_shares_none(asked, cleared, another):
    found = recovery(message=cleared).recovered
    assert about_another(replace(ASKED, message=asked), found) is another
    refused = replace(ASKED, family=Family.EDIT_REJECTED, message=asked)
    assert about_another(refused, found) is another


@pytest.mark.parametrize("family", [Family.NOT_FOUND, Family.SHELL])
def test_that_another_path_or_command_is_not_found_may_have_the_same_reason(family):
    asked = replace(ASKED, family=family, message="cat: 'src/cart.py': no such file")
    assert not about_another(asked, recovery(message="cat: 'lib/tax.py': no such file").recovered)


def test_the_same_message_at_the_same_place_in_the_same_repository_is_the_strongest():
    score, level = evidence()
    assert level is SignatureLevel.PLACE
    assert score > 0.9


@pytest.mark.parametrize(
    "weaker",
    [
        {"repo": "other/one"},
        {"verified": False},
        {"workaround": True},
        {"message": "No module named 'numpy'"},
        {"location": None},
    ],
)
def test_each_doubt_lowers_the_evidence(weaker):
    assert evidence(**weaker)[0] < evidence()[0]


def test_another_type_agrees_on_the_family_only_and_is_never_shown():
    score, level = evidence(replace(ASKED, error_type="KeyError", template="<name>"))
    assert level is SignatureLevel.FAMILY
    assert score < CONSERVATIVE.recovery
    assert not admits(0.99, level)


def test_agreeing_on_a_template_of_placeholders_means_no_more_than_the_type():
    hollow = replace(ASKED, template="<name> <number>")
    found = recovery()
    found = replace(found, error=replace(found.error, template="<name> <number>"))
    assert recovery_evidence(hollow, found, "acme/shop")[1] is SignatureLevel.TYPE


def test_an_unverified_recovery_of_another_repository_is_not_admitted():
    score, level = evidence(repo="other/one", verified=False, message="No module named 'x'")
    assert not admits(score, level)


def test_rare_words_count_for_more():
    asked = {"tariff": 5.0, "error": 0.5}
    assert overlap(asked, "the tariff is missing") > overlap(asked, "an error is missing")


def test_overlap_with_nothing_in_common_is_nothing():
    assert overlap({"tariff": 5.0}, "no such word") == 0
    assert overlap({}, "tariff") == 0


def test_likeness_is_1_for_the_same_words_and_0_without_any():
    assert likeness(["a", "b"], ["b", "a"]) == 1
    assert likeness([], ["a"]) == 0


@pytest.mark.parametrize(("scope", "least"), [(ScopeLevel.REPO, 0.06), (ScopeLevel.GENERAL, 0.20)])
def test_a_case_of_another_repository_must_be_more_alike(scope, least):
    assert CONSERVATIVE.admits_case(least, scope, same_file=False)
    assert not CONSERVATIVE.admits_case(least - 0.01, scope, same_file=False)


def test_a_case_at_the_same_file_is_admitted_in_its_repository_only():
    assert CONSERVATIVE.admits_case(0, ScopeLevel.REPO, same_file=True)
    assert not CONSERVATIVE.admits_case(0, ScopeLevel.GENERAL, same_file=True)


def test_a_case_near_in_meaning_is_admitted_in_its_repository_only():
    assert CONSERVATIVE.admits_case(0, ScopeLevel.REPO, same_file=False, similarity=0.3)
    assert not CONSERVATIVE.admits_case(0, ScopeLevel.REPO, same_file=False, similarity=0.29)
    assert not CONSERVATIVE.admits_case(0, ScopeLevel.GENERAL, same_file=False, similarity=0.9)
