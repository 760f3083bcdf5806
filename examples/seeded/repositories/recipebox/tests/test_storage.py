import unittest

from recipebox.storage import Box


class StorageTest(unittest.TestCase):
    def test_names(self):
        self.assertEqual(Box("samples").names(), ["omelette", "pancakes"])

    def test_load(self):
        self.assertEqual(Box("samples").load("omelette").title, "Omelette")

    def test_find_by_ingredient(self):
        self.assertEqual(Box("samples").find("flour"), ["pancakes"])
