"""The errors that a run cleared, and the actions that cleared them."""
