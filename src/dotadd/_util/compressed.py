"""Files that may be compressed, opened by what they begin with and written by how their name ends."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import warnings
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import IO, cast

from dotadd._util.atomic import replacing
from dotadd._util.memory import available, words
from dotadd.errors import CutOffWarning, DataError, DotaddError, printable

LARGEST = 1 << 29
GZIP = b"\x1f\x8b"
COMPRESSED = {GZIP: gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
ENDINGS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}  # of names of compressed files


def largest_record() -> int:
    """Bytes that one line or record of text may take where nobody says: it is there several times while it is read.

    A compressed file of a few kB may be one line without an end.
    """
    return min(LARGEST, available() // 16)


def too_large(
    nbytes: int, path: str, line: int | None = None, *, row: int | None = None, budget: bool = False
) -> DataError:
    """The complaint about a line, a record or a row that takes more than it may; a `budget` may be raised."""
    what = "one line or record" if row is None else f"row {row}: one row"
    advice = " If so, give more memory (memory=, --memory)" if budget else ""
    return DataError(
        f"{what} takes more than the {words(nbytes)} that it may; is the file what it should be?{advice}", path, line
    )


def lines_of(file: IO[bytes], path: str, first: int = 1) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers; one that is too large is refused as soon as it is."""
    most = largest_record()
    for number in count(first):
        with reading(path):
            line = file.readline(most + 1)
        if len(line) > most:
            raise too_large(most, path, number)
        if not line:
            return
        yield number, line


def whole(file: IO[bytes], path: str) -> bytes:
    """The rest of a file that is read as one."""
    most = available() // 8
    with reading(path):
        data = file.read(most + 1)
    if len(data) > most:
        raise DataError(f"takes more than {words(most)}, too much to be read as a whole", path)
    return data


def read_into(file: IO[bytes], room: bytearray | memoryview, path: str) -> int:
    """Read as many bytes as there are and as there is room for; 0 says that the file has ended."""
    with reading(path):
        return file.readinto(room)  # type: ignore[attr-defined]  # typing.IO lacks what every file of bytes has


@contextmanager
def decompressed(path: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The file as it lies on disk, whose position tells how far reading has come, and its bytes: decompressed if it is
    gzip, bzip2 or xz (seen by its first bytes, whatever its name)."""
    with ExitStack() as stack:
        with reading(path):
            raw = stack.enter_context(open(path, "rb"))
            magic = raw.read(6)
            raw.seek(0)
            if magic.startswith(GZIP):
                _warn_if_cut_off(raw, path)
            opener = next((opener for start, opener in COMPRESSED.items() if magic.startswith(start)), None)
            file = raw if opener is None else stack.enter_context(opener(raw, "rb"))  # type: ignore[operator]  # of four modules
        yield raw, file


def _warn_if_cut_off(raw: IO[bytes], path: str) -> None:
    from dotadd._util.bgzf import cut_off

    if cut_off(raw):
        warnings.warn(
            f"{printable(path)}: has no BGZF block at its end that says so; it was probably cut off, copy it again",
            CutOffWarning,
            stacklevel=2,
        )


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what can go wrong with a file into one clear line."""
    try:
        yield
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except IsADirectoryError:
        raise DataError("is a folder; give the files in it, for example by a pattern like folder/*.csv", path) from None
    except PermissionError:
        raise DataError("may not be read (permission denied)", path) from None
    except ValueError as error:  # a name that no file can have
        if isinstance(error, DotaddError) or "\0" not in path:
            raise
        raise DataError("no such file: its name has a zero byte", path.replace("\0", "\\0")) from None
    except EOFError:
        raise DataError("the compressed file ends too early; it was cut off, copy it again", path) from None
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, OSError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DataError(f"cannot be read: {what}", path) from None


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, compressed if its name ends in .gz, .bz2 or .xz; it appears whole or not at all."""
    with replacing(path) as temporary, compressing(temporary, path) as file:
        yield file


@contextmanager
def compressing(temporary: str | os.PathLike[str], path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A temporary file to write to, compressed if the name that it will have ends in .gz, .bz2 or .xz. The same bytes
    give the same file: gzip would note the time and the temporary name."""
    ending = os.path.splitext(path)[1].lower()
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(open(temporary, "wb"))
        if ending == ".gz":
            packed = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
            file = cast(IO[bytes], packed)
        elif ending in ENDINGS:
            file = stack.enter_context(ENDINGS[ending](file, "wb"))  # type: ignore[operator]  # of four modules
        yield file
