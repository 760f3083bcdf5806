"""Regular expressions and dataclasses that are made when they are first used.

A process that answers one question uses a few of the hundreds of patterns and values that it
imports, and making all of them would take longer than its answer.

Why not a package: `dataclasses` imports `inspect` and compiles six functions a class when it is
defined; `msgspec` defines classes as fast as this module, and importing it costs what that saves.
"""

import _sre  # type: ignore[import-not-found]
import marshal
import operator
import os
import re
import sys
import zlib
from functools import cache

# In place of that of `typing`, whose import takes a third of a hook; type checkers go by the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
    from typing import Any, AnyStr

_METHODS = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")


class Regex:
    """A pattern; once it was used, its methods are those of the compiled one."""

    def __init__(self, pattern: "Any", flags: int) -> None:
        self.pattern = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # such as `__deepcopy__`
            raise AttributeError(name)
        compiled = patterns.compile(self.pattern, self.flags)
        self.__dict__.update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)


class Patterns:
    """Compiled forms of patterns in a file, as byte code is kept in ``__pycache__``.

    Compiling takes a quarter of the time of a hook. What the file lacks, or has damaged, is
    compiled, and written by `save`. The form is that of one version of Python. It holds numbers and
    names, no code: who can write the user's cache must not run anything in a hook.
    """

    def __init__(self) -> None:
        self._path = ""
        self._forms: dict[tuple[str, int], tuple[Any, ...]] = {}
        self._is_new = False

    def keep(self, path: str) -> None:
        """Keep the forms of all patterns of this process in the file *path*.

        Not where others can write it, or where it is found by the folder one is in. What was not
        written as a whole is ignored.
        """
        self._path, self._is_new, self._forms = "", False, {}
        if not os.path.isabs(path):
            return
        self._path = path
        try:
            with open(path, "rb") as file:
                status, content = os.fstat(file.fileno()), file.read()
            is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
            if not is_own or (os.name == "posix" and status.st_mode & 0o022):
                self._path = ""
            elif content[:4] == zlib.crc32(content[4:]).to_bytes(4, "big"):
                self._forms = dict(marshal.loads(content[4:]))
        except (OSError, EOFError, TypeError, ValueError):
            pass

    def compile(self, pattern: "Any", flags: int = 0) -> "re.Pattern[Any]":
        """Return `re.compile(pattern, flags)`."""
        if not self._path or not isinstance(pattern, str):
            return re.compile(pattern, flags)
        if form := self._forms.get((pattern, int(flags))):
            try:
                flags_made, code, *groups = form
                numbers = [*memoryview(code).cast("I")]
                known: re.Pattern[str] = _sre.compile(pattern, flags_made, numbers, *groups)
                return known
            except (RuntimeError, TypeError, ValueError):  # it checks what it is given
                pass
        from array import array

        made = re.compile(pattern, flags)
        parser, compiler = vars(re)["_parser"], vars(re)["_compiler"]
        code = array("I", compiler._code(parser.parse(pattern, flags), flags)).tobytes()
        names = {number: name for name, number in made.groupindex.items()}
        named = tuple(names.get(number) for number in range(made.groups + 1))
        form = (made.flags, code, made.groups, dict(made.groupindex), named)
        self._forms[pattern, int(flags)] = form
        self._is_new = True
        return made

    def save(self) -> None:
        """Write the forms, where the file lacks some. Raises `OSError`."""
        if self._is_new:
            part = f"{self._path}.{os.getpid()}.part"
            os.makedirs(os.path.dirname(part), mode=0o700, exist_ok=True)
            content = marshal.dumps(self._forms)
            with open(part, "wb", opener=_private) as file:
                file.write(zlib.crc32(content).to_bytes(4, "big") + content)
            os.replace(part, self._path)
            self._is_new = False


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


patterns = Patterns()


def names_of(package: str, modules: "Sequence[str]") -> "Callable[[str], object]":
    """Return the ``__getattr__`` of *package*: it has the names of *modules*, the first first."""

    def found(name: str) -> object:
        for module in modules:
            # To load `importlib` takes longer than most modules.
            __import__(f"{package}.{module}")
            home = sys.modules[f"{package}.{module}"]
            if hasattr(home, name):
                setattr(sys.modules[package], name, getattr(home, name))
                return getattr(home, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return found


def regex(pattern: "AnyStr", flags: int = 0) -> "re.Pattern[AnyStr]":
    """Return `re.compile(pattern, flags)`, compiled at its first use."""
    return Regex(pattern, flags)  # type: ignore[return-value]  # it has the same methods


__all__ = [
    "MISSING",
    "TYPE_CHECKING",
    "Field",
    "Patterns",
    "Regex",
    "dataclass",
    "field",
    "fields",
    "is_dataclass",
    "names_of",
    "patterns",
    "regex",
    "replace",
]

if not TYPE_CHECKING:
    # `dataclasses` compiles six functions for each class when it is defined, and imports `inspect`.
    # Here a class has one, compiled with its first instance; `dataclasses.fields` and all that
    # stands on it work as well.

    class _Missing:
        def __repr__(self):
            return "<factory>"  # as in signatures of `dataclasses`

    MISSING = _Missing()
    _UNSAID = {
        **dict.fromkeys(("default", "default_factory"), MISSING),
        **dict.fromkeys(("compare", "init", "repr"), True),
        "hash": None,
        "metadata": {},
    }

    class Field:
        """Arguments of `field`, and what `dataclasses` takes for those that are not given."""

        __slots__ = ("details", "name", "type", *_UNSAID)

        def __init__(self, details):
            self.details = details
            for name, value in _UNSAID.items():
                setattr(self, name, details.get(name, value))

    def field(**details):
        """See `dataclasses.field`."""
        return Field(details)

    def dataclass(*, frozen=False, slots=False, eq=True, order=False):
        """Define a class with slots as `dataclasses.dataclass` does."""
        assert slots, "only classes with slots"

        def define(cls):
            return _defined(cls, frozen, eq, order)

        return define

    def fields(value):
        """See `dataclasses.fields`; they have a name, a type and metadata."""
        return tuple(value._lazy_fields.values())

    def is_dataclass(value):
        """See `dataclasses.is_dataclass`; only those of this module."""
        return hasattr(value, "_lazy_fields")

    def replace(value, /, **changes):
        """See `dataclasses.replace`."""
        cls = type(value)
        return cls(**dict(zip(cls.__match_args__, _given(cls)(value), strict=False)) | changes)

    @cache
    def _given(cls):
        """Return a function that gives the values of the parameters of *cls*, as a tuple."""
        return operator.attrgetter(*cls.__match_args__, "__class__", "__class__")

    def _defined(cls, frozen, eq, order):
        namespace, fields = dict(cls.__dict__), {}
        for base in cls.__mro__[:0:-1]:
            fields |= base.__dict__.get("_lazy_fields", {})
        slots = []
        for name, annotation in cls.__annotations__.items():
            default = namespace.pop(name, MISSING)
            if not isinstance(default, Field):
                default = field() if default is MISSING else field(default=default)
            if name not in fields:
                slots.append(name)
            default.name, default.type = name, annotation
            fields[name] = default
        for name in ("__dict__", "__weakref__"):
            namespace.pop(name, None)
        compared = [name for name, known in fields.items() if known.compare]
        taken = [name for name, known in fields.items() if known.init]
        namespace |= {
            "__slots__": tuple(slots),
            "__match_args__": tuple(taken),
            "_lazy_fields": fields,
            "__dataclass_fields__": _Standard(frozen, eq, order),
            "__dataclass_params__": _Standard(frozen, eq, order),
        }
        namespace.setdefault("__init__", _Init(frozen))
        namespace.setdefault("__repr__", _repr)
        if eq:
            values = _values(compared)
            namespace.setdefault("__eq__", _comparison(values, operator.eq))
            if namespace.get("__hash__") is None:
                hashed = [name for name in compared if fields[name].hash is not False]
                namespace["__hash__"] = _hash(_values(hashed)) if frozen else None
            for name in ("lt", "le", "gt", "ge") if order else ():
                namespace[f"__{name}__"] = _comparison(values, getattr(operator, name))
        if frozen:
            namespace |= {"__setattr__": _refuse, "__delattr__": _refuse}
            namespace |= {"__getstate__": _state, "__setstate__": _restore}
        defined = type(cls)(cls.__name__, cls.__bases__, namespace)
        defined.__qualname__ = cls.__qualname__
        return defined

    class _Init:
        """Stands for `__init__` until the class is called, or its signature read."""

        def __init__(self, frozen):
            self._frozen = frozen

        def __set_name__(self, owner, name):
            self._owner = owner

        def __get__(self, instance, owner):
            cls, parameters, lines, scope = self._owner, ["self"], [], {"MISSING": MISSING}
            for name, known in cls._lazy_fields.items():
                scope[f"set_{name}"] = getattr(cls, name).__set__
                scope[f"default_{name}"] = known.default
                scope[f"make_{name}"] = make = known.default_factory
                value = name
                if not known.init:
                    if make is MISSING and known.default is MISSING:
                        continue
                    value = f"default_{name}" if make is MISSING else f"make_{name}()"
                elif make is not MISSING:
                    parameters.append(f"{name}=MISSING")
                    value = f"make_{name}() if {name} is MISSING else {name}"
                elif known.default is not MISSING:
                    parameters.append(f"{name}=default_{name}")
                else:
                    parameters.append(name)
                put = f"set_{name}(self, {value})" if self._frozen else f"self.{name} = {value}"
                lines.append(put)
            if hasattr(cls, "__post_init__"):
                lines.append("self.__post_init__()")
            body = "; ".join(lines) or "pass"
            exec(f"def __init__({', '.join(parameters)}): {body}", scope)
            init = scope["__init__"]
            init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
            kinds = {name: known.type for name, known in cls._lazy_fields.items()}
            init.__annotations__ = {name: kinds[name] for name in cls.__match_args__}
            init.__annotations__["return"] = None
            cls.__init__ = init
            return init.__get__(instance, owner)

    class _Standard:
        """Stands for what `dataclasses` notes on a class until something reads it."""

        def __init__(self, *options):
            self._options = options

        def __set_name__(self, owner, name):
            self._owner, self._name = owner, name

        def __get__(self, instance, owner):
            import dataclasses

            cls, (frozen, eq, order) = self._owner, self._options
            namespace = {
                name: dataclasses.field(**known.details) for name, known in cls._lazy_fields.items()
            }
            kinds = {name: known.type for name, known in cls._lazy_fields.items()}
            namespace |= {"__annotations__": kinds, "__doc__": "", "__module__": cls.__module__}
            make = dataclasses.dataclass(repr=False, eq=eq, order=order, frozen=frozen)
            twin = make(type(cls.__name__, (), namespace))
            cls.__dataclass_fields__ = twin.__dataclass_fields__
            cls.__dataclass_params__ = twin.__dataclass_params__
            return getattr(cls, self._name)

    def _values(names):
        """Return a function that gives the values of the fields *names*, to compare or to hash."""
        return operator.attrgetter(*names) if names else lambda value: ()

    def _repr(self):
        known = type(self)._lazy_fields.items()
        shown = [f"{name}={getattr(self, name)!r}" for name, of in known if of.repr]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _hash(values):
        return lambda self: hash(values(self))

    def _comparison(values, compare):
        def compared(self, other):
            if other.__class__ is self.__class__:
                return compare(values(self), values(other))
            return NotImplemented

        return compared

    def _refuse(self, name, *value):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot change field {name!r}")

    def _state(self):
        return [getattr(self, name) for name in self._lazy_fields]

    def _restore(self, state):
        for name, value in zip(self._lazy_fields, state, strict=True):
            object.__setattr__(self, name, value)
