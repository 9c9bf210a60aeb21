"""What phi learns is the same from memory, from files read in pieces, and from parts that know their own rows."""

import numpy as np
import pytest

from dotadd import LinearSVM
from dotadd.cluster.engine import LocalEngine
from dotadd.cluster.fitting import agree
from dotadd.cluster.shard import Shard
from dotadd.data.batches import DenseRows, Strings
from dotadd.data.table import Cells, Table
from dotadd.errors import FeatureError
from dotadd.features import Shape, parse
from dotadd.sources import open as open_source
from dotadd.sources.base import Chunk
from dotadd.sources.memory import MemorySource

RNG = np.random.default_rng(0)
WORDS = np.array(["the", "cat", "dog", "über", "кот", "犬", "x9"])
TEXTS = [" ".join(RNG.choice(WORDS, n)) for n in RNG.integers(0, 40, 400)]
NUMBERS = RNG.normal(size=(400, 4)) * [1.0, 1e6, 1e-3, 0.0] + [0.0, 1e9, 0.0, 2.0]
LABELS = np.arange(400) % 2
TEXT_MAPS = [
    "WordNGrams((1, 2), bits=14).tfidf()", "BagOfWords(bits=12).log().tfidf(smooth=False)",
    "BagOfWords(bits=12).frequent(min_df=0.3).tfidf() + NGrams(2, bits=8).scaled('robust')",
]  # fmt: skip
HOLES = np.where(RNG.random((400, 4)) < [0.3, 0.5, 0.01, 0.9], np.nan, NUMBERS)
TABLE_MAPS = [f"(Number('a', 'b') + Number('c', 'd')).scaled({how!r})" for how in ("std", "max", "robust")]
NUMBER_MAPS = ["Linear().scaled('std')", "Linear().scaled('max')", "Linear().scaled('robust')"]


def batch_of(text):
    if text in TABLE_MAPS:
        return Table.from_columns({name: Cells(numbers=HOLES[:, k]) for k, name in enumerate("abcd")})
    return Strings.from_list(TEXTS) if text in TEXT_MAPS else DenseRows(NUMBERS)


def in_memory(text):
    batch = batch_of(text)
    return parse(text).resolve(Shape.of(batch)).learn(batch)


def assert_same(phi, other):
    assert repr(phi) == repr(other)
    mine, theirs = phi.state(), other.state()
    assert mine.keys() == theirs.keys()
    for name in mine:
        if name.endswith("center"):
            np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-15)
        else:
            np.testing.assert_array_equal(mine[name], theirs[name])


@pytest.mark.parametrize("parts", [1, 3, 6])
@pytest.mark.parametrize("text", [*TEXT_MAPS, *NUMBER_MAPS, *TABLE_MAPS])
def test_parts_learn_together_what_one_machine_learns(text, parts):
    batch, owner = batch_of(text), RNG.integers(0, parts, 400)
    if parts > 1:
        owner[owner == 0] = 1  # a part without rows
    members = []
    for part in range(parts):
        mine = np.flatnonzero(owner == part)
        source = MemorySource(Chunk(batch.take(mine), LABELS[mine], None, 0)) if len(mine) else None
        members.append(Shard(source, 1 << 30, number=part))
    task = agree(LocalEngine(members), lambda chunk, shape: parse(text).resolve(shape))
    assert_same(task.phi, in_memory(text))


@pytest.mark.parametrize("text", [*TEXT_MAPS, *NUMBER_MAPS])
def test_parts_that_read_their_files_again_learn_the_same(text, tmp_path):
    paths = []
    for part, rows in enumerate(np.array_split(np.arange(400), 3)):
        paths.append(tmp_path / f"{part}.{'tsv' if text in TEXT_MAPS else 'csv'}")
        if text in TEXT_MAPS:
            lines = ["label\ttext", *(f"{LABELS[k]}\t{TEXTS[k]}" for k in rows)]
        else:
            lines = ["label,a,b,c,d", *(",".join(map(repr, [int(LABELS[k]), *NUMBERS[k].tolist()])) for k in rows)]
        paths[-1].write_text("\n".join(lines) + "\n")
    options = {"column": "text"} if text in TEXT_MAPS else {"dtype": np.float64}
    members = [
        Shard(open_source(path, label="label", **options), 3_000, number=part) for part, path in enumerate(paths)
    ]
    task = agree(LocalEngine(members), lambda chunk, shape: parse(text).resolve(shape))
    assert members[0].rows.loaded == 0, "the files have to be larger than the memory of a part"
    assert_same(task.phi, in_memory(text))


def test_maps_that_number_features_are_still_refused():
    batch = Strings.from_list(TEXTS)
    engine = LocalEngine([Shard(MemorySource(Chunk(batch, LABELS, None, 0)), 1 << 30)])
    for text in ("NGrams(2).indexed()", "NGrams(2).indexed().tfidf()", "NGrams(2).tfidf().indexed() + NGrams(3)"):
        with pytest.raises(FeatureError, match="numbers features as it meets them"):
            agree(engine, lambda chunk, shape, text=text: parse(text).resolve(shape))


@pytest.mark.parametrize("text", [*TEXT_MAPS[:2], NUMBER_MAPS[0]])
def test_a_model_from_disk_has_what_one_in_memory_has(text, tmp_path, recwarn):
    path = tmp_path / "rows.arrow"
    import dotadd

    X = TEXTS if text in TEXT_MAPS else NUMBERS
    dotadd.convert(open_source(X, LABELS), path)
    svm = LinearSVM(text, memory="4kB", random_state=0, max_passes=2).fit(path)
    assert svm.result_.solver == "stream"
    assert_same(svm.model_.phi, in_memory(text))
