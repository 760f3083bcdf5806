"""One list for several recipes."""


def shopping_list(recipes):
    """Return the total quantity of every ingredient, by name."""
    totals = {}
    for recipe in recipes:
        for item in recipe.ingredients:
            before = totals.get(item.name)
            totals[item.name] = before.plus(item.quantity) if before else item.quantity
    return dict(sorted(totals.items()))


def render(totals):
    """Return the list as text, one ingredient a line."""
    return "\n".join(f"- {quantity} {name}" for name, quantity in totals.items())
