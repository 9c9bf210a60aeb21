"""What is to be predicted, piece by piece. Lines of standard input are a source for all that have come at a time, so
that a command that writes them now and then is answered at once, as in
`tail -f mail.log | dotadd predict spam.dotadd - --format txt`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dotadd._util.compressed import COMPRESSED, largest_record, too_large
from dotadd._util.standard_input import DEVICE, NAME, Arriving
from dotadd.cli.options import Reading, format_of_input
from dotadd.sources.base import Skipped, Source
from dotadd.sources.files import FileSource
from dotadd.sources.formats import format_named, format_of

if TYPE_CHECKING:
    from dotadd.model.file import Classifier


def sources(data: Sequence[str], reading: Reading, model: Classifier, ids: Sequence[str]) -> Iterator[Source]:
    """The data as one source, or standard input as several."""
    if list(data) != [DEVICE]:
        yield reading.open(data, read_as=model.read_as, ids=ids)
        return
    arriving = Arriving()
    while b"\n" not in arriving.text and len(arriving.text) <= largest_record() and arriving.more():
        pass
    arriving.put(arriving.text)
    format = reading.format or format_of_input(model.read_as) or format_of(arriving.path)
    source = replace(reading, format=format).open(data, read_as=model.read_as, ids=ids)
    packed = arriving.text.startswith(tuple(COMPRESSED))
    if isinstance(source, FileSource) and format_named(format).by_lines and not packed:
        yield from _pieces(arriving, source, model)
        return
    arriving.put_all()
    yield replace(reading, format=format).open(data, read_as=model.read_as, ids=ids)


def _pieces(arriving: Arriving, source: FileSource, model: Classifier) -> Iterator[Source]:
    """A source of the whole lines that have come, again and again."""
    like = model.like(labels=False)
    heading = (source if like is None else source.asked(like)).heading()
    line, ended, begun = 1, False, False
    while arriving.text or not ended:
        text = arriving.text
        stop = len(text) if ended else source.whole_records(text)
        if stop:
            before = heading if begun else b""
            arriving.put(before + text[:stop])
            piece = replace(source, first_line=line - before.count(b"\n"), skipped=Skipped())
            lines = text[:stop].count(b"\n")
            del text[:stop]
            yield piece
            line, begun = line + lines, True
            if like is None and (like := piece.names()) is not None:
                source = source.asked(like)  # all pieces are to be read alike
        elif len(text) > largest_record():
            raise too_large(largest_record(), NAME, line)
        ended = ended or not arriving.more()
