"""All exceptions, in one hierarchy.

ContextGraphError
├── ReadError             a trajectory file or one record of it
├── InvalidArgumentError  an argument that a method does not take
├── InvalidStateError     a state that a caller handed in
├── InvalidEntryError     what `set_memory` was given
├── InvalidNoteError      a note that cannot be stored
├── SettingsError         flags, environment, contextgraph.toml
├── MissingExtraError     an optional dependency is not installed
├── SpaceMismatchError    vectors of two embedding spaces
├── RemoteError           a model behind an API
│   └── LimitReachedError       the tokens or the money that a setting allows are used
├── EmbeddingError        texts that could not be turned into vectors
└── StoreError            the memory's store
    ├── StoreUnavailableError   cannot be reached, opened or locked in time
    ├── DamagedRunError         one stored run cannot be read; the others can
    ├── MemoryNotFoundError     there is no memory at the address
    ├── SchemaError             the memory was written by another version
    └── LeaseLostError          another process took over consolidating or embedding
"""


class ContextGraphError(Exception):
    """Base of all errors of this package; the message names the thing and the reason.

    *is_recoverable*: an agent can go on without the answer, or retry.
    """

    is_recoverable = False


class ReadError(ContextGraphError):
    """A trajectory that could not be read: *source*, *position* in it, and the *reason*.

    *position* is human-readable ("line 12", "record 3", "byte 1024"), empty for the whole file.
    The reason is its *kind*, which other records may have in common, and the *detail*, if any.
    """

    def __init__(self, source: str, position: str, kind: str, detail: str = "") -> None:
        self.source, self.position, self.kind, self.detail = source, position, kind, detail
        self.reason = f"{kind}: {detail}" if detail else kind
        super().__init__(": ".join(part for part in (source, position, self.reason) if part))

    def __reduce__(self) -> tuple[type["ReadError"], tuple[str, str, str, str]]:
        return type(self), (self.source, self.position, self.kind, self.detail)


class NeverLearnedError(ReadError):
    """A run of a repository or folder that the setting *never_learn* names."""


class InvalidArgumentError(ContextGraphError, ValueError):
    """An argument that a method does not take: names it, and what it should be.

    A service words it in the same way.
    """


class InvalidStateError(ContextGraphError):
    """A state with an unknown key or a value of the wrong type."""


class InvalidEntryError(ContextGraphError):
    """A key, content or source that cannot be stored; the message names the rule."""


class InvalidNoteError(ContextGraphError):
    """A note that is empty or too long."""


class NotFoundError(ContextGraphError):
    """There is no page or entity of this name."""

    is_recoverable = True


class AmbiguousRunError(ContextGraphError):
    """Several runs match where one was meant."""


class AlreadyExistsError(ContextGraphError):
    """There is a page or an entity of this name already."""


class SettingsError(ContextGraphError):
    """A setting that cannot be used; the message names where it came from."""


OF_STORE = "needs the store itself: run it where the service runs, with the address of its store"


class NeedsStoreError(SettingsError, AttributeError):
    """The method called needs the store itself, and this memory is a service."""


class MissingExtraError(ContextGraphError):
    """An optional dependency is absent; the message says how to install the *extra* with it."""

    def __init__(self, problem: str, extra: str = "") -> None:
        line = f"; install it with: pip install 'contextgraph-memory[{extra}]'" if extra else ""
        super().__init__(f"{problem}{line}")


class SpaceMismatchError(ContextGraphError):
    """Vectors of two embedding spaces were compared."""


class RemoteError(ContextGraphError):
    """A model behind an API did not answer, or must not be called; names it and the reason."""

    is_recoverable = True


class LimitReachedError(RemoteError):
    """A call would use more tokens or money than a setting allows; the message names it."""


class EmbeddingError(ContextGraphError):
    """Texts could not be turned into vectors; the message names the space and the reason."""

    is_recoverable = True


class StoreError(ContextGraphError):
    """The store could not perform an operation; nothing was written.

    *remedy* is what to do about the *problem*, empty where the message of the problem says it;
    *reason* is the message of the database.
    """

    def __init__(self, problem: str, remedy: str = "", reason: str = "") -> None:
        self.problem, self.remedy, self.reason = problem, remedy, reason
        text = f"{problem}; {remedy}" if remedy else problem
        super().__init__(f"{text} ({reason})" if reason else text)


class StoreUnavailableError(StoreError):
    """The store cannot be reached, opened, or locked in time; trying again may help."""

    is_recoverable = True


class DamagedRunError(StoreError):
    """One stored run cannot be read; the message names it. The others can."""


class MemoryNotFoundError(StoreError):
    """There is no memory at this address yet."""


class SchemaError(StoreError):
    """The memory has a schema that this version does not know."""


class LeaseLostError(StoreError):
    """The lease of the memory expired meanwhile, and another process holds it now."""
