"""Models that are asked for vectors, wording and judgement: fitted, local, or behind an API."""
