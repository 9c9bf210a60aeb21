"""The formats: sound files of each to begin with, and how they are read."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import random
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

import dotadd
from dotadd import automata
from dotadd.data.batches import SparseRows, Strings
from dotadd.genome.files import Annotation, Genome
from dotadd.sources.convert import convert

Read = Callable[[str, random.Random], None]


@dataclass(frozen=True)
class Format:
    """`name` is that of the file. `pack` makes a file of what was damaged, where that is something inside of it."""

    name: str
    seeds: list[bytes]
    read: Read
    pack: Callable[[bytes, random.Random], bytes] = lambda data, _: data


def examples(**options: Any) -> Read:
    """Read all chunks, twice in a while, and look at what came."""

    def read(path: str, rng: random.Random) -> None:
        given = {name: rng.choice(values) for name, values in options.items()}
        source = dotadd.open(path, on_bad_row=rng.choice(("error", "skip")), **given)
        for chunk in source.outline() or ():
            assert chunk.y is not None
        for chunk in source.chunks(rng.choice((64, 1000, 1 << 14))):
            sound(chunk)
        if rng.random() < 0.1:
            sound(source.load())

    return read


def sound(chunk: Any) -> None:
    """What kernels count on."""
    batch, rows = chunk.batch, len(chunk)
    assert rows > 0
    for array in (chunk.y, chunk.weight, chunk.lines):
        assert array is None or len(array) == rows
    for array in (chunk.y, chunk.weight, getattr(batch, "values", None)):
        assert array is None or array.dtype.kind not in "f" or np.isfinite(array).all()
    if isinstance(batch, SparseRows):
        used = batch.indices[batch.offsets[0] : batch.offsets[-1]]
        assert batch.offsets[0] >= 0
        assert (np.diff(batch.offsets) >= 0).all()
        assert batch.offsets[-1] <= len(batch.indices)
        assert not len(used) or (used.min() >= 0 and used.max() < batch.n_features)
    if isinstance(batch, Strings) and batch.offsets is not None:
        assert (np.diff(batch.offsets) >= 0).all()
        assert batch.offsets[-1] <= len(batch.letters)
    assert len(batch.take(np.arange(rows))) == rows
    chunk.error(rows - 1, "")


def saved(name: str, write: Callable[[str], Any]) -> bytes:
    """The bytes of a file that some function writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        write(path)
        return Path(path).read_bytes()


SVM = b"1 1:0.5 3:2 # c\n-1 2:1e-3 7:1\n+1 1:1\n\n-1 3:-4.25 100:7\n"
CSV = b"a,b,label\n1,2.5,x\n-3,4e2,y\n0.5,6,x\n7,8,y\n"
TEXTS = b'text,label\n"ab, ""c""",1\n"two\nlines",0\nplain,1\n'
TSV = b"text\tlabel\tw\nab c\t1\t2\nde\t0\t1\n\xc3\xa9\t1\t0.5\n"
JSON = b'{"x": 1, "y": 2.5, "label": 1}\n{"x": -3e2, "y": 0, "label": 0}\n{"x": 5, "y": 6, "label": 1}\n'
JSON_TEXT = b'{"text": "a\\u00e9 b", "label": "p", "z": {"q": [1, null]}}\n{"text": "c", "label": "q", "z": 1}\n'
JSON_LISTS = b'{"v": [1, 2.5], "label": true}\n{"v": [3, 4], "label": false}\n'
LINES = b"buy now, last chance\n\nsee you\r\n\xc3\xa9t\xc3\xa9"
LABELLED = b"__label__spam buy now\n__label__ham see you\n\n__label__spam last chance\n"
FASTA = b">s1 some label=1\nACGTAC\nGGT\n>s2 x label=-1\nTTTACG\n\n>s3 label=1\nAC\n"
KALDI = b"1\tutt1\n0 1 1 a 0.5,1.25\n0 2 2 b 1,2\n1 2 3 c 0.5,0\n2 0,0\n\n0\tutt2\n0 1 1 a 0,0\n1\n\n"
SAUSAGE = b"1\tn1 [ a 0.7 b 0.3 ] [ c 1 ]\n0\tn2 [ a 1 ] [ d 0.5 e 0.5 ]\n"
MESH = (
    b"name 1\tn1\nnumaligns 2\nposterior 1\nalign 0 a 0.7 *DELETE* 0.3\nalign 1 c 1\n"
    b"name 0\tn2\nnumaligns 1\nalign 0 b 1\n"
)
WCN = b"1\tn1\ta:1:0.7 b:1:0.3 c:2:1.0\n0\tn2\td:1:1.0\n"
DSTC = b"welcome <=> a:1:0.7 b:1:0.2 <=> inform-x;ack\nbye <=> c:1:1.0 <=> \n"
CELLS = (
    b"label,lattice\n1,\"[('<s>', 0.0), ('a', -0.1), ('b', -2.4), ('</s>', 0.0)], "
    b'[(0, 1), (0, 2), (1, 3), (2, 3)]"\n0,plain words\n'
)
FST = b"0 1 a x 0.5\n0 2 b y 1\n1 2 c z\n2 0.25\n"
GFF = (
    b"##gff-version 3\nc1\t.\texon\t1\t10\t.\t+\t.\tParent=t1\nc1\t.\texon\t21\t30\t.\t+\t.\tParent=t1,t2\n"
    b'c1\t.\texon\t41\t50\t.\t+\t.\tParent=t1\nc2\t.\texon\t5\t9\t.\t-\t.\ttranscript_id "q";\n##FASTA\n>c1\nACGT\n'
)


def _tables() -> list[pa.Table]:
    sparse = SparseRows(np.array([0, 2, 3]), np.array([0, 3, 1], np.int32), np.array([1.0, 2.0, 3.0]), 4).to_arrow()
    return [
        pa.table({"x": [1.0, 2.0, None], "z": [1, 2, 3], "label": ["a", "b", "a"]}),
        pa.table({"x": sparse, "label": [0, 1]}),
        pa.table({"x": ["text", "more \u00e9"], "label": pa.array(["p", "q"]).dictionary_encode()}),
        pa.table({"x": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)), "label": [1.5, 2.5]}),
        pa.table({"x": pa.array(["view of some length", "b"], pa.string_view()), "label": [1, 2]}),
    ]


def _ipc(table: pa.Table, stream: bool, compression: str | None) -> bytes:
    sink = io.BytesIO()
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _arrow_seeds(ending: str) -> list[bytes]:
    """What other programs write, and what `convert` does."""
    sources = [dotadd.open(["ACGT", "ACCC"], [0, 1]), dotadd.open(np.eye(3), [0, 1, 1])]
    return [saved(f"x.{ending}", lambda path, source=source: convert(source, path)) for source in sources]


def _npy(array: np.ndarray) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=False)
    return sink.getvalue()


def _npz(**arrays: np.ndarray) -> bytes:
    sink = io.BytesIO()
    np.savez_compressed(sink, **arrays)
    return sink.getvalue()


def _zipped(data: bytes, rng: random.Random) -> bytes:
    """An archive whose checksum is right: the damage is in the array."""
    if data[:2] == b"PK":
        return data
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("x.npy", data)
        archive.writestr("label.npy", _npy(np.array([0, 1, 1])))
    return sink.getvalue()


def _packed(data: bytes, rng: random.Random) -> bytes:
    return rng.choice((gzip.compress, bz2.compress, lambda text: text))(data)


def _idx(array: np.ndarray) -> bytes:
    code = {"|u1": 8, ">i4": 12, ">f4": 13}[array.dtype.str]
    return bytes([0, 0, code, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def _image(kind: str) -> bytes:
    from PIL import Image

    sink = io.BytesIO()
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8)).save(sink, kind)
    return sink.getvalue()


def _read_folder(path: str, rng: random.Random) -> None:
    examples()(os.path.dirname(path), rng)


def _read_idx(path: str, rng: random.Random) -> None:
    examples(labels=[None, path])(path, rng)


def _read_automaton(path: str, rng: random.Random) -> None:
    for _, automaton in automata.read_many(path, semiring=rng.choice(("log", "real"))):
        assert np.isfinite(automaton.weights).all()


def _read_symbols(path: str, _: random.Random) -> None:
    automata.SymbolTable.read(path)


def _read_annotation(path: str, _: random.Random) -> None:
    Annotation(path).introns("c1", 10**9)


def _read_genome(path: str, _: random.Random) -> None:
    Genome(path).lengths()


def _model(phi: str, x: Any) -> bytes:
    svm = dotadd.LinearSVM(phi, max_passes=2, tol=0.5).fit(x, [0, 1, 2])
    return saved("m", svm.model_.save)


def _read_model(path: str, _: random.Random) -> None:
    model = dotadd.load(path)
    assert len(model.classes) > 0


def _automaton() -> bytes:
    def write(path: str) -> None:
        Path(path + ".txt").write_bytes(FST)
        automata.write(automata.read(path + ".txt"), path)

    return saved("x.fst", write)


FORMATS: dict[str, Callable[[], Format]] = {
    "libsvm": lambda: Format("x.svm", [SVM], examples(zero_based=[None, True]), _packed),
    "csv": lambda: Format("x.csv", [CSV, TEXTS], examples(label=[None, None, "label", "0"])),
    "tsv": lambda: Format("x.tsv", [TSV], examples(weight=[None, "w"])),
    "jsonl": lambda: Format("x.jsonl", [JSON, JSON_TEXT, JSON_LISTS], examples()),
    "txt": lambda: Format("x.txt", [LINES, LABELLED], examples(format=[None, "txt"]), _packed),
    "texts": lambda: Format("a/x", [LINES, FASTA], _read_folder, _packed),
    "fasta": lambda: Format("x.fa", [FASTA], examples(label=[None, "label"]), _packed),
    "guessed": lambda: Format("data", [SVM, CSV, TSV, JSON, FASTA, KALDI, SAUSAGE, MESH, WCN, DSTC], examples()),
    "arrow": lambda: Format(
        "x.arrow",
        [_ipc(t, stream, kind) for t in _tables() for stream in (False, True) for kind in (None, "lz4")]
        + _arrow_seeds("arrow"),
        examples(label=[None, "label"], column=[None, "x"]),
    ),
    "parquet": lambda: Format(
        "x.parquet",
        [_parquet(table) for table in _tables()] + _arrow_seeds("parquet"),
        examples(label=[None, "label"], column=[None, "x"]),
    ),
    "npy": lambda: Format(
        "x.npy",
        [
            _npy(array)
            for array in (
                np.eye(3),
                np.arange(12, dtype=np.int16).reshape(3, 2, 2),
                np.array(["a", "b\u00e9"]),
                np.array([b"a", b"bc"]),
                np.asfortranarray(np.ones((3, 2))),
            )
        ],
        examples(),
    ),
    "npz": lambda: Format(
        "x.npz",
        [_npy(np.eye(3)), _npy(np.array(["a", "b", "c"])), _npz(x=np.eye(3), label=np.array(["a", "b", "a"]))],
        examples(),
        _zipped,
    ),
    "idx": lambda: Format(
        "x-images-idx3-ubyte",
        [
            _idx(array)
            for array in (
                np.arange(12, dtype=np.uint8).reshape(3, 2, 2),
                np.arange(6, dtype=">f4").reshape(3, 2),
                np.arange(3, dtype=np.uint8),
            )
        ],
        _read_idx,
        _packed,
    ),
    "image": lambda: Format("a/x.png", [_image("PNG"), _image("JPEG")], _read_folder),
    "lattices": lambda: Format("x.lat", [KALDI, SAUSAGE, MESH, WCN, DSTC], examples(semiring=["log", "real"])),
    "nodes": lambda: Format("x.csv", [CELLS], examples()),
    "openfst": lambda: Format("x.fst", [FST, _automaton(), KALDI, SAUSAGE], _read_automaton),
    "symbols": lambda: Format("x.syms", [b"<eps> 0\na 1\nb 2\n"], _read_symbols),
    "gff": lambda: Format("x.gff", [GFF], _read_annotation, _packed),
    "genome": lambda: Format("x.fa", [FASTA], _read_genome, _packed),
    "model": lambda: Format(
        "m", [_model("Linear()", np.eye(3)), _model("NGrams(2).hashed(4)", ["ab", "cd", "ef"])], _read_model
    ),
}
