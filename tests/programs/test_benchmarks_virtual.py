"""The experiments with virtual examples run, on tiny data, and find what they should."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import runs
from benchmarks.paper import virtual_digits, virtual_examples, virtual_faces, virtual_speed
from dotadd.errors import DotaddError
from dotadd.report.drawing import draw_images, images_figure


@pytest.fixture
def here(monkeypatch):
    """Runs that would have processes of their own are made in this one, which is faster."""

    def call(module, job):
        experiment = {"virtual_faces": virtual_faces, "virtual_digits": virtual_digits}[module.rpartition(".")[2]]
        job = json.loads(json.dumps(job))
        return json.loads(json.dumps(asdict(experiment.work(experiment.Run(**job)))))

    monkeypatch.setattr(runs, "call", call)


def rows_of(text, name):
    """The lines of a table on a page, each as a dict by column."""
    table = text.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0].strip().splitlines()
    columns, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in table)
    return [dict(zip(columns, line, strict=True)) for line in lines]


def test_a_page_gets_the_section_once_with_all_tables_and_pictures(tmp_path, here, capsys):
    page = tmp_path / "page.md"
    page.write_text("# Before\n")
    virtual_examples.main(tiny=True, page=page, pictures=tmp_path)
    text = page.read_text()
    assert text.startswith("# Before\n\n## Virtual examples\n")

    faces = {tuple(row[name] for name in virtual_faces.NAMES): row for row in rows_of(text, "virtual_faces")}
    assert list(faces) == list(dict.fromkeys(virtual_faces.names_of(run) for run in virtual_faces.cases(tiny=True)
                                             if not run.stored))  # fmt: skip
    changes = virtual_faces.TINY_TRANSFORMS
    for originals in ("20", "100", "all"):
        alone, virtual = (faces["LBP()", originals, some] for some in ("none", changes))
        assert float(virtual["auROC, distorted"]) > float(alone["auROC, distorted"]) + 0.1, "virtual examples help"
        assert int(virtual["examples"].replace(",", "")) == 75 * int(alone["examples"].replace(",", ""))
        assert 0.0 <= float(virtual["gap"]) <= virtual_faces.TOLERANCE

    kept = rows_of(text, "virtual_memory")
    assert [row["times less"] for row in kept][-1] == "40x", "the paper's"
    assert all(float(row["times less"].strip("x")) > 1 for row in kept)
    assert int(kept[0]["peak precomputed, MB"].replace(",", "")) > 0, "the smallest is also trained from what is stored"

    speed = rows_of(text, "virtual_speed")
    assert [(row["images"], row["operation"]) for row in speed] == [
        (size, name) for size in virtual_speed.ORIGINALS for name in ("DOT", "ADD")
    ]
    assert all(float(row["times as long"].strip("x")) > 0 for row in speed)

    alone, virtual, *linear = rows_of(text, "virtual_digits")
    assert float(virtual["test error"].strip(" %")) < float(alone["test error"].strip(" %")) - 5
    assert len(linear) == 2

    for name in ("virtual_faces.svg", "virtual_examples.svg"):
        assert (tmp_path / name).read_text().startswith("<?xml")
    capsys.readouterr()
    virtual_examples.main(["speed"], tiny=True, page=page)
    assert page.read_text().count("## Virtual examples") == 1
    assert [row["examples"] for row in rows_of(page.read_text(), "virtual_speed")] == [row["examples"] for row in speed]


def test_a_run_has_the_same_outcome_in_a_process_of_its_own():
    run = virtual_faces.Run(20, None, 0.1, tiny=True)
    found, expected = virtual_faces.call(run), virtual_faces.work(run)
    assert (found.distorted, found.undistorted, found.accuracy) == pytest.approx(
        (expected.distorted, expected.undistorted, expected.accuracy), abs=1e-6
    )
    assert found.peak > 50e6


def test_stored_features_give_the_classifier_that_features_on_demand_give(here):
    mine, stored = (
        virtual_faces.call(virtual_faces.Run(20, "translate(1)", 0.1, stored=stored, tiny=True))
        for stored in (False, True)
    )
    assert mine.distorted == pytest.approx(stored.distorted, abs=0.02)
    assert mine.precomputed == stored.precomputed == mine.examples * 4 * (14**2 + 6**2 + 2**2)


def test_nobody_is_in_the_training_and_in_the_test_faces():
    crosses = virtual_faces._crosses(np.random.default_rng(0))
    faces = virtual_faces.load(tiny=True)
    trained = {image.tobytes() for image in faces.images.values}
    tested = {image.tobytes() for image in faces.test.values}
    by_image = {image.tobytes(): person for image, _, person in zip(*crosses, strict=True)}
    assert not {by_image[image] for image in trained} & {by_image[image] for image in tested}
    assert len(faces.test) + len(faces.images) == len(by_image) == 400
    assert (faces.distorted.values != faces.test.values).any()


def test_without_the_faces_one_line_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(virtual_faces, "FILE", tmp_path / "nowhere.npz")
    with pytest.raises(SystemExit, match="DOTADD_DATA"):
        virtual_faces.load()


def test_a_picture_has_each_image_with_its_name_and_empty_places_at_the_end(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (5, 6, 4), np.uint8)
    names = [f"number {k} of a name that is long enough for several lines" for k in range(5)]
    figure = images_figure(images, names, columns=3)
    assert [len(place.images) for place in figure.axes] == [1, 1, 1, 1, 1, 0]
    for place, image, name in zip(figure.axes, images, names, strict=False):
        np.testing.assert_array_equal(place.images[0].get_array(), image)
        assert place.texts[0].get_text().replace("\n", " ") == name
    for kind, magic in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        path = tmp_path / f"images.{kind}"
        draw_images(images, names, path, columns=3, title="a title")
        assert path.read_bytes().startswith(magic)


@pytest.mark.parametrize(
    ("images", "names", "file", "message"),
    [
        (np.zeros((2, 3, 3)), ["one"], "a.svg", "1 names for 2 images"),
        (np.zeros((3, 3)), ["one"], "a.svg", "images, height, width"),
        (np.zeros((0, 3, 3)), [], "a.svg", "images, height, width"),
        (np.zeros((1, 3, 3)), ["one"], "a.txt", "svg"),
    ],
)
def test_what_cannot_be_drawn_is_refused_and_nothing_is_written(tmp_path, images, names, file, message):
    with pytest.raises(DotaddError, match=message):
        draw_images(images, names, tmp_path / file)
    assert not list(tmp_path.iterdir())
