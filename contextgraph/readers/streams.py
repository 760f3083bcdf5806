"""The bytes of a file, decompressed, piece by piece."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import IO, NamedTuple, Protocol

import zstandard

from contextgraph.errors import ReadError

MIB = 1 << 20
MAX_RUN_SIZE = 256 * MIB
_PIECE = 1 << 16
# Compressed bytes that are decompressed at once: a zstandard block of 4 bytes may hold 128 KiB.
_STEP = 1 << 10
# Logs that repeat their conversation at each call shrink to a hundredth.
MAX_RATIO = 200

OnBytes = Callable[[int], None]


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


_CODECS = (
    _Codec("gzip", b"\x1f\x8b", lambda: zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)),
    _Codec("zstandard", b"\x28\xb5\x2f\xfd", lambda: zstandard.ZstdDecompressor().decompressobj()),
)


def too_large(name: str, position: str, max_size: int) -> ReadError:
    """The error for what is larger than one run may be."""
    reason = f"larger than --max-run-size ({max_size // MIB} MiB); the rest is not read"
    return ReadError(name, position, reason)


def whole(name: str, stream: Iterable[bytes], max_size: int) -> bytes:
    """All of *stream*; raises ReadError where that is more than *max_size* bytes."""
    content = bytearray()
    for piece in stream:
        content += piece
        if len(content) > max_size:
            raise too_large(name, "", max_size)
    return bytes(content)


def pieces(name: str, file: IO[bytes], on_bytes: OnBytes, max_size: int) -> Iterator[bytes]:
    """The content of *file*, which is at its start, without its gzip or zstandard compression.

    *on_bytes* gets the number of bytes as they are taken from *file*. Raises ReadError, after
    all that could be read, where the file ends early or is corrupt, and where more than *max_size*
    bytes are more than 200 times what they were decompressed from.
    """
    packed = _packed(name, file, on_bytes)
    head = next(packed, b"")
    codec = next((codec for codec in _CODECS if head.startswith(codec.magic)), None)
    if codec:
        yield from _unpacked(name, file, codec, _steps(chain([head], packed)), max_size)
    elif head:
        yield head
        yield from packed


def _packed(name: str, file: IO[bytes], on_bytes: OnBytes) -> Iterator[bytes]:
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
        except (zlib.error, zstandard.ZstdError) as error:
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


def _salvaged(
    file: IO[bytes], codec: _Codec, frame_start: int, taken: int, piece: bytes
) -> Iterator[bytes]:
    """What the corrupt *piece* holds before the corruption; nothing if *file* cannot go back.

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
    except (zlib.error, zstandard.ZstdError):
        return
