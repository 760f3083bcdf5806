"""Texts as the full-text indexes hold them: whose they are, and their distinct words."""

from urllib.parse import quote

from contextgraph.model import Recovered, Trajectory
from contextgraph.text import words


def text_of_trajectory(tenant: str, value: Trajectory) -> str:
    """The words by which a run is found."""
    return _text(tenant, value.repo, f"{value.task}\n{value.summary}")


def text_of_recovered(tenant: str, repo: str, value: Recovered) -> str:
    """The words by which a recovery in a run of *repo* is found."""
    return _text(tenant, repo, f"{value.message}\n{value.what}")


def owner(tenant: str, repo: str | None) -> str:
    """The term that only texts of this tenant, or of this repository of it, have.

    No word has a ``@``, and what is quoted has no space.
    """
    return f"@{quote(tenant, safe='')}" + ("" if repo is None else f"@{quote(repo, safe='')}")


def _text(tenant: str, repo: str, text: str) -> str:
    return " ".join((owner(tenant, None), owner(tenant, repo), *dict.fromkeys(words(text))))
