// Which files are edited in vain ($repo): those that failed runs changed
MATCH (t:Trajectory {tenant: $tenant})
WHERE t.success IS NOT NULL AND ($repo = '' OR t.repo = toLower($repo))
UNWIND t.files AS file
WITH t.repo AS repo, file, count(*) AS runs, sum(CASE WHEN t.success THEN 1 ELSE 0 END) AS solved
WHERE runs > solved
RETURN repo, file, runs - solved AS failed, solved
ORDER BY failed DESC, solved, repo, file
LIMIT 25;
