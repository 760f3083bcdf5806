"""What a memory says to an agent: candidates, evidence, one pipeline, and the text."""
