"""Images in archives, idx files and folders: the pixels and labels that were written, in bounded memory, and one clear
line for whatever is wrong with them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import pickle
import re
import struct
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from naive_sources import rows_of
from PIL import Image

from dotadd import Linear, LinearSVM
from dotadd.cli import run
from dotadd.data.batches import DenseRows, Images, Strings
from dotadd.errors import DataError, DotaddError
from dotadd.sources import arrays
from dotadd.sources import open as open_source
from dotadd.sources.around import Kept
from dotadd.sources.cached import CachedFile, as_arrow
from dotadd.sources.convert import convert
from dotadd.sources.identity import Watched, fingerprint

IDX_TYPES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}
PACKED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def idx(array: np.ndarray) -> bytes:
    """The format by its definition."""
    kind = IDX_TYPES[array.dtype.str[1:]]
    return (
        struct.pack(f">4B{array.ndim}I", 0, 0, kind, array.ndim, *array.shape)
        + array.astype(array.dtype.newbyteorder(">")).tobytes()
    )


def pixels(count: int, height: int = 4, width: int = 3, dtype: type = np.uint8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, height, width)).astype(dtype)


def two_classes(count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Images that are bright on the left or on the right."""
    x, y = pixels(count) // 4, np.arange(count) % 2
    x[y == 0, :, 0] += 150
    x[y == 1, :, 2] += 150
    return x, y


def write_folder(root: Path, x: np.ndarray, names: list[str]) -> Path:
    for image, name in zip(x, names, strict=True):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(root / name)
    return root


def write_idx_pair(folder: Path, x: np.ndarray, y: np.ndarray, suffix: str = "") -> Path:
    path = folder / f"train-images-idx3-ubyte{suffix}"
    path.write_bytes(PACKED[suffix](idx(x)))
    (folder / f"train-labels-idx1-ubyte{suffix}").write_bytes(PACKED[suffix](idx(y.astype(np.uint8))))
    return path


def assert_holds(source, x: np.ndarray, y: list | None, weight: list | None = None) -> None:
    """Loaded and in small chunks alike, these rows in this order, with row numbers that go on."""
    chunks = list(source.chunks(3 * max(1, x[0].nbytes)))
    assert [chunk.first_row for chunk in chunks] == np.cumsum([0, *map(len, chunks[:-1])]).tolist()
    assert len(x) < 4 or len(chunks) > 1
    for batch in (source.load().batch, type(chunks[0].batch).concat(chunk.batch for chunk in chunks)):
        assert rows_of(batch) == x.tolist()
    for name, expected in (("y", y), ("weight", weight)):
        found = [getattr(chunk, name) for chunk in chunks]
        assert (found[0] is None) == (expected is None)
        if expected is not None:
            assert np.concatenate(found).tolist() == expected == getattr(source.load(), name).tolist()


# ---- archives


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float32, np.float64, ">f4"])
def test_the_one_array_of_images_is_read_with_labels_and_weights_beside_it(tmp_path, save, dtype):
    x = pixels(10, dtype=dtype)
    save(tmp_path / "x.npz", faces=x, y=np.arange(10, dtype=np.uint8), weight=np.arange(10.0), other=np.arange(3))
    source = open_source(tmp_path / "x.npz")
    assert_holds(source, x, list(range(10)), list(range(10)))
    batch = source.load().batch
    assert type(batch) is Images
    assert batch.values.dtype == {"uint8": "uint8", "uint16": "uint16", "float64": "float64"}.get(
        x.dtype.name, "float32"
    )
    assert source.quick == (save is np.savez)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.bool_, np.float64])
def test_two_dimensions_are_rows_and_text_is_strings(tmp_path, dtype):
    x = pixels(9)[:, 0].astype(dtype)
    np.savez(tmp_path / "x.npz", x=x, target=np.array([["a"], ["b"], ["c"]] * 3))
    assert_holds(open_source(tmp_path / "x.npz"), x, ["a", "b", "c"] * 3)
    assert type(open_source(tmp_path / "x.npz").load().batch) is DenseRows
    words = ["ab", "", "wörld", "c" * 9]
    for text in (np.array(words), np.array([word.encode() for word in words])):
        np.savez(tmp_path / "x.npz", text=text, labels=np.array([b"u", b"v"] * 2))
        chunk = open_source(tmp_path / "x.npz").load()
        assert type(chunk.batch) is Strings
        assert rows_of(chunk.batch) == [word.encode() for word in words]
        assert chunk.y.tolist() == ["u", "v", "u", "v"]


def test_arrays_of_other_names_are_asked_for(tmp_path):
    x, y = two_classes(8)
    path = tmp_path / "x.npz"
    np.savez(path, train=x, test=x[:5], sex=y, age=y + 0.5, label=y[:5])
    with pytest.raises(DataError, match=r"x\.npz: which array .* column=; .*train \(8, 4, 3\) uint8, test \(5, 4, 3\)"):
        open_source(path).load()
    assert_holds(open_source(path, column="train", label="sex", weight="age"), x, y.tolist(), (y + 0.5).tolist())
    assert_holds(open_source(path, column="test"), x[:5], y[:5].tolist())
    assert open_source(path, column="train").load().y is None  # the only array called label is shorter
    with pytest.raises(DataError, match=r"there is no array 'gender'; the arrays are train \(8, 4, 3\) uint8"):
        open_source(path, label="gender").load()
    with pytest.raises(DataError, match=r"the array label \(5,\) int64 does not hold .* each row of train \(8, 4, 3\)"):
        open_source(path, column="train", label="label").load()
    with pytest.raises(DataError, match=r"the array sex \(8,\) int64 holds no examples"):
        open_source(path, column="sex").load()
    with pytest.raises(DotaddError, match="labels= has no meaning for npz files"):
        open_source(path, labels="x")


def test_archives_without_examples_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(3), b=np.float64(1))
    with pytest.raises(DataError, match=r"no array holds examples.*: a \(3,\) int64, b \(\) float64"):
        open_source(path).load()
    np.savez(path, x=np.empty((0, 3)))
    with pytest.raises(DataError, match="has no examples"):
        open_source(path).load()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "nothing here")
    with pytest.raises(DataError, match=r"no array holds examples.*: none"):
        open_source(path).load()
    np.savez(path, data=np.ones(2), indices=np.arange(2), indptr=np.arange(3), shape=np.array([2, 2]), format=b"csr")
    with pytest.raises(DataError, match="sparse matrix; load it with scipy"):
        open_source(path).load()


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("code of the file was run",))


@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_python_objects_are_never_loaded(tmp_path, shape):
    objects = np.empty(shape, object)
    objects[...] = Trap()
    np.savez(tmp_path / "x.npz", x=objects)
    with pytest.raises(DataError, match=r"x\.npz: the array x holds Python objects, .* save it as numbers or text"):
        open_source(tmp_path / "x.npz").load()
    np.savez(tmp_path / "x.npz", x=np.eye(2), extra=objects)
    assert open_source(tmp_path / "x.npz").load().batch.values.tolist() == np.eye(2).tolist()
    (tmp_path / "x.npz").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(DataError, match="cannot be read"):
        open_source(tmp_path / "x.npz").load()


def test_missing_labels_and_values_are_bad_rows(tmp_path):
    x = np.arange(12.0).reshape(6, 2)
    x[4, 1] = np.nan
    np.savez(tmp_path / "x.npz", x=x, y=np.array([0, 1, np.nan, 1, 0, 1]))
    with pytest.raises(DataError, match=r"x\.npz: row 2: the label is missing"):
        open_source(tmp_path / "x.npz").load()
    source = open_source(tmp_path / "x.npz", on_bad_row="skip")
    assert_holds(source, x[[0, 1, 3, 5]], [0, 1, 1, 1])
    assert source.skipped.count == 2


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_that_are_cut_off_or_damaged_are_refused(tmp_path, save):
    path = tmp_path / "x.npz"
    save(path, x=pixels(300), y=np.arange(300))
    whole = path.read_bytes()
    for damaged in (whole[:-10], whole[:200], b"", whole[:700] + bytes(100) + whole[800:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"x\.npz: cannot be read") as caught:
            open_source(path).load()
        assert "\n" not in str(caught.value)
    np.save(tmp_path / "x.npy", pixels(300))
    array = (tmp_path / "x.npy").read_bytes()
    for damaged in (array[:-50], array + b"more"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", damaged)
        with pytest.raises(DataError, match=r"x \(300, 4, 3\) uint8 does not have as many bytes as it should"):
            open_source(path).load()


def test_fortran_order_is_read_if_it_can_be_loaded_as_a_whole(tmp_path, monkeypatch):
    x = pixels(11)
    np.savez_compressed(tmp_path / "x.npz", x=np.asfortranarray(x), y=np.arange(11))
    assert_holds(open_source(tmp_path / "x.npz"), x, list(range(11)))
    monkeypatch.setattr(arrays, "LARGEST", 100)
    with pytest.raises(DataError, match=r"x \(11, 4, 3\) uint8 is in Fortran order and takes 132 bytes.*ascontiguous"):
        open_source(tmp_path / "x.npz").load()


@pytest.mark.parametrize("kind", ["stored", "compressed", "dense", "idx"])
def test_large_files_are_read_in_small_memory(tmp_path, kind):
    x = np.tile(pixels(100, 32, 32), (160, 1, 1))  # 16 MB
    path = tmp_path / "x.npz"
    if kind == "idx":
        path = write_idx_pair(tmp_path, x, np.arange(len(x)) % 10, ".gz")
    elif kind == "dense":
        np.savez_compressed(path, x=x.reshape(len(x), -1))
    else:
        (np.savez if kind == "stored" else np.savez_compressed)(path, x=x, y=np.arange(len(x)))
    source, rows = open_source(path), 0
    next(iter(source.chunks(1 << 20)))  # what is imported and compiled stays
    tracemalloc.start()
    try:
        for chunk in source.chunks(1 << 20):
            assert chunk.nbytes < 1.1 * (1 << 20)
            rows += len(chunk)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows == len(x)
    assert peak < 6 << 20


# ---- idx files


@pytest.mark.parametrize("suffix", PACKED)
def test_idx_images_have_the_labels_beside_them(tmp_path, suffix):
    x, y = two_classes()
    source = open_source(write_idx_pair(tmp_path, x, y, suffix))
    assert_holds(source, x, y.tolist())
    batch = source.load().batch
    assert (type(batch), batch.values.dtype) == (Images, np.uint8)
    assert source.quick == (suffix == "")
    assert [Path(path).name for path in source.files()] == [
        f"train-{what}-ubyte{suffix}" for what in ("images-idx3", "labels-idx1")
    ]


@pytest.mark.parametrize("kind", IDX_TYPES)
@pytest.mark.parametrize("ndim", [2, 3])
def test_numbers_of_every_type_are_read(tmp_path, kind, ndim):
    x = (pixels(7).astype(np.float64) - (0 if kind == "u1" else 128)).astype(kind)
    x = x if ndim == 3 else x[:, 0]
    path = tmp_path / "x.idx"
    path.write_bytes(idx(x))
    chunk = open_source(path).load()
    assert type(chunk.batch) is (Images if ndim == 3 else DenseRows)
    assert chunk.batch.values.dtype.isnative
    assert rows_of(chunk.batch) == x.tolist()
    assert chunk.y is None


def test_idx_is_known_by_name_and_by_its_first_bytes(tmp_path):
    x, y = two_classes(6)
    for name in ("a-images.idx3-ubyte", "noname", "b_images_idx3_ubyte.gz", "c.dat.bz2"):
        (tmp_path / name).write_bytes(PACKED[Path(name).suffix if "." in name[-5:] else ""](idx(x)))
        assert_holds(open_source(tmp_path / name), x, None)
    (tmp_path / "a-labels.idx1-ubyte.xz").write_bytes(lzma.compress(idx(y.astype(np.int32))))
    assert_holds(open_source(tmp_path / "a-images.idx3-ubyte"), x, y.tolist())
    (tmp_path / "mine").write_bytes(idx(y[::-1].astype(np.uint8)))
    assert_holds(open_source(tmp_path / "a-images.idx3-ubyte", labels=tmp_path / "mine"), x, y[::-1].tolist())
    with pytest.raises(DataError, match="holds 1-dimensional numbers: labels, it seems"):
        open_source(tmp_path / "mine").load()
    with pytest.raises(DataError, match=r"noname: holds no labels"):
        open_source(tmp_path / "a-images.idx3-ubyte", labels=tmp_path / "noname").load()
    with pytest.raises(DataError, match="nowhere: no such file"):
        open_source(tmp_path / "noname", labels=tmp_path / "nowhere").load()
    (tmp_path / "x.idx").write_bytes(b"1 1:1\n-1 2:1\n")
    with pytest.raises(DataError, match=r"x\.idx: is no idx file"):
        open_source(tmp_path / "x.idx").load()


@pytest.mark.parametrize("suffix", PACKED)
def test_idx_files_of_the_wrong_length_are_refused(tmp_path, suffix):
    x, y = two_classes(9)
    path = write_idx_pair(tmp_path, x, y[:8], suffix)
    with pytest.raises(DataError, match=r"has 9 examples, and .*labels-idx1.* has 8 labels"):
        open_source(path).load()
    write_idx_pair(tmp_path, x, y, suffix)
    for content in (idx(x)[:-5], idx(x) + b"more"):
        path.write_bytes(PACKED[suffix](content))
        with pytest.raises(
            DataError, match=r"images-idx3.*: (ends too early|is longer|has 1\d\d bytes, and its header)"
        ):
            open_source(path).load()
    if suffix:
        path.write_bytes(PACKED[suffix](idx(x))[:-12])
        with pytest.raises(DataError, match=r"images-idx3.*: the compressed file ends too early"):
            open_source(path).load()
    path.write_bytes(PACKED[suffix](struct.pack(">4B3I", 0, 0, 8, 3, 9, 1 << 31, 1 << 31)))
    with pytest.raises(DataError, match="its header speaks of"):
        open_source(path).load()


# ---- folders


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_subfolders_name_the_labels_and_paths_the_order(tmp_path, dtype):
    x = pixels(6, dtype=dtype) * dtype(3)
    names = ["a/1.png", "a/2.PNG", "b/1.png", "b/deeper/0.png", "b/deeper/still/0.png", "c d/x.png"]
    root = write_folder(tmp_path / "faces", x, names)
    write_folder(root, pixels(2, 9, 9), ["a/.hidden.png", ".thumbnails/b.png"])
    (root / "a" / "notes.txt").write_text("not an image")
    for path in (root, f"{root}/"):
        source = open_source(path)
        assert_holds(source, x, ["a", "a", "b", "b", "b", "c d"])
        assert source.load().batch.values.dtype == dtype
        assert source.files() == [str(root / name) for name in names]
        assert source.name == str(root)


def test_links_are_followed_but_not_in_circles(tmp_path):
    x = pixels(2)
    write_folder(tmp_path / "elsewhere", x[1:], ["1.png"])
    root = write_folder(tmp_path / "faces", x[:1], ["a/1.png"])
    (root / "b").symlink_to(tmp_path / "elsewhere")
    (root / "a" / "up").symlink_to(root)
    (root / "a" / "here").symlink_to(".")
    assert_holds(open_source(root), x, ["a", "b"])


def test_subfolders_that_are_all_numbers_are_numbers(tmp_path):
    x = pixels(3)
    assert_holds(open_source(write_folder(tmp_path / "1", x, ["0/a.png", "1/a.png", "10/a.png"])), x, [0, 1, 10])
    names = [f"{k}/a.png" for k in range(11)] + ["nan/a.png"]
    labels = open_source(write_folder(tmp_path / "2", pixels(12), names)).load().y.tolist()
    assert labels == [*sorted(map(str, range(11))), "nan"]


def test_images_of_one_folder_have_labels_in_a_second_file_or_none(tmp_path):
    x = pixels(3)
    root = write_folder(tmp_path / "faces", x, ["a.png", "b c.png", "d,e.png"])
    assert_holds(open_source(root), x, None)
    (tmp_path / "labels.csv").write_text('name,label\nb c.png,dog\na.png,cat\n"d,e.png",cat\nf.png,cow\n')
    (tmp_path / "labels.tsv").write_text("a.png\t3\nd,e.png\t5\nb c.png\t4\n")
    assert_holds(open_source(root, labels=tmp_path / "labels.csv"), x, ["cat", "dog", "cat"])
    assert_holds(open_source(root, labels=tmp_path / "labels.tsv"), x, [3, 4, 5])
    (tmp_path / "few.csv").write_text("a.png,cat\nb c.png,dog\n")
    with pytest.raises(DataError, match=r"d,e\.png: has no label in .*few\.csv"):
        open_source(root, labels=tmp_path / "few.csv").load()
    source = open_source(root, labels=tmp_path / "few.csv", on_bad_row="skip")
    assert_holds(source, x[:2], ["cat", "dog"])
    assert source.skipped.count == 1
    (tmp_path / "bad.csv").write_text("a.png,cat\nb c.png,dog,big\n")
    with pytest.raises(DataError, match=r"bad\.csv:2: expected a name"):
        open_source(root, labels=tmp_path / "bad.csv").load()


def test_colour_becomes_gray_by_the_usual_weights(tmp_path):
    colours = np.random.default_rng(0).integers(0, 256, (5, 4, 3), dtype=np.uint8)
    gray = colours @ [0.299, 0.587, 0.114]
    for mode in ("RGB", "RGBA"):
        Image.fromarray(colours).convert(mode).save(tmp_path / f"{mode}.png")
    Image.fromarray(colours).save(tmp_path / "x.jpg", quality=100, subsampling=0)
    values = open_source(tmp_path).load().batch.values
    assert np.abs(values[:2] - gray).max() <= 1
    assert np.abs(values[2] - gray).max() <= 8  # JPEG is not exact
    Image.fromarray(colours[..., 0] > 128).save(tmp_path / "one bit.png")
    assert open_source(tmp_path).load().batch.values[2].tolist() == (255 * (colours[..., 0] > 128)).tolist()


def test_images_that_differ_or_cannot_be_decoded_are_bad_rows(tmp_path):
    x = pixels(6)
    root = write_folder(tmp_path / "faces", x, [f"u/{k}.png" for k in range(3)] + [f"v/{k}.png" for k in range(3)])
    write_folder(root, pixels(1, 5, 3), ["u/1.png"])
    with pytest.raises(DataError, match=r"u/1\.png: is 3 x 5 pixels of 8 bits, and .*u/0\.png is 3 x 4 pixels of 8"):
        open_source(root).load()
    write_folder(root, pixels(1, dtype=np.uint16), ["u/1.png"])
    with pytest.raises(DataError, match=r"u/1\.png: is 3 x 4 pixels of 16 bits, and"):
        open_source(root).load()
    (root / "v" / "0.png").write_bytes((root / "v" / "1.png").read_bytes()[:-30])
    (root / "v" / "2.png").write_text("no image at all")
    Image.fromarray(x[0]).save(root / "0.png")
    source = open_source(root, on_bad_row="skip")
    assert_holds(source, x[[0, 2, 4]], ["u", "u", "v"])
    assert source.skipped.count == 4
    with pytest.raises(DataError, match=r"faces/0\.png: has no label: it lies beside the subfolders"):
        open_source(root).load()
    (root / "0.png").unlink()
    (root / "u" / "1.png").unlink()
    with pytest.raises(DataError, match=r"v/0\.png: cannot be decoded as an image") as caught:
        open_source(root).load()
    assert "\n" not in str(caught.value)
    (root / "v" / "0.png").unlink()
    with pytest.raises(DataError, match=r"v/2\.png: is not a PNG or JPEG image"):
        open_source(root).load()


def test_folders_without_images_and_single_images_are_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"is a folder of data files; .*folder/\*\.csv"):
        open_source(tmp_path)
    with pytest.raises(DataError, match="is a folder; give the files"):
        open_source(tmp_path, format="csv")
    write_folder(tmp_path, pixels(1), ["a.png"])
    with pytest.raises(DataError, match=r"a\.png: is a single image; give the folder"):
        open_source(tmp_path / "a.png")
    with pytest.raises(DotaddError, match="label= has no meaning for folders of images"):
        open_source(tmp_path, label="x")


def test_without_pillow_one_line_says_what_to_install(tmp_path, monkeypatch):
    write_folder(tmp_path, pixels(1), ["a.png"])
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.delitem(sys.modules, "PIL.Image")
    with pytest.raises(DotaddError, match=r"images need pillow: pip install 'dotadd\[images\]'"):
        open_source(tmp_path)


def test_several_folders_or_archives_are_one_data_set(tmp_path):
    x, y = two_classes(8)
    for k, part in enumerate((slice(0, 3), slice(3, 8))):
        write_folder(tmp_path / f"part-{k}", x[part], [f"{y[i]}/{i}.png" for i in range(8)[part]])
        np.savez(tmp_path / f"part-{k}.npz", x=x[part], y=y[part])
    assert_holds(open_source(str(tmp_path / "*.npz")), x, y.tolist())
    both = open_source([tmp_path / "part-0", tmp_path / "part-1"]).load()
    assert sorted(zip(rows_of(both.batch), both.y.tolist(), strict=True)) == sorted(
        zip(x.tolist(), y.tolist(), strict=True)
    )


# ---- copies, identity


def test_a_folder_is_known_by_the_names_sizes_and_times_of_its_images(tmp_path):
    root = write_folder(tmp_path / "faces", pixels(4), ["a/1.png", "a/2.png", "b/1.png", "b/2.png"])
    changes = [
        lambda: write_folder(root, pixels(1, seed=1), ["a/1.png"]),
        lambda: (root / "a").rename(root / "c"),
        lambda: write_folder(root, pixels(1), ["b/3.png"]),
        lambda: (root / "b" / "2.png").unlink(),
    ]
    for change in changes:
        before, watch = fingerprint(open_source(root)), Watched(open_source(root))
        (root / "notes.txt").write_text("other files do not matter")
        watch.check()
        assert fingerprint(open_source(f"{root}/")) == before
        change()
        assert fingerprint(open_source(root)) != before
        with pytest.raises(DataError, match=r"\.png: (has changed|no such file)"):
            watch.check()
    labels = tmp_path / "labels.csv"
    labels.write_text("b/1.png,x\n")
    before = fingerprint(open_source(root, labels=labels))
    labels.write_text("b/1.png,y\n")
    os.utime(labels, (5, 5))
    assert fingerprint(open_source(root, labels=labels)) != before


@pytest.mark.parametrize("kind", ["folder", "npz", "idx"])
def test_what_takes_decoding_is_copied_to_arrow_once(tmp_path, kind):
    x, y = two_classes()
    if kind == "folder":
        path = write_folder(tmp_path / "faces", x, [f"{label}/{row:02}.png" for row, label in enumerate(y)])
        x, y = x[np.argsort(y, kind="stable")], np.sort(y)
    elif kind == "npz":
        path = tmp_path / "x.npz"
        np.savez_compressed(path, x=x, y=y)
    else:
        path = write_idx_pair(tmp_path, x, y, ".gz")
    lines: list[str] = []
    for _ in range(2):
        fast, copies = as_arrow(Kept(open_source(f"{path}/" if kind == "folder" else path)), announce=lines.append)
        assert isinstance(fast.source, CachedFile)
        assert copies == [Path(f"{path}.dotadd.arrow")]
        assert_holds(fast.source, x, y.tolist())
    assert [line.split()[0] for line in lines] == ["converting", "reading"]
    if kind == "folder":
        write_folder(path, x[:1], ["1/99.png"])
        assert len(as_arrow(open_source(path), announce=lines.append)[0].load()) == len(x) + 1
        assert f"({path} has changed)" in lines[-1]


def test_what_is_quick_to_read_is_not_copied(tmp_path):
    x, y = two_classes(4)
    np.savez(tmp_path / "x.npz", x=x, y=y)
    for source in (open_source(tmp_path / "x.npz"), open_source(write_idx_pair(tmp_path, x, y))):
        assert as_arrow(source) == (source, [])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("name", ["x.arrow", "x.parquet"])
def test_images_and_labels_come_back_from_arrow(tmp_path, dtype, name):
    x = pixels(10, dtype=dtype)
    np.savez(tmp_path / "x.npz", x=x, y=np.arange(10))
    convert(open_source(tmp_path / "x.npz"), tmp_path / name)
    chunk = open_source(tmp_path / name).load()
    assert (type(chunk.batch), chunk.batch.values.dtype) == (Images, dtype)
    assert_holds(open_source(tmp_path / name), x, list(range(10)))
    with pytest.raises(DataError, match=r"y\.npz: Arrow or Parquet is written"):
        convert(open_source(tmp_path / "x.npz"), tmp_path / "y.npz")


# ---- training


def test_each_pixel_is_a_feature_and_whole_numbers_train_like_floats():
    x, y = two_classes()
    options = {"C": 1e-4, "tol": 1e-6, "max_passes": 10_000, "solver": "dcd"}
    of_images = LinearSVM(Linear(), **options).fit(x, y)
    of_floats = LinearSVM(Linear(), **options).fit(x.reshape(len(x), -1).astype(np.float32), y)
    assert of_images.coef_.shape == of_floats.coef_.shape
    assert of_images.result_.primal == pytest.approx(of_floats.result_.primal, rel=1e-5)
    assert of_images.coef_ == pytest.approx(of_floats.coef_, abs=2e-3 * float(np.abs(of_floats.coef_).max()))
    assert np.array_equal(of_images.predict(x), y)
    scores = of_images.decision_function(x)
    assert of_images.decision_function(x.astype(np.uint16)) == pytest.approx(scores, rel=1e-5)
    assert of_floats.decision_function(x.reshape(len(x), -1)) == pytest.approx(scores, abs=1e-2)


def test_images_train_while_they_are_read(tmp_path):
    x, y = two_classes(400)
    np.savez_compressed(tmp_path / "x.npz", x=x, y=y)
    svm = LinearSVM(Linear(), C=1e-4, solver="stream", memory=3000, tol=1e-3)
    with pytest.warns(match=r"converting .*x\.npz"):
        svm.fit(tmp_path / "x.npz")
    loaded = LinearSVM(Linear(), C=1e-4, tol=1e-4).fit(x, y)
    assert svm.result_.primal == pytest.approx(loaded.result_.primal, rel=2e-3)


@pytest.mark.parametrize("kind", ["folder", "npz", "idx"])
def test_the_commands_take_images(tmp_path, monkeypatch, capsys, kind):
    monkeypatch.chdir(tmp_path)
    x, y = two_classes()
    options = ""
    if kind == "folder":
        data = f"{write_folder(Path('faces'), x, [f'{label}/{row:02}.png' for row, label in enumerate(y)])}/"
        y = np.sort(y)
    elif kind == "npz":
        data, options = "faces.npz", " --label gender"
        np.savez_compressed(data, x=x, gender=y, person=np.arange(len(y)))
    else:
        data = str(write_idx_pair(Path(), x, y, ".gz"))
    assert run(f"train {data} -o m -C 1e-4 --quiet{options}".split()) == 0
    assert run(f"evaluate m {data}".split()) == 0  # by the array of labels that the model remembers
    assert "accuracy  1.0000" in capsys.readouterr().out
    assert run(f"predict m {data}".split()) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [int(line[-2]) for line in lines] == y.tolist()
    if kind == "folder":
        assert [line[0] for line in lines] == sorted(str(path.relative_to(data)) for path in Path(data).rglob("*.png"))
    assert run(f"convert {data} faces.arrow{options}".split()) == 0
    assert run(["evaluate", "m", "faces.arrow"]) == 0
    assert "accuracy  1.0000" in capsys.readouterr().out
    assert run(f"train {data} -o n --label nothing".split()) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("size", ["4x3", (4, 3), " 4 X 3"])
def test_rows_of_numbers_may_be_images(tmp_path, size):
    X = np.random.default_rng(0).integers(0, 256, (5, 12)).astype(np.uint8)
    np.savez(tmp_path / "x.npz", X=X, y=np.arange(5))
    for data in (X, tmp_path / "x.npz"):
        chunk = open_source(data, size=size).load()
        assert isinstance(chunk.batch, Images)
        np.testing.assert_array_equal(chunk.batch.values, X.reshape(5, 4, 3))
    assert chunk.y.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("data", "size", "said"),
    [
        (np.zeros((2, 12)), "5x3", "rows of 12 numbers, and images of 5x3 have 15 pixels"),
        (np.zeros((2, 4, 3)), "4x3", "holds images already"),
        (["ACGT"], "2x2", "holds strings, and size=2x2 is for rows of numbers"),
        (np.zeros((2, 12)), "12", "'12' is no size of images"),
        (np.zeros((2, 12)), (0, 12), "is no size of images"),
        (np.zeros((2, 12)), (1.5, 8), "is no size of images"),
    ],
)
def test_rows_that_cannot_be_images_are_refused(data, size, said):
    with pytest.raises(DotaddError, match=re.escape(said)):
        open_source(data, size=size).load()


def test_a_model_of_images_is_inspected_in_words(tmp_path, capsys):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "x.npz", X=rng.integers(0, 256, (8, 6, 5)).astype(np.uint8), y=np.arange(8) % 2)
    data, model = str(tmp_path / "x.npz"), str(tmp_path / "m")
    assert run(["train", data, "--features", "LBP()", "-o", model, "-q"]) == 0
    assert run(["inspect", model]) == 0
    told = capsys.readouterr().out
    assert "images of 6 x 5 pixels" in told
    assert re.search(r"level 0, row \d, column \d, pattern 0b[01]{8}", told)
    assert "letters" not in told
    np.savez(tmp_path / "larger.npz", X=np.zeros((2, 7, 5), np.uint8))
    assert run(["predict", model, str(tmp_path / "larger.npz")]) == 2
    assert "images of 7 x 5 pixels, and the model was made for 6 x 5" in capsys.readouterr().err
