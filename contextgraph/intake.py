"""One door for files that others may have written: regular, in their folder, of bounded size."""

import errno
import os
import stat
from typing import IO

_NO_FILE = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return what is at *path*, such as "a pipe"; empty for a regular file. Raises `OSError`."""
    return _NO_FILE.get(stat.S_IFMT(os.stat(path).st_mode), "")


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
