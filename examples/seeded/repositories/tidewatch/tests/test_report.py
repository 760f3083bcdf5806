import unittest

from tidewatch.readings import read_csv
from tidewatch.report import line, summary, title


class ReportTest(unittest.TestCase):
    def test_title_names_the_station(self):
        self.assertEqual(title("KLB"), "Kelby Quay (KLB)")

    def test_line_has_hour_and_level(self):
        self.assertEqual(line(read_csv("data/kelby.csv")[0]), "00:00  2.10 m")

    def test_summary_ends_with_the_range(self):
        self.assertTrue(summary(read_csv("data/kelby.csv"), "KLB").endswith("range 4.00 m"))
