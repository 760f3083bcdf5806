// Embedding spaces: their models, their vectors, and what is near to one. The vectors of each space
// are a property of their own, named $property; which space answers, the memory says.

// name: spaces
MATCH (s:Space {tenant: $tenant})
RETURN s {.name, .runs, .alike, .property} AS space
ORDER BY s.name

// name: space_model
MATCH (d:SpaceModel {tenant: $tenant, name: $name})
RETURN d.data AS data

// name: put_space
// Room for a space; where there is room already, how it was fitted.
MERGE (s:Space {tenant: $tenant, name: $name})
ON CREATE SET s.property = $property
SET s.runs = $runs, s.alike = $alike

// name: put_space_model
MERGE (d:SpaceModel {tenant: $tenant, name: $name})
SET d.data = $data

// name: activate_space
// Switch over; what is left of other spaces is invisible from now on.
MATCH (m:Memory {tenant: $tenant})
SET m.active_space = $name

// name: retire_spaces
// Say of all other spaces that they are to be swept out, and drop their models. All are found before
// the first is changed: one or two.
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

// name: sweep_runs
// Take the vectors of a retired space from the next runs that have some. As many as $limit says are
// found before the first is changed.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.id > $after AND $property IN t.embedded
WITH t ORDER BY t.tenant, t.id LIMIT $limit
SET t.embedded = [kept IN t.embedded WHERE kept <> $property]
SET t[$property] = null
WITH t
CALL (t) {
    MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)
    SET f[$property] = null
}
RETURN max(t.id) AS last

// name: sweep_methodologies
// Take the vectors of a retired space from methodologies. All are found before the first is changed:
// there are few.
MATCH (m:Methodology {tenant: $tenant})
WHERE m.id IS NOT NULL AND $property IN m.embedded
SET m.embedded = [kept IN m.embedded WHERE kept <> $property]
SET m[$property] = null

// name: remove_space
MATCH (s:Retired {tenant: $tenant, name: $name})
DELETE s

// name: runs_to_embed
// Runs without vectors in a space, with all that their texts are made of.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.id > $after
    AND ($property IS NULL OR NOT $property IN t.embedded)
WITH t ORDER BY t.tenant, t.id LIMIT $limit
RETURN t {.id, .instance_id, .repo, .task, .task_type, .outcome, .exit_status, .total_steps,
    .summary, .files, .agent, .model, .source_format, .source, .run_at, .learned_at} AS trajectory,
    COLLECT {
        MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)
        RETURN f {.id, .order, .trajectory_id, .start, .end, .fragment_type, .phase, .outcome,
            .description, .action_sequence, .files, .open_file, .repo, .task_type}
        ORDER BY f.order, f.id
    } AS fragments,
    COLLECT {
        MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)-[:CAUSED_ERROR]->(e:ErrorPattern)
        MATCH (t)-[m:MET]->(e)
        RETURN [f.id, m.context] ORDER BY e.id
    } AS messages
ORDER BY t.tenant, t.id

// name: embeddable_runs
// The fragments of those of some runs that have no vectors in a space yet.
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
WHERE NOT $property IN t.embedded
RETURN id, COLLECT {
    MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment) RETURN f.id ORDER BY f.order, f.id
} AS fragments

// name: note_embedding
// Say that vectors are added to what was there.
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
RETURN m.id AS id ORDER BY m.tenant, m.id LIMIT $limit

// name: embeddable_methodologies
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

// name: held_methodology_vectors
// The vectors of methodologies that have one, by id, and their repositories.
MATCH (m:Methodology {tenant: $tenant})
WHERE m.id IS NOT NULL
WITH m, m[$property] AS numbers
WHERE numbers IS NOT NULL
WITH m, numbers ORDER BY m.id
RETURN collect(m.id) AS ids, collect(coalesce(m.repo, '')) AS repos, collect(numbers) AS vectors

// name: nearest_methodologies
// Those of the methodologies near to a vector that may be seen, in the given order.
UNWIND range(0, size($ids) - 1) AS number
MATCH (m:Methodology {tenant: $tenant, id: $ids[number]})
WHERE m.status <> 'retired' AND $property IN m.embedded
    AND (($as_of IS NULL AND $excluded = []) OR NOT EXISTS {
        (m)-[:DERIVED_FROM]->(f:Fragment)
        WHERE f.seen_at > $as_of OR f.instance_id IN $excluded
    })
WITH number, m ORDER BY number LIMIT $limit
RETURN m {.id, .error_id, .keyword, .task_type, .repo, .situation, .strategy, .made_by, .status,
    .confidence, .support, .repositories, .success_rate, .avg_steps, .frequency, .success_count,
    .failure_count, .last_used, .superseded_by, .phase} AS methodology,
    COLLECT { MATCH (m)-[:DERIVED_FROM]->(f:Fragment) RETURN [f.trajectory_id, f.id] } AS sources
ORDER BY number

// name: held_trajectories_in_repo
// The runs of a repository whose vectors may be held, unless there are more than $limit.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.repo = $repo AND t.seen_at IS NOT NULL AND t.solved IS NOT NULL
WITH t LIMIT $limit
RETURN collect(t.id) AS found

// name: held_trajectories_everywhere
// The runs whose vectors may be held, unless there are more than $limit.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.seen_at IS NOT NULL AND t.solved IS NOT NULL
WITH t LIMIT $limit
RETURN collect(t.id) AS found

// name: held_trajectories_since
// The runs that were learned or changed after a revision.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.revision > $revision AND ($repo IS NULL OR t.repo = $repo)
WITH t LIMIT $limit
RETURN collect(t.id) AS found

// name: held_trajectory_vectors
// The vectors of runs that have one, with what scopes ask of each.
UNWIND $ids AS id
MATCH (t:Trajectory {tenant: $tenant, id: id})
WITH t, t[$property] AS numbers
WHERE numbers IS NOT NULL
RETURN collect(t.id) AS ids, collect(t.instance_id) AS instances,
    collect(t.seen_at.epochSeconds * 1000000 + t.seen_at.microsecond) AS seen_at,
    collect(numbers) AS vectors

// name: held_fragments_in_repo
// The fragments of a repository whose vectors may be held, unless there are more than $limit.
MATCH (f:Fragment)
WHERE f.tenant = $tenant AND f.repo = $repo AND f.seen_at IS NOT NULL
WITH f LIMIT $limit
RETURN collect(f.id) AS found

// name: held_fragments_everywhere
// The fragments whose vectors may be held, unless there are more than $limit.
MATCH (f:Fragment)
WHERE f.tenant = $tenant AND f.seen_at IS NOT NULL
WITH f LIMIT $limit
RETURN collect(f.id) AS found

// name: held_fragments_since
// The fragments of runs that were learned or changed after a revision.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.revision > $revision AND ($repo IS NULL OR t.repo = $repo)
MATCH (t)-[:HAS_FRAGMENT]->(f:Fragment)
WITH f LIMIT $limit
RETURN collect(f.id) AS found

// name: held_fragment_vectors
// The vectors of fragments that have one, with what scopes ask of each.
UNWIND $ids AS id
MATCH (f:Fragment {tenant: $tenant, id: id})
WITH f, f[$property] AS numbers
WHERE numbers IS NOT NULL
RETURN collect(f.id) AS ids, collect(f.instance_id) AS instances,
    collect(f.seen_at.epochSeconds * 1000000 + f.seen_at.microsecond) AS seen_at,
    collect(numbers) AS vectors

// name: nearest_trajectories_in_repo
// The nearest runs of a repository, by looking at each.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.repo = $repo AND t.seen_at IS NOT NULL AND t.solved IS NOT NULL
    AND ($as_of IS NULL OR t.seen_at <= $as_of)
    AND NOT t.instance_id IN $excluded
WITH t.id AS id, t[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS likeness
WHERE likeness IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * likeness - 1, 4) DESC, id LIMIT $limit

// name: nearest_trajectories_everywhere
// The nearest runs, by looking at each.
MATCH (t:Trajectory)
WHERE t.tenant = $tenant AND t.seen_at IS NOT NULL AND t.solved IS NOT NULL
    AND ($as_of IS NULL OR t.seen_at <= $as_of)
    AND NOT t.instance_id IN $excluded
WITH t.id AS id, t[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS likeness
WHERE likeness IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * likeness - 1, 4) DESC, id LIMIT $limit

// name: nearest_trajectories_by_index
// Those in scope of the nearest runs of all.
CALL db.index.vector.queryNodes($index, $nearest, $vector) YIELD node AS t
WHERE t.tenant = $tenant AND ($repo IS NULL OR t.repo = $repo)
    AND ($as_of IS NULL OR t.seen_at <= $as_of)
    AND NOT t.instance_id IN $excluded
WITH t.id AS id, t[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS likeness
WHERE likeness IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * likeness - 1, 4) DESC, id LIMIT $limit

// name: nearest_fragments_in_repo
// The nearest fragments of a repository, by looking at each.
MATCH (f:Fragment)
WHERE f.tenant = $tenant AND f.repo = $repo AND f.seen_at IS NOT NULL
    AND ($as_of IS NULL OR f.seen_at <= $as_of)
    AND NOT f.instance_id IN $excluded
WITH f.id AS id, f[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS likeness
WHERE likeness IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * likeness - 1, 4) DESC, id LIMIT $limit

// name: nearest_fragments_everywhere
// The nearest fragments, by looking at each.
MATCH (f:Fragment)
WHERE f.tenant = $tenant AND f.seen_at IS NOT NULL
    AND ($as_of IS NULL OR f.seen_at <= $as_of)
    AND NOT f.instance_id IN $excluded
WITH f.id AS id, f[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS likeness
WHERE likeness IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * likeness - 1, 4) DESC, id LIMIT $limit

// name: nearest_fragments_by_index
// Those in scope of the nearest fragments of all.
CALL db.index.vector.queryNodes($index, $nearest, $vector) YIELD node AS f
WHERE f.tenant = $tenant AND ($repo IS NULL OR f.repo = $repo)
    AND ($as_of IS NULL OR f.seen_at <= $as_of)
    AND NOT f.instance_id IN $excluded
WITH f.id AS id, f[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS likeness
WHERE likeness IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * likeness - 1, 4) DESC, id LIMIT $limit

// name: search_trajectories_in_repo
// The nearest runs of a repository, by an index that knows scopes: on calendar releases.
CYPHER 25
MATCH (t:Trajectory)
SEARCH t IN (
    VECTOR INDEX trajectory_embedding FOR $vector
    WHERE t.tenant = $tenant AND t.repo = $repo AND t.seen_at <= $until
    LIMIT $nearest
)
WITH t WHERE NOT t.instance_id IN $excluded
WITH t.id AS id, t[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS likeness
WHERE likeness IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * likeness - 1, 4) DESC, id LIMIT $limit

// name: search_trajectories_everywhere
// The nearest runs, by an index that knows scopes: on calendar releases.
CYPHER 25
MATCH (t:Trajectory)
SEARCH t IN (
    VECTOR INDEX trajectory_embedding FOR $vector
    WHERE t.tenant = $tenant AND t.seen_at <= $until
    LIMIT $nearest
)
WITH t WHERE NOT t.instance_id IN $excluded
WITH t.id AS id, t[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS likeness
WHERE likeness IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * likeness - 1, 4) DESC, id LIMIT $limit

// name: search_fragments_in_repo
// The nearest fragments of a repository, by an index that knows scopes: on calendar releases.
CYPHER 25
MATCH (f:Fragment)
SEARCH f IN (
    VECTOR INDEX fragment_embedding FOR $vector
    WHERE f.tenant = $tenant AND f.repo = $repo AND f.seen_at <= $until
    LIMIT $nearest
)
WITH f WHERE NOT f.instance_id IN $excluded
WITH f.id AS id, f[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS likeness
WHERE likeness IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * likeness - 1, 4) DESC, id LIMIT $limit

// name: search_fragments_everywhere
// The nearest fragments, by an index that knows scopes: on calendar releases.
CYPHER 25
MATCH (f:Fragment)
SEARCH f IN (
    VECTOR INDEX fragment_embedding FOR $vector
    WHERE f.tenant = $tenant AND f.seen_at <= $until
    LIMIT $nearest
)
WITH f WHERE NOT f.instance_id IN $excluded
WITH f.id AS id, f[$property] AS numbers
WITH id, numbers, vector.similarity.cosine(numbers, $vector) AS likeness
WHERE likeness IS NOT NULL
RETURN id, numbers
ORDER BY round(2 * likeness - 1, 4) DESC, id LIMIT $limit

// name: runs_of
// Fragments with the run they are part of, in the given order.
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
