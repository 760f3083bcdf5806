import unittest

from recipebox.parser import parse_recipe
from recipebox.recipe import scale
from recipebox.shopping import render, shopping_list

TEA = parse_recipe("# Tea\nserves: 1\n- 1 cup water\n- 1 tsp sugar")


class ShoppingTest(unittest.TestCase):
    def test_totals_add_up(self):
        self.assertEqual(str(shopping_list([TEA, TEA])["water"]), "2 cup")

    def test_scale_multiplies(self):
        self.assertEqual(str(scale(TEA, 3).ingredients[1].quantity), "3 tsp")

    def test_render(self):
        self.assertEqual(render(shopping_list([TEA])), "- 1 tsp sugar\n- 1 cup water")
