"""How fast it is, as ratios to floors measured in the same run: ``python -m benchmarks``."""
