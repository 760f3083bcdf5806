"""What an agent did at a step, read off its action."""
