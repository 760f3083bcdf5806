"""Spans of memory operations, as the GenAI semantic conventions describe them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from contextgraph import AgentMemory, State
from contextgraph.errors import StoreError
from contextgraph.system.processes import exporting, instrument
from tests.builders import NO_MODULE, recovering_run
from tests.served import served

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """The spans that are made within the test."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrument(provider)
    yield exporter
    instrument(None)
    provider.shutdown()


def attributes(span: ReadableSpan) -> dict[str, object]:
    """Return the attributes of *span*."""
    return dict(span.attributes or {})


def test_learning_querying_and_forgetting_are_spans_without_texts(
    spans: InMemorySpanExporter,
) -> None:
    with AgentMemory.open(":memory:", tenant="team") as memory:
        receipt = memory.learn(recovering_run())
        memory.query(State(repo="acme/shop", current_error=NO_MODULE))
        memory.forget([receipt.trajectory_id])

    made = spans.get_finished_spans()
    store = {"gen_ai.provider.name": "contextgraph", "gen_ai.memory.store.id": "team"}
    assert [one.name for one in made] == ["upsert_memory", "search_memory", "delete_memory"]
    assert {one.kind for one in made} == {SpanKind.INTERNAL}
    assert attributes(made[0]) == {"gen_ai.operation.name": "upsert_memory", **store}
    assert attributes(made[1]) == {"gen_ai.operation.name": "search_memory", **store}
    assert attributes(made[2])["gen_ai.memory.record.id"] == receipt.trajectory_id


def test_a_failure_is_named_by_its_type_alone(spans: InMemorySpanExporter, tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    AgentMemory.open(str(file)).close()
    file.write_bytes(b"not a memory" * 100)
    with AgentMemory.open(str(file)) as memory, pytest.raises(StoreError):
        memory.query(State(repo="acme/shop"))

    (span,) = spans.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert str(attributes(span)["error.type"]).endswith("Error")
    assert (span.status.description, span.events) == (None, ())


def test_spans_of_the_service_belong_to_the_trace_of_the_caller(
    spans: InMemorySpanExporter, tmp_path: Path
) -> None:
    with served(tmp_path) as service:
        service.client().post(
            "/v1/query",
            json={"state": {"repo": "acme/shop"}},
            headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"},
        )

    (span,) = spans.get_finished_spans()
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == TRACE


def test_nothing_is_exported_without_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with exporting("test") as is_on:
        assert not is_on
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    with exporting("test") as is_on:
        assert is_on
