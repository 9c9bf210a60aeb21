"""The command: see the package."""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import subprocess
import sys

CASES = 2000
SHOWN = 5  # complaints of a format


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz")
    parser.add_argument("formats", nargs="*")
    parser.add_argument("--cases", type=int, default=int(os.environ.get("FUZZ_CASES", CASES)))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="one case")
    parser.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    if given.here or given.only is not None:
        return here(given)
    from fuzz.formats import FORMATS

    return max([start([name], given.cases, given.seed) for name in given.formats or FORMATS])


def start(names: list[str], cases: int, seed: int) -> int:
    """Formats in a process of their own; 0 if nothing went wrong."""
    command = [sys.executable, "-m", "fuzz", *names, "--here", "--cases", str(cases), "--seed", str(seed)]
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    if done.returncode == 0:
        print(f"{', '.join(names)}: {cases:,} cases, nothing wrong", flush=True)
        return 0
    if done.returncode != 1:  # a signal, or a hang
        print(f"ended by {done.returncode}: python -m fuzz {(done.stdout.splitlines() or ['?'])[-1]}", flush=True)
    print(done.stderr[-6000:], flush=True)
    return 1


def here(given: argparse.Namespace) -> int:
    """Formats in this process. The case that it is at is written to stdout, where it is read if the process dies."""
    faulthandler.enable()
    faulthandler.register(signal.SIGXCPU, chain=True)  # that a case takes too long
    from fuzz.running import run

    code = 0
    for name in given.formats:

        def at(number: int, name: str = name) -> None:
            os.write(1, f"{name} --seed {given.seed} --only {number}\n".encode())

        numbers = range(given.cases) if given.only is None else range(given.only, given.only + 1)
        wrong = run(name, given.seed, numbers, at)
        for number, what in wrong[:SHOWN]:
            sys.stderr.write(f"python -m fuzz {name} --seed {given.seed} --only {number}\n{what}\n")
        if wrong:
            sys.stderr.write(f"{name}: {len(wrong)} of {len(numbers)} cases went wrong\n")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
