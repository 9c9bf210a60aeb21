"""by_name: a source whose columns are found by the names that a model knows them by, wherever they stand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from dotadd.batch import DenseRows
from dotadd.sources.base import CHUNK_BYTES, Around, Chunk, Source
from dotadd.sources.layout import Layout, require_names


def by_name(source: Source, like: Layout) -> Source:
    """The same examples with the columns of `like`, in its order. Where a table lacks one of them, reading raises.

    Tables in files are read so. Where all columns lie in memory, or `convert` has put them into one, they are put in
    order here. What has no names, such as an array or a LIBSVM file, stays as it is.
    """
    return _Ordered(source.asked(like), like, on_bad_row=source.on_bad_row, skipped=source.skipped)


@dataclass
class _Ordered(Around):
    """Another source with the features in the order of `like`, where both have names for them."""

    like: Layout

    def names(self) -> Layout | None:
        found = self.source.names()
        out_of_order = found is not None and self._by_names(found)
        return dataclasses.replace(found, features=self.like.features) if found is not None and out_of_order else found

    def chunks(self, nbytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        for chunk in self.source.chunks(nbytes):
            found = self.source.names()
            if found is not None and type(chunk.batch) is DenseRows and self._by_names(found):
                require_names(self.like.features, found.features, chunk.path)
                place = {name: k for k, name in enumerate(found.features)}
                values = chunk.batch.values.take([place[name] for name in self.like.features], axis=1)
                chunk = dataclasses.replace(chunk, batch=DenseRows(values))
            yield chunk

    def _by_names(self, found: Layout) -> bool:
        """Whether there are names on both sides, and they do not agree already."""
        both = (found, self.like)
        return found.features != self.like.features and all(one.dense and one.header for one in both)
