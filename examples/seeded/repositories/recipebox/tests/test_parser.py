import unittest
from fractions import Fraction

from recipebox.parser import parse_item, parse_recipe


class ParserTest(unittest.TestCase):
    def test_mixed_number(self):
        item = parse_item("- 1 1/2 cup flour")
        self.assertEqual(item.quantity.amount, Fraction(3, 2))
        self.assertEqual(item.name, "flour")

    def test_item_without_unit(self):
        self.assertEqual(parse_item("- 2 egg").name, "egg")

    def test_servings(self):
        self.assertEqual(parse_recipe("# Tea\nserves: 4\n- 1 cup water").servings, 4)
