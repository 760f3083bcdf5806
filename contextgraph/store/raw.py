"""Raw runs as compressed bytes and back."""

import orjson
import zstandard

from contextgraph.errors import ReadError, StoreError
from contextgraph.model import RawTrajectory
from contextgraph.model.codec import raw_from_record, raw_to_record

# Measured on a run of 75 kB: 0.4 of the time that zlib 1 takes, and 13 % smaller.
_LEVEL = 1


def packed(raw: RawTrajectory) -> bytes:
    """The bytes to keep of *raw*; raises `StoreError` for a text that is not valid Unicode."""
    try:
        encoded = orjson.dumps(raw_to_record(raw))
    except TypeError as error:
        raise StoreError(f"run {raw.instance_id or raw.source} cannot be kept: {error}") from error
    return zstandard.compress(encoded, _LEVEL)


def unpacked(data: bytes) -> RawTrajectory:
    """The run that `packed` gave *data* for; raises `StoreError` where they are damaged."""
    try:
        return raw_from_record(orjson.loads(zstandard.decompress(data)))
    except (zstandard.ZstdError, ValueError, ReadError) as error:
        raise StoreError(f"a kept run is damaged: {error}") from error
