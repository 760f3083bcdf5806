"""Amounts with a unit."""

from dataclasses import dataclass
from fractions import Fraction

MILLILITRES = {"tsp": 5, "tbsp": 15, "cup": 240, "ml": 1}


@dataclass(frozen=True)
class Quantity:
    amount: Fraction
    unit: str = ""

    def __str__(self):
        whole, rest = divmod(self.amount, 1)
        parts = [str(whole)] if whole else []
        parts += [str(rest)] if rest else []
        return " ".join([*(parts or ["0"]), self.unit]).strip()

    def times(self, factor):
        return Quantity(self.amount * factor, self.unit)

    def plus(self, other):
        """Return the sum in the unit of this quantity."""
        if other.unit == self.unit:
            return Quantity(self.amount + other.amount, self.unit)
        ratio = Fraction(MILLILITRES[other.unit], MILLILITRES[self.unit])
        return Quantity(self.amount + other.amount * ratio, self.unit)


def parse_amount(words):
    """Return the sum of numbers such as ["1", "1/2"]."""
    return sum((Fraction(word) for word in words), Fraction(0))
