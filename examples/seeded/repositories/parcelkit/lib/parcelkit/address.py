"""Addresses as people type them."""

import re
from dataclasses import dataclass

PLACE = re.compile(r"(?P<code>[A-Z]{2}-?\d{4})\s+(?P<town>.+)", re.IGNORECASE)


@dataclass(frozen=True)
class Address:
    name: str
    street: str
    code: str
    town: str


def parse_place(text):
    """Return code and town of a text like "ab-1234 Fernway"."""
    match = PLACE.match(text.strip())
    if match is None:
        raise ValueError(f"no postcode in: {text}")
    return match["code"].upper().replace("-", ""), match["town"].strip()


def parse_address(text):
    """Return the address of three lines: name, street, place."""
    name, street, place = [line.strip() for line in text.strip().splitlines()]
    code, town = parse_place(place)
    return Address(name, street, code, town)
