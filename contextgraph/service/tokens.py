"""Bearer tokens, each with a scope and a tenant."""

import hashlib
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from contextgraph.config import Settings
from contextgraph.errors import ReadError, SettingsError
from contextgraph.model.codec import from_bytes, json_bytes
from contextgraph.model.values import replace
from contextgraph.service.operations import TokenScope
from contextgraph.system.processes import locked, replacing

if TYPE_CHECKING:
    from argon2 import PasswordHasher


_PREFIX = "cg"
_CHECK_CHARS = 6


class Token(Struct, frozen=True, omit_defaults=True):
    """A token as it is kept: its secret only as an argon2 *hash*.

    *check* is a small part of another one, by which most wrong secrets are known. What is learned
    with it belongs to *tenant*, and names *source* as where it comes from.
    """

    id: str
    hash: str
    scopes: tuple[TokenScope, ...]
    tenant: str
    source: str
    created_at: datetime
    check: str = ""

    def allows(self, scope: TokenScope) -> bool:
        """Return True where it may be used for what needs *scope*."""
        return scope in self.scopes or TokenScope.ADMIN in self.scopes


class _TokenList(Struct, frozen=True):
    tokens: tuple[Token, ...] = ()


class TokenFile:
    """The tokens in a file that its owner alone can read; safe for several processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._version: tuple[int, int] | None = None
        self._tokens: dict[str, Token] = {}
        self._verified: dict[bytes, Token] = {}

    @classmethod
    def of(cls, settings: Settings) -> "TokenFile":
        """Return the tokens in the file beside the memory of *settings*, for all of its tenants."""
        memory = replace(settings, tenant="default").companion
        return cls(Path(f"{memory}.tokens.json"))

    def create(self, scopes: Sequence[TokenScope], tenant: str, source: str) -> tuple[Token, str]:
        """Create a token; return it with the text that its user sends, which is stored nowhere.

        Raises `SettingsError` for a *source* that cannot be one.
        """
        from contextgraph.learning import checked_source  # which other uses of tokens need not load

        checked_source(source)
        secret = secrets.token_urlsafe(32)
        identity = secrets.token_hex(6)
        hashed = _hasher().hash(secret)
        token = Token(
            *(identity, hashed, tuple(dict.fromkeys(scopes)), tenant, source, datetime.now(UTC)),
            check=_check(secret),
        )
        with self._changing() as tokens:
            tokens.append(token)
        return token, f"{_PREFIX}_{identity}_{secret}"

    def revoke(self, identity: str) -> bool:
        """Remove a token; False where there is none with this id."""
        with self._changing() as tokens:
            remaining = [token for token in tokens if token.id != identity]
            removed = len(remaining) < len(tokens)
            tokens[:] = remaining
        return removed

    def all(self) -> Sequence[Token]:
        """Return the tokens, in the order of creation."""
        with self._lock:
            self._reload()
            return [*self._tokens.values()]

    def verified(self, text: str) -> Token | None:
        """Return the token with this text if `find` has found it before; else None."""
        with self._lock:
            self._reload()
            return self._verified.get(_digest(text))

    def find(self, text: str) -> Token | None:
        """Return the token with this text; None for a wrong or revoked one."""
        with self._lock:
            self._reload()
            prefix, _, rest = text.partition("_")
            identity, _, secret = rest.partition("_")
            token = self._tokens.get(identity)
        if prefix != _PREFIX or token is None or not _matches(token.hash, secret):
            return None
        with self._lock:
            # Not where it was revoked meanwhile.
            if self._tokens.get(token.id) == token:
                self._verified[_digest(text)] = token
        return token

    def may_be(self, text: str) -> bool:
        """Return True where *text* may be a token, as nothing that is guessed is."""
        _, _, rest = text.partition("_")
        identity, _, secret = rest.partition("_")
        with self._lock:
            token = self._tokens.get(identity)
        return token is not None and token.check == _check(secret)

    def has(self, identity: str) -> bool:
        """Return True where there is a token of this id."""
        with self._lock:
            return identity in self._tokens

    def _reload(self) -> None:
        """Read the file again where it has changed."""
        version = _version(self.path)
        if version != self._version:
            self._tokens = {token.id: token for token in self._read()}
            self._verified.clear()
            self._version = version

    def _read(self) -> tuple[Token, ...]:
        try:
            return from_bytes(_TokenList, self.path.read_bytes()).tokens
        except FileNotFoundError:
            return ()
        except (OSError, ReadError) as error:
            raise SettingsError(f"the tokens in {self.path} cannot be read: {error}") from error

    @contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        """The tokens, written back at the end; other processes wait meanwhile."""
        try:
            with locked(self.path.with_suffix(".lock")):
                tokens = [*self._read()]
                yield tokens
                with replacing(self.path, sync=True) as part:
                    part.write_bytes(json_bytes(_TokenList(tuple(tokens)), "a token"))
        except OSError as error:
            reason = error.strerror or error
            raise SettingsError(f"{self.path} cannot be written: {reason}") from error


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _check(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()[:_CHECK_CHARS]


def _version(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ino


def _hasher() -> "PasswordHasher":
    """A cheap one: the secrets are random, and no one can guess 256 bits."""
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=1, memory_cost=8 * 1024, parallelism=1)


def _matches(hashed: str, secret: str) -> bool:
    from argon2.exceptions import VerificationError

    try:
        return _hasher().verify(hashed, secret)
    except VerificationError:
        return False
