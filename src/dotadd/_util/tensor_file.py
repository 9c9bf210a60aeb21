"""Files of arrays in safetensors format, with a checksum of every byte.

A safetensors file is the length of its header in eight bytes, the header as JSON, and the arrays one after the other.
The checksum stands in the header's metadata, and is taken with zeros in its own place. The files are written here, and
not by the package of that name, which makes temporary files of its own that nobody removes when it is killed.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping

import numpy as np

TYPES: dict[str, type] = {
    "U8": np.uint8, "U16": np.uint16, "I32": np.int32, "U32": np.uint32, "I64": np.int64, "U64": np.uint64,
    "F32": np.float32, "F64": np.float64,
}  # fmt: skip
CHECKSUM = "checksum"
STEP = 1 << 20  # bytes that are read at a time
_NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}


def write(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write arrays, and texts by name, to a file, a pipe or a device."""
    # Wide numbers first: each array then begins at a multiple of the size of its numbers.
    ordered = dict(sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])))
    flat = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in ordered.values()]
    header = _header(ordered, {CHECKSUM: _text(0), **metadata})
    checksum = zlib.crc32(header)
    for part in flat:
        checksum = zlib.crc32(part.data, checksum)
    with open(path, "wb") as file:
        file.write(_with_checksum(header, _text(0), _text(checksum)))
        for part in flat:
            file.write(part.data)


def is_sound(path: str | os.PathLike[str]) -> bool:
    """Whether all bytes of a safetensors file are what was written. Of a file without a checksum nobody knows: True."""
    with open(path, "rb") as file:
        length = file.read(8)
        header = file.read(int.from_bytes(length, "little"))
        found = json.loads(header).get("__metadata__", {}).get(CHECKSUM)
        if found is None:
            return True
        checksum = zlib.crc32(_with_checksum(length + header, found, _text(0)))
        while part := file.read(STEP):
            checksum = zlib.crc32(part, checksum)
    return found == _text(checksum)


def _header(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> bytes:
    entries = dict(_entries(arrays))
    text = json.dumps({"__metadata__": dict(metadata), **entries}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _entries(arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[str, dict[str, object]]]:
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        yield name, {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [start, end]}


def _with_checksum(header: bytes, old: str, new: str) -> bytes:
    """The header with another checksum, which stands before all that has been put in by anybody."""
    entry = f'"{CHECKSUM}":"%s"'
    return header.replace((entry % old).encode(), (entry % new).encode(), 1)


def _text(checksum: int) -> str:
    return f"{checksum:08x}"
