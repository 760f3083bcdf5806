"""Tide gauge readings and the next high water."""
