"""Sources: `open` makes one of anything that holds examples. To import it, and the table of formats, costs nothing."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dotadd.errors import DataError, DotaddError

if TYPE_CHECKING:
    from dotadd.sources.base import Options, Source
    from dotadd.sources.table import Layout

__all__ = ["matching", "open"]


def open(
    x: object,
    y: object = None,
    sample_weight: object = None,
    *,
    format: str | None = None,
    label: str | int | None = None,
    column: str | int | None = None,
    weight: str | int | None = None,
    separator: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    header: bool | None = None,
    zero_based: bool | None = None,
    dtype: type | None = None,
    size: str | tuple[int, int] | None = None,
    symbols: str | os.PathLike[str] | None = None,
    semiring: str | None = None,
    on_bad_row: str = "error",
    ids: Sequence[str | int] = (),
    like: Layout | None = None,
    read_as: Mapping[str, object] | None = None,
) -> Source:
    """A source of examples: files, folders of texts or images, arrays, sparse matrices, lists of strings, data frames,
    Arrow tables.

    Parameters
    ----------
    x : NumPy array (2-D rows, 3-D images, 1-D text), SciPy sparse matrix, list of str or bytes, list of lists of
        numbers, pandas or polars data frame or series, Arrow table, record batch or array, a path, a list of paths, a
        pattern such as "part-*.parquet", a Batch or a Source. A list of str is read as examples unless each names a
        file that exists; a list of `pathlib.Path` is always read as files. In a folder each file is an example, whose
        label is the name of the topmost subfolder that it lies in: gray images of one size (PNG and JPEG, needs pillow)
        if at least half of its files are images, and else texts, as bytes. Hidden files are left out.
    y, sample_weight : labels and weights in the order of the rows; they replace those of the file. Several labels a
        row are lists, sets or tuples of them, or a matrix of 0 and 1 with a column a label.
    format : the name of the format, such as "libsvm", where neither the name of the file nor its beginning tells;
        docs/reference/what_is_there.md lists them. For a folder it is "texts" or "images".
    label : the column of the label; for FASTA the field of the header, for .npz the array. Files use a column called
        "label" by default, .npz an array called "label", "labels", "y" or "target" that is as long as the examples;
        tables in memory have labels only if this says so, or a map names the columns that it reads. A line of text has
        its label before it, as in "__label__spam buy now".
    column : the column of the text, the sequence or the vector. By default all numeric columns but the label and the
        weight are features, or else the only column of text. CSV without a header: the columns' numbers, from 0. Of
        .npz, the only array of 2 or 3 dimensions is read, or else the only one of text.
    weight : the column, or array, of the weights.
    separator : what stands between labels, where a cell of the label's column may have several, such as "," in
        "grain,wheat"; an empty cell has none. Lists in JSON lines, Arrow and Parquet need none.
    labels : a second file. For FASTA, lattices and folders, one of names and labels; for idx images, the idx
        file of the labels, by default the one beside them (train-labels-idx1-ubyte for train-images-idx3-ubyte).
    header : False for CSV or TSV whose first line is an example; columns are then called by their numbers, from 0.
    zero_based : for LIBSVM text, whether indices start at 0.
    dtype : numbers read from text become float32 unless this says float64.
    size : rows of numbers are images of this height and width, such as (24, 32) or "24x32".
    symbols : for lattices, a file of words and their numbers; a word that it does not have is an error. Without it, the
        number of a word is a hash of it.
    semiring : for lattices, "log" if their weights are costs (the default), and "real" if they are weights.
    on_bad_row : "error", or "skip" to leave out rows that cannot be read; `skipped` counts them.
    ids : columns of a file that are carried along in `ids` of its chunks, whatever they hold; of FASTA "name", of a
        folder "path".
    like : the columns of an earlier table, as `model.columns` has them. They are found by name, in any order and among
        others; one that is missing is an error. What has no names for its columns is read as it stands.
    read_as : how earlier files were read, as `model.read_as` has it: their format, for a file that does not tell its
        own, and options for files of the same format. What is given here goes before it.
    """
    import numpy as np

    from dotadd.sources import memory

    if on_bad_row not in ("error", "skip"):
        raise DotaddError(f"on_bad_row must be 'error' or 'skip', not {on_bad_row!r}")
    if separator is not None and not separator.strip(" "):
        raise DotaddError(f"separator={separator!r}: give what stands between labels, such as ','")
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise DotaddError(f"dtype must be float32 or float64, not {dtype!r}")
    given: Options = {
        "column": column,
        "label": label,
        "weight": weight,
        "separator": separator,
        "labels": None if labels is None else os.fspath(labels),
        "header": header,
        "zero_based": zero_based,
        "dtype": None if dtype is None else np.dtype(dtype).type,
        "symbols": None if symbols is None else os.fspath(symbols),
        "semiring": semiring,
        "ids": tuple(ids) or None,
    }
    options = {name: value for name, value in given.items() if value is not None}
    paths = paths_of(x, format)
    if paths is not None:
        before: Options = dict(read_as or {})
        if "dtype" in before:
            before["dtype"] = np.dtype(before["dtype"]).type
        cells = like is not None and like.kinds is not None
        source = _open_files(paths, format, options, on_bad_row, before, cells)
        if size is None and (earlier := before.get("size")) is not None:
            source = _shaped(source, earlier, asked_for=False)
    elif format is not None:
        raise DotaddError("format= is for files, and x is not a path")
    else:
        source = memory.opened(x, options, on_bad_row, like)
    if size is not None:
        source = _shaped(source, size)
    source = memory.beside(source, y, sample_weight)
    if like is None:
        return source
    from dotadd.sources.around import by_name

    return by_name(source, like)


def _shaped(source: Source, size: str | tuple[int, int], *, asked_for: bool = True) -> Source:
    from dotadd.sources.around import Shaped, parse_size

    return Shaped(source, parse_size(size), asked_for, on_bad_row=source.on_bad_row, skipped=source.skipped)


def paths_of(x: object, format: str | None = None) -> list[str] | None:
    """The files that x names, None if it names none."""
    if isinstance(x, str | os.PathLike):
        path = os.path.expanduser(os.fspath(x))
        found = matching(path)
        if not found:
            raise DataError("no file matches this pattern", path)
        return found
    if not isinstance(x, list | tuple) or not x:
        return None
    if all(isinstance(item, os.PathLike) for item in x) or (
        all(isinstance(item, str) for item in x) and (format is not None or all(os.path.isfile(item) for item in x))
    ):
        return [path for item in x for path in paths_of(item, format) or []]
    return None


def matching(path: str) -> list[str]:
    """The files that a pattern stands for, in order; a name that is no pattern stands for itself."""
    from dotadd.sources.base import CACHE

    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not path.endswith(CACHE):  # Arrow copies of text files are not data of their own
        found = [name for name in found if not name.endswith(CACHE)]
    return found


def _open_files(
    paths: Sequence[str], format: str | None, options: Options, on_bad_row: str, before: Options, cells: bool
) -> Source:
    from dotadd.sources.files import FileSource, ManyFiles

    opened = [_open_file(path, format, options, on_bad_row, before, cells) for path in paths]
    if len(opened) == 1:
        return opened[0]
    parts = [source for source in opened if isinstance(source, FileSource)]
    if len(parts) < len(opened):
        raise DotaddError("several .npy files of this kind cannot be read as one; join them, or give Arrow files")
    return ManyFiles(parts, on_bad_row=on_bad_row)


def _open_file(
    path: str, format: str | None, options: Options, on_bad_row: str, before: Options, cells: bool
) -> Source:
    """`cells` says that a map reads columns of a table."""
    from dotadd._util.compressed import reading
    from dotadd.sources.formats import FOLDERS, format_named, format_of_like

    if _is_text(path):
        shown = path if len(path) <= 40 else path[:40] + "..."
        raise DataError(f"{shown!r} is no file that exists; to read text itself, give a list of strings")
    with reading(path):
        if os.path.isdir(path) and format is not None and format not in FOLDERS:
            raise IsADirectoryError(path)
        os.stat(path)
    as_before = before.get("format")
    if os.path.isdir(path):
        from dotadd.sources.folder import opened_folder

        found = FOLDERS[opened_folder(path, format or (as_before if as_before in FOLDERS else None))]
    else:
        if format in FOLDERS and format != "texts":
            raise DataError(f"is a file, and format={format!r} is for folders", path)
        found = format_named(format or format_of_like(path, as_before, cells))
    if as_before is not None and found.source == format_named(as_before).source:
        options = {name: value for name, value in before.items() if found.takes(name) and name != "format"} | options
    if "separator" in before and "separator" not in options and found.takes("separator"):
        options = options | {"separator": before["separator"]}
    return found.open(path, options, on_bad_row)


def _is_text(path: str) -> bool:
    """Whether what was given looks like an example, and not like the name of a file that is missing."""
    if os.path.lexists(path):
        return False
    return len(path) > 255 or len(path.split()) > 1 or not any(mark in path for mark in (".", "/", os.sep, "\0"))
