"""Rational kernels: the experiments of Allauzen, Cortes and Mohri, and lattices of recognisers, as a section of a page.

    python -m benchmarks.paper.rational_kernels [--parts training,size,lattices] [--write docs/results.md]
        [--only gappy] [--repeat N] [--tiny]

A page without the section gets it at its end; later runs replace the tables in it and leave the rest alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.paper import rational_lattices, rational_size, rational_training
from benchmarks.paper.coffin import with_section

COMMAND = "python -m benchmarks.paper.rational_kernels --write docs/results.md"
PARTS = {
    "training": (rational_training, ("rational_training",)),
    "size": (rational_size, ("rational_size", "rational_forms")),
    "lattices": (rational_lattices, ("rational_lattices",)),
}


def section() -> str:
    """The section without its numbers. What was measured, and how, is what the modules say."""
    text = ["## Rational kernels\n", f"    {COMMAND}\n"]
    for module, tables in PARTS.values():
        assert module.__doc__ is not None
        heading, _, rest = module.__doc__.partition("\n\n")
        text.append(f"### {heading.rstrip('.')}\n\n{rest}")
        text += [f"<!-- {name} -->\n<!-- /{name} -->\n" for name in tables]
    return "\n".join(text)


def main(
    parts: Sequence[str] = tuple(PARTS),
    *,
    tiny: bool = False,
    page: Path | None = None,
    repeat: int = 1,
    only: str = "",
) -> None:
    """All parts, one after the other."""
    with_section(page, section())
    for part in parts:
        options = {"training": {"repeat": repeat}, "size": {"only": only}}.get(part, {})
        PARTS[part][0].main(tiny=tiny, page=page, **options)
        print()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="some of %(default)s")
    parser.add_argument("--write", type=Path, help="a page for the tables, to be kept up to date")
    parser.add_argument("--repeat", type=int, default=1, help="runs, of which the fastest counts")
    parser.add_argument("--only", default="", help="of table 5, the lines whose kernel has this in its name")
    parser.add_argument("--tiny", action="store_true", help="a few made-up stories and lattices")
    arguments = parser.parse_args()
    parts = arguments.parts.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        parser.error(f"there is no part {unknown[0]}; choose among {', '.join(PARTS)}")
    main(parts, tiny=arguments.tiny, page=arguments.write, repeat=arguments.repeat, only=arguments.only)
