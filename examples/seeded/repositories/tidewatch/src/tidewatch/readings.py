"""Readings of a gauge and the file they come in."""

import csv
from dataclasses import dataclass
from datetime import datetime

from tidewatch.units import parse_level


@dataclass(frozen=True)
class Reading:
    station: str
    time: datetime
    level: float


def parse_row(row):
    """Return the reading of a row with station, time and level."""
    time = datetime.fromisoformat(row["time"])
    return Reading(row["station"].strip().upper(), time, parse_level(row["level"]))


def read_csv(path):
    """Return the readings of a gauge file, oldest first."""
    with open(path, newline="") as file:
        readings = [parse_row(row) for row in csv.DictReader(file)]
    return sorted(readings, key=lambda reading: reading.time)
