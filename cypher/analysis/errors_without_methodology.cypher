// Errors without a methodology: cleared in several runs, not abstracted yet
MATCH (e:ErrorPattern {tenant: $tenant})<-[r:RECOVERED]-(f:Fragment)
WHERE r.verified AND NOT EXISTS { (e)-[:RESOLVED_BY]->(:Methodology) }
WITH e, count(*) AS clearances, count(DISTINCT f.run) AS runs,
    collect(DISTINCT f.repo) AS repos
WHERE runs > 1
RETURN e.error_type AS error, e.template AS template, clearances, runs, repos[..5] AS repos
ORDER BY runs DESC, clearances DESC, template
LIMIT 25;
