"""Lengths as gauges report them."""

FEET_PER_METRE = 3.28084


def feet_to_metres(feet):
    return feet / FEET_PER_METRE


def metres_to_feet(metres):
    return metres * FEET_PER_METRE


def parse_level(text):
    """Return the level in metres of a text like "2.1", "2.1m" or "6.9ft"."""
    text = text.strip().lower()
    if text.endswith("ft"):
        return feet_to_metres(float(text[:-2]))
    return float(text.removesuffix("m"))
