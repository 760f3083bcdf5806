import unittest

from parcelkit.parcel import Parcel
from parcelkit.rates import load_rates, price


class RatesTest(unittest.TestCase):
    def test_price_of_a_light_parcel(self):
        self.assertEqual(price(Parcel(2.0), "north"), 7.0)

    def test_bulky_parcel_is_billed_by_volume(self):
        self.assertEqual(Parcel(1.0, 50, 40, 30).billed_weight(), 12.0)

    def test_three_zones(self):
        self.assertEqual(sorted(load_rates()), ["islands", "north", "south"])
