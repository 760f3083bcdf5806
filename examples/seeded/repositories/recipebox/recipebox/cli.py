"""Command line of recipebox."""

import sys
from pathlib import Path

from recipebox.parser import parse_recipe
from recipebox.recipe import scale
from recipebox.shopping import render, shopping_list


def show(recipe):
    print(f"{recipe.title} (serves {recipe.servings})")
    for item in recipe.ingredients:
        print(f"- {item.quantity} {item.name}")


def main(argv):
    command, *rest = argv
    if command == "show":
        show(parse_recipe(Path(rest[0]).read_text()))
    elif command == "scale":
        show(scale(parse_recipe(Path(rest[0]).read_text()), int(rest[1])))
    elif command == "list":
        print(render(shopping_list(parse_recipe(Path(name).read_text()) for name in rest)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
