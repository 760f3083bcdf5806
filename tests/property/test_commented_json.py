"""Settings in JSON with comments: any edit gives the members wanted, whatever stands between."""

import json
from typing import Any

from hypothesis import given, strategies as st

from contextgraph.agents.commented_json import edited, plain

between = st.sampled_from(["", " ", "\n", "\n  ", "// c\n", " /* , } */ ", "\n// x, {\n  "])
leaf = st.sampled_from(['"a//b"', '"/* x */"', "1", "null", '"q\\"{"'])


@st.composite
def objects(draw: Any, values: st.SearchStrategy[str]) -> str:
    names = draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4))
    parts = [
        f'{draw(between)}"{name}"{draw(between)}:{draw(between)}{draw(values)}{draw(between)}'
        for name in names
    ]
    comma = "," if parts and draw(st.booleans()) else ""
    return f"{{{','.join(parts)}{comma}{draw(between)}}}"


def lists(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(values, max_size=3).map(lambda some: f"[{','.join(some)}]")


nested = st.recursive(leaf, lambda inner: objects(inner) | lists(inner), max_leaves=6)


@given(objects(nested), st.sets(st.sampled_from("abcdefxy")), st.sets(st.sampled_from("axy")))
def test_an_edit_gives_the_members_that_are_wanted(
    content: str, gone: set[str], new: set[str]
) -> None:
    now: dict[str, Any] = json.loads(plain(content))
    wanted = {name: value for name, value in now.items() if name not in gone}
    wanted |= {name: {"n": [1, "//"]} for name in new}
    assert json.loads(plain(edited(content, wanted))) == wanted
