"""Whatever is sent to the service, it does not fail: generated from its OpenAPI document."""

from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error

from tests.profiles import examples
from tests.served import serving

# Two requests of each operation; the nightly profile sends 120.
bounded = settings(max_examples=examples(0.06), suppress_health_check=[*HealthCheck])


def test_no_request_fails(tmp_path: Path) -> None:
    with serving(tmp_path / "memory.db") as server:
        document = server.client.base_url.join("/openapi.json")
        schema: Any = schemathesis.openapi.from_url(str(document))
        for operation in schema.get_all_operations():

            @bounded
            @given(operation.ok().as_strategy())
            def send(case: Any) -> None:
                case.call_and_validate(checks=[not_a_server_error])

            send()
        server.client.get("/healthz").raise_for_status()
