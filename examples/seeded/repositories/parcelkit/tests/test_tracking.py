import unittest

from parcelkit.tracking import parse_event, progress, status

EVENTS = [
    parse_event("2031-05-04 10:30 collected"),
    parse_event("2031-05-05 07:10 in transit"),
]


class TrackingTest(unittest.TestCase):
    def test_status_is_the_newest(self):
        self.assertEqual(status(EVENTS), "in transit")

    def test_progress(self):
        self.assertAlmostEqual(progress(EVENTS), 2 / 3)

    def test_nothing_yet(self):
        self.assertEqual(status([]), "created")
