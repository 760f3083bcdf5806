"""All that one clearance bears out, from the most concrete to the most general."""

from functools import lru_cache

from contextgraph.consolidation.code import of_code
from contextgraph.consolidation.commands import of_command, once_more
from contextgraph.consolidation.edits import of_edit
from contextgraph.consolidation.move import Move
from contextgraph.consolidation.roles import names_of
from contextgraph.consolidation.sentences import clauses_of
from contextgraph.model import Clearance, ErrorPattern, Family


def moves_of(error: ErrorPattern, clearance: Clearance) -> tuple[Move, ...]:
    """The moves of *clearance*, each text once."""
    recovered, repo_name = clearance.recovered, clearance.repo.rpartition("/")[2]
    return _moves(error, recovered.message, recovered.what, repo_name)


# What is looked at again with each new run is mostly what was looked at before.
@lru_cache(8192)
def _moves(error: ErrorPattern, message: str, what: str, repo_name: str) -> tuple[Move, ...]:
    names = names_of(error, message)
    found: dict[str, Move] = {}
    for clause in clauses_of(what):
        # A time-out has nothing to do with how a command or an edit was put.
        if error.family is Family.TIMEOUT:
            moves = [*once_more(clause)]
        else:
            moves = [
                *of_edit(clause, names),
                *of_command(clause, names, repo_name),
                *of_code(clause, names),
            ]
        for move in moves:
            found.setdefault(move.text, move)
    return tuple(found.values())
