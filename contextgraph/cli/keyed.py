"""``contextgraph set``, ``brief`` and ``compact``: entries under keys, on plain files."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import FAILED, AsJson, Store, Tenant, option
from contextgraph.cli.output import emit, plain, warn
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextgraph.keyed import KeyedMemory

Key = Annotated[str, typer.Argument(metavar="KEY", help="A path such as /user/preference/style.")]
Content = Annotated[
    str,
    typer.Argument(
        metavar="JSON", help="What to store; null removes the key; - for standard input."
    ),
]


def set_(
    key: Key,
    content: Content,
    source: Annotated[
        str, option("--source", "NAME|JSON", "Who says so, a name or kind, name, … as JSON (user).")
    ] = "user",
    isolate: Annotated[
        bool,
        typer.Option("--isolate", help="Store below /untrusted what lacks its provenance."),
    ] = False,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Store JSON under a key, on plain files.

    Agents read them with ls, grep and jq. What was there is replaced; the log keeps it. What comes
    from the web, a tool or a file, or goes below /kb/, needs a source with kind, name, retrieved_at
    and locator. Secrets are masked.

    \b
    With --json one object: "key", "seq", "status" (set, removed or isolated),
    "path" (null where removed).

    \b
    Example:
      contextgraph set /user/review '{"summary": "be brief", "importance": 8}'
      contextgraph set /user/todo/flag null --source agent
    """
    text = sys.stdin.read() if content == "-" else content
    receipt = _keyed(store, tenant).set_memory(
        key,
        _json(text, "JSON"),
        _json(source, "--source") if source.lstrip().startswith("{") else source,
        untrusted="isolate" if isolate else "refuse",
    )
    path = str(receipt.path) if receipt.path else None
    if as_json:
        emit({"key": receipt.key, "seq": receipt.seq, "status": receipt.status, "path": path})
    else:
        print(plain(f"{receipt.key}: {receipt.status}" + (f", {path}" if path else "")))


def brief(
    tokens: Annotated[
        int, typer.Option(metavar="N", min=1, help="The most tokens of the text.")
    ] = 800,
    tag: Annotated[
        list[str] | None, option("--tag", "TAG", "Prefer entries with it (repeatable).")
    ] = None,
    newest_first: Annotated[
        bool, typer.Option("--newest-first", help="Order by time, then importance, then tags.")
    ] = False,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Print the entries to start a prompt with, best first.

    Recency, importance (0 to 10, else 5) and matching tags count equally. Expired entries and those
    below /untrusted are left out; nothing is printed where none is left.

    \b
    With --json one object: "text", "keys", "omitted" (current entries that did
    not fit).

    \b
    Example:
      contextgraph brief --tokens 600 --tag python
    """
    from contextgraph.keyed import BriefingPolicy

    policy = BriefingPolicy(newest_first=newest_first)
    found = _keyed(store, tenant).brief(tokens, tag or (), policy=policy)
    if as_json:
        emit({"text": found.text, "keys": [*found.keys], "omitted": found.omitted})
    elif found.text:
        print(plain(found.text))


def compact(as_json: AsJson = False, store: Store = None, tenant: Tenant = None) -> None:
    """Shorten the log of keyed entries.

    The log then holds the live entries; the calls before are in archive/. Expired entries are
    removed, and what other programs changed is repaired.

    \b
    With --json one object: "lines_before", "lines_after", "keys", "expired".

    \b
    Example:
      contextgraph compact
    """
    report = _keyed(store, tenant).compact()
    if as_json:
        from dataclasses import asdict

        emit(asdict(report))
    else:
        print(
            f"log: {report.lines_before:,} -> {number_of(report.lines_after, 'line')}, "
            f"{number_of(report.keys, 'key')}, {report.expired:,} expired"
        )


def forget_key(
    key: str, store: str | None, tenant: str | None, *, yes: bool, as_json: bool
) -> None:
    """Erase all traces of *key*; exits with 1 where there are none."""
    memory = _keyed(store, tenant)
    if not (yes or typer.confirm(f"Forget {plain(key)} and its history?", err=True)):
        warn("nothing was forgotten; answer y, or use --yes")
        raise typer.Exit(FAILED)
    removed = memory.forget(key)
    if not removed:
        warn(f"no entry of {key} in {memory.root}")
        raise typer.Exit(FAILED)
    if as_json:
        emit({"forgotten": removed, "key": key})
    else:
        print(f"forgot {plain(key)}: {number_of(removed, 'call')}")


def _keyed(store: str | None, tenant: str | None) -> "KeyedMemory":
    from contextgraph.config import load_settings
    from contextgraph.wiring import keyed_memory

    return keyed_memory(load_settings(store=store or None, tenant=tenant))


def _json(text: str, what: str) -> object:
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(
            f"{what} is not JSON: {error}; a text needs quotes, as in '\"text\"'"
        ) from error
