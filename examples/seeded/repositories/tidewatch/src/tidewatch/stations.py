"""Where the gauges stand."""

import json
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parents[2] / "data" / "stations.json"


@dataclass(frozen=True)
class Station:
    code: str
    name: str
    datum: float
    lat: float
    lon: float


def all_stations(path=DATA):
    """Return every known station, by code."""
    entries = json.loads(Path(path).read_text())
    return [Station(code, **entry) for code, entry in sorted(entries.items())]


def find_station(code, path=DATA):
    """Return the station with this code, or None."""
    for station in all_stations(path):
        if station.code == code.upper():
            return station
    return None
