"""All benchmarks, as the page docs/benchmarks.md: `python -m benchmarks > docs/benchmarks.md`, or `make bench`."""

from __future__ import annotations

import argparse
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from benchmarks import (
    choosing,
    everyday,
    forms,
    images,
    kernel_svm,
    labels,
    memory,
    parallel,
    reading,
    solvers,
    startup,
    streaming,
    tables,
)

PACKAGES = ["dotadd", "numba", "numpy", "scipy", "scikit-learn", "liblinear-multicore", "vowpalwabbit"]
PACKAGES += ["scikit-learn-intelex"]


def machine() -> str:
    """What these figures were measured with."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return f"Python {platform.python_version()}, {', '.join(found)}; {platform.machine()}, {platform.system()}."


def page(*, tiny: bool = False) -> str:
    sections = [
        ("Time to the same objective", solvers.__doc__, lambda: solvers.report(solvers.NAMES, tiny=tiny)),
        ("Everyday data", everyday.__doc__, lambda: everyday.report(tiny=tiny)),
        ("Tables", tables.__doc__, lambda: tables.report(tiny=tiny)),
        ("Choosing C", choosing.__doc__, lambda: choosing.report(tiny=tiny)),
        ("Several labels a row", labels.__doc__, lambda: labels.report(tiny=tiny)),
        ("Kernel SVMs", kernel_svm.__doc__, lambda: kernel_svm.report(tiny=tiny)),
        ("Data larger than memory", streaming.__doc__, lambda: streaming.report(tiny=tiny)),
        ("Threads", parallel.__doc__, lambda: parallel.report(tiny=tiny)),
        ("Images", images.__doc__, lambda: images.report(tiny=tiny)),
        ("Forms of w", forms.__doc__, lambda: forms.report(tiny=tiny)),
        ("Reading LIBSVM text", reading.__doc__, lambda: reading.report(tiny=tiny)),
        ("Starting", startup.__doc__, lambda: startup.report(tiny=tiny)),
        ("Memory", memory.__doc__, lambda: memory.report(tiny=tiny)),
    ]
    how = "Made by `make bench`; a section alone by the command under it. All programs of a section run in one go."
    parts = [f"# Benchmarks\n\n{how} {machine()}\n"]
    for title, about, run in sections:
        sys.stderr.write(f"{title} ...\n")
        paragraphs = (about or "").strip().split("\n\n")
        text, call = "\n\n".join(paragraphs[:-1]), paragraphs[-1].strip()
        parts.append(f"## {title}\n\n{text}\n\n{run()}\n`{call}`\n")
    return "\n".join(parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    sys.stdout.write(page(tiny=parser.parse_args().tiny))
