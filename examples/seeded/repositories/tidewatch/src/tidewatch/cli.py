"""Command line: tidewatch FILE STATION."""

import sys

from tidewatch.readings import read_csv
from tidewatch.report import summary


def main(argv):
    if len(argv) != 2:
        print("usage: tidewatch FILE STATION", file=sys.stderr)
        return 2
    path, code = argv
    readings = [reading for reading in read_csv(path) if reading.station == code]
    print(summary(readings, code))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
