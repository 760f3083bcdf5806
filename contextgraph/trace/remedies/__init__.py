"""Which errors a run got over, and what was done about them."""
