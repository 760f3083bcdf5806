"""Pages for people: those of the service, and files that are opened without it."""
