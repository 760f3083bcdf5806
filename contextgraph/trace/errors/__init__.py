"""Whether an observation shows a failure, and which."""
