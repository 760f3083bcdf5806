"""``python -m contextgraph``: the command line where its script is not on the path."""

from contextgraph.cli import main

if __name__ == "__main__":
    main()
