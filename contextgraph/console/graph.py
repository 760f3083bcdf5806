"""A node of the graph among its neighbours, as a drawing and as lists."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from msgspec import Struct

from contextgraph.model import Explanation, Relation
from contextgraph.text import plain

# Sizes in pixels: a box, the space for an edge, the line above a group, the space around it.
_WIDTH, _HEIGHT, _EDGE, _HEAD, _SPACE = 320, 50, 110, 24, 16
_GAP, _BAR = 8, 14
# Of a group so many boxes are drawn; a line of a box has so many characters.
_DRAWN, _LINE, _LINES = 5, 42, 2


# A type of relation in words, as it is read from the node, and from its other end.
_WORDS = {
    "HAS_FRAGMENT": ("its parts", "part of"),
    "CAUSED_ERROR": ("errors in it", "met in"),
    "RECOVERED": ("errors cleared in it", "cleared in"),
    "RESOLVED_BY": ("cleared by", "clears"),
    "DERIVED_FROM": ("derived from", "what is derived from it"),
    "SUPERSEDES": ("replaces", "replaced by"),
}


class Group(Struct, frozen=True):
    """The *relations* of a node that have one type and direction, which *title* says in words."""

    title: str
    outgoing: bool
    relations: Sequence[Relation]

    @property
    def drawn(self) -> Sequence[Relation]:
        """The relations that have a box."""
        return self.relations[:_DRAWN]

    @property
    def more(self) -> int:
        """The number of relations without a box."""
        return len(self.relations) - len(self.drawn)

    @property
    def height(self) -> int:
        """The height in the drawing."""
        rows = len(self.drawn) * (_HEIGHT + _GAP) - _GAP
        return _HEAD + rows + (_HEAD if self.more else 0)


def groups_of(node: Explanation) -> list[Group]:
    """Return the relations of *node* by type, those in an order by it, larger groups last."""
    found: dict[tuple[bool, str], list[Relation]] = {}
    for one in node.relations:
        found.setdefault((one.outgoing, one.type), []).append(one)
    groups = [
        Group(_words(type_, outgoing=outgoing), outgoing, sorted(relations, key=_order))
        for (outgoing, type_), relations in found.items()
    ]
    return sorted(groups, key=lambda group: (len(group.relations), group.title))


def _words(type_: str, *, outgoing: bool) -> str:
    words = type_.replace("_", " ").lower()
    forth, back = _WORDS.get(type_, (words, f"{words}, from there"))
    return forth if outgoing else back


def _order(relation: Relation) -> tuple[float, str]:
    order = relation.properties.get("order")
    return (float(order) if isinstance(order, int | float) else 0.0), relation.id


class Box(Struct, frozen=True):
    """A node at a place: its *kind*, and its name in *lines*; the node itself has no *id*."""

    id: str
    kind: str
    name: str
    lines: Sequence[str]
    x: float
    y: float


class Bar(Struct, frozen=True):
    """The frame of a group: a line beside its boxes, its title, and the edge to the node."""

    title: str
    x: float
    top: float
    bottom: float
    edge: str
    title_x: float
    more: int


class Drawing(Struct, frozen=True):
    """A node between what leads to it, on its left, and what it leads to."""

    width: float
    height: float
    box: tuple[int, int]
    boxes: Sequence[Box]
    bars: Sequence[Bar]


def drawing_of(node: Explanation, groups: Sequence[Group]) -> Drawing:
    """Place *node* and the first neighbours of each of its *groups*."""
    incoming = [group for group in groups if not group.outgoing]
    outgoing = [group for group in groups if group.outgoing]
    heights = [sum(group.height + _SPACE for group in side) for side in (incoming, outgoing)]
    height = max(*heights, _HEIGHT + _SPACE)
    side = _WIDTH + _BAR + _EDGE
    centre = side if incoming else 0
    boxes = [_box("", node.label, node.name, centre, (height - _HEIGHT) / 2)]
    bars = list[Bar]()
    for members, at, tall in ((incoming, 0, heights[0]), (outgoing, centre + side, heights[1])):
        top = (height - tall) / 2
        for group in members:
            bars.append(_bar(group, at, top, (centre, height / 2)))
            boxes += _boxes(group, at, top + _HEAD)
            top += group.height + _SPACE
    width = centre + _WIDTH + (side if outgoing else 0)
    return Drawing(width, height, (_WIDTH, _HEIGHT), boxes, bars)


def _boxes(group: Group, left: float, top: float) -> Iterator[Box]:
    for place, relation in enumerate(group.drawn):
        y = top + place * (_HEIGHT + _GAP)
        yield _box(relation.id, relation.label, relation.name, left, y)


def _bar(group: Group, left: float, top: float, node: tuple[float, float]) -> Bar:
    """Return the line between *group* and its *node*, whose left edge and middle are given."""
    x = left - _BAR if group.outgoing else left + _WIDTH + _BAR
    first, last = top + _HEAD, top + group.height
    middle, start = (first + last) / 2, node[0] + (_WIDTH if group.outgoing else 0)
    bend = (x + start) / 2
    edge = f"M{start} {node[1]:.1f} C{bend} {node[1]:.1f} {bend} {middle:.1f} {x} {middle:.1f}"
    return Bar(group.title, x, first, last, edge, left, group.more)


def _box(identity: str, label: str, name: str, x: float, y: float) -> Box:
    name = name.replace("_", " ") if label == "Fragment" else name
    lines = wrap(plain(name), _LINE, max_lines=_LINES, placeholder="…") or [identity]
    return Box(identity, label, name, lines, x, y)
