"""Small repositories with seeded bugs and the scripted runs of an agent in them."""
