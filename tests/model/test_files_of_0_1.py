"""Model files that version 0.1 wrote, one of each kind, load and give the scores that they gave then.

`files_0_1/said.json` has the rows that each was trained on, and the scores of 0.1 for them.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import dotadd
from dotadd import parse
from dotadd.features.expression import maps_of_0_1
from dotadd.solvers.checkpoint import Checkpoint, CheckpointError

FILES = Path(__file__).parent / "files_0_1"
SAID = json.loads((FILES / "said.json").read_text())


def test_no_file_is_left_out():
    assert {path.stem for path in FILES.glob("*.dotadd")} == set(SAID)


@pytest.mark.parametrize("name", SAID)
def test_a_file_of_0_1_loads_and_predicts_as_then(name):
    said = SAID[name]
    rows = said["rows"]
    if not isinstance(rows[0], str):
        rows = np.array(rows, np.uint8 if name == "lbp" else np.float64)
    model = dotadd.load(FILES / f"{name}.dotadd")
    assert model.read_as == {}  # which 0.1 did not remember
    np.testing.assert_allclose(model.decision_function(rows), said["scores"], rtol=1e-4, atol=2e-6)
    if said["features"] is not None:
        assert model.phi == parse(said["features"], maps_of_0_1()).resolve(model.shape)


def test_words_of_0_1_stay_as_they_were_when_a_model_is_saved_again(tmp_path):
    said = SAID["stack_of_normalized"]
    dotadd.load(FILES / "stack_of_normalized.dotadd").save(tmp_path / "again.dotadd")
    again = dotadd.load(tmp_path / "again.dotadd")
    np.testing.assert_allclose(again.decision_function(said["rows"]), said["scores"], rtol=1e-4, atol=2e-6)
    assert "BagOfWords(bits=6, unicode=False)" in repr(again.phi)


def test_a_checkpoint_on_text_that_was_read_otherwise_is_refused(tmp_path, monkeypatch):
    checkpoint = Checkpoint(str(tmp_path / "c"), problem={"features": "NGrams(3)"})
    with monkeypatch.context() as before:
        before.setattr("dotadd.features.expression.reads_text", lambda expression: False)
        checkpoint.save({}, {})
    with pytest.raises(CheckpointError, match="text was None, and is Unicode"):
        checkpoint.load()
    checkpoint.save({}, {})
    checkpoint.load()
