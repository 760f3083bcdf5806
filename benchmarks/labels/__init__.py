"""Labels of recorded runs, and how well the project reads those runs."""
