"""Text for the notice board at the quay."""

from tidewatch.forecast import highs, mean_range
from tidewatch.stations import find_station


def line(reading, unit="m"):
    """Return one line: the hour and the level."""
    return f"{reading.time:%H:%M}  {reading.level:.2f} {unit}"


def title(code):
    """Return the heading for a station."""
    station = find_station(code)
    return f"{station.name} ({station.code})" if station else f"Unknown station ({code})"


def summary(readings, code):
    """Return the heading, every high water and the mean range."""
    lines = [title(code)]
    lines += [line(reading) for reading in highs(readings)]
    lines.append(f"range {mean_range(readings):.2f} m")
    return "\n".join(lines)
