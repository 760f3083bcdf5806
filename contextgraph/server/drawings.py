"""The parts that pages are made of: tables, charts and graphs as HTML and SVG, without scripts."""

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from contextgraph.model import Explanation, Relation
from contextgraph.page import shown
from contextgraph.stats import OutcomePeriod
from contextgraph.text import one_line

STYLE = """
body { margin-top: 0 } h1 { line-height: 1.2; overflow-wrap: anywhere }
h2 { margin: 2rem 0 .4rem; font-size: 1.15rem }
a { color: #0b57a4 } a:focus-visible, button:focus-visible, input:focus-visible,
summary:focus-visible { outline: 3px solid #fb8500; outline-offset: 2px }
header { border-bottom: 1px solid #ddd; padding: .8rem 0; margin-bottom: 1.2rem; display: flex;
  flex-wrap: wrap; gap: .4rem 1rem; align-items: center } header a { margin-right: 1.2rem }
header .brand { font-weight: 700; color: #222; text-decoration: none }
header form.search { margin-left: auto }
input { font: inherit; padding: .15rem .4rem }
button { font: inherit; padding: .1rem .6rem; cursor: pointer }
table { border-collapse: collapse; margin: .3rem 0 1rem; width: 100% }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #ddd;
  overflow-wrap: anywhere; vertical-align: top }
th { color: #555; font-weight: 600; font-size: 13px; overflow-wrap: normal }
td.number, th.number { text-align: right; white-space: nowrap }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 0 0 1rem }
.tiles div { border: 1px solid #ddd; border-radius: .4rem; padding: .5rem 1rem; min-width: 7rem }
.tiles dt { color: #555; font-size: 13px } .tiles dd { margin: 0; font-size: 1.5rem }
.legend, .axis { margin: .2rem 0 } .axis { display: flex; justify-content: space-between }
dl.facts { display: grid; grid-template-columns: minmax(6rem, auto) 1fr; gap: 0 1rem }
dl.facts dd { margin: 0; color: #222; overflow-wrap: anywhere }
svg { display: block; max-width: 100%; height: auto } .wide { overflow-x: auto }
.wide svg { max-width: none } svg text { font: 12px system-ui, sans-serif }
.solved { fill: #2a7d2a; background: #2a7d2a } .failed { fill: #c43c3c; background: #c43c3c }
.unknown { fill: #9a9a9a; background: #9a9a9a }
.bar { height: .7rem; display: flex; background: #eee; min-width: min(8rem, 12vw) }
.bar i { display: block; height: 100%; background: #3f6fa8 } .whole { white-space: nowrap }
.node rect { fill: #f2f5f9; stroke: #7a8ca5 } .node.here rect { fill: #fff3df; stroke: #fb8500 }
.node:focus-visible rect { stroke: #fb8500; stroke-width: 3 }
.edge { stroke: #9aa5b1; fill: none } .kind { fill: #555 }
"""

_OUTCOMES = ("solved", "failed", "unknown")
_CHART_WIDTH, _CHART_HEIGHT = 880, 150
_NODE_WIDTH, _NODE_HEIGHT, _ROW, _GAP = 270, 40, 52, 120
# So many neighbours are drawn on each side; the table below a graph has more.
_DRAWN = 12


class Number(str):
    """The title of a column of numbers, which is aligned to the right."""

    __slots__ = ()


def numbers(*titles: str) -> tuple[Number, ...]:
    """The titles of columns of numbers."""
    return tuple(map(Number, titles))


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], none: str = "None."
) -> str:
    """A table of cells in HTML under a heading; the line *none* where there are no rows."""
    kinds = [' class="number"' if isinstance(column, Number) else "" for column in columns]
    titles = zip(columns, kinds, strict=True)
    head = "".join(
        f'<th scope="col"{kind}>{one}</th>' if one else "<td></td>" for one, kind in titles
    )
    lines = (zip(row, kinds, strict=True) for row in rows)
    cells = ("".join(f"<td{kind}>{cell}</td>" for cell, kind in line) for line in lines)
    body = "".join(f"<tr>{line}</tr>\n" for line in cells)
    found = f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"
    return f"<h2>{shown(title)}</h2>\n{found if body else f'<p>{shown(none)}</p>'}\n"


def tiles(figures: Iterable[tuple[str, str]]) -> str:
    """Figures with their names, side by side."""
    parts = (f"<div><dt>{shown(name)}</dt><dd>{shown(text)}</dd></div>" for name, text in figures)
    return f'<dl class="tiles">{"".join(parts)}</dl>\n'


def facts(values: Iterable[tuple[str, str]]) -> str:
    """Names and values in HTML, one below the other, without empty ones."""
    lines = (f"<dt>{shown(name)}</dt><dd>{value}</dd>" for name, value in values if value)
    return f'<dl class="facts">{"".join(lines)}</dl>\n'


def share_bar(part: int, whole: int) -> str:
    """A bar that is filled as far as *part* is of *whole*."""
    filled = round(100 * part / max(1, whole))
    return f'<div class="bar"><i style="width: {filled}%"></i></div>'


def outcome_chart(periods: Sequence[OutcomePeriod]) -> str:
    """How many runs ended how in each period, as stacked bars, with the same figures as a table."""
    highest = max(sum(period.outcomes.values()) for period in periods)
    width = _CHART_WIDTH / len(periods)
    bars = "".join(
        _stack(one.outcomes, highest, number * width, width) for number, one in enumerate(periods)
    )
    first, last = periods[0].start, periods[-1].end
    form = "%Y-%m-%d" if (last - first).days else "%Y-%m-%d %H:%M"
    drawing = (
        f'<svg viewBox="0 0 {_CHART_WIDTH} {_CHART_HEIGHT}" role="img" '
        f'aria-label="Outcomes of runs; the table has the figures">{bars}</svg>'
        f'<p class="axis"><span>{first:{form}}</span><span>{last:{form}}</span></p>'
    )
    keys = "".join(f'<span><i class="{one}"></i>{one}</span>' for one in _OUTCOMES)
    rows = (
        (f"{one.start:{form}}", f"{one.end:{form}}", *(f"{one.outcomes[o]}" for o in _OUTCOMES))
        for one in periods
    )
    figures = table("Runs by period", ("from", "to", *numbers(*_OUTCOMES)), rows)
    return (
        f'<p class="legend">{keys}</p>{drawing}'
        f"<details><summary>As a table</summary>{figures}</details>\n"
    )


def _stack(outcomes: Mapping[str, int], highest: int, left: float, width: float) -> str:
    parts, top = [], float(_CHART_HEIGHT)
    for outcome in _OUTCOMES:
        height = outcomes[outcome] / highest * (_CHART_HEIGHT - 4)
        top -= height
        parts.append(
            f'<rect class="{outcome}" x="{left + 1:.1f}" y="{top:.1f}" '
            f'width="{max(1.0, width - 2):.1f}" height="{height:.1f}"/>'
        )
    return "".join(parts)


def neighbourhood(explanation: Explanation) -> str:
    """The node with its neighbours: what leads to it on its left, what it leads to on its right.

    Each neighbour is a link to its own neighbourhood.
    """
    incoming = [relation for relation in explanation.relations if not relation.outgoing][:_DRAWN]
    outgoing = [relation for relation in explanation.relations if relation.outgoing][:_DRAWN]
    rows = max(len(incoming), len(outgoing), 1)
    height, middle = rows * _ROW, rows * _ROW / 2
    centre = _NODE_WIDTH + _GAP if incoming else 0
    parts = [_node(explanation.label, explanation.name, centre, middle, is_here=True)]
    for relations, left, ends in (
        (incoming, 0, (_NODE_WIDTH, centre)),
        (
            outgoing,
            centre + _NODE_WIDTH + _GAP,
            (centre + _NODE_WIDTH + _GAP, centre + _NODE_WIDTH),
        ),
    ):
        offset = (height - len(relations) * _ROW) / 2 + _ROW / 2
        for number, relation in enumerate(relations):
            y = offset + number * _ROW
            parts += [_edge(relation, ends, y, middle), _linked(relation, left, y)]
    width = centre + _NODE_WIDTH + (_GAP + _NODE_WIDTH if outgoing else 0)
    return (
        f'<div class="wide"><svg viewBox="-4 0 {width + 8} {height}" style="width: {width}px" '
        f'aria-label="The graph around this node">{"".join(parts)}</svg></div>\n'
    )


def _edge(relation: Relation, ends: tuple[float, float], y: float, middle: float) -> str:
    """The edge from a neighbour at height *y* to the node in the *middle*, with its type."""
    outer, inner = ends
    bend = (outer + inner) / 2
    anchor, x = ("end", outer - 4) if outer > inner else ("start", outer + 4)
    return (
        f'<path class="edge" d="M{outer} {y:.1f} C{bend} {y:.1f} {bend} {middle:.1f} '
        f'{inner} {middle:.1f}"/><text class="kind" x="{x}" y="{y - 5:.1f}" '
        f'text-anchor="{anchor}">{shown(relation.type.replace("_", " ").lower())}</text>'
    )


def _linked(relation: Relation, left: float, y: float) -> str:
    node = _node(relation.label, relation.name, left, y)
    return f'<a class="node" href="{graph_address(relation.id)}">{node}</a>'


def _node(label: str, name: str, left: float, y: float, *, is_here: bool = False) -> str:
    top = y - _NODE_HEIGHT / 2
    return (
        f'<g class="node{" here" if is_here else ""}"><title>{shown(name)}</title>'
        f'<rect x="{left}" y="{top:.1f}" width="{_NODE_WIDTH}" height="{_NODE_HEIGHT}" rx="4"/>'
        f'<text class="kind" x="{left + 8}" y="{top + 15:.1f}">{shown(label)}</text>'
        f'<text x="{left + 8}" y="{top + 32:.1f}">{shown(one_line(name, 36))}</text></g>'
    )


def graph_address(identity: str) -> str:
    """The page of the graph around a node."""
    return f"/pages/graph/{quote(identity, safe='')}"
