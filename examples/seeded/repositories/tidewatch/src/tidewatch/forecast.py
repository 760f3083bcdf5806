"""Turning points of a tide curve."""


def highs(readings):
    """Return the readings that are higher than both neighbours."""
    inner = zip(readings, readings[1:], readings[2:])
    return [b for a, b, c in inner if a.level < b.level >= c.level]


def lows(readings):
    """Return the readings that are lower than both neighbours."""
    inner = zip(readings, readings[1:], readings[2:])
    return [b for a, b, c in inner if a.level > b.level <= c.level]


def next_high(readings, after):
    """Return the first high water later than *after*, or None."""
    later = [reading for reading in highs(readings) if reading.time > after]
    return later[0] if later else None


def mean_range(readings):
    """Return the mean height between highs and lows in metres (0.0 without both)."""
    tops = [reading.level for reading in highs(readings)]
    bottoms = [reading.level for reading in lows(readings)]
    if not tops or not bottoms:
        return 0.0
    return sum(tops) / len(tops) - sum(bottoms) / len(bottoms)
