"""Parcels: price, label, tracking."""
