"""The entry point of the command ``contextgraph``, and of ``python -m contextgraph``."""

import gc
import sys


def main() -> None:
    """Run the command line; the hook of an agent without loading the other commands."""
    try:
        match sys.argv[1:]:
            case ["hook"] | ["hook", "--store", _] | ["hook", "--store", _, "--tenant", _]:
                from contextgraph.agents.hook import main as hook

                hook(*sys.argv[3::2])
            case _:
                from contextgraph.cli import main as command_line

                command_line()
    finally:
        # All memory goes with the process: looking for garbage in it takes a sixth of a query.
        gc.freeze()


if __name__ == "__main__":
    main()
