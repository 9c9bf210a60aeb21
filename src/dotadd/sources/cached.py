"""as_arrow: a source that is quick to read again and again, because text, images and what is compressed have been
converted to Arrow files beside it.

Such a copy holds the rows that could be read, and the line of each in its text, so that complaints are the same. Each
way of reading a text has a copy of its own. One is used again as long as the text has the size, the time of change and
the first and last bytes that it was made of; and, if anything was done to the text since the copy was made (of which
the system keeps a time that nobody can set), the same checksum of all bytes.

Any number of processes may work on one text: one of them converts while the others wait, and what a process reads from
stays what it is, whatever others put in its place. Copies whose text is gone or has changed are removed when another
one is written beside them. One that somebody reads is locked (held_file.py), and stays; so does one of which it cannot
be known.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from dotadd._util import memory
from dotadd._util.atomic import require_writable
from dotadd._util.locks import SHARED, HeldFile, LockFile, try_lock
from dotadd.errors import DataError, DotaddError
from dotadd.sources.around import Kept
from dotadd.sources.arrow import ArrowFile
from dotadd.sources.base import CACHE, Around, Chunk, Options, Skipped, Source
from dotadd.sources.convert import convert
from dotadd.sources.files import FileSource, ManyFiles, NoExamplesError
from dotadd.sources.identity import Checksum, Identity, changed_at, identity, variant

VERSION = 2  # of what a copy holds
ABOUT = "dotadd.cache"  # metadata of the schema of a copy, as JSON
ORIGINAL = "original"
TICK = 2.0  # seconds in which two changes of a file may have the same time

Announce = Callable[[str], None]
OnProgress = Callable[[float], None]


def as_arrow(
    source: Source, *, announce: Announce = lambda line: None, on_progress: OnProgress = lambda share: None
) -> tuple[Source, list[Path]]:
    """The same examples from a source that is quick to read, in bounded memory; and the copies that it reads.

    Arrow and Parquet files, NumPy and idx files that are not compressed, and what is in memory stay what they are.
    `announce` is told in a line what is converted, and where to; `on_progress` how much of it is done, from 0 to 1.
    `remove` removes the copies.
    """
    if isinstance(source, Around):
        inner, copies = as_arrow(source.source, announce=announce, on_progress=on_progress)
        if isinstance(source, Kept):
            source.read_from(inner)
            return source, copies
        return dataclasses.replace(source, source=inner, skipped=inner.skipped), copies
    parts = source.parts if isinstance(source, ManyFiles) else [source]
    wanted = [_Copy(part) for part in parts if not part.quick]
    usable = [copy for copy in wanted if copy.stale is None]
    for copy in usable:
        copy.lock().clear()
    if usable:
        announce(f"reading {_listed(usable, 'path')} in place of {_listed(usable, 'original')}")
    _make([copy for copy in wanted if copy.stale is not None], announce, on_progress)
    made = {id(copy.source): copy.opened() for copy in wanted}
    fast = [made.get(id(part)) or _bounded(part) for part in parts]
    copies = [copy.path for copy in wanted if made[id(copy.source)] is not None]
    if not isinstance(source, ManyFiles):
        return fast[0], copies
    return dataclasses.replace(source, parts=[part for part in fast if isinstance(part, FileSource)]), copies


def remove(copies: Iterable[Path]) -> None:
    """Remove copies; one that is not there is no harm."""
    for path in copies:
        path.unlink(missing_ok=True)


def _bounded(source: Source) -> Source:
    return dataclasses.replace(source, bounded=True) if isinstance(source, ArrowFile) else source


@dataclass
class CachedFile(ArrowFile):
    """The Arrow copy of a text. Of rows that were left out, and where rows stood, it tells what the text would."""

    original: str = field(kw_only=True)
    text: Source = field(kw_only=True, repr=False, compare=False)
    left_out: Skipped = field(kw_only=True)
    stands_for: Identity = field(kw_only=True)
    file: HeldFile = field(kw_only=True, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.original

    @property
    def place(self) -> str:
        return self.file.place

    @property
    def held(self) -> dict[str, str]:
        """By the name of the file, where it is found when the name is another's."""
        return {self.path: self.place}

    def read_as(self) -> Options:
        return self.text.read_as()

    def column_of(self, path: str, line: int, index: int) -> int | None:
        return self.text.column_of(path, line, index)

    def read(self, nbytes: int) -> Iterator[Chunk]:
        self.skipped.merge(self.left_out)
        for chunk in super().read(nbytes):
            yield dataclasses.replace(chunk, path=self.original)


class _Copy:
    """The copy of one source: whether it is there, and why it cannot be used."""

    def __init__(self, source: Source) -> None:
        self.source, self.original = source, source.home
        kind = "" if source.copied_by == "convert" else f".{source.copied_by}"  # FASTA may also be read as examples
        mark = variant(source)
        self.path = Path(f"{self.original}{kind}{mark and '.'}{mark}{CACHE}")
        self.identity, self.changed = identity(source), changed_at(source)
        self.left_out = Skipped()
        self.file: HeldFile | None = None
        self.stale: str | None = self._look()

    @property
    def size(self) -> int:
        return sum(os.path.getsize(path) for path in self.source.files())

    def lock(self, announce: Announce = lambda line: None) -> LockFile:
        """What is held while the copy is written."""
        line = f"another process is converting {self.original}: waiting for it"
        return LockFile(self.path.with_name(f".{self.path.name}.lock"), lambda: announce(line))

    def _look(self) -> str | None:
        """Why the copy has to be written, None if it need not be; "" where there is none yet."""
        import pyarrow as pa
        import pyarrow.ipc

        try:
            file = HeldFile(self.path)
            with pa.OSFile(file.place) as opened, pa.ipc.open_file(opened) as reader:
                about = json.loads((reader.schema.metadata or {})[ABOUT.encode()])
                end = reader.get_batch_with_custom_metadata(reader.num_record_batches - 1)[1]
                self.left_out = Skipped(int(end[b"skipped"]), end[b"first"].decode() or None)
        except FileNotFoundError:
            return ""
        except (OSError, pa.ArrowException, ValueError, LookupError, TypeError):
            return "the one that is there is damaged"
        if about.get("version") != VERSION:
            return "the one that is there is of another version"
        if about.get("content") != self.identity.content or not self._same_bytes(file, end.get(b"checksum", b"")):
            return f"{self.original} has changed"
        if about.get("options") != self.identity.options:
            return "other options were given then"
        self.file = file
        return None

    def _same_bytes(self, copy: HeldFile, checksum: bytes) -> bool:
        """Whether the text is what the copy was made of. All of it is read only if something was done to it since, and
        then the copy is marked as new, so that it will not be next time."""
        made = os.stat(copy.place).st_mtime
        if self.changed + TICK < made:
            return True
        if Checksum(self.source).finished().encode() != checksum:
            return False
        if self.changed >= made:
            with suppress(OSError):
                os.utime(copy.path)
        return True

    def write(self, announce: Announce, on_progress: OnProgress) -> None:
        """Convert the source, unless another process has done it meanwhile. A text without examples has no copy."""
        with self._writing(), self.lock(announce):
            self.stale = self._look()
            if self.stale is None:
                return
            try:
                self._convert(on_progress)
            except NoExamplesError:
                self.path.unlink(missing_ok=True)
                return
            self.stale = self._look()

    def _convert(self, on_progress: OnProgress) -> None:
        checksum = Checksum(self.source)

        def tell(share: float) -> None:
            checksum.reach(share)
            on_progress(share)

        def at_end() -> dict[str, str]:
            found = checksum.finished()
            if (identity(self.source), changed_at(self.source)) != (self.identity, self.changed):
                raise DataError("has changed while it was read; leave it as it is", self.original)
            return {"checksum": found}

        told = {"version": VERSION, **self.identity._asdict(), ORIGINAL: mark_of(self.original)}
        about = {ABOUT: json.dumps(told)}
        with self.source.telling(tell):
            convert(self.source, self.path, parquet=False, exact=True, about=about, at_end=at_end)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            require_writable(self.path)
            yield
        except OSError as error:  # what is wrong with the text itself is a DataError
            raise DotaddError(
                f"{self.path}: cannot be written ({error.strerror or error}). What does not fit in memory is read "
                f"from an Arrow copy: write one where there is room with `dotadd {self.source.copied_by}`, and use that"
            ) from None

    def opened(self) -> CachedFile | None:
        """The source that reads the copy, None if there is none."""
        if self.file is None:
            return None
        return CachedFile(
            str(self.path),
            format="arrow",
            bounded=True,
            on_bad_row=self.source.on_bad_row,
            skipped=self.source.skipped,
            original=self.original,
            text=self.source,
            left_out=self.left_out,
            stands_for=self.identity,
            file=self.file,
        )


def _make(copies: list[_Copy], announce: Announce, on_progress: OnProgress) -> None:
    """Write these copies, and announce it in one line."""
    if not copies:
        return
    sizes = [copy.size for copy in copies]
    whole = sum(sizes)
    why = f" ({copies[0].stale})" if copies[0].stale else ""
    announce(
        f"converting {_listed(copies, 'original')}, {memory.words(whole)}, to {_listed(copies, 'path')}{why}; "
        "that is read instead, now and later, as long as the original stays as it is"
    )
    done = 0
    for copy, size in zip(copies, sizes, strict=True):

        def tell(share: float, done: int = done, size: int = size) -> None:
            on_progress((done + share * size) / max(1, whole))

        copy.write(announce, tell)
        done += size
    remove_stale(copy.path.parent for copy in copies)


def _listed(copies: list[_Copy], name: str) -> str:
    more = f" and {len(copies) - 1} more" if len(copies) > 1 else ""
    return f"{getattr(copies[0], name)}{more}"


def mark_of(original: str) -> list[str | int]:
    """What a copy tells of its text: name, size and time of change; of a folder, the name."""
    found = os.stat(original)
    return [os.path.basename(original), *([] if os.path.isdir(original) else [found.st_size, found.st_mtime_ns])]


def remove_stale(folders: Iterable[Path]) -> None:
    """Remove the copies in these folders that nobody can use, and nobody reads; where that cannot be seen, none."""
    for folder in set(folders) if SHARED else ():
        with suppress(OSError), os.scandir(folder) as entries:
            names = [entry.path for entry in entries if entry.name.endswith(CACHE) and _is_file(entry)]
            for name in names:
                _remove_if_stale(name)


def _is_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False)


def _remove_if_stale(path: str) -> None:
    if not _stale(path):
        return
    with suppress(OSError):  # gone by now, or on a disk without locks: it stays
        descriptor = os.open(path, os.O_RDONLY)
        try:
            if try_lock(descriptor) and _stale(path):  # another one may have been put there meanwhile
                os.unlink(path)
        finally:
            os.close(descriptor)


def _stale(path: str) -> bool:
    """Whether a copy is known to be of a text that is not there any more."""
    import pyarrow as pa
    import pyarrow.ipc

    try:
        with pa.OSFile(path) as file, pa.ipc.open_file(file) as reader:
            mark = json.loads((reader.schema.metadata or {})[ABOUT.encode()])[ORIGINAL]
        return bool(mark_of(os.path.join(os.path.dirname(path), mark[0])) != mark)
    except FileNotFoundError:
        return os.path.exists(path)
    except (OSError, pa.ArrowException, ValueError, LookupError, TypeError):
        return False
