"""Named entities with tags and relations."""

from typing import Annotated

from pydantic import Field

from contextgraph.knowledge.pages import Entity
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.service.operations import Record, TokenScope, operation
from contextgraph.service.operations.arguments import Name, Repository, Share, Tags, Text
from contextgraph.service.records import record_of
from contextgraph.text import masked_name

_Entity = Annotated[Name, Field(description="The name of the entity.")]
_Other = Annotated[Name, Field(description="The other entity.")]
_Relation = Annotated[Name, Field(description="Such as depends_on.")]


@operation(TokenScope.WRITE, creates=True)
def entities_add(
    memory: AgentMemory,
    name: _Entity,
    entity_type: Annotated[Name, Field(description="Its kind, such as service.")] = "",
    description: Annotated[Text, Field(description="Facts about it.")] = "",
    tags: Tags = (),
    *,
    only_of: str | None = None,
) -> Record:
    """Store an entity; without tags it gets those of its name."""
    memory.entities.add_entity(Entity(name, entity_type, description, tags), only_of)
    return record_of(memory.entities.get_entity(name))


@operation(TokenScope.ADMIN)
def entities_fill(memory: AgentMemory, repo: Repository) -> Record:
    """Store files, symbols, tests and commands of the runs of a repository, with relations."""
    return {"stored": memory.entities.fill(repo)}


@operation(TokenScope.WRITE)
def entities_link(
    memory: AgentMemory,
    source: _Entity,
    relation: _Relation,
    target: _Other,
    weight: Share = 1.0,
    *,
    only_of: str | None = None,
) -> Record:
    """Relate two entities."""
    memory.entities.add_relation(source, target, relation, weight, only_of=only_of)
    names = {"source": source, "type": relation, "target": target}
    return {**{key: masked_name(name) for key, name in names.items()}, "weight": weight}


@operation(TokenScope.ADMIN, exit_code=lambda record: 0 if record["removed"] else 1)
def entities_unlink(
    memory: AgentMemory, source: _Entity, relation: _Relation, target: _Other
) -> Record:
    """Remove the relation of two entities."""
    return {"removed": memory.entities.remove_relation(source, target, relation)}


@operation(TokenScope.READ, lines="entities")
def entities_related(
    memory: AgentMemory,
    name: _Entity,
    depth: Annotated[int, Field(ge=1, le=10, description="At most so many relations away.")] = 1,
) -> Record:
    """List entities that are related to one in either direction, the nearest first."""
    related = memory.entities.get_related(name, depth)
    return {
        "entities": [
            record_of(
                one.entity, distance=one.distance, score=round(one.score, 4), pages=[*one.pages]
            )
            for one in related
        ]
    }


@operation(TokenScope.READ, lines="entities")
def entities_find(
    memory: AgentMemory,
    question: Annotated[Text, Field(description="Words of names or tags.")],
) -> Record:
    """List the entities that words of a question name."""
    return {"entities": [*map(record_of, memory.entities.find_by_keywords(question))]}


@operation(TokenScope.READ)
def entities_tags(
    memory: AgentMemory, prefix: Annotated[Name, Field(description="Only these.")] = ""
) -> Record:
    """Return tags that begin with a prefix, with the number of their entities."""
    return {**memory.entities.find_tags(prefix)}


@operation(TokenScope.ADMIN, exit_code=lambda record: 0 if record["removed"] else 1)
def entities_remove(memory: AgentMemory, name: _Entity) -> Record:
    """Delete an entity with its relations."""
    return {"removed": memory.entities.remove_entity(name)}
