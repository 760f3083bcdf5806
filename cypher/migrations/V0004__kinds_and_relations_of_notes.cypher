// Notes had one label, and their links one type with a property.
MATCH (n:Note)
WHERE n.kind IN ['candidate', 'entity', 'page', 'statement']
CALL (n) {
    SET n:$(toUpper(left(n.kind, 1)) + substring(n.kind, 1))
} IN TRANSACTIONS OF 1000 ROWS;

MATCH (n:Note)-[link:LINKED]->(target:Note)
CALL (n, link, target) {
    MERGE (n)-[typed:$(CASE link.type WHEN '' THEN 'RELATED' ELSE toUpper(link.type) END)]->(target)
    SET typed.weight = link.weight
    DELETE link
} IN TRANSACTIONS OF 1000 ROWS;
