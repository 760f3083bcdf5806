import unittest

from tidewatch.readings import parse_row, read_csv
from tidewatch.units import metres_to_feet


class ReadingsTest(unittest.TestCase):
    def test_row_gives_station_and_level(self):
        reading = parse_row({"station": "klb ", "time": "2031-05-04T02:00", "level": "3.9"})
        self.assertEqual(reading.station, "KLB")
        self.assertEqual(reading.level, 3.9)

    def test_file_is_sorted_by_time(self):
        readings = read_csv("data/kelby.csv")
        self.assertEqual(len(readings), 10)
        self.assertLess(readings[0].time, readings[-1].time)

    def test_metres_to_feet(self):
        self.assertAlmostEqual(metres_to_feet(2.0), 6.56168)
