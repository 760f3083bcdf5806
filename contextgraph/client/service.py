"""Requests to the service: retries within a deadline, its errors, its version."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from contextgraph.errors import (
    AlreadyExistsError,
    ContextGraphError,
    InvalidNoteError,
    MissingExtraError,
    NeedsStoreError,
    NotFoundError,
    RemoteError,
    SettingsError,
    StoreError,
    StoreUnavailableError,
)
from contextgraph.model import Json
from contextgraph.remote import (
    UNLIMITED,
    Answer,
    Failure,
    FailureKind,
    Remote,
    RetryPolicy,
    UnusableAnswerError,
    limit_answer,
    retry_after,
)
from contextgraph.text import clip, mask_secrets

if TYPE_CHECKING:
    from httpx2 import Client, Headers, Response

_VERSION = version("contextgraph-memory")
_AGAIN = {
    HTTPStatus.TOO_MANY_REQUESTS: FailureKind.RATE_LIMITED,
    HTTPStatus.BAD_GATEWAY: FailureKind.DOWN,
    HTTPStatus.SERVICE_UNAVAILABLE: FailureKind.DOWN,
    HTTPStatus.GATEWAY_TIMEOUT: FailureKind.DOWN,
}
_DETAIL_CHARS = 1000
# The errors of a memory that an answer can name.
_ERRORS: Mapping[str, type[ContextGraphError]] = {
    kind.__name__: kind
    for kind in (AlreadyExistsError, InvalidNoteError, NeedsStoreError, NotFoundError)
}


class Service(Remote["Client"]):
    """The service at *url*, used with the token *key*."""

    def __init__(self, url: str, key: str | None = None) -> None:
        parts = urlsplit(url)
        # Also behind a slash, which ends the host: a password may have one.
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in url:
            raise SettingsError(
                "the address of a service is http://HOST:PORT or https://HOST, without a user; "
                "its token is CONTEXTGRAPH_TOKEN"
            )
        super().__init__(url.rstrip("/"), key)
        self._is_checked = False

    def send(
        self,
        method: str,
        path: str,
        policy: RetryPolicy,
        *,
        accept: HTTPStatus | None = None,
        **content: Any,
    ) -> Any:
        """The JSON value of the answer, retried within *policy*; None for the status *accept*.

        *content* is as of `httpx2.Client.request`. Raises `StoreUnavailableError` where there is no
        answer, `SettingsError` where the token does not allow it, `StoreError` for other errors.
        """

        def request(client: "Client") -> "Response":
            return client.request(method, path, timeout=policy.timeout, **content)

        response = self._answered(request, policy)
        if response.status_code == accept:
            return None
        if not response.is_success:
            raise _error(self.name, response)
        return _value(self.name, response)

    def save(self, path: str, target: Path, policy: RetryPolicy, **content: Any) -> "Headers":
        """Write the answer of any size to the file *target*; its headers. Otherwise as `send`."""
        part = target.with_name(f"{target.name}.part")

        def request(client: "Client") -> "Response":
            unlimited = {UNLIMITED: True}
            timeout = policy.timeout
            with client.stream(
                "GET", path, timeout=timeout, extensions=unlimited, **content
            ) as got:
                if not got.is_success:
                    got.read()
                    return got
                with part.open("wb") as file:
                    file.writelines(got.iter_bytes())
            return got

        try:
            response = self._answered(request, policy)
            if not response.is_success:
                raise _error(self.name, response)
            part.replace(target)
        except OSError as error:
            raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error
        finally:
            part.unlink(missing_ok=True)
        return response.headers

    def _answered(self, request: "Callable[[Client], Response]", policy: RetryPolicy) -> "Response":
        def checked(client: "Client") -> "Response":
            if not self._is_checked:
                health = client.get("/healthz", timeout=policy.timeout)
                if health.status_code in _AGAIN:
                    return health
                self._check_version(health)
            return request(client)

        try:
            return self.call(checked, policy)
        except RemoteError as error:
            raise StoreUnavailableError(str(error)) from error

    def _check_version(self, health: "Response") -> None:
        """Raise `StoreError` for a service whose interface is another one."""
        value = _value(self.name, health) if health.is_success else None
        theirs = value.get("version") if isinstance(value, dict) else None
        if not isinstance(theirs, str):
            raise StoreError(f"{self.name} is not a service of contextgraph")
        if _interface(theirs) != _interface(_VERSION):
            raise StoreError(
                f"{self.name} is version {theirs} of contextgraph and this client is {_VERSION}, "
                "which has another interface: update the older one"
            )
        self._is_checked = True

    def _attempt(
        self, request: "Callable[[Client], Answer]", client: "Client", policy: RetryPolicy
    ) -> Answer | Failure:
        import httpx2

        try:
            answer = request(client)
        except UnusableAnswerError as error:
            return Failure(FailureKind.INVALID, str(error))
        except httpx2.TimeoutException:
            return Failure(FailureKind.DOWN, "no answer in time")
        except httpx2.HTTPError as error:
            return Failure(FailureKind.DOWN, f"no connection ({type(error).__name__})")
        if isinstance(answer, httpx2.Response) and answer.status_code in _AGAIN:
            kind = _AGAIN[HTTPStatus(answer.status_code)]
            return Failure(kind, _detail(answer), retry_after(answer.headers))
        return answer

    def _open(self) -> "Client":
        if find_spec("httpx2") is None:
            raise MissingExtraError(
                "the client of a service is not installed; "
                "install it with: pip install 'contextgraph-memory[client]'"
            )
        from httpx2 import Client

        token = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        return Client(
            base_url=self.url,
            # A compressed answer of a few kilobytes could fill the memory.
            headers={
                **token,
                "Accept-Encoding": "identity",
                "User-Agent": f"contextgraph/{_VERSION}",
            },
            event_hooks={"response": [limit_answer]},
        )


def _interface(release: str) -> list[str]:
    """The part of a version that interfaces follow: until 1.0 a minor version may change them."""
    major, minor, *_ = [*release.split("."), ""]
    return [major, minor] if major == "0" else [major]


def _value(name: str, response: "Response") -> Json:
    try:
        value: Json = orjson.loads(response.content)
    except orjson.JSONDecodeError as error:
        raise StoreError(f"{name}: an answer that is not JSON") from error
    return value


def _error(name: str, response: "Response") -> Exception:
    problem = _problem(response)
    reason = f"{name}: {_detail(response)}"
    if response.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return SettingsError(f"{reason}; set CONTEXTGRAPH_TOKEN to one that allows this")
    if response.has_redirect_location:
        return SettingsError(
            f"{name} redirects to {response.headers['location']}: use that address"
        )
    return _ERRORS.get(str(problem.get("error")), StoreError)(reason)


def _detail(response: "Response") -> str:
    """What the problem object in *response* says, else its status."""
    detail = _problem(response).get("detail")
    status = f"{response.status_code} {response.reason_phrase}"
    return clip(mask_secrets(detail), _DETAIL_CHARS) if isinstance(detail, str) else status


def _problem(response: "Response") -> dict[str, Json]:
    try:
        problem = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        problem = None
    return problem if isinstance(problem, dict) else {}
