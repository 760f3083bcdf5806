"""``contextgraph formats``: which formats are read."""

from typing import TYPE_CHECKING

from contextgraph.cli.options import AsJson
from contextgraph.cli.output import console, emit, styled

if TYPE_CHECKING:
    from contextgraph.readers import Format


def formats(as_json: AsJson = False) -> None:
    """List the formats that are read.

    Shows how each is recognised and what is read from it. A format is recognised by content, not
    by file name. Experimental ones follow published descriptions and were not tested on logs of
    real runs.

    \b
    With --json one line per format: "name", "recognised_by", "keeps",
    "experimental".

    \b
    Example:
      contextgraph formats
    """
    from contextgraph.readers import all_formats

    for one in all_formats().values():
        if as_json:
            emit(
                {
                    "name": one.name,
                    "recognised_by": one.description,
                    "keeps": one.keeps,
                    "experimental": one.experimental,
                }
            )
        else:
            _show(one)


def _show(one: "Format") -> None:
    from rich.padding import Padding

    screen = console()
    mark = (" (experimental)", "yellow") if one.experimental else ""
    screen.print(styled((one.name, "bold"), mark))
    for label, text in (("recognised by", one.description), ("keeps", one.keeps)):
        screen.print(Padding(styled((f"{label}: ", "dim"), text), (0, 0, 0, 2)))
