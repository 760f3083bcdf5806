"""The entry point of the command ``contextgraph``, and of ``python -m contextgraph``.

Hooks run this file with ``python -I -S``: without `site`, which takes a third of an empty process.
"""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec


class _Installed:
    """Finds other packages: runs `site` when the first of them is needed."""

    @classmethod
    def find_spec(
        cls, name: str, path: "Sequence[str] | None" = None, target: object = None
    ) -> "ModuleSpec | None":
        if path is not None or name in sys.stdlib_module_names:
            return None
        sys.meta_path.remove(cls)
        import site
        from importlib.machinery import PathFinder

        site.main()
        return PathFinder.find_spec(name)


if not __package__:
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.meta_path.append(_Installed)


def main() -> None:
    """Run the command line; the hook of an agent without loading the other commands."""
    match sys.argv[1:]:
        case ["hook"] | ["hook", "--store", _]:
            import gc

            gc.disable()  # what takes some ten milliseconds leaves little to collect
            from contextgraph.agents.hook import main as hook

            hook(*sys.argv[3:])
            os._exit(0)  # to take all apart would cost a tenth of its time
        case _:
            from contextgraph.cli import main as command_line

            command_line()


if __name__ == "__main__":
    main()
