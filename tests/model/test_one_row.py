"""One short example takes no detour: the answers are those of the way that large data goes."""

import pickle

import numpy as np
import pytest

from dotadd import KernelSVM, LinearSVM, load
from dotadd._util import memory
from dotadd.data.batches import Strings
from dotadd.model import file, kernel
from dotadd.problem.examples import InMemory

TEXTS = ["buy now", "cheap pills now", "lunch at noon", "the meeting is at noon", "buy cheap", "see you at lunch"]
Y = ["spam", "spam", "ham", "ham", "spam", "ham"]
MAPS = ["BagOfWords()", "BagOfWords().tfidf()", "NGrams((2, 3)).normalized()", "Spectrum(2, alphabet='bytes')"]
MORE = [*MAPS, "BagOfWords().tfidf() + 0.5 * NGrams((2, 3)).normalized()", "AllSubstrings(decay=0.8)"]


@pytest.fixture(params=MAPS)
def model(request, tmp_path):
    LinearSVM(request.param, random_state=0).fit(TEXTS, Y).model_.save(tmp_path / "m")
    return load(tmp_path / "m")


def test_a_handful_of_rows_is_scored_without_a_thread_and_with_the_same_bits(model, monkeypatch):
    def no_threads(*_):
        raise AssertionError("threads for a handful")

    with monkeypatch.context() as patched:
        patched.setattr(file, "ThreadPoolExecutor", no_threads)
        alone = [model.decision_function([text])[0] for text in TEXTS]
    monkeypatch.setattr(file, "HANDFUL", 0)
    assert np.array_equal(alone, model.decision_function(TEXTS))
    assert model.predict(["buy now"]).tolist() == ["spam"]


def test_small_and_large_chunks_stay_in_order(model, monkeypatch):
    from dotadd.sources.base import Chunk, Source
    from dotadd.sources.memory import MemorySource, batch_from_list

    class Some(Source):
        name = "some"

        def chunks(self, nbytes=0):
            for first, count in ((0, 1), (1, 3), (4, 1), (5, 1)):
                yield Chunk(batch_from_list(TEXTS[first : first + count]), None, None, first)

    monkeypatch.setattr(file, "HANDFUL", 40)  # bytes: a text and its offsets, and not three of them
    expected = model.decision_function(MemorySource(Chunk(batch_from_list(TEXTS), None, None, 0)))
    assert np.array_equal(model.decision_function(Some()), expected)


@pytest.mark.parametrize("model", MORE, indirect=True)
def test_rows_that_are_gone_through_once_have_the_outputs_of_those_that_come_again(model):
    batch, ws = Strings.from_list(TEXTS), model._weights()
    (expected,) = InMemory(model.phi, batch).dot(ws)
    once = InMemory(model.phi, batch, once=True)
    assert np.array_equal(once.dot(ws)[0], expected)
    assert np.array_equal(once.dot(ws)[0], expected)


@pytest.mark.parametrize("model", MORE, indirect=True)
def test_nobody_asks_how_much_memory_is_free_for_the_sake_of_a_short_text(model, monkeypatch):
    monkeypatch.setattr(memory, "available", None)
    assert model.predict(["buy now"]).tolist() == ["spam"]


def test_another_w_is_another_answer(model):
    before = model.decision_function(["buy now"])
    model.w = np.array(model.w) * 2.0
    assert model.decision_function(["buy now"]) - model.intercept == pytest.approx(2.0 * (before - model.intercept))


@pytest.mark.parametrize("phi", MAPS)
@pytest.mark.parametrize("labels", [Y, ["a", "b", "c", "a", "b", "c"]])
def test_a_kernel_machine_sums_up_its_support_vectors_once(phi, labels, tmp_path, monkeypatch):
    KernelSVM(phi, random_state=0).fit(TEXTS, labels).model_.save(tmp_path / "m")
    model = load(tmp_path / "m")
    kept = model.decision_function(TEXTS)
    with monkeypatch.context() as patched:
        patched.setattr(kernel.KernelModel, "_factors", None)  # nothing is summed up again
        alone = np.array([model.decision_function([text])[0] for text in TEXTS])
    assert np.allclose(alone, kept, rtol=1e-9, atol=1e-9)
    assert pickle.loads(pickle.dumps(model))._kept is None
    monkeypatch.setattr(kernel, "KEPT_SLOTS", 0)
    other = load(tmp_path / "m")
    assert np.allclose(other.decision_function(TEXTS), kept, rtol=1e-12, atol=1e-12)
    assert other._kept is None


def test_the_rbf_kernel_of_a_map_has_no_such_w(tmp_path):
    KernelSVM("rbf", of="BagOfWords()", random_state=0).fit(TEXTS, Y).model_.save(tmp_path / "m")
    model = load(tmp_path / "m")
    assert [model.predict([text])[0] for text in TEXTS] == Y
    assert model._kept is None
