"""Writes docs/format-reference.md: where each format lies, what is read, which versions were seen.

From the formats, by which sessions are found and read, and from the samples of the tests.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from contextgraph.readers.format import Format
from contextgraph.readers.formats import FORMATS

ROOT = Path(__file__).parents[1]
VERSIONS = ROOT / "tests" / "data" / "readers_versions.json"
HEAD = """# Formats, one by one

Written by `scripts/api-reference` from the table by which sessions are discovered and read, and
from the samples in `tests/data/readers`, one for each version that was seen.
[Formats](formats.md) says what holds for all.
"""


def reference() -> Iterator[str]:
    """Yield the lines of the page."""
    versions: dict[str, dict[str, str]] = json.loads(VERSIONS.read_text())
    yield HEAD
    for name in sorted(FORMATS):
        yield from _section(FORMATS[name], versions.get(name, {}))


def _section(form: Format, versions: dict[str, str]) -> Iterator[str]:
    yield f"## `{form.name}`\n"
    yield f"Recognised by: {form.description}." + (" Experimental." if form.experimental else "")
    yield ""
    for place in form.kept:
        folder = "/".join(filter(None, ("~", place.folder)))
        patterns = ", ".join(f"`{pattern}`" for pattern in place.patterns)
        instead = f" (or `${place.variable}`)" if place.variable else ""
        whose = f" of `{place.agent}`" if place.agent else ""
        yield f"- Lies{whose} below `{folder}`{instead}: {patterns}"
    if not form.kept:
        yield "- Lies where you name it."
    yield f"- Read: {form.keeps}."
    yield f"- Not read: {form.omits}."
    seen = "; ".join(f"{version} (`{sample}`)" for sample, version in versions.items())
    yield f"- Versions seen: {seen or 'its own'}.\n"


if __name__ == "__main__":
    print("\n".join(reference()), end="")
