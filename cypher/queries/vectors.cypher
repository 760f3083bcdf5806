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
WITH t
CALL (t) {
    MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)
    SET f[$property] = null
}
RETURN max(t.id) AS last

// name: clear_methodologies
// Delete the vectors of a retired space from methodologies. (Eager; there are few.)
MATCH (m:Methodology {tenant: $tenant})
WHERE m.id IS NOT NULL AND $property IN m.embedded
SET m.embedded = [other IN m.embedded WHERE other <> $property]
SET m[$property] = null

// name: remove_space
MATCH (s:Retired {tenant: $tenant, name: $name})
DELETE s

// name: runs_to_embed
// Runs without vectors in a space, with what their texts are made of.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.id > $after
    AND ($property IS NULL OR NOT $property IN t.embedded)
WITH t ORDER BY t.tenant, t.id LIMIT $limit
RETURN t {.id, .instance_id, .repo, .task, .task_type, .outcome, .exit_status, .total_steps,
    .summary, .files, .agent, .model, .source_format, .source, .run_at, .learned_at,
    .outcome_source, .change} AS trajectory,
    COLLECT {
        MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)
        RETURN f {.id, .order, .trajectory_id, .start, .end, .fragment_type, .phase, .outcome,
            .description, .action_sequence, .files, .open_file, .repo, .task_type, .loop_kind,
            .loop_command, .repetitions, .loop_ending}
        ORDER BY f.order, f.id
    } AS fragments,
    COLLECT {
        MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)-[:CAUSED_ERROR]->(e:ErrorPattern)
        MATCH (t)-[m:MET]->(e)
        RETURN [f.id, m.context] ORDER BY e.id
    } AS messages
ORDER BY t.tenant, t.id

// name: embeddable_runs
// Runs that have no vectors in a space yet, with their fragments.
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
WHERE NOT $property IN t.embedded
RETURN id, COLLECT {
    MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment) RETURN f.id ORDER BY f.order, f.id
} AS fragments

// name: note_embedding
// Count that vectors are added to stored nodes.
MATCH (m:Memory {tenant: $tenant})
SET m.embeddings = coalesce(m.embeddings, 0) + 1

// name: note_embedded_runs
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
SET t.embedded = t.embedded + $property

// name: add_trajectory_vectors
UNWIND $rows AS row
MATCH (t:Trajectory {tenant: $tenant, id: row.id})
CALL db.create.setNodeVectorProperty(t, $property, row.vector)

// name: add_fragment_vectors
UNWIND $rows AS row
MATCH (f:Fragment {tenant: $tenant, id: row.id})
CALL db.create.setNodeVectorProperty(f, $property, row.vector)

// name: methodologies_to_embed
// Methodologies without a vector in a space; no tombstones.
MATCH (m:Methodology {tenant: $tenant})
WHERE m.id IS NOT NULL AND m.status <> 'retired'
    AND ($property IS NULL OR NOT $property IN coalesce(m.embedded, []))
WITH m ORDER BY m.tenant, m.id LIMIT $limit
RETURN m {.id, .error_id, .keyword, .task_type, .repo, .situation, .strategy, .made_by, .status,
    .confidence, .support, .repositories, .success_rate, .avg_steps, .frequency, .success_count,
    .failure_count, .last_used, .superseded_by, .phase, .remedies} AS methodology,
    COLLECT { MATCH (m)-[:DERIVED_FROM]->(f:Fragment) RETURN [f.trajectory_id, f.id] } AS sources
ORDER BY m.id

// name: embeddable_methodologies
// Methodologies that have no vector in a space yet.
UNWIND $ids AS id
MATCH (m:Methodology {tenant: $tenant, id: id})
WHERE NOT $property IN coalesce(m.embedded, [])
RETURN id

// name: note_embedded_methodologies
UNWIND $ids AS id
MATCH (m:Methodology {tenant: $tenant, id: id})
SET m.embedded = coalesce(m.embedded, []) + $property

// name: add_methodology_vectors
UNWIND $rows AS row
MATCH (m:Methodology {tenant: $tenant, id: row.id})
CALL db.create.setNodeVectorProperty(m, $property, row.vector)

// name: vectors_of_run
// The vectors of a run and of its fragments in a space, where the run is embedded.
MATCH (t:Trajectory {tenant: $tenant, id: $id})
WHERE $property IN t.embedded
RETURN t[$property] AS trajectory, COLLECT {
    MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)
    RETURN f[$property] ORDER BY f.order, f.id
} AS fragments

// name: vectors_of_methodologies
// The vectors in a space of methodologies that are embedded; null for texts that have none.
UNWIND $ids AS id
MATCH (m:Methodology {tenant: $tenant, id: id})
WHERE $property IN m.embedded
RETURN id, m[$property] AS vector
ORDER BY id

// name: nearest_methodologies
// The methodologies nearest to a vector: of a repository or general, without those of hidden runs.
MATCH (m:Methodology {tenant: $tenant})
WHERE m.id IS NOT NULL AND m.status <> 'retired'
    AND ($repo IS NULL OR m.repo IS NULL OR m.repo = $repo)
    AND (($as_of IS NULL AND $excluded = []) OR NOT EXISTS {
        (m)-[:DERIVED_FROM]->(f:Fragment)
        WHERE f.seen_at > $as_of OR f.instance_id IN $excluded
    })
WITH m, m[$property] AS numbers
WITH m, numbers, vector.similarity.cosine(numbers, $vector) AS similarity
WHERE similarity IS NOT NULL
WITH m, numbers, similarity ORDER BY similarity DESC, m.id LIMIT $limit
RETURN m {.id, .error_id, .keyword, .task_type, .repo, .situation, .strategy, .made_by, .status,
    .confidence, .support, .repositories, .success_rate, .avg_steps, .frequency, .success_count,
    .failure_count, .last_used, .superseded_by, .phase, .remedies} AS methodology, numbers,
    COLLECT { MATCH (m)-[:DERIVED_FROM]->(f:Fragment) RETURN [f.trajectory_id, f.id] } AS sources
ORDER BY similarity DESC, m.id

// name: embedded_trajectories_in_repo
// The runs of a repository that may have a vector, up to $limit.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.repo = $repo AND t.seen_at IS NOT NULL AND t.solved IS NOT NULL
WITH t LIMIT $limit
RETURN collect(t.id) AS found

// name: embedded_trajectories_everywhere
// The runs that may have a vector, up to $limit.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.seen_at IS NOT NULL AND t.solved IS NOT NULL
WITH t LIMIT $limit
RETURN collect(t.id) AS found

// name: embedded_trajectories_since
// The runs that were learned or changed after a revision.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.revision > $revision AND ($repo IS NULL OR t.repo = $repo)
WITH t LIMIT $limit
RETURN collect(t.id) AS found

// name: vectors_of_trajectories
// The vectors of runs, with what scopes filter by.
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
WITH t, t[$property] AS numbers
WHERE numbers IS NOT NULL
RETURN collect(t.id) AS ids, collect(t.instance_id) AS instances,
    collect(t.seen_at.epochSeconds * 1000000 + t.seen_at.microsecond) AS seen_at,
    collect(numbers) AS vectors

// name: embedded_fragments_in_repo
// The fragments of a repository that may have a vector, up to $limit.
MATCH (f:Fragment)
WHERE f.tenant = $tenant AND f.repo = $repo AND f.seen_at IS NOT NULL
WITH f LIMIT $limit
RETURN collect(f.id) AS found

// name: embedded_fragments_everywhere
// The fragments that may have a vector, up to $limit.
MATCH (f:Fragment)
WHERE f.tenant = $tenant AND f.seen_at IS NOT NULL
WITH f LIMIT $limit
RETURN collect(f.id) AS found

// name: embedded_fragments_since
// The fragments of runs that were learned or changed after a revision.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.revision > $revision AND ($repo IS NULL OR t.repo = $repo)
MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)
WITH f LIMIT $limit
RETURN collect(f.id) AS found

// name: vectors_of_fragments
// The vectors of fragments, with what scopes filter by.
UNWIND $ids AS id
MATCH (f:Fragment {tenant: $tenant, id: id})
WITH f, f[$property] AS numbers
WHERE numbers IS NOT NULL
RETURN collect(f.id) AS ids, collect(f.instance_id) AS instances,
    collect(f.seen_at.epochSeconds * 1000000 + f.seen_at.microsecond) AS seen_at,
    collect(numbers) AS vectors

// name: nearest_trajectories_in_repo
// The runs of a repository nearest to a vector, by comparing all.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.repo = $repo AND t.seen_at IS NOT NULL AND t.solved IS NOT NULL
    AND ($as_of IS NULL OR t.seen_at <= $as_of)
    AND NOT t.instance_id IN $excluded
WITH t.id AS id, t[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS similarity
WHERE similarity IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * similarity - 1, 4) DESC, id LIMIT $limit

// name: nearest_trajectories_everywhere
// The runs nearest to a vector, by comparing all.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.seen_at IS NOT NULL AND t.solved IS NOT NULL
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
WHERE t.tenant = $tenant AND ($repo IS NULL OR t.repo = $repo)
    AND ($as_of IS NULL OR t.seen_at <= $as_of)
    AND NOT t.instance_id IN $excluded
WITH t.id AS id, t[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS similarity
WHERE similarity IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * similarity - 1, 4) DESC, id LIMIT $limit

// name: nearest_fragments_in_repo
// The fragments of a repository nearest to a vector, by comparing all.
MATCH (f:Fragment)
WHERE f.tenant = $tenant AND f.repo = $repo AND f.seen_at IS NOT NULL
    AND ($as_of IS NULL OR f.seen_at <= $as_of)
    AND NOT f.instance_id IN $excluded
WITH f.id AS id, f[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS similarity
WHERE similarity IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * similarity - 1, 4) DESC, id LIMIT $limit

// name: nearest_fragments_everywhere
// The fragments nearest to a vector, by comparing all.
MATCH (f:Fragment)
WHERE f.tenant = $tenant AND f.seen_at IS NOT NULL
    AND ($as_of IS NULL OR f.seen_at <= $as_of)
    AND NOT f.instance_id IN $excluded
WITH f.id AS id, f[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS similarity
WHERE similarity IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * similarity - 1, 4) DESC, id LIMIT $limit

// name: nearest_fragments_by_index
// Those in scope among the fragments nearest to a vector.
CALL db.index.vector.queryNodes($index, $nearest, $vector) YIELD node AS f
WHERE f.tenant = $tenant AND ($repo IS NULL OR f.repo = $repo)
    AND ($as_of IS NULL OR f.seen_at <= $as_of)
    AND NOT f.instance_id IN $excluded
WITH f.id AS id, f[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS similarity
WHERE similarity IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * similarity - 1, 4) DESC, id LIMIT $limit

// name: search_trajectories_in_repo
// The runs of a repository nearest to a vector, by an index with filters: on calendar releases.
CYPHER 25
MATCH (t:Trajectory)
SEARCH t IN (
    VECTOR INDEX trajectory_embedding FOR $vector
    WHERE t.tenant = $tenant AND t.repo = $repo AND t.seen_at <= $until
    LIMIT $nearest
)
WITH t WHERE NOT t.instance_id IN $excluded
WITH t.id AS id, t[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS similarity
WHERE similarity IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * similarity - 1, 4) DESC, id LIMIT $limit

// name: search_trajectories_everywhere
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

// name: search_fragments_in_repo
// The fragments of a repository nearest to a vector, by an index with filters: on calendar releases.
CYPHER 25
MATCH (f:Fragment)
SEARCH f IN (
    VECTOR INDEX fragment_embedding FOR $vector
    WHERE f.tenant = $tenant AND f.repo = $repo AND f.seen_at <= $until
    LIMIT $nearest
)
WITH f WHERE NOT f.instance_id IN $excluded
WITH f.id AS id, f[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS similarity
WHERE similarity IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * similarity - 1, 4) DESC, id LIMIT $limit

// name: search_fragments_everywhere
// The fragments nearest to a vector, by an index with filters: on calendar releases.
CYPHER 25
MATCH (f:Fragment)
SEARCH f IN (
    VECTOR INDEX fragment_embedding FOR $vector
    WHERE f.tenant = $tenant AND f.seen_at <= $until
    LIMIT $nearest
)
WITH f WHERE NOT f.instance_id IN $excluded
WITH f.id AS id, f[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS similarity
WHERE similarity IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * similarity - 1, 4) DESC, id LIMIT $limit

// name: runs_of
// Fragments with their runs, in the given order.
UNWIND range(0, size($ids) - 1) AS number
MATCH (f:Fragment {tenant: $tenant, id: $ids[number]})
WITH number, f ORDER BY number
RETURN collect([f.trajectory_id, f.id]) AS found

// name: recoveries_of
// The recoveries of fragments, in the given order.
UNWIND range(0, size($ids) - 1) AS number
MATCH (f:Fragment {tenant: $tenant, id: $ids[number]})-[r:RECOVERED]->(e:ErrorPattern)
WITH number, f, r, e ORDER BY number, e.id, r.error_step
RETURN collect([r.trajectory_id, f.id, e.id, r.error_step]) AS found
