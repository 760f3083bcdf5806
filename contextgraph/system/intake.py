"""One door for what others may have written.

Files are regular, in their folder and of bounded size, also once they are decompressed; JSON has
a bounded depth and number of values.
"""

import codecs
import errno
import json
import math
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol

from contextgraph.errors import ReadError
from contextgraph.text import regex

if TYPE_CHECKING:
    import orjson

OnBytes = Callable[[int], None]

_NO_FILE = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


# What the kernel makes up while it is read, which may wait or have no end.
_MADE_UP = ("/proc/", "/sys/")


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return what is at *path*, such as "a pipe"; empty for a regular file. Raises `OSError`."""
    found = os.stat(path)
    is_made_up = not found.st_size and os.path.realpath(path).startswith(_MADE_UP)
    return _NO_FILE.get(stat.S_IFMT(found.st_mode), "made up by the kernel" if is_made_up else "")


def leaves(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Return True where *path* leads out of *folder*, through links."""
    inside = os.path.realpath(folder)
    return os.path.commonpath((os.path.realpath(path), inside)) != inside


def opened(
    path: str | os.PathLike[str], *, inside: str | os.PathLike[str] | None = None
) -> IO[bytes]:
    """Open the regular file at *path*, without waiting for a pipe or a device.

    Raises `OSError` for anything else, and for a link out of the folder *inside*.
    """
    if inside is not None and leaves(path, inside):
        raise OSError(errno.EPERM, "a link to outside the folder", os.fspath(path))
    if kind := kind_of(path):  # opening a device may act on it
        raise OSError(errno.EPERM, f"not a file: {kind}", os.fspath(path))
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(file).st_mode):  # it changed meanwhile
        os.close(file)
        raise OSError(errno.EPERM, "not a file", os.fspath(path))
    return os.fdopen(file, "rb")


def content(
    path: str | os.PathLike[str], most: int, *, inside: str | os.PathLike[str] | None = None
) -> bytes:
    """Return the bytes at *path* as `opened` opens it; raises `OSError` for more than *most*."""
    with opened(path, inside=inside) as file:
        read = file.read(most + 1)
    if len(read) > most:
        raise OSError(errno.EFBIG, f"longer than {most:,} bytes", os.fspath(path))
    return read


# Bytes that identify UTF-16 without a mark: eight characters of ASCII.
_ASCII_HEAD = 16
_LONE_SURROGATE = regex("[\ud800-\udfff]")
_INTEGER_RANGE = range(-(2**63), 2**64)
# What is derived from a run is walked by recursion; runs nest some ten levels.
MAX_DEPTH = 100
# An empty list takes twenty times its text, a small object more, and while a text is parsed nothing
# else of the process runs. In longer texts, these are the bytes for each.
_MAX_VALUES, _MAX_PARTS = 5_000_000, 250_000
_BYTES_OF_VALUE, _BYTES_OF_PART = 50, 100
_ALL_BUT_OPENING = bytes(code for code in range(256) if code not in b"[{")


def loads(text: bytes | str, depth: int = MAX_DEPTH) -> "Any":
    """Return the value of a JSON *text*. Raises ValueError with reason and place.

    Lone surrogates become U+FFFD; NaN and infinities, which JSON does not have, null; integers
    of more than 64 bits are rounded. More than *depth* levels of nesting are refused, and more than
    5 million values, or 250,000 lists and objects, unless each has 50, or 100, bytes of the text.
    """
    import orjson  # slow to load: most outputs that a hook sees hold no JSON

    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    # Faster than to count both, which is 7 % of reading a session.
    parts = len(content.translate(None, _ALL_BUT_OPENING))
    if len(content) > _MAX_PARTS:
        most = max(_MAX_PARTS, len(content) // _BYTES_OF_PART)
        if parts > most:
            raise ValueError(f"more than {most:,} lists and objects")
        most = max(_MAX_VALUES, len(content) // _BYTES_OF_VALUE)
        if parts + content.count(b",") > most:
            raise ValueError(f"more than {most:,} values")
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        odd = (b"\\ud", b"\\uD", b"NaN", b"Infinity")
        if not any(token in content for token in odd):
            raise
        value = _lenient(content, error)
    if parts > depth and _is_deeper(value, depth):
        raise ValueError(f"nested more than {depth} levels deep")
    return value


def has_more(value: object, most: int) -> bool:
    """Return True where a parsed JSON *value* has more than *most* values and keys."""
    waiting, count = [value], 0
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            count += 2 * len(inner)
            waiting += [one for one in inner.values() if isinstance(one, dict | list)]
        elif isinstance(inner, list):
            count += len(inner)
            waiting += [one for one in inner if isinstance(one, dict | list)]
        if count > most:
            return True
    return False


def _is_deeper(value: "Any", depth: int) -> bool:
    """Return True if lists and objects are nested more than *depth* levels deep in *value*."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def without_surrogates(value: "Any") -> "Any":
    """Return *value* with U+FFFD for each lone surrogate in its texts."""
    match value:
        case str():
            return _LONE_SURROGATE.sub("\ufffd", value)
        case list() | tuple():
            return [without_surrogates(item) for item in value]
        case dict():
            return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
    return value


def _lenient(text: bytes, reason: "orjson.JSONDecodeError") -> "Any":
    try:
        value = json.loads(
            text, parse_constant=lambda _: None, parse_int=_integer, parse_float=_float
        )
        return without_surrogates(value)
    except (ValueError, RecursionError):
        raise reason from None


def _integer(digits: str) -> int | float | None:
    number = int(digits)
    return number if number in _INTEGER_RANGE else _float(digits)


def _float(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


MIB = 1 << 20
MAX_RUN_SIZE = 256 * MIB
_PIECE = 1 << 16
# Compressed bytes that are decompressed at once: a zstandard block of 4 bytes may hold 128 KiB.
_STEP = 1 << 10
# Logs that repeat their conversation at each call shrink to a hundredth.
MAX_RATIO = 200


class _Decoder(Protocol):
    """Decompresses one gzip member or one zstandard frame."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class _Codec(NamedTuple):
    name: str
    magic: bytes
    new_decoder: Callable[[], _Decoder]


def _gzip() -> _Decoder:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


def _zstandard() -> _Decoder:
    import zstandard  # slow to load, as most files are not packed

    return zstandard.ZstdDecompressor().decompressobj()


_CODECS = (
    _Codec("gzip", b"\x1f\x8b", _gzip),
    _Codec("zstandard", b"\x28\xb5\x2f\xfd", _zstandard),
)


def too_large(name: str, position: str, max_size: int) -> ReadError:
    """Return the error for what is larger than one run may be."""
    reason = f"larger than --max-run-size ({max_size // MIB} MiB); the rest is not read"
    return ReadError(name, position, reason)


def whole(name: str, stream: Iterable[bytes], max_size: int) -> bytes:
    """Return all of *stream*; raises ReadError where that is more than *max_size* bytes."""
    content = bytearray()
    for piece in stream:
        content += piece
        if len(content) > max_size:
            raise too_large(name, "", max_size)
    return bytes(content)


def pieces(name: str, file: IO[bytes], on_bytes: OnBytes, max_size: int) -> Iterator[bytes]:
    """Yield the content of *file*, from its start, without gzip or zstandard compression.

    *on_bytes* gets the number of bytes as they are taken from *file*. Raises ReadError, after
    all that could be read, where the file ends early or is corrupt, and where more than *max_size*
    bytes are more than 200 times what they were decompressed from.
    """
    packed = _compressed(name, file, on_bytes)
    head = next(packed, b"")
    codec = next((codec for codec in _CODECS if head.startswith(codec.magic)), None)
    plain: Iterator[bytes] = chain([head] if head else [], packed)
    if codec:
        plain = _unpacked(name, file, codec, _steps(plain), max_size)
    yield from _as_utf8(plain)


def lines(path: str | os.PathLike[str], most: int = MAX_RUN_SIZE) -> Iterator[bytes]:
    """Yield the lines of the regular file at *path*, decompressed, each with its end.

    Raises `ReadError` where the file cannot be read or a line has more than *most* bytes.
    """
    name = os.fspath(path)
    try:
        file = opened(path)
    except OSError as error:
        raise ReadError(name, "", f"cannot be read: {error.strerror or error}") from error
    with file:
        carry, size, number = list[bytes](), 0, 1
        for piece in pieces(name, file, lambda taken: None, most):
            *ended, rest = piece.split(b"\n")
            for line in ended:
                yield b"".join((*carry, line, b"\n"))
                carry, size, number = [], 0, number + 1
            carry.append(rest)
            size += len(rest)
            if size > most:
                reason = f"longer than {most // MIB} MiB; the rest is not read"
                raise ReadError(name, f"line {number}", reason)
        if last := b"".join(carry):
            yield last


def _as_utf8(plain: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of *plain* in UTF-8, without a byte order mark."""
    head = next(plain, b"")
    if not (encoding := _encoding_of(head)):
        yield from chain([head.removeprefix(codecs.BOM_UTF8)] if head else [], plain)
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for piece in chain([head], plain):
        if text := decoder.decode(piece):
            yield text.encode("utf-8", "surrogatepass")
    if text := decoder.decode(b"", final=True):
        yield text.encode()


def _encoding_of(head: bytes) -> str:
    """UTF-16 where *head* begins with its byte order mark, or as ASCII does in it; else empty."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    first = head[:_ASCII_HEAD]
    for order, (high, low) in {
        "le": (first[1::2], first[::2]),
        "be": (first[::2], first[1::2]),
    }.items():
        if len(first) == _ASCII_HEAD and not any(high) and all(low):
            return f"utf-16-{order}"
    return ""


def _compressed(name: str, file: IO[bytes], on_bytes: OnBytes) -> Iterator[bytes]:
    while piece := _read(name, file):
        on_bytes(len(piece))
        yield piece


def _steps(packed: Iterable[bytes]) -> Iterator[bytes]:
    for piece in packed:
        for at in range(0, len(piece), _STEP):
            yield piece[at : at + _STEP]


def _read(name: str, file: IO[bytes]) -> bytes:
    try:
        return file.read(_PIECE)
    except OSError as error:
        raise ReadError(name, "", f"cannot be read: {error.strerror or error}") from error


def _unpacked(
    name: str, file: IO[bytes], codec: _Codec, packed: Iterator[bytes], max_size: int
) -> Iterator[bytes]:
    decoder: _Decoder | None = None
    frame_start = taken = given = 0
    piece = next(packed, b"")
    while piece:
        if decoder is None:
            decoder, frame_start = codec.new_decoder(), taken
        try:
            plain = decoder.decompress(piece)
        except _corrupt() as error:
            yield from _salvaged(file, codec, frame_start, taken, piece)
            reason = f"{codec.name} data is corrupt: {error}"
            raise ReadError(name, f"near byte {taken}", reason) from error
        if plain:
            yield plain
        rest = decoder.unused_data if decoder.eof else b""
        taken += len(piece) - len(rest)
        given += len(plain)
        if given > max(max_size, MAX_RATIO * taken):
            reason = f"{codec.name} data of more than {MAX_RATIO} times its size; not read further"
            raise ReadError(name, f"byte {taken}", reason)
        decoder = None if decoder.eof else decoder
        piece = rest or next(packed, b"")
    if decoder is not None:
        raise ReadError(name, f"byte {taken}", f"{codec.name} data ends early")


def _corrupt() -> tuple[type[Exception], ...]:
    import zstandard

    return zlib.error, zstandard.ZstdError


def _salvaged(
    file: IO[bytes], codec: _Codec, frame_start: int, taken: int, piece: bytes
) -> Iterator[bytes]:
    """Yield what *piece* holds before the corruption; nothing if *file* cannot go back.

    A decoder that fails keeps all that it decoded in that call to itself, so the frame is decoded
    again up to *taken*, and from there byte by byte.
    """
    if not file.seekable():
        return
    file.seek(frame_start)
    decoder = codec.new_decoder()
    while frame_start < taken:
        again = file.read(min(_PIECE, taken - frame_start))
        decoder.decompress(again)
        frame_start += len(again)
    try:
        for index in range(len(piece)):
            yield decoder.decompress(piece[index : index + 1])
    except _corrupt():
        return
