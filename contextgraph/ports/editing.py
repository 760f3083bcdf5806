"""Who puts into better words what a template or a rule has worded."""

from typing import Protocol, TypeVar

from contextgraph.model import Usage, Wording

Item_contra = TypeVar("Item_contra", contravariant=True)
Said_co = TypeVar("Said_co", covariant=True)


class Editor(Protocol[Item_contra, Said_co]):
    """A language model that takes time, costs money and may fail."""

    @property
    def name(self) -> str:
        """The model and the version of its prompt; noted on what it worded."""

    def reword(self, item: Item_contra, *, hurried: bool = False) -> Wording[Said_co]:
        """*item* in the model's words, or why they cannot be used; *hurried*: do not wait long.

        Raises `RemoteError` where the model does not answer, or may not be asked.
        """

    def prompt(self, item: Item_contra) -> str:
        """What the model would be sent about *item*."""

    def estimate(self, item: Item_contra) -> Usage:
        """About what `reword` takes; nothing is sent."""
