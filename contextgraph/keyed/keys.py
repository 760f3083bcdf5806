"""Keys and the files of their entries: readable, safe, and different for different keys."""

import re
from hashlib import blake2b
from pathlib import PurePosixPath
from unicodedata import normalize

from contextgraph.errors import InvalidEntryError
from contextgraph.text import mask_secrets

MAX_KEY_BYTES = 1_024
# File systems allow 255 bytes; the hash and the suffix need some of them.
_MAX_NAME_BYTES = 120
# Control characters, line ends, and halves of surrogate pairs, which no file name can hold.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNSAFE = re.compile(r"\A\.|[^\w.,+=-]")


def normalised_key(key: str) -> str:
    """*key* as it is stored: NFC, single slashes, none at the end, secrets masked.

    Raises `InvalidEntryError` for a key that does not start with ``/``, that is empty or too long,
    or that has a ``.`` or ``..`` segment or control characters.
    """
    if not key.startswith("/"):
        raise InvalidEntryError(f"key {key!r} must start with /, as in /user/preference/style")
    if _FORBIDDEN.search(key):
        raise InvalidEntryError(f"key {key!r} has control characters or a line end")
    # First as a whole: some secrets have a slash.
    whole = mask_secrets(normalize("NFC", key))
    segments = [mask_secrets(segment) for segment in whole.split("/") if segment]
    if not segments:
        raise InvalidEntryError(f"key {key!r} names nothing")
    if {".", ".."} & {*segments}:
        raise InvalidEntryError(f"key {key!r} has a . or .. segment")
    normalised = "/" + "/".join(segments)
    if (size := len(normalised.encode())) > MAX_KEY_BYTES:
        raise InvalidEntryError(f"a key has at most {MAX_KEY_BYTES:,} bytes, not {size:,}")
    return normalised


def index_path(key: str) -> PurePosixPath:
    """Where the entry of a normalised *key* is, below the index.

    The folders and the name are the segments, percent-encoded where a file name could not hold
    them; a hash of the key keeps the file of ``/a`` apart from the folder of ``/a/b``.
    """
    *folders, name = map(_file_name, key.split("/")[1:])
    return PurePosixPath(*folders, f"{name}@{_digest(key)}.json")


def _file_name(segment: str) -> str:
    encoded = _UNSAFE.sub(_percent_encoded, segment)
    if len(encoded.encode()) <= _MAX_NAME_BYTES:
        return encoded
    head = encoded.encode()[: _MAX_NAME_BYTES - 20].decode(errors="ignore")
    whole = re.sub(r"%.?\Z", "", head)
    return f"{whole}~{_digest(segment)}"


def _percent_encoded(match: "re.Match[str]") -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=6).hexdigest()
