"""Virtual examples, never stored: the experiments of COFFIN's section 3.2, and MNIST, as a section of a page.

    python -m benchmarks.paper.virtual_examples [--parts faces,speed,digits,picture] [--write docs/results.md]
        [--draw docs] [--tiny]

A page without the section gets it at its end; later runs replace the tables in it and leave the rest alone. With
--draw, faces has a picture of its figures, and picture shows a few virtual examples of a drawn face.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.paper import virtual_digits, virtual_faces, virtual_speed
from benchmarks.paper.coffin import with_section
from dotadd.data.batches import Images
from dotadd.data.transforms import parse
from dotadd.report.drawing import draw_images

SHOWN = 12  # virtual examples in the picture
COMMAND = "python -m benchmarks.paper.virtual_examples --write docs/results.md --draw docs"


def picture(*, tiny: bool = False, page: Path | None = None, pictures: Path | None = None) -> None:
    """A drawn face as it is, and some of its changes, picked at random."""
    if pictures is None:
        return
    transforms = parse(virtual_faces.TINY_TRANSFORMS if tiny else virtual_faces.TRANSFORMS)
    rng = np.random.default_rng(3)
    others = np.setdiff1d(rng.permutation(len(transforms)), [transforms.identity])
    which = np.r_[transforms.identity, rng.choice(others, SHOWN - 1, replace=False)]
    made = transforms.apply(Images(drawn_face()[None]), np.zeros(SHOWN, np.int64), which)
    assert isinstance(made, Images)
    names = transforms.names()
    draw_images(made.values, [names[k] for k in which], pictures / "virtual_examples.svg")


def drawn_face() -> np.ndarray:
    """A face of circles and lines, as large as those of LFW: pictures of people stay where they are."""
    fine = 10  # it is drawn so many times as large, and then made smaller
    y, x = np.mgrid[: 24 * fine, : 24 * fine] / fine
    face = np.where((x - 12) ** 2 / 81 + (y - 12) ** 2 / 121 < 1, 200.0, 70.0)
    face[(y < 5.5) & (face > 100)] = 40  # hair
    for middle in (8.5, 15.5):
        face[(x - middle) ** 2 / 4 + (y - 10) ** 2 < 1] = 235
        face[(x - middle) ** 2 + (y - 10) ** 2 < 0.7] = 30
        face[(abs(x - middle) < 2.2) & (abs(y - 7.9 - 0.1 * abs(x - middle)) < 0.4)] = 60
    face[(abs(x - 12) < 0.5) & (y > 10.5) & (y < 14)] = 160
    face[(abs(x - 12) < 3.6) & (abs(y - 18 + 0.09 * (x - 12) ** 2) < 0.6)] = 110  # mouth
    small = face.reshape(24, fine, 24, fine).mean(axis=(1, 3))
    return np.round(small).astype(np.uint8)


PARTS = {"faces": virtual_faces.main, "speed": virtual_speed.main, "digits": virtual_digits.main, "picture": picture}


def section() -> str:
    """The section without its numbers. What was measured, and how, is what the modules say."""
    text = [
        "## Virtual examples\n",
        "COFFIN's section 3.2: a classifier becomes invariant by training on changed copies, made on demand.\n",
        f"    {COMMAND}\n",
        "![A drawn face and some of its virtual examples](virtual_examples.svg)\n",
    ]
    for module, tables, figure in (
        (virtual_faces, ("virtual_faces", "virtual_memory"), "![auROC and memory](virtual_faces.svg)\n"),
        (virtual_speed, ("virtual_speed",), ""),
        (virtual_digits, ("virtual_digits",), ""),
    ):
        assert module.__doc__ is not None
        heading, _, rest = module.__doc__.partition("\n\n")
        text.append(f"### {heading.rstrip('.')}\n\n{rest}")
        text += [f"<!-- {name} -->\n<!-- /{name} -->\n" for name in tables]
        text += [figure] if figure else []
    return "\n".join(text)


def main(
    parts: Sequence[str] = tuple(PARTS), *, tiny: bool = False, page: Path | None = None, pictures: Path | None = None
) -> None:
    """All parts, one after the other."""
    with_section(page, section())
    for part in parts:
        PARTS[part](tiny=tiny, page=page, pictures=pictures)
        print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="some of %(default)s")
    parser.add_argument("--write", type=Path, help="a page for the tables, to be kept up to date")
    parser.add_argument("--draw", type=Path, help="the folder for the pictures, as SVG")
    parser.add_argument("--tiny", action="store_true", help="a few hundred made-up images")
    arguments = parser.parse_args()
    parts = arguments.parts.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        parser.error(f"there is no part {unknown[0]}; choose among {', '.join(PARTS)}")
    main(parts, tiny=arguments.tiny, page=arguments.write, pictures=arguments.draw)
