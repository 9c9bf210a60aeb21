"""Partitions: the files of examples as workers see them on their disks, and which of them make up a part.

The driver need not see any of them. It sends names, patterns and reading options; each worker tells which files it has,
on a disk that all share or on one of its own, and opens what it is given.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dotadd.data.transforms.base import Transforms
from dotadd.errors import DataError, DotaddError
from dotadd.sources import matching
from dotadd.sources import open as open_source
from dotadd.sources.around import Virtual
from dotadd.sources.base import Around, Options, Skipped, Source
from dotadd.sources.files import FileSource, ManyFiles
from dotadd.sources.formats import ending_tells
from dotadd.sources.table import Layout


@dataclass
class Partitions:
    """Files by name or pattern, and how they are read: `options` are those of `dotadd.open`.

    `opened` holds what was opened already, by name. With `transforms`, all changes of each example are trained on.
    """

    names: list[str]
    options: Mapping[str, Any] = field(default_factory=dict)
    opened: Mapping[str, FileSource] = field(default_factory=dict)
    transforms: Transforms | None = None
    virtual_memory: str | int | None = None
    skipped: Skipped = field(default_factory=Skipped)
    """Rows that were left out, once training has ended."""

    @classmethod
    def of(cls, data: object, **options: Any) -> Partitions:
        """Names, patterns, lists of them, or a source of files."""
        if isinstance(data, cls):
            return data
        if isinstance(data, Virtual):
            return replace(cls.of(data.source), transforms=data.transforms, virtual_memory=data.memory)
        if isinstance(data, FileSource | ManyFiles):
            sources = [data] if isinstance(data, FileSource) else data.parts
            opened = {os.path.abspath(source.path): source for source in sources}
            return cls(list(opened), opened={path: replace(one, path=path) for path, one in opened.items()})
        names = [data] if isinstance(data, str | os.PathLike) else data
        if not isinstance(names, list | tuple) or not all(isinstance(name, str | os.PathLike) for name in names):
            what = type(data.source if isinstance(data, Around) else data).__name__
            raise DotaddError(
                f"on a cluster, examples are read from files where the workers are, and {what} is in memory here: "
                "write it to files, and give their names or a pattern"
            )
        if not names:
            raise DotaddError("give the files to read")
        return cls([os.path.abspath(os.path.expanduser(os.fspath(name))) for name in names], options)

    def reading(self, like: Layout) -> Partitions:
        """The same files, of which these columns are read."""
        opened = {path: source.asked(like) for path, source in self.opened.items()}
        return replace(self, options={**self.options, "like": like}, opened=opened)

    def read_as(self) -> Options:
        """How to read other data like it; see `Source.read_as`."""
        if self.opened:
            return next(iter(self.opened.values())).read_as()
        told = ending_tells(self.names[0])
        format = {} if told is None else {"format": told.name}
        return Source(given=format | {name: self.options[name] for name in self.options if name != "like"}).read_as()

    @property
    def name(self) -> str:
        return self.names[0] + (f" and {len(self.names) - 1} more" if len(self.names) > 1 else "")

    def source(self, paths: Sequence[str]) -> Source:
        """The examples of some of the files; a worker calls this."""
        source: Source
        if self.opened:
            sources = [self.opened[path] for path in paths]
            source = sources[0] if len(sources) == 1 else ManyFiles(sources, on_bad_row=sources[0].on_bad_row)
        else:
            source = open_source([Path(path) for path in paths], **self.options)
        return source if self.transforms is None else Virtual(source, self.transforms, self.virtual_memory)


def find(names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The files of these names that are on this machine, in order: the place of their name, and how large they are."""
    found: dict[str, tuple[int, int]] = {}
    for place, name in enumerate(names):
        for path in matching(name):
            if os.path.exists(path):
                found.setdefault(path, (place, 0 if os.path.isdir(path) else os.path.getsize(path)))
    return found


@dataclass(frozen=True)
class Files:
    """What workers have: the size of each file, in order, and which workers see it."""

    sizes: Mapping[str, int]
    workers: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, names: Sequence[str], seen: Mapping[str, Mapping[str, tuple[int, int]]]) -> Files:
        """Join what each worker has found."""
        places: dict[str, tuple[int, int]] = {}
        workers: dict[str, set[str]] = {}
        for worker, files in seen.items():
            for path, found in files.items():
                if places.setdefault(path, found) != found:
                    raise DataError(
                        "is not the same file on all workers; where each has a disk of its own, names have to differ",
                        path,
                    )
                workers.setdefault(path, set()).add(worker)
        met = {place for place, _ in places.values()}
        for place, name in enumerate(names):
            if place not in met:
                raise DataError("no worker has a file of this name", name)
        order = sorted(places, key=lambda path: (places[path][0], path))
        return cls({path: places[path][1] for path in order}, {path: frozenset(workers[path]) for path in order})

    def groups(self, threads: Mapping[str, int]) -> list[list[str]]:
        """The files that each part is made of: as many parts as there are threads on the workers that have the files,
        of neighbouring files and about equal size."""
        disks: dict[frozenset[str], list[str]] = {}
        for path in self.sizes:
            disks.setdefault(self.workers[path], []).append(path)
        groups = []
        for workers, paths in disks.items():
            groups += self._cut(paths, max(1, sum(threads.get(worker, 1) for worker in workers)))
        return groups

    def _cut(self, paths: Sequence[str], count: int) -> list[list[str]]:
        count = min(count, len(paths))
        sizes = [self.sizes[path] + 1 for path in paths]
        total, before, number = sum(sizes), 0, 0
        groups: list[list[str]] = [[] for _ in range(count)]
        for done, (path, size) in enumerate(zip(paths, sizes, strict=True)):
            aim = min(int(count * (before + 0.5 * size) / total), number + bool(groups[number]))
            number = max(number, aim, count - (len(paths) - done))  # so that each part has a file
            groups[number].append(path)
            before += size
        return groups

    def workers_with(self, paths: Iterable[str]) -> list[str]:
        """The workers that have all of these files."""
        have = [self.workers.get(path, frozenset()) for path in paths]
        return sorted(frozenset.intersection(*have))
