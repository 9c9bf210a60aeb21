"""dotadd convert: any data that can be read, as one Arrow file that reads fast."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from dotadd.cli.options import Reading, tell_skipped


def convert(
    data: str,
    output: str,
    /,
    *,
    pack: Annotated[bool | None, Parameter(negative="--no-pack")] = None,
    reading: Reading = Reading(),  # noqa: B008
) -> None:
    """Convert data to an Arrow file, which reads much faster than text.

    The file is Arrow IPC, or Parquet if its name ends so, compressed where that
    makes it smaller. Windows of DNA of one length are packed, four letters a
    byte, unless --no-pack is given.

    Examples:

        dotadd convert a9a a9a.arrow
        dotadd convert sites.fasta.gz sites.arrow
        dotadd convert mails.csv mails.parquet --column text --label spam

    Parameters
    ----------
    data
        The file to read, or a quoted pattern such as "part-*.csv".
    output
        The file to write.
    pack
        Pack DNA in two bits a letter; by default where every letter is one of ACGT and all rows are equally long.
    """
    from dotadd._util.atomic import require_writable
    from dotadd.cli.progress import Bar
    from dotadd.cli.screen import facts
    from dotadd.sources.convert import convert as convert_source
    from dotadd.sources.files import FileSource

    require_writable(output)
    source = reading.open([data])
    with Bar(f"converting {data}") as bar:
        if isinstance(source, FileSource):
            source.on_progress = bar
        converted = convert_source(source, output, dna=pack)
    tell_skipped(source)
    facts({"rows": f"{converted.rows:,}", "bytes": f"{converted.bytes:,}", "file": output})
