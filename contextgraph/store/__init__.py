"""Stores: one SQLite file, a Neo4j server, or a graph of networkx in RAM."""
