"""Command line: parcelkit price WEIGHT ZONE, parcelkit label FILE REFERENCE."""

import sys
from pathlib import Path

from parcelkit.address import parse_address
from parcelkit.labels import label
from parcelkit.parcel import Parcel
from parcelkit.rates import price


def main(argv):
    command, first, second = argv
    if command == "price":
        print(f"{price(Parcel(float(first)), second):.2f} EUR")
    elif command == "label":
        print(label(parse_address(Path(first).read_text()), second))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
