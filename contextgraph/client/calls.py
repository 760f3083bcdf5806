"""The call of a method as JSON and back, by the types in its signature."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from inspect import BoundArguments, Parameter, signature
from types import GenericAlias
from typing import Any, get_args, get_type_hints

from contextgraph.codec import decoded, encoded
from contextgraph.errors import ReadError
from contextgraph.model import Json
from contextgraph.text import clip

_CHARS = 200_000


@cache
def _parameters(method: Callable[..., Any]) -> list[Parameter]:
    return [*signature(method).parameters.values()]


@cache
def _hints(method: Callable[..., Any]) -> Mapping[str, Any]:
    """The types of the arguments by name, of ``**options`` those of each, and of the result."""
    hints: dict[str, Any] = {**method.__annotations__}
    for parameter in _parameters(method):
        if parameter.kind is Parameter.VAR_KEYWORD:
            hints |= get_type_hints(get_args(hints.pop(parameter.name))[0])
        elif parameter.kind is Parameter.VAR_POSITIONAL:
            hints[parameter.name] = GenericAlias(tuple, (hints[parameter.name], ...))
    return hints


def encoded_call(
    method: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]
) -> dict[str, Json]:
    """The arguments of a call by name, with *args* after the object whose method it is.

    Functions are left out, texts cut after 200,000 characters. Raises TypeError as the call would.
    """
    given = signature(method).bind(None, *args, **kwargs).arguments
    del given[_parameters(method)[0].name]
    for parameter in _parameters(method):
        if parameter.kind is Parameter.VAR_KEYWORD:
            given |= given.pop(parameter.name, {})
    return {name: _json(value) for name, value in given.items() if not callable(value)}


def _json(value: Any) -> Json:
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return [*map(_json, value)]
    return _clipped(encoded(value))


def _clipped(record: Json) -> Json:
    if isinstance(record, str):
        return clip(record, _CHARS)
    if isinstance(record, dict):
        return {name: _clipped(value) for name, value in record.items()}
    return [*map(_clipped, record)] if isinstance(record, list) else record


def decoded_call(
    method: Callable[..., Any], target: object, record: Mapping[str, Json]
) -> BoundArguments:
    """The arguments that `encoded_call` gave *record* for, after *target*, with the defaults.

    Raises `ReadError` for arguments that *method* does not take.
    """
    hints = _hints(method) if record else {}
    given: dict[str, Any] = {}
    for name, value in record.items():
        if name not in hints:
            raise ReadError("", "", f"{name} is not an argument")
        try:
            given[name] = decoded(hints[name], value)
        except ReadError as error:
            raise ReadError("", "", f"{name}: {error.reason}") from error
    named = {parameter.name for parameter in _parameters(method)}
    arguments: dict[str, Any] = {_parameters(method)[0].name: target}
    for parameter in _parameters(method)[1:]:
        if parameter.kind is Parameter.VAR_KEYWORD:
            arguments[parameter.name] = {name: given[name] for name in given.keys() - named}
        elif parameter.name in given:
            arguments[parameter.name] = given[parameter.name]
        elif parameter.default is parameter.empty and parameter.kind != Parameter.VAR_POSITIONAL:
            raise ReadError("", "", f"{parameter.name} is missing")
    bound = BoundArguments(signature(method), arguments)
    bound.apply_defaults()
    return bound


def decoded_result(method: Callable[..., Any], record: Json) -> Any:
    """The value that *method* returned, of the JSON that `encoded` gave for it."""
    return decoded(_hints(method)["return"] or type(None), record)
