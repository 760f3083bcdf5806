"""A folder of recipes."""

from pathlib import Path

from recipebox.parser import parse_recipe


class Box:
    """The recipes in a folder, one text file each."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def names(self):
        return sorted(path.stem for path in self.folder.glob("*.txt"))

    def load(self, name):
        return parse_recipe((self.folder / f"{name}.txt").read_text())

    def find(self, word):
        """Return the names of the recipes that use an ingredient."""
        return [name for name in self.names() if self._uses(name, word.lower())]

    def _uses(self, name, word):
        return any(word in item.name.lower() for item in self.load(name).ingredients)
