"""Neo4j servers for development and tests, from Docker or from the Maven artifacts."""
