"""pip with a line that tells what it is about, instead of half a minute of silence or a hundred lines: `make` uses it.

    python release/install.py "dotadd and what it needs (a minute or two)" --editable .

On a terminal one line is written over and over; elsewhere there is a line every ten seconds. If pip fails, all that it
said is shown, and its exit code is ours. Standard library alone: it runs in an environment that has nothing yet.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread

EVERY = 10.0  # seconds between two lines where there is no terminal
STEP = 0.5  # seconds between two looks
DOING = ("Collecting ", "Downloading ", "Building ", "Installing ", "Preparing ", "Getting ")
WIDE = 100  # letters of a line on a terminal


def lines_of(process: subprocess.Popen[str]) -> Iterator[str | None]:
    """What it prints, line by line, and None whenever it has been silent for a step."""
    lines: Queue[str | None] = Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    Thread(target=read, daemon=True).start()
    while True:
        with suppress(Empty):
            line = lines.get(timeout=STEP)
            if line is None:
                return
            yield line
            continue
        yield None


def told(what: str, command: Sequence[str]) -> int:
    """Run it, tell how far it is, and return its exit code."""
    began, shown, doing, said = time.monotonic(), 0.0, "looking for packages", []
    here = sys.stdout.isatty()
    print(f"installing {what}", flush=True)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    for line in lines_of(process):
        if line is not None:
            said.append(line)
            doing = line.strip() if line.lstrip().startswith(DOING) else doing
        spent = time.monotonic() - began
        if spent - shown >= (STEP if here else EVERY):
            shown = spent
            text = f"  {spent:3.0f} s  {doing}"[:WIDE]
            print(f"\r{text:{WIDE}}" if here else text, end="" if here else "\n", flush=True)
    code = process.wait()
    if here:
        print(f"\r{'':{WIDE}}\r", end="")
    if code:
        print("".join(said), end="")
    else:
        print(f"done in {time.monotonic() - began:.0f} s", flush=True)
    return code


if __name__ == "__main__":
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
    sys.exit(told(sys.argv[1], [*pip, *sys.argv[2:]]))
