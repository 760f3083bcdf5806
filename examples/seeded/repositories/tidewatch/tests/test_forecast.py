import unittest
from datetime import datetime

from tidewatch.forecast import highs, lows, next_high
from tidewatch.readings import read_csv


class ForecastTest(unittest.TestCase):
    def setUp(self):
        self.readings = read_csv("data/kelby.csv")

    def test_two_highs_a_day(self):
        self.assertEqual([reading.level for reading in highs(self.readings)], [5.2, 5.6])

    def test_one_low_between(self):
        self.assertEqual([reading.level for reading in lows(self.readings)], [1.4])

    def test_next_high_in_the_afternoon(self):
        found = next_high(self.readings, datetime(2031, 5, 4, 9))
        self.assertEqual(found.level, 5.6)
