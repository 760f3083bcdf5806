"""This machine: processes, files that others may have written, working trees, calls of servers."""
