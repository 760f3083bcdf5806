import unittest

from parcelkit.address import parse_address, parse_place
from parcelkit.labels import label


class AddressTest(unittest.TestCase):
    def test_place(self):
        self.assertEqual(parse_place("ab-1234 Fernway"), ("AB1234", "Fernway"))

    def test_label_ends_with_the_place(self):
        address = parse_address("Ida Holm\n4 Mill Lane\nAB1234 Fernway")
        self.assertIn("AB1234 Fernway", label(address, "PK-17").splitlines())
