"""A parcel and what it weighs for the carrier."""

from dataclasses import dataclass

CUBIC_CM_PER_KG = 5000


@dataclass(frozen=True)
class Parcel:
    weight: float
    length: float = 0.0
    width: float = 0.0
    height: float = 0.0

    def volume(self):
        return self.length * self.width * self.height

    def billed_weight(self):
        """Return the greater of weight and volumetric weight in kilograms."""
        return max(self.weight, self.volume() / CUBIC_CM_PER_KG)
