"""Recipes as plain text."""
