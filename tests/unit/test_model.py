"""Values of the model."""

import pytest

from contextgraph.model import (
    ErrorSignature,
    Family,
    Phase,
    SignatureLevel,
    State,
    instance_id_in,
    repo_of,
)


@pytest.mark.parametrize(
    ("text", "instance"),
    [
        ("acme__shop-12.traj", "acme__shop-12"),
        ("v0__acme__shop-12.traj", "acme__shop-12"),
        ("run of acme-corp__shop.py-3, again", "acme-corp__shop.py-3"),
        ("3D__my_shop-1", "3D__my_shop-1"),
        ("shop-12", None),
    ],
)
def test_an_instance_id_is_found_in_a_file_name(text, instance):
    assert instance_id_in(text) == instance


def test_the_repository_is_part_of_the_instance_id():
    assert repo_of("acme__shop-12") == "acme/shop"
    assert repo_of("something else") == ""


def test_the_phase_of_a_state_may_be_given_by_its_value():
    assert State(phase="testing").phase is Phase.TESTING  # type: ignore[arg-type]
    assert State().phase is None
    with pytest.raises(ValueError, match="dreaming"):
        State(phase="dreaming")  # type: ignore[arg-type]


def signature(**fields):
    given = {
        "family": Family.SHELL,
        "error_type": "bash: command not found",
        "message": "gti: command not found",
        "template": "<name>: command not found",
        "location": "a.sh:1",
        **fields,
    }
    return ErrorSignature(**given)


@pytest.mark.parametrize(
    ("other", "level"),
    [
        ({}, SignatureLevel.PLACE),
        ({"location": "b.sh:2"}, SignatureLevel.TEMPLATE),
        ({"location": None}, SignatureLevel.TEMPLATE),
        ({"template": "other"}, SignatureLevel.TYPE),
        ({"error_type": "other"}, SignatureLevel.FAMILY),
        ({"family": Family.TIMEOUT}, None),
    ],
)
def test_errors_agree_up_to_the_level_at_which_they_differ(other, level):
    one, another = signature(), signature(**other)
    assert one.agreement(another, another.location) is level
    assert another.agreement(one, one.location) is level


def test_two_errors_without_a_place_do_not_share_one():
    nowhere = signature(location=None)
    assert nowhere.agreement(nowhere) is SignatureLevel.TEMPLATE


def test_an_exception_is_the_same_whether_a_test_runner_reports_it_or_not():
    shown = signature(family=Family.PYTHON_EXCEPTION, error_type="KeyError")
    reported = signature(family=Family.TEST_FAILURE, error_type="KeyError", location="t.py:9")
    assert shown.agreement(reported) is SignatureLevel.TEMPLATE
    assert {variant.family for variant in shown.variants()} == {
        Family.PYTHON_EXCEPTION,
        Family.TEST_FAILURE,
        Family.SYNTAX_ERROR,
    }
    assert signature(family=Family.SHELL).variants() == (signature(family=Family.SHELL),)


def test_a_type_error_of_node_is_not_one_of_python():
    python = signature(family=Family.PYTHON_EXCEPTION, error_type="TypeError")
    node = signature(family=Family.RUNTIME_EXCEPTION, error_type="TypeError")
    reported = signature(family=Family.TEST_FAILURE, error_type="TypeError", location="t:9")
    assert python.agreement(node) is None
    assert Family.PYTHON_EXCEPTION not in {variant.family for variant in node.variants()}
    assert {python.agreement(reported), node.agreement(reported)} == {SignatureLevel.TEMPLATE}
