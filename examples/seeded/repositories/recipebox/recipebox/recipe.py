"""A recipe."""

from dataclasses import dataclass, replace
from fractions import Fraction

from recipebox.quantity import Quantity


@dataclass(frozen=True)
class Ingredient:
    name: str
    quantity: Quantity


@dataclass(frozen=True)
class Recipe:
    title: str
    servings: int
    ingredients: tuple
    method: str = ""


def scale(recipe, servings):
    """Return the recipe for another number of servings."""
    factor = Fraction(servings, recipe.servings)
    ingredients = tuple(
        Ingredient(item.name, item.quantity.times(factor)) for item in recipe.ingredients
    )
    return replace(recipe, servings=servings, ingredients=ingredients)
