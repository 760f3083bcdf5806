"""Who puts advice into better words than a template has."""

from typing import Protocol

from contextgraph.model import Group, Usage, Wording


class Editor(Protocol):
    """A language model that takes time, costs money and may fail."""

    @property
    def name(self) -> str:
        """The model and the version of its prompt; noted on what it worded."""

    def reword(self, group: Group) -> Wording:
        """*group* in the model's words, or why they cannot be used.

        Raises `RemoteError` where the model does not answer, or may not be asked.
        """

    def prompt(self, group: Group) -> str:
        """What the model would be sent about *group*."""

    def estimate(self, group: Group) -> Usage:
        """About what `reword` takes; nothing is sent."""
