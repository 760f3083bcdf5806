// Embedding spaces: their models, their vectors, and what is near to a vector. The vectors of each space
// are in a property of their own, $property; the memory names the active space.

// name: spaces
MATCH (s:Space {tenant: $tenant})
RETURN s.name AS name, s.property AS property
ORDER BY name

// name: space_model
MATCH (d:SpaceModel {tenant: $tenant, name: $name})
RETURN d.data AS data

// name: put_space
// A space; of one that is stored already only how it was fitted changes.
MERGE (s:Space {tenant: $tenant, name: $name})
ON CREATE SET s.property = $property
SET s.runs = $runs, s.similarity_threshold = $similarity_threshold

// name: put_space_model
MERGE (d:SpaceModel {tenant: $tenant, name: $name})
SET d.data = $data

// name: activate_space
// Switch to a space; the vectors of others are not visible from now on.
MATCH (m:Memory {tenant: $tenant})
SET m.active_space = $name

// name: retire_spaces
// Mark all other spaces for deletion, and delete their models. (Eager, but over one or two nodes.)
MATCH (s:Space {tenant: $tenant})
WHERE s.name <> $name
OPTIONAL MATCH (d:SpaceModel {tenant: $tenant, name: s.name})
DELETE d
SET s:Retired
REMOVE s:Space

// name: retired_spaces
MATCH (s:Retired {tenant: $tenant})
RETURN s.name AS name, s.property AS property
ORDER BY name

// name: clear_runs
// Delete the vectors of a retired space from the next runs that have some. (Eager over $limit runs.)
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.id > $after AND $property IN t.embedded
WITH t ORDER BY t.tenant, t.id LIMIT $limit
SET t.embedded = [other IN t.embedded WHERE other <> $property]
SET t[$property] = null
RETURN max(t.id) AS last

// name: remove_space
MATCH (s:Retired {tenant: $tenant, name: $name})
DELETE s

// name: runs_to_embed
// Runs without a vector in a space.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.id > $after
    AND ($property IS NULL OR NOT $property IN t.embedded)
WITH t ORDER BY t.tenant, t.id LIMIT $limit
RETURN t {.id, .instance_id, .repo, .task, .task_type, .outcome, .exit_status, .total_steps,
    .summary, .files, .agent, .model, .source_format, .source, .run_at, .learned_at,
    .outcome_source, .change, .contributor} AS trajectory
ORDER BY t.tenant, t.id

// name: embeddable_runs
// Runs that have no vector in a space yet.
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
WHERE NOT $property IN t.embedded
RETURN collect(id) AS found

// name: embedded_run
// The vector of a run in a space, where it is embedded; null for a text that has none.
MATCH (t:Trajectory {tenant: $tenant, id: $id})
WHERE $property IN t.embedded
RETURN t[$property] AS vector

// name: note_embedded_runs
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
SET t.embedded = t.embedded + $property

// name: add_trajectory_vectors
UNWIND $rows AS row
MATCH (t:Trajectory {tenant: $tenant, id: row.id})
CALL db.create.setNodeVectorProperty(t, $property, row.vector)

// name: nearest_trajectories
// The runs nearest to a vector, by comparing all.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant
    AND t.repo = $repo // in_repo
    AND t.seen_at IS NOT NULL AND t.solved IS NOT NULL
    AND ($as_of IS NULL OR t.seen_at <= $as_of)
    AND NOT t.instance_id IN $excluded
WITH t.id AS id, t[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS similarity
WHERE similarity IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * similarity - 1, 4) DESC, id LIMIT $limit

// name: nearest_trajectories_by_index
// Those in scope among the runs nearest to a vector.
CALL db.index.vector.queryNodes($index, $nearest, $vector) YIELD node AS t
WHERE t.tenant = $tenant AND ($as_of IS NULL OR t.seen_at <= $as_of)
    AND NOT t.instance_id IN $excluded
WITH t.id AS id, t[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS similarity
WHERE similarity IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * similarity - 1, 4) DESC, id LIMIT $limit

// name: search_trajectories
// The runs nearest to a vector, by an index with filters: on calendar releases.
CYPHER 25
MATCH (t:Trajectory)
SEARCH t IN (
    VECTOR INDEX trajectory_embedding FOR $vector
    WHERE t.tenant = $tenant AND t.seen_at <= $until
    LIMIT $nearest
)
WITH t WHERE NOT t.instance_id IN $excluded
WITH t.id AS id, t[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS similarity
WHERE similarity IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * similarity - 1, 4) DESC, id LIMIT $limit

// name: nodes_to_embed
// Fragments and methodologies without a vector in a space.
CALL () {
    MATCH (n:Fragment {tenant: $tenant})
    WHERE n.id > '' AND (n.space IS NULL OR n.space <> $space)
    RETURN n.id AS id, n.description AS head, n.action_sequence AS parts
    UNION ALL
    MATCH (n:Methodology {tenant: $tenant})
    WHERE n.id > '' AND (n.space IS NULL OR n.space <> $space)
    RETURN n.id AS id, n.situation AS head, [n.strategy] AS parts
}
RETURN id, head, parts
ORDER BY id LIMIT $limit

// name: put_fragment_vectors
UNWIND $rows AS row
MATCH (n:Fragment {tenant: $tenant, id: row.id})
SET n.space = $space, n.embedding = row.vector

// name: nearest_fragments
MATCH (n:Fragment {tenant: $tenant})
WHERE n.id > '' AND n.space = $space AND n.embedding IS NOT NULL
WITH n, vector.similarity.cosine(n.embedding, $vector) AS similarity
WHERE similarity IS NOT NULL
WITH n, round(2 * similarity - 1, 4) AS cosine
ORDER BY cosine DESC, n.id LIMIT $limit
RETURN coalesce(n.trajectory_id, '') AS run, n.id AS id, n.embedding AS numbers

// name: put_methodology_vectors
UNWIND $rows AS row
MATCH (n:Methodology {tenant: $tenant, id: row.id})
SET n.space = $space, n.embedding = row.vector

// name: nearest_methodologies
MATCH (n:Methodology {tenant: $tenant})
WHERE n.id > '' AND n.space = $space AND n.embedding IS NOT NULL
WITH n, vector.similarity.cosine(n.embedding, $vector) AS similarity
WHERE similarity IS NOT NULL
WITH n, round(2 * similarity - 1, 4) AS cosine
ORDER BY cosine DESC, n.id LIMIT $limit
RETURN '' AS run, n.id AS id, n.embedding AS numbers
