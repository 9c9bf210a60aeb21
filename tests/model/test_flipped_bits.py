"""A single bit that is another than was written is told of, or changes nothing: model files and checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from dotadd import KernelSVM, LinearSVM, load
from dotadd._util import tensor_file
from dotadd.errors import ModelError
from dotadd.solvers.checkpoint import Checkpoint, CheckpointError

TEXTS = ["red cat", "green sun", "blue dog moon", "red dog", "green cat"] * 3
LABELS = [0, 1, 2, 0, 1] * 3
VECTORS = np.random.default_rng(0).standard_normal((15, 6))


def linear():
    return LinearSVM("BagOfWords().indexed('hash_table')", max_passes=3, tol=1.0).fit(TEXTS, LABELS).model_, TEXTS


def kernel():
    return KernelSVM("rbf", tol=0.1).fit(VECTORS, LABELS).model_, VECTORS


def flipped(content: bytes, count: int):
    """The content with a single bit flipped, at places all over it and twice as many in its first part."""
    rng = np.random.default_rng(1)
    places = np.concatenate(
        [rng.integers(0, 8 * len(content), count), rng.integers(0, 8 * min(2000, len(content)), count)]
    )
    for place in places.tolist():
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        yield bytes(changed)


def in_a_line(error: Exception, path: Path) -> bool:
    assert str(error).startswith(f"{path}: ")
    assert "\n" not in str(error)
    return True


@pytest.mark.parametrize("made", [linear, kernel])
def test_a_model_with_a_flipped_bit_is_refused_in_a_line_or_scores_the_same(tmp_path, made):
    model, data = made()
    path = tmp_path / "m.dotadd"
    model.save(path)
    expected = load(path).decision_function(data).tobytes()
    refused = 0
    for content in flipped(path.read_bytes(), 250):
        path.write_bytes(content)
        try:
            scores = load(path).decision_function(data)
        except ModelError as error:
            refused += in_a_line(error, path)
        else:
            assert scores.tobytes() == expected
    assert refused > 400


def test_a_model_file_is_what_safetensors_reads_and_one_without_a_checksum_is_taken(tmp_path):
    path = tmp_path / "m.dotadd"
    model, data = linear()
    model.save(path)
    with safe_open(path, framework="np") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    assert np.array_equal(tensors["w"], model.w)
    assert metadata.pop("checksum")
    save_file(tensors, path, metadata=metadata)
    assert load(path).decision_function(data).tobytes() == model.decision_function(data).tobytes()


def test_arrays_of_all_types_and_shapes_come_back_from_a_tensor_file(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        f"{name}-{k}": rng.integers(0, 99, shape).astype(kind)
        for name, kind in tensor_file.TYPES.items()
        for k, shape in enumerate([(3,), (2, 3), (0, 4), ()])
    }
    arrays["rows"] = np.asfortranarray(arrays["F64-1"])
    tensor_file.write(tmp_path / "t", arrays, {"checksum?": '"checksum":"00000000"', "é\n": "\\"})
    assert tensor_file.is_sound(tmp_path / "t")
    with safe_open(tmp_path / "t", framework="np") as file:
        assert file.metadata() == {"checksum?": '"checksum":"00000000"', "é\n": "\\"} | {
            "checksum": file.metadata()["checksum"]
        }
        for name, array in arrays.items():
            assert file.get_tensor(name).dtype == array.dtype
            assert np.array_equal(file.get_tensor(name), array)


def test_a_checkpoint_with_a_flipped_bit_is_refused_in_a_line_or_is_the_same(tmp_path):
    path = tmp_path / "c"
    arrays = {"w.0": np.arange(200.0), "alpha.0": np.arange(30.0), "rng": np.arange(4, dtype=np.uint64)}
    checkpoint = Checkpoint(str(path), problem={"loss": "hinge"})
    checkpoint.save(arrays, {"passes": 3})
    refused = 0
    for content in flipped(path.read_bytes(), 800):
        path.write_bytes(content)
        try:
            found, state = checkpoint.load()
        except CheckpointError as error:
            refused += in_a_line(error, path)
        else:
            assert json.dumps(state) == '{"passes": 3}'
            assert set(arrays) <= set(found)
            for name, array in arrays.items():
                assert found[name].dtype == array.dtype
                assert np.array_equal(found[name], array)
    assert refused > 800
