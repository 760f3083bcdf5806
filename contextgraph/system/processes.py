"""This process and others: forks, who has ended, private files and their locks, spans.

Spans of memory operations for OpenTelemetry are off until `instrument` is called: docs/service.md.
Their names and attributes are those of the GenAI semantic conventions 0.1.0 for memory operations
(status: development). No text of a query or a run is recorded.
"""

import fcntl
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Condition, Lock, get_ident
from typing import TYPE_CHECKING, Literal, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

Cached = TypeVar("Cached")

ASKED = "CONTEXTGRAPH_ASKED"
"""An environment variable of programs that a memory asks: hooks in them do nothing."""

_PROC = Path("/proc")
# By thread, how deep it is in what a fork would break off in the child: importing a module, or
# SQLite, whose allocator has a lock that all its connections share.
_busy: dict[int, int] = {}
_busy_changed = Condition(Lock())
# Then it forks all the same: what it waits for may itself wait for the thread that forks.
_FORK_WAIT_SECONDS = 10


@contextmanager
def no_fork() -> Iterator[None]:
    """Let no other thread fork meanwhile: in the child, locks of this one would stay locked."""
    thread = get_ident()
    with _busy_changed:
        _busy[thread] = _busy.get(thread, 0) + 1
    try:
        yield
    finally:
        with _busy_changed:
            _busy[thread] -= 1
            if not _busy[thread]:
                del _busy[thread]
                _busy_changed.notify_all()


class CachedPart(cached_property[Cached]):
    """A `cached_property` during which no other thread forks.

    Up to Python 3.11 it holds a lock while the value is made, and so does an import; a child that
    was forked then would wait for both for ever.
    """

    if not TYPE_CHECKING:

        def __get__(self, instance: object, owner: type | None = None) -> object:
            with no_fork():
                return super().__get__(instance, owner)


def _before_fork() -> None:
    _busy_changed.acquire()
    _busy_changed.wait_for(lambda: _busy.keys() <= {get_ident()}, _FORK_WAIT_SECONDS)


def _after_fork_in_child() -> None:
    for thread in _busy.keys() - {get_ident()}:
        del _busy[thread]
    _busy_changed.release()


# What is registered last runs first. `logging` takes its lock before a fork, and a thread that logs
# would wait for the fork that waits for it: who registers these imports it before.
AT_FORK = {
    "before": _before_fork,
    "after_in_parent": _busy_changed.release,
    "after_in_child": _after_fork_in_child,
}


def load(*modules: str) -> None:
    """Import *modules*, which are not imported with the library; no thread forks meanwhile."""
    with no_fork():
        for module in modules:
            import_module(module)


class Process(Struct, frozen=True):
    """A process that no other is equal to, on any machine.

    *machine* is one start of a machine and what process numbers mean in it, empty where unknown.
    A number is used again, but not by a process that *started_at* the same time (in ticks).
    """

    machine: str
    number: int
    started_at: str


def this_process() -> Process:
    """Return the process that calls this."""
    number = os.getpid()
    return Process(_machine(), number, _started_at(number))


def has_ended(process: Process) -> bool:
    """Return True where *process* is known to have ended.

    False where that cannot be seen: on another machine, in another container, without /proc.
    """
    is_here = process.machine != "" and process.machine == _machine()
    return is_here and _started_at(process.number) != process.started_at


@cache
def _machine() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started_at(number: int) -> str:
    """When a process started, in ticks since the machine did; empty where there is none."""
    try:
        status = (_PROC / str(number) / "stat").read_text()
    except OSError:
        return ""
    # The name of the program comes second, in brackets, and may contain anything.
    state, *fields = status.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]


def private(path: str, flags: int) -> int:
    """Open a file that only its owner may read where it is made: an *opener* for `open`."""
    return os.open(path, flags, 0o600)


def create_private(path: Path) -> None:
    """Create the empty file *path*, which only its owner may read, unless there is one."""
    with suppress(FileExistsError), open(path, "xb", opener=private):
        pass


def append(path: Path | str, content: bytes, *, sync: bool = False) -> int:
    """Append *content* to the private file *path* in one write; return where it begins.

    So lines of several processes do not mix. With *sync* it is on disk on return.
    """
    os.makedirs(os.path.dirname(path) or ".", 0o700, exist_ok=True)
    with open(path, "ab", opener=private) as file:
        start = file.tell()
        file.write(content)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    return start


def written_at(path: Path | str) -> float:
    """Return when *path* was written last, in seconds since 1970; 0 where that cannot be seen."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


@contextmanager
def locked(path: Path | str, *, wait: bool = True, shared: bool = False) -> Iterator[bool]:
    """Hold the lock of the private file *path* in the block.

    Yields False where another process holds it and this one is not to *wait*.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    os.makedirs(os.path.dirname(path) or ".", 0o700, exist_ok=True)
    # A reader may be allowed to read only.
    with open(path, "rb" if os.path.exists(path) else "ab", opener=private) as file:
        try:
            fcntl.flock(file, kind if wait else kind | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def replacing(path: Path, *, sync: bool = False) -> Iterator[Path]:
    """Yield a new file that only its owner may read, which replaces *path* at the end of the block.

    Of the files that killed processes began in its folder, none stays. With *sync* it is on disk
    before.
    """
    for left in path.parent.glob("*.*.*.cg-part"):
        if not _runs(left.name.split(".")[-3]):
            left.unlink(missing_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.{get_ident()}.cg-part")
    try:
        create_private(part)
        yield part
        if sync:
            with part.open("rb") as file:
                os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _runs(number: str) -> bool:
    """Return whether a process of this *number* runs here."""
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        pass
    return True


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
    """Yield a span of the operation on the memory called *store*, or on one *record* of it."""
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


def start_detached(
    module: str, *arguments: str, environment: Mapping[str, str] = os.environ
) -> None:
    """Start a process that outlives this one, without the modules of the current folder."""
    program = [sys.executable, "-P", "-m", module, *arguments]
    nowhere = [(os.POSIX_SPAWN_OPEN, file, os.devnull, os.O_RDWR, 0) for file in range(3)]
    os.posix_spawn(sys.executable, program, environment, file_actions=nowhere, setsid=True)
