"""Which errors a run got over, and how."""
