"""Prices of parcels."""

import json
import os
from pathlib import Path

DEFAULT = Path(__file__).parents[2] / "data" / "rates.json"


def load_rates(path=None):
    """Return the table of rates, by zone."""
    chosen = path or os.environ.get("PARCELKIT_RATES") or DEFAULT
    return json.loads(Path(chosen).read_text())


def price(parcel, zone, rates=None):
    """Return the price in euros, rounded to cents."""
    table = rates or load_rates()
    rate = table.get(zone.lower())
    if rate is None:
        raise ValueError(f"unknown zone: {zone}")
    return round(rate["base"] + rate["per_kg"] * parcel.billed_weight(), 2)
