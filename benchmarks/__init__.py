"""Speed and memory, beside baselines measured in the same run: ``python -m benchmarks``."""
