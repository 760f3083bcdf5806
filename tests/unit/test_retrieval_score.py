"""Evidence, and the thresholds of the gate."""

from collections import Counter

import pytest

from contextgraph.advising.channels import (
    about_another,
    emphasised,
    scope_level,
    signature_level,
    task_counts,
)
from contextgraph.advising.gate import CONSERVATIVE, CaseFeatures, case_probability
from contextgraph.model import ErrorSignature, Family, ScopeLevel, SignatureLevel
from contextgraph.model.values import replace
from contextgraph.text import bm25, overlap, word_counts
from tests.builders import recovery

ERROR = ErrorSignature(
    family=Family.PYTHON_EXCEPTION,
    error_type="ModuleNotFoundError",
    message="No module named 'tariffs'",
    template="No module named <name>",
    location="/shop/reproduce.py:1",
)


@pytest.mark.parametrize(
    ("message", "cleared", "another"),
    [
        ("No module named 'tariffs'", "No module named 'numpy'", True),
        ("No module named 'tariffs'", "No module named 'tariffs'", False),
        ("'Cart' has no attribute 'tax'", "'Order' has no attribute 'tax'", False),
        ("unexpected indent", "No module named 'numpy'", False),
        ("No module named 'tariffs'", "unexpected indent", False),
    ],
)
def test_an_error_is_about_another_name_when_it_shares_none(message, cleared, another):
    found = recovery(message=cleared)
    assert about_another(replace(ERROR, message=message), found) is another
    refused = replace(ERROR, family=Family.EDIT_REJECTED, message=message)
    assert about_another(refused, found) is another


@pytest.mark.parametrize("family", [Family.NOT_FOUND, Family.SHELL])
def test_that_another_path_or_command_is_not_found_may_have_the_same_reason(family):
    error = replace(ERROR, family=family, message="cat: 'src/cart.py': no such file")
    assert not about_another(error, recovery(message="cat: 'lib/tax.py': no such file"))


def test_agreeing_on_a_template_of_placeholders_means_no_more_than_the_type():
    hollow = replace(ERROR, template="<name> <number>")
    found = recovery()._replace(template="<name> <number>")
    assert signature_level(hollow, found) is SignatureLevel.TYPE


def test_rare_words_count_for_more():
    weights = {"tariff": 5.0, "error": 0.5}
    assert overlap(weights, word_counts("the tariff is missing")) > overlap(
        weights, word_counts("an error is missing")
    )


def test_overlap_with_nothing_in_common_is_nothing():
    assert overlap({"tariff": 5.0}, word_counts("no such word")) == 0
    assert overlap({}, word_counts("tariff")) == 0


def test_a_text_with_more_of_the_rare_words_is_more_relevant():
    texts = [Counter("no module named tariffs".split()), Counter("no module named numpy".split())]
    near, far = bm25(("no", "module", "named", "tariffs"), texts)
    assert near > far > 0
    assert bm25(("unrelated",), texts) == [0, 0]
    assert bm25((), []) == []


@pytest.mark.parametrize("known", ["Acme/Shop", "acme/shop"])
def test_the_name_of_a_repository_is_the_same_in_any_case(known):
    assert scope_level(known, "acme/shop") is ScopeLevel.REPO
    assert scope_level("", "") is ScopeLevel.GENERAL


def test_a_case_is_more_probable_the_more_speaks_for_it():
    least = CaseFeatures(0.2, 5, 0.7)
    assert case_probability(least) < min(
        case_probability(least._replace(similarity=0.3)),
        case_probability(least._replace(shared=6)),
        case_probability(least._replace(closeness=0.8)),
        case_probability(least._replace(lead=0.1)),
        case_probability(least._replace(distance=0.1)),
    )
    assert case_probability(CaseFeatures(1.0, 1, 1.0)) < CONSERVATIVE.min_case_precision


def test_a_word_of_the_title_or_of_a_changed_file_counts_for_more_than_one_of_the_text():
    weights = emphasised({"tariff": 1.0, "get_tariff": 1.0, "price": 1.0}, "Wrong price\n\ntariff")
    assert weights == {"tariff": 1.0, "get_tariff": 2.0, "price": 2.0}
    in_text, in_title = "Wrong sums\nof a tariff", "Wrong tariff\nof sums"
    found = [
        overlap(weights, task_counts(task, files))
        for task, files in ((in_text, ()), (in_text, ("lib/tariff.py",)), (in_title, ()))
    ]
    assert found == sorted(found)
    assert len({*found}) == 3
