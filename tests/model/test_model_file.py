"""The model file: what goes in comes out, appears whole or not at all, and anything else is refused in one line."""

import json
import os
import stat

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from dotadd import LinearSVM
from dotadd.data.batches import DenseRows
from dotadd.errors import ModelError
from dotadd.features.base import FeatureMap, Shape
from dotadd.features.expression import parse
from dotadd.features.linear import Linear
from dotadd.model import file as model_file
from dotadd.model.linear import Model, load
from dotadd.model.stored import Stored
from dotadd.solvers.result import Reason


def make(classes=(-1, 1), width=5, dtype=np.float32, training=None):
    rng = np.random.default_rng(0)
    shape = Shape("dense rows", n_features=width)
    rows = 1 if len(classes) == 2 else len(classes)
    w = rng.standard_normal((rows, width)).astype(dtype)
    return Model(Linear().resolve(shape), shape, w, rng.standard_normal(rows), np.array(classes), training)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [(-1, 1), (0.5, 1.5), ("ham", "spam"), ("a", "b", "c"), (False, True)])
def test_a_saved_model_comes_back_equal(tmp_path, classes, dtype):
    saved = make(classes, dtype=dtype, training={"C": 0.5, "solver": "dcd"})
    saved.save(tmp_path / "m.dotadd")
    loaded = load(tmp_path / "m.dotadd")
    assert loaded.phi == saved.phi
    assert loaded.shape == saved.shape
    assert loaded.w.dtype == dtype
    assert np.array_equal(loaded.w, saved.w)
    assert np.array_equal(loaded.intercept, saved.intercept)
    assert loaded.classes.dtype == saved.classes.dtype
    assert loaded.classes.tolist() == list(classes)
    assert loaded.training == {"C": 0.5, "solver": "dcd"}


def test_labels_kept_as_objects_stay_objects(tmp_path):
    saved = make()
    saved.classes = np.array(["no", "yes"], object)
    saved.save(tmp_path / "m")
    assert load(tmp_path / "m").classes.dtype == object


def test_a_map_that_needs_the_shape_is_resolved_again(tmp_path):
    shape = Shape("strings", length=12)
    phi = parse("0.5 * Spectrum(2) + WeightedDegree(3).hashed(4)").resolve(shape)
    Model(phi, shape, np.zeros((1, phi.dim), np.float32), np.zeros(1), np.array([0, 1])).save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert repr(loaded.phi) == repr(phi)
    assert loaded.phi.dim == phi.dim


def test_the_training_record_is_plain_json(tmp_path):
    training = {"gap": np.float32(0.5), "rows": np.int64(3), "reason": Reason.MAX_TIME, "primal": [float("inf"), 1.0]}
    make(training=training).save(tmp_path / "m")
    with safe_open(tmp_path / "m", framework="np") as file:
        header = json.loads(file.metadata()["dotadd"], parse_constant=lambda name: pytest.fail(name))
    assert header["training"] == {"gap": 0.5, "rows": 3, "reason": Reason.MAX_TIME.value, "primal": [None, 1.0]}
    assert header["format"] == 1
    assert header["version"]
    assert header["date"].endswith("+00:00")


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    make().save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        make(("a", "b", "c")).save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


def test_a_model_file_has_the_mode_of_any_other_file(tmp_path):
    make().save(tmp_path / "m")
    (tmp_path / "other").touch()
    assert stat.S_IMODE(os.stat(tmp_path / "m").st_mode) == stat.S_IMODE(os.stat(tmp_path / "other").st_mode)


def test_saving_through_a_link_keeps_the_link(tmp_path):
    make().save(tmp_path / "m")
    (tmp_path / "link").symlink_to("m")
    make(("a", "b", "c")).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "m").classes.tolist() == ["a", "b", "c"]


def refused(path, words, **arguments):
    with pytest.raises(ModelError, match=words) as caught:
        load(path, **arguments)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_foreign_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "m"
    make().save(path)
    whole = path.read_bytes()
    for damaged in (b"", b"1 1:0.5 2:3\n", b"\xff" * 100, whole[:-3], whole[:40], whole + b"more"):
        path.write_bytes(damaged)
        refused(path, "not a model file, or cut short or damaged")
    save_file({"w": np.zeros(3)}, path)
    refused(path, "not a model of dotadd")
    save_file({"w": np.zeros(3)}, path, metadata={"dotadd": "[1]"})
    refused(path, "not a model of dotadd")


def rewritten(path, change, w=None):
    """The same model file with another header, or other weights."""
    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["dotadd"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(header)
    save_file(tensors if w is None else tensors | {"w": w}, path, metadata={"dotadd": json.dumps(header)})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda header: header.update(format=model_file.FORMAT + 1), "newer dotadd"),
        (lambda header: header.update(shape={"kind": "strings", "colour": 1}), "header is damaged"),
        (lambda header: header.pop("classes"), "header is damaged"),
        (lambda header: header.update(classes={"dtype": "V8", "values": [1, 2]}), "header is damaged"),
        (lambda header: header.update(features="__import__('os').system('true')"), "features cannot be made"),
        (lambda header: header.update(features="MyMap()"), "features cannot be made.*MyMap"),
        (lambda header: header.update(features="Linear(n_features=6)"), "do not fit"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(tmp_path, change, words):
    make().save(tmp_path / "m")
    rewritten(tmp_path / "m", change)
    refused(tmp_path / "m", words)


def test_weights_of_another_type_or_shape_are_refused(tmp_path):
    for w, words in (
        (np.zeros((1, 4), np.float32), "do not fit"),
        (np.zeros((1, 5), np.int64), "not a model of dotadd"),
    ):
        make().save(tmp_path / "m")
        rewritten(tmp_path / "m", lambda header: None, w)
        refused(tmp_path / "m", words)


def test_a_missing_file_is_an_oserror_with_its_name(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        load(tmp_path / "none")
    assert caught.value.filename == str(tmp_path / "none")


class FirstColumn(FeatureMap):
    """A map of a user's own."""

    takes = (DenseRows,)
    dim = 1

    def __repr__(self):
        return "FirstColumn()"

    def bound(self, batch):
        return 1

    def fill(self, batch, rows, block):
        for j, row in enumerate(rows):
            block.append(j, np.array([0]), batch.values[row, :1])


def test_a_users_own_map_is_named_when_loading(tmp_path):
    shape = Shape("dense rows", n_features=2)
    Model(FirstColumn(), shape, np.array([[2.0]]), np.array([1.0]), np.array([0, 1])).save(tmp_path / "m")
    refused(tmp_path / "m", "features={'Name': Name}")
    loaded = load(tmp_path / "m", features={"FirstColumn": FirstColumn})
    assert loaded.decision_function(np.array([[3.0, 9.0], [-1.0, 9.0]])).tolist() == [7.0, -1.0]


def test_loaded_weights_are_mapped_not_read(tmp_path):
    make().save(tmp_path / "m")
    w = load(tmp_path / "m").w
    base = w
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


@pytest.mark.parametrize(
    ("phi", "wanted"), [("Linear()", 1), ("Linear().indexed()", 2), ("0.5 * NGrams(2, bits=4).normalized()", 4)]
)
def test_a_file_has_the_earliest_format_that_tells_what_it_means(tmp_path, phi, wanted):
    X = ["a b", "c d"] if "NGrams" in phi else np.eye(2)
    LinearSVM(phi).fit(X, [1, -1]).model_.save(tmp_path / "m")
    assert Stored(tmp_path / "m").record["format"] == wanted
