"""The connection to a service: requests, their retries, and the errors that answers name."""

import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from contextgraph import errors, model
from contextgraph.system.processes import replacing
from contextgraph.system.remote import (
    STORE_ADDRESS,
    UNLIMITED,
    Answer,
    Failure,
    FailureKind,
    Remote,
    RetryPolicy,
    UnusableAnswerError,
    limit_answer,
    split_address,
    with_proxies,
)
from contextgraph.text import clip, mask_secrets

if TYPE_CHECKING:
    import httpx2
    from httpx2 import Headers, Response

_VERSION = version("contextgraph-memory")
_AGAIN = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
# A service that is busy for longer is down, for who asks now.
_FIRST_DELAY, _MAX_DELAY, _LONGEST_DELAY = 0.5, 8.0, 60.0
_DETAIL_CHARS = 1000
_TOKEN_PLACE = "the second argument of Client or AsyncClient, elsewhere CONTEXTGRAPH_TOKEN"
_UNKNOWN_REQUEST = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
# The errors of a memory that an answer can name: the client raises them as the memory does.
_ERRORS: Mapping[str, type[errors.ContextGraphError]] = {
    kind.__name__: kind
    for kind in (
        errors.AlreadyExistsError,
        errors.AmbiguousRunError,
        errors.EmbeddingError,
        errors.InvalidArgumentError,
        errors.InvalidEntryError,
        errors.InvalidNoteError,
        errors.InvalidStateError,
        errors.LimitReachedError,
        errors.NeedsStoreError,
        errors.NotFoundError,
        errors.RemoteError,
    )
}


class ServiceConnection(Remote["httpx2.Client"]):
    """The service at *url*, used with the token *key*."""

    def __init__(self, url: str, key: str | None = None) -> None:
        parts = split_address(url, STORE_ADDRESS)
        # Also behind a slash, which ends the host: a password may have one.
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in url:
            raise errors.SettingsError(
                "the address of a service is http://HOST:PORT or https://HOST, without a user; "
                f"its token is {_TOKEN_PLACE}"
            )
        super().__init__(url.rstrip("/"), key)
        self._is_checked = False

    def send(
        self,
        method: str,
        path: str,
        policy: RetryPolicy,
        **content: Any,
    ) -> Any:
        """Send a request, again within *policy*; return the JSON value of the answer.

        *content* is as in `httpx2.Client.request`. Raises `StoreUnavailableError` where there is no
        answer, `SettingsError` where the token does not allow it, `StoreError` for other errors.
        """

        def request(client: "httpx2.Client") -> "Response":
            return client.request(method, path, timeout=policy.timeout, **content)

        response = self._answered(request, policy)
        if not response.is_success:
            raise _error(self.name, response)
        return _value(self.name, response)

    def save(self, path: str, target: Path, policy: RetryPolicy, **content: Any) -> "Headers":
        """Write the answer of any size to the file *target*; its headers. Otherwise as `send`."""

        def request(client: "httpx2.Client") -> "Response":
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
            with replacing(target) as part:
                response = self._answered(request, policy)
                if not response.is_success:
                    raise _error(self.name, response)
        except OSError as error:
            raise errors.StoreError(
                f"{target} cannot be written: {error.strerror or error}"
            ) from error
        return response.headers

    def _answered(
        self, request: "Callable[[httpx2.Client], Response]", policy: RetryPolicy
    ) -> "Response":
        def checked(client: "httpx2.Client") -> "Response":
            if not self._is_checked:
                health = client.get("/healthz", timeout=policy.timeout)
                if health.status_code in _AGAIN:
                    return health
                self._check_version(health)
            return request(client)

        try:
            return self.call(checked, policy)
        except errors.RemoteError as error:
            raise errors.StoreUnavailableError(str(error)) from error

    def _check_version(self, health: "Response") -> None:
        """Raise `StoreError` for a service whose interface is another one."""
        value = _value(self.name, health) if health.is_success else None
        theirs = value.get("version") if isinstance(value, dict) else None
        if not isinstance(theirs, str):
            raise errors.StoreError(f"{self.name} is not a service of contextgraph")
        if _interface(theirs) != _interface(_VERSION):
            raise errors.StoreError(
                f"{self.name} is version {theirs} of contextgraph and this client is {_VERSION}, "
                "which has another interface: update the older one"
            )
        self._is_checked = True

    def _attempt(
        self,
        request: "Callable[[httpx2.Client], Answer]",
        client: "httpx2.Client",
        policy: RetryPolicy,
    ) -> Answer | Failure:
        import httpx2

        # httpx2 repeats no request, but for connections.
        for tried in range(policy.retries + 1):
            delay = min(_FIRST_DELAY * 2**tried, _MAX_DELAY) * random.uniform(0.5, 1)
            try:
                answer = request(client)
            except UnusableAnswerError as error:
                return Failure(FailureKind.INVALID, str(error))
            except httpx2.InvalidURL as error:
                raise errors.InvalidArgumentError(
                    f"an argument does not fit into the URL of a request: {error}"
                ) from error
            except httpx2.TimeoutException:
                failure = Failure(FailureKind.DOWN, "no answer in time")
            except httpx2.HTTPError as error:
                failure = Failure(FailureKind.DOWN, f"no connection ({type(error).__name__})")
            else:
                if not isinstance(answer, httpx2.Response) or not _is_busy(answer):
                    return answer
                failure = Failure(FailureKind.DOWN, _detail(answer))
                asked = answer.headers.get("retry-after", "")
                delay = max(delay, float(asked)) if asked.isdecimal() else delay
            if tried == policy.retries or delay > _LONGEST_DELAY:
                break
            time.sleep(delay)
        return failure

    def _open(self) -> "httpx2.Client":
        if find_spec("httpx2") is None:
            raise errors.MissingExtraError("the client of a service is not installed", "client")
        import httpx2

        token = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        client = partial(
            httpx2.Client,
            base_url=self.url,
            # A compressed answer of a few kilobytes could fill the memory.
            headers={
                **token,
                "Accept-Encoding": "identity",
                "User-Agent": f"contextgraph/{_VERSION}",
            },
            event_hooks={"response": [limit_answer]},
        )
        return with_proxies(self.url, self.given, client)


def _interface(release: str) -> list[str]:
    """The part of a version that interfaces follow: until 1.0 a minor version may change them."""
    major, minor, *_ = [*release.split("."), ""]
    return [major, minor] if major == "0" else [major]


def _is_busy(response: "Response") -> bool:
    """Return True for a service, or what is before it, that may answer a second attempt."""
    return response.status_code in _AGAIN and _problem(response).get("error") not in _ERRORS


def _value(name: str, response: "Response") -> model.Json:
    try:
        value: model.Json = orjson.loads(response.content)
    except orjson.JSONDecodeError as error:
        raise errors.StoreError(f"{name}: an answer that is not JSON") from error
    return value


def _error(name: str, response: "Response") -> Exception:
    problem = _problem(response)
    reason = f"{name}: {_detail(response)}"
    if response.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return errors.SettingsError(f"{reason}; give a token that allows this: {_TOKEN_PLACE}")
    if response.has_redirect_location:
        return errors.SettingsError(
            f"{name} redirects to {response.headers['location']}: use that address"
        )
    if isinstance(wrong := problem.get("errors"), list):
        return errors.InvalidArgumentError("; ".join(map(_wrong_argument, wrong)))
    if kind := _ERRORS.get(str(problem.get("error"))):
        return kind(_detail(response))
    if response.status_code in _UNKNOWN_REQUEST:
        return errors.NeedsStoreError(f"{name} is a service, and this {errors.OF_STORE}")
    return errors.StoreError(reason)


def _wrong_argument(error: Any) -> str:
    _, _, argument = str(error["at"]).partition(".")  # after the place: the query, or the body
    return clip(mask_secrets(f"{argument}: {error['reason']}"), _DETAIL_CHARS)


def _detail(response: "Response") -> str:
    """Return the detail of the problem object in *response*, else its status."""
    detail = _problem(response).get("detail")
    status = f"{response.status_code} {response.reason_phrase}"
    return clip(mask_secrets(detail), _DETAIL_CHARS) if isinstance(detail, str) else status


def _problem(response: "Response") -> dict[str, model.Json]:
    try:
        problem = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        problem = None
    return problem if isinstance(problem, dict) else {}
