"""Plain text to recipes."""

import re

from recipebox.quantity import MILLILITRES, Quantity, parse_amount
from recipebox.recipe import Ingredient, Recipe

ITEM = re.compile(r"-\s*(?P<amount>(\d+(/\d+)?\s+)+)(?P<rest>.+)")
SERVES = re.compile(r"serves:\s*(?P<count>\d+)", re.IGNORECASE)


def parse_item(text):
    """Return the ingredient of a line like "- 1 1/2 cup flour"."""
    match = ITEM.match(text)
    if match is None:
        return Ingredient(text.lstrip("- "), Quantity(parse_amount([])))
    amount = parse_amount(match["amount"].split())
    unit, _, name = match["rest"].partition(" ")
    if unit not in MILLILITRES:
        return Ingredient(match["rest"], Quantity(amount))
    return Ingredient(name, Quantity(amount, unit))


def parse_recipe(text):
    """Return the recipe written in *text*."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    title = lines[0].lstrip("# ")
    serves = SERVES.search(text)
    servings = int(serves["count"]) if serves else 1
    items = tuple(parse_item(line) for line in lines if line.startswith("-"))
    method = [line for line in lines[1:] if line[0] not in "-#" and not SERVES.match(line)]
    return Recipe(title, servings, items, " ".join(method))
