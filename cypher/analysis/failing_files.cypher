// Failing files: files touched in failed attempts
MATCH (file:File {tenant: $tenant})<-[:TOUCHED]-(f:Fragment)
WITH file, f.repo AS repo, count(f) AS fragments, count(DISTINCT f.run) AS runs,
    count(DISTINCT CASE f.outcome WHEN 'failed' THEN f.run END) AS failed_runs
WHERE failed_runs > 0
RETURN repo, file.name AS file, runs, failed_runs, fragments,
    round(100.0 * failed_runs / runs) AS failed_percent
ORDER BY failed_runs DESC, runs DESC, repo, file
LIMIT 25;
