"""Spans of memory operations for OpenTelemetry, off until `instrument` is called: docs/service.md.

Names and attributes are those of the GenAI semantic conventions 0.1.0 for memory operations
(status: development). No text of a query or a run is recorded.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_tracer: "Tracer | None" = None


def instrument(provider: "TracerProvider | None") -> None:
    """Make spans of memory operations with this provider, from now on; with None none any more."""
    from importlib.metadata import version  # loads what most processes never need

    global _tracer  # noqa: PLW0603  (the library has no other place that all memories share)
    package = "contextgraph"
    _tracer = provider.get_tracer(package, version("contextgraph-memory")) if provider else None


@contextmanager
def exporting(service: str) -> Iterator[bool]:
    """Send spans of the block to the OTLP endpoint of the environment; False without one.

    False as well without the extra ``otel``. The standard variables ``OTEL_…`` apply.
    """
    if not any(map(os.environ.get, _ENDPOINTS)) or find_spec("opentelemetry.sdk") is None:
        yield False
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", service)})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    instrument(provider)
    try:
        yield True
    finally:
        instrument(None)
        provider.shutdown()


@contextmanager
def operation(
    name: Literal["search_memory", "upsert_memory", "delete_memory"], store: str, record: str = ""
) -> Iterator[None]:
    """A span of the operation on the memory called *store*, or on one *record* of it."""
    if _tracer is None:
        yield
        return
    from opentelemetry.trace import SpanKind, Status, StatusCode

    attributes = {
        "gen_ai.operation.name": name,
        "gen_ai.provider.name": "contextgraph",
        "gen_ai.memory.store.id": store,
        **({"gen_ai.memory.record.id": record} if record else {}),
    }
    with _tracer.start_as_current_span(
        name,
        kind=SpanKind.INTERNAL,
        attributes=attributes,
        record_exception=False,  # a message may quote a query or a learned run
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except Exception as error:
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR))
            raise


@contextmanager
def continued(headers: Mapping[str, str]) -> Iterator[None]:
    """Add spans of the block to the trace that the headers of a request name (traceparent)."""
    if _tracer is None:
        yield
        return
    from opentelemetry import context
    from opentelemetry.propagate import extract

    token = context.attach(extract(headers))
    try:
        yield
    finally:
        context.detach(token)
