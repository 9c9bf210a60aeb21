"""The experiments with gapped k-mers run, on tiny data, and find what they should."""

import sys
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.paper import gkm


def rows_of(text, name):
    """The lines of a table on a page, each as a dict by column."""
    table = text.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0].strip().splitlines()
    columns, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in table)
    return [dict(zip(columns, line, strict=True)) for line in lines]


def test_the_machine_scores_as_one_on_the_kernel_by_pairs_of_lmers(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("# Before\n")
    gkm.main(tiny=True, page=page, logo=tmp_path / "logo.svg")
    drawn = ElementTree.parse(tmp_path / "logo.svg").getroot()
    assert len(drawn) == gkm.DRAWN
    text = page.read_text()
    assert text.startswith("# Before\n\n## Gapped k-mers in the primal\n")
    peers = rows_of(text, "gkm_peer")
    assert [row["data"] for row in peers] == list(gkm.NAMES)
    for row in peers:
        assert float(row["Pearson, -d 4"]) >= 0.9999
        assert float(row["kernel off by"]) <= 1e-5
        assert abs(float(row["auROC"]) - float(row["auROC of LS-GKM"])) <= 0.001
    growth = rows_of(text, "gkm_growth")
    assert [int(row["sequences"]) for row in growth] == list(gkm.TINY_SIZES)
    assert all(float(row["gap"]) <= 0.01 for row in growth)
    loaded = rows_of(text, "gkm_loaded")
    assert [row["kernel_type"] for row in loaded] == ["gkm_esttrunc"] * 2 + ["wgkm"] * 2
    assert all(float(row["off by"]) <= 1e-4 for row in loaded)


def test_planted_words_are_in_every_other_sequence_alone():
    sequences, y = gkm.simulated(50)
    again, _ = gkm.simulated(50)
    assert (sequences.letters == again.letters).all()
    assert y.tolist() == [0, 1] * 25
