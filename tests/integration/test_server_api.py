"""Whatever is sent to the service, it does not fail: generated from its OpenAPI document."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error

from tests.served import serving


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with serving(tmp_path_factory.mktemp("api") / "memory.db") as server:
        yield schemathesis.openapi.from_url(f"{server.client.base_url}openapi.json")


schema = schemathesis.pytest.from_fixture("document")


@schema.parametrize()
@settings(max_examples=20, deadline=None, suppress_health_check=[*HealthCheck])
def test_no_request_fails(case: "schemathesis.Case[Any]") -> None:
    case.call_and_validate(checks=[not_a_server_error])
