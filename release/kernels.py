"""The optional wheel dotadd-kernels: what `dotadd warmup` compiles, for all processors of a level: nobody waits for it.

    python release/kernels.py [--dist dist] [--level x86-64-v3]

It is for the version of dotadd, Python, Numba and NumPy that it is made with, and says so in its requirements; where
one of them differs, dotadd finds nothing under the names that it looks for, and compiles. The processor's own name and
features are replaced by those of a level (`dotadd/_util/compiled_code.py`). One wheel is made for each Python and
system; its tags are those of the Numba that the code runs with.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import distribution, version
from pathlib import Path

from dotadd._util.compiled_code import LEVELS
from dotadd._util.private_store import whole

ABOUT = '"""Compiled code for dotadd, which looks for it here; there is nothing to import."""\n'
SUMMARY = "Compiled code for dotadd: its first fit begins at once"
OURS = "x86-64-v3" if platform.machine().lower() in ("x86_64", "amd64") else "generic"


def compiled(level: str, folder: Path) -> dict[str, bytes]:
    """The files that `dotadd warmup` leaves, by name."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment |= {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "DOTADD_CACHE_DIR": str(folder)}
    environment |= {"NUMBA_DISABLE_INTEL_SVML": "1"}  # a library that others may not have
    subprocess.run([sys.executable, "-m", "dotadd", "warmup"], env=environment, check=True)
    files = {path.name: path.read_bytes() for path in sorted((folder / "kernels").iterdir())}
    return {name: content for name, content in files.items() if whole(content) is not None}


def tags() -> list[str]:
    lines = (distribution("numba").read_text("WHEEL") or "").splitlines()
    return [line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: ")]


def compressed(triples: list[str]) -> str:
    """py-abi-platform of a wheel's name, of each the set that occurs."""
    columns = zip(*(triple.split("-") for triple in triples), strict=True)
    return "-".join(".".join(dict.fromkeys(column)) for column in columns)


def minor(text: str) -> str:
    return ".".join(text.split(".")[:2])


def wheel(code: dict[str, bytes], level: str, dist: Path) -> Path:
    """A wheel of these files in the folder."""
    ours, numba, numpy = version("dotadd"), version("numba"), version("numpy")
    made = {"level": level, "dotadd": ours, "numba": numba, "python": minor(platform.python_version())}
    info = f"dotadd_kernels-{ours}.dist-info"
    metadata = [
        "Metadata-Version: 2.1",
        "Name: dotadd-kernels",
        f"Version: {ours}",
        f"Summary: {SUMMARY}",
        "License: BSD-3-Clause",
        f"Requires-Python: =={made['python']}.*",
        f"Requires-Dist: dotadd=={ours}",
        f"Requires-Dist: numba=={numba}",
        f"Requires-Dist: numpy=={minor(numpy)}.*",
    ]
    about = ["Wheel-Version: 1.0", "Generator: release/kernels.py", "Root-Is-Purelib: false"]
    about += [f"Tag: {tag}" for tag in tags()]
    files = {
        "dotadd_kernels/__init__.py": ABOUT.encode(),
        "dotadd_kernels/made.json": json.dumps(made, indent=2).encode() + b"\n",
        **{f"dotadd_kernels/code/{name}": content for name, content in code.items()},
        f"{info}/METADATA": "\n".join(metadata).encode() + b"\n",
        f"{info}/WHEEL": "\n".join(about).encode() + b"\n",
    }
    lines = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]).encode() + b"\n"
    dist.mkdir(parents=True, exist_ok=True)
    path = dist / f"dotadd_kernels-{ours}-{compressed(tags())}.whl"
    part = path.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED, 9)
    part.replace(path)
    return path


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dist", type=Path, default=Path(__file__).parents[1] / "dist", help="where to put it")
    parser.add_argument("--level", choices=LEVELS, default=OURS, help="the processors that it is for")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        code = compiled(given.level, Path(folder))
    path = wheel(code, given.level, given.dist)
    inside = sum(map(len, code.values()))
    print(f"{path}: {path.stat().st_size:,} bytes, {len(code)} kernels of {inside:,} bytes, for {given.level}")


if __name__ == "__main__":
    main()
