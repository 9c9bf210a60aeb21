"""Maps of the columns of a table, against features written down in plain Python."""

import datetime
from itertools import pairwise

import numpy as np
import pytest

from dotadd import parse
from dotadd.data.batches import Strings
from dotadd.data.table import Cells, Table
from dotadd.errors import FeatureError
from dotadd.features import Category, Column, Date, NGrams, Number, Shape, Spectrum, WordNGrams, cells
from dotadd.features.checks import check_feature_map, materialize

JOBS = ["nurse", "cook", "", "nurse", "pilot"]
SITES = ["a", "b", "a", "a", "b"]
TEXTS = ["the cat sat", "on the mat", "", "the the dog", "Zürich"]
AGES = [31.5, np.nan, 0.0, -2.0, 1e6]
DATES = ["2024-03-31 07:15", "1999-12-31", "", "2000-02-29T23:59:59Z", "2023-01-01 00:00:00.000"]


def text(values):
    return Cells(strings=Strings.from_list(values))


TABLE = Table.from_columns(
    {
        "job": text(JOBS),
        "site": text(SITES),
        "text": text(TEXTS),
        "age": Cells(numbers=np.array(AGES)),
        "income": Cells(numbers=np.array([1.0, 2.0, np.nan, 4.0, 5.0])),
        "when": text(DATES),
        "dna": text(["ACGT", "ACG", "TTTTT", "A", "GATTACA"]),
    }
)

MAPS = [
    'Column("text", WordNGrams((1, 2), bits=10))',
    'Column("text", NGrams((2, 3), bits=8).normalized())',
    'Column("dna", Spectrum(2))',
    'Column("dna", Spectrum(2).indexed())',
    'Column("text", WordNGrams(1).indexed()).normalized()',
    'Number("age", "income")',
    'Number("age", "income", missing="zero")',
    'Category("job")',
    'Category("job", "site", bits=6)',
    'Category("job", "site").indexed()',
    'Category("job") * Category("site")',
    '(Category("job") * Category("site") * Category("text")).hashed(9)',
    'Category("job", "text", bits=8) * Category("site", bits=8)',
    '(Category("job") * Category("site")).indexed("sorted_array")',
    'Date("when")',
    'Column("text", WordNGrams((1, 2), bits=10).log().tfidf())',
    'Column("text", WordNGrams(1, bits=10)).frequent(min_df=2).tfidf()',
    'Number("age", "income").scaled("std")',
    'Number("income", missing="zero").scaled("robust") + Category("job", bits=6).idf()',
    '2.0 * Number("age") + Category("job", bits=5) + Column("text", NGrams(3, bits=7)) + 0.5 * Date("when")',
]


@pytest.mark.parametrize("expression", MAPS)
def test_maps_keep_the_contract_and_are_what_they_say(expression):
    phi = parse(expression)
    assert parse(repr(phi)) == phi
    resolved = phi.resolve(Shape.of(TABLE)).learn(TABLE)
    check_feature_map(resolved, TABLE)


def test_a_column_is_the_map_of_its_strings():
    for phi in (WordNGrams((1, 2), bits=12), NGrams(3, bits=9).normalized(), WordNGrams(1, bits=8, binary=True)):
        found, expected = materialize(Column("text", phi), TABLE), materialize(phi, Strings.from_list(TEXTS))
        assert abs(found - expected).max() == 0.0
    found = materialize(Column("dna", Spectrum(2)), TABLE)
    assert abs(found - materialize(Spectrum(2), TABLE.strings("dna").together())).max() == 0.0


def test_numbers_stand_in_their_slots_and_missing_ones_have_a_slot_of_their_own():
    dense = materialize(Number("age", "income"), TABLE).toarray()
    expected = np.array([[31.5, 1, 0, 0], [0, 2, 1, 0], [0, 0, 0, 1], [-2, 4, 0, 0], [1e6, 5, 0, 0]])
    assert np.array_equal(dense, expected)
    assert np.array_equal(materialize(Number("age", "income", missing="zero"), TABLE).toarray(), expected[:, :2])
    bad = Number("age", "income", missing="refuse").check(TABLE)
    assert (bad.row, "'age'" in bad.message) == (1, True)
    names = Number("age", "income").fit(TABLE).get_feature_names_out()
    assert names.tolist() == ["age", "income", "age=missing", "income=missing"]


def same_slots(phi, keys):
    """Whether rows have the same slot exactly where they have the same key, for maps of one non-zero a row."""
    matrix = materialize(phi, TABLE)
    assert (np.diff(matrix.indptr) == 1).all()
    slots = matrix.indices.tolist()
    return [a == b for a in slots for b in slots] == [a == b for a in keys for b in keys]


def test_equal_values_have_equal_slots():
    assert same_slots(Category("job"), JOBS)
    assert same_slots(Category("job") * Category("site"), list(zip(JOBS, SITES, strict=True)))
    triples = Category("job") * Category("site") * Category("text")
    assert same_slots(triples, list(zip(JOBS, SITES, TEXTS, strict=True)))
    twice = Table.from_columns({"a": text(["x"]), "b": text(["x"])})
    assert materialize(Category("a", "b"), twice).nnz == 2, "the same word in another column is another value"


def test_an_index_has_a_slot_for_each_value_of_training_and_none_for_others():
    phi = parse('Category("job").indexed()').resolve(Shape.of(TABLE)).learn(TABLE)
    assert phi.dim == len(set(JOBS))
    others = Table.from_columns({"job": text(["astronaut", "cook"])})
    assert np.diff(materialize(phi, others).indptr).tolist() == [0, 1]


@pytest.mark.parametrize("first", ["0001-01-01", "1899-12-28", "1999-12-20", "2000-02-20", "2023-12-30"])
def test_dates_are_those_of_the_calendar(first):
    days = [datetime.date.fromisoformat(first) + datetime.timedelta(k) for k in range(70)]
    cells = [f"{day.isoformat()} {k % 24:02}:{k % 60:02}" for k, day in enumerate(days)]
    batch = Table.from_columns({"when": text(cells)})
    phi = Date("when")
    assert phi.check(batch) is None
    names = phi.fit(batch).get_feature_names_out()
    matrix = materialize(phi, batch)
    found = [set(names[slots]) for slots in np.split(matrix.indices, matrix.indptr[1:-1])]
    expected = [
        {f"when:hour={k % 24}", f"when:weekday={day.strftime('%A')}", f"when:month={day.month}"}
        for k, day in enumerate(days)
    ]
    assert found == expected


@pytest.mark.parametrize(
    "wrong",
    ["2024-13-01", "2023-02-29", "1900-02-29", "2024-1-1", "24-01-01", "2024/01/01", "2024-01-01 24:00", "2024-01-01 7",
     "2024-01-01 07:60", "2024-04-31", "hello", "0000-01-01", "2024-01-0", "2024-01-01 "],
)  # fmt: skip
def test_what_is_no_date_is_refused_with_its_row(wrong):
    batch = Table.from_columns({"when": text(["2024-01-01", wrong])})
    bad = Date("when").check(batch)
    assert bad.row == 1
    assert repr(wrong) in bad.message
    assert "'when'" in bad.message


NAMED = [
    'Category("job").indexed()', 'Category("job", "site").indexed("sorted_array")',
    '(Category("job") * Category("site")).indexed()', '(Category("text", "job") * Category("site")).indexed().idf()',
    '2.0 * Category("job", "text").indexed("trie")',
]  # fmt: skip
VALUES = {"job": JOBS, "site": SITES, "text": TEXTS}


@pytest.mark.parametrize("expression", NAMED)
@pytest.mark.parametrize("cuts", [[5], [1, 3], [0, 2, 4]])
def test_an_index_knows_what_its_values_are_called(expression, cuts):
    phi = parse(expression)
    learner, again = phi.resolve(Shape.of(TABLE)).learner(), True
    while again:
        for first, stop in pairwise([0, *cuts, 5]):
            learner.see(TABLE.slice(first, stop))
        again = learner.again()
    phi = learner.done()
    for known in (phi, parse(expression).resolve(Shape.of(TABLE)).with_state(phi.state())):
        names = np.array(known.names(np.arange(known.dim), None), object)
        matrix = materialize(known, TABLE)
        found = [set(names[slots]) for slots in np.split(matrix.indices, matrix.indptr[1:-1])]
        inside = phi
        while not hasattr(inside, "crosses"):
            inside = inside.phi
        rows = [{name: f"{name}={values[row]}" for name, values in VALUES.items()} for row in range(5)]
        assert found == [{" x ".join(row[name] for name in cross) for cross in inside.crosses} for row in rows]


@pytest.mark.parametrize("limit", ["MOST_NAMED", "MOST_LETTERS"])
def test_the_first_values_have_names_wherever_rows_are_cut(monkeypatch, limit):
    monkeypatch.setattr(cells, limit, {"MOST_NAMED": 7, "MOST_LETTERS": 41}[limit])
    batch = Table.from_columns({"job": text([f"{k % 12}" for k in range(100)])})
    phi = parse('Category("job").indexed()')
    expected = [f"job={k}" if k < {"MOST_NAMED": 7, "MOST_LETTERS": 8}[limit] else None for k in range(12)]
    for cuts in ([], [3], [5, 6, 50]):
        learner = phi.learner()
        for first, stop in pairwise([0, *cuts, 100]):
            learner.see(batch.slice(first, stop))
        assert learner.done().names(np.arange(12), None) == expected
    with pytest.raises(FeatureError, match="has no names"):
        phi.fit(batch).get_feature_names_out()


def test_a_model_of_before_has_no_names_and_the_same_features():
    phi = parse(NAMED[1]).learn(TABLE)
    before = {name: array for name, array in phi.state().items() if not name.startswith("phi.")}
    old = parse(NAMED[1]).with_state(before)
    assert old.names(np.arange(old.dim), None) == [None] * old.dim
    assert abs(materialize(old, TABLE) - materialize(phi, TABLE)).max() == 0.0


def test_features_are_called_by_their_values():
    phi = parse('Category("job") + Category("job") * Category("site") + Number("age") + Date("when")')
    rows = np.array([0, 0, 0, 0, 1, 2])
    names, beyond = phi.origins(TABLE, rows, np.array([0, 1, 2, 3, 3, 99]))
    assert names.text[:4].tolist() == [b"job=nurse", b"job=nurse x site=a", b"age", b"when:hour=7"]
    assert names.text[4] == b"when:weekday=Friday", "there is an indicator in the place of the number"
    assert beyond[-1] > 0


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("Number()", "needs the name of a column"),
        ('Number("a", "a")', "given a column twice"),
        ('Number("a", missing="mean")', "missing has to be one of"),
        ('Category("a") * Category("a")', "crosses a column with itself"),
        ('Category("a") * Category("b") * Category("c") * Category("d")', "at most 3 categories"),
        ('Category("a") * Number("b")', "categories also with categories"),
        ('Column("a", Number("b"))', "needs a map of strings"),
        ('Column("a", Linear())', "needs a map of strings"),
        ('Column("", NGrams(3))', "name of a column has to be text"),
        ('Number("a") + NGrams(3)', "cannot be stacked"),
    ],
)
def test_what_cannot_be_meant_is_refused(expression, complaint):
    with pytest.raises(FeatureError, match=complaint):
        parse(expression)


def test_reads_tells_which_columns_are_wanted_and_as_what():
    phi = parse('Column("a", NGrams(3)) + Number("b", "c") + (Category("c") * Category("d")).normalized()')
    assert phi.reads == {"a": "text", "b": "number", "c": "both", "d": "text"}
    assert parse("NGrams(3)").reads == {}


def test_parameters_can_be_set():
    phi = parse('Column("text", NGrams(3)) + Category("job")')
    assert phi.get_params()["text__n"] == 3
    assert repr(phi.set_params(text__n=4, category__bits=7)) == "Column('text', NGrams(4)) + Category('job', bits=7)"
