"""Named entities with tags and relations."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from contextgraph.knowledge.pages import Entity, RelatedEntity
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.service.operations import Record, TokenScope, operation
from contextgraph.service.operations.arguments import Name, Names, Repository, Share, Tags, Text
from contextgraph.service.records import record_of
from contextgraph.text import masked_name

_Entity = Annotated[Name, Field(description="The name of the entity.")]
_Other = Annotated[Name, Field(description="The other entity.")]
_Repository = Annotated[Name, Field(description="The repository of the entities, if of one.")]
_Relation = Annotated[Name, Field(description="Such as depends_on.")]


# Field by field, as `pages_put`; a client sends an `Entity` to `add_entity`.
@operation(TokenScope.WRITE, creates=True)
def entities_add(
    memory: AgentMemory,
    name: _Entity,
    entity_type: Annotated[Name, Field(description="Its kind, such as service.")] = "",
    description: Annotated[Text, Field(description="Facts about it.")] = "",
    tags: Tags = (),
    repo: _Repository = "",
    *,
    only_of: str | None = None,
) -> Record:
    """Store an entity; without tags, the words of its name become its tags."""
    memory.entities.add_entity(Entity(name, entity_type, description, tags, repo=repo), only_of)
    return record_of(memory.entities.get_entity(name, repo))


@operation(TokenScope.READ, "POST /v1/entities/get_entity")
def entities_get(memory: AgentMemory, name: _Entity, repo: _Repository = "") -> Entity:
    """Return an entity."""
    return memory.entities.get_entity(name, repo)


@operation(TokenScope.ADMIN, "POST /v1/entities/fill", key="stored", takes_long=True)
def entities_fill(memory: AgentMemory, repo: Repository) -> int:
    """Store files, symbols, tests and commands of the runs of a repository, with relations."""
    return memory.entities.fill(repo)


def _relation_record(_: None, given: Mapping[str, Any], __: object) -> Record:
    names = {"source": "source", "type": "relation", "target": "target"}
    return {
        **{key: masked_name(given[name]) for key, name in names.items()},
        "weight": given.get("weight", 1.0),
    }


@operation(TokenScope.WRITE, "POST /v1/entities/add_relation", form=_relation_record)
def entities_link(
    memory: AgentMemory,
    source: _Entity,
    relation: _Relation,
    target: _Other,
    weight: Share = 1.0,
    repo: _Repository = "",
    *,
    only_of: str | None = None,
) -> None:
    """Relate two entities."""
    memory.entities.add_relation(source, target, relation, weight, repo, only_of)


def _not_removed(record: Record) -> int:
    return 0 if record["removed"] else 1


@operation(
    TokenScope.ADMIN,
    "POST /v1/entities/remove_relation",
    key="removed",
    exit_code=_not_removed,
)
def entities_unlink(
    memory: AgentMemory, source: _Entity, relation: _Relation, target: _Other
) -> bool:
    """Remove the relation of two entities."""
    return memory.entities.remove_relation(source, target, relation)


def _related_record(related: Sequence[RelatedEntity], *_: object) -> Record:
    return {
        "entities": [
            record_of(
                one.entity, distance=one.distance, score=round(one.score, 4), pages=[*one.pages]
            )
            for one in related
        ]
    }


@operation(TokenScope.READ, "POST /v1/entities/get_related", form=_related_record, lines="entities")
def entities_related(
    memory: AgentMemory,
    name: _Entity,
    depth: Annotated[int, Field(ge=0, le=10, description="At most so many relations away.")] = 1,
    types: Annotated[Names, Field(description="Only along these relations.")] = (),
    repo: _Repository = "",
) -> Sequence[RelatedEntity]:
    """List entities that are related to one in either direction, the nearest first."""
    return memory.entities.get_related(name, depth, *types, repo=repo)


@operation(TokenScope.READ, "POST /v1/entities/find_by_keywords", lines="entities")
def entities_find(
    memory: AgentMemory,
    question: Annotated[Text, Field(description="Words of names or tags.")],
) -> Sequence[Entity]:
    """List the entities that a question mentions."""
    return memory.entities.find_by_keywords(question)


@operation(TokenScope.READ, "POST /v1/entities/find_tags")
def entities_tags(
    memory: AgentMemory, prefix: Annotated[Name, Field(description="Only these.")] = ""
) -> Mapping[str, int]:
    """Return tags that begin with a prefix, with the number of their entities."""
    return memory.entities.find_tags(prefix)


@operation(
    TokenScope.ADMIN, "POST /v1/entities/remove_entity", key="removed", exit_code=_not_removed
)
def entities_remove(memory: AgentMemory, name: _Entity, repo: _Repository = "") -> bool:
    """Delete an entity with its relations."""
    return memory.entities.remove_entity(name, repo)
