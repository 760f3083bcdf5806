// What people and agents said.

CREATE CONSTRAINT note_id IF NOT EXISTS
FOR (n:Note) REQUIRE (n.tenant, n.id) IS UNIQUE;

CREATE FULLTEXT INDEX note_words IF NOT EXISTS
FOR (n:Note) ON EACH [n.words]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace'}};
