"""A long test that is no part of the suite: `make soak`, or `python tests/soak.py --kills 100 --seed 1`.

Commands are killed (SIGKILL) at random times again and again, run on disks that are full, and where neither home nor
cache can be written. Whatever happens, a file under the name that was asked for is whole; the next run that is left
alone ends with the same bits as one that never was disturbed, and nothing but what was asked for is in the folder.

A kill counts if the command was at work: it had begun to write to its folder, and was not over. Disks are file systems
of a few MB where the user may mount one, and home is one that can only be read; elsewhere no file may become larger
than some bytes, home is a name that leads nowhere, and the last line says so. `tests/cli/test_soak.py` does some of it
in the suite.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from naive_genome import fasta, gff3, random_transcripts, with_signals

import dotadd
from dotadd.features.base import Shape
from dotadd.features.weighted_degree import WeightedDegree
from dotadd.model.linear import Model

LENGTH = 24  # of windows
LIMITS = (0, 10_000, 50_000)  # bytes that are left on a full disk
DISK = 32 << 20  # bytes of a disk
EARLY = 0.1  # of all kills come before there is any work
TRIES = 4  # to land a kill, each
CACHES = ("DOTADD_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")


@contextmanager
def disk(folder: Path, options: str = f"size={DISK}") -> Iterator[bool]:
    """A file system of its own in this folder while this lasts; False where the user may not mount one."""
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
    mounted = sys.platform == "linux" and subprocess.run(mount, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


@dataclass(frozen=True)
class Job:
    """A command, the file it writes, whether it goes on from a checkpoint, and by how much its data is larger than
    usual, so that it is at work for a while."""

    command: str
    output: str
    resumes: bool = False
    scale: float = 1.0


TRAIN = "--solver stream --memory 60kB --jobs 1 --tol 1e-7 --max-passes 60 --checkpoint-every 0.02 --quiet"
MEMORY = "--jobs 1 --tol 1e-13 --max-passes 600 --checkpoint-every 0.02 --quiet"
JOBS = {
    "memory": Job(f"train x.svm -o m --solver dcd --loss logistic -C 1000 {MEMORY}", "m", True),
    "planes": Job(f"train x.svm -o m --solver ocas -C 1000 {MEMORY}", "m", True),
    "vectors": Job(f"train x.svm -o m {TRAIN} -C 10", "m", True),
    "dna": Job(f"train d.fa -o m {TRAIN} --features WeightedDegree(4)", "m", True),
    "mails": Job(f"train mails.csv -o m {TRAIN} --column text --features NGrams((2,3)).hashed(12)", "m", True),
    "convert": Job("convert x.svm x.arrow", "x.arrow", scale=10.0),
    "windows": Job(
        f"windows --fasta g.fa --gff g.gff3 --signal acceptor --length {LENGTH} --holdout 0.3 --stretch 999 -o w.arrow",
        "w.arrow",
        scale=3.0,
    ),
    "scan": Job(
        "scan g.fa --model sites --signal acceptor --before 11 --jobs 1 -o s.bedgraph", "s.bedgraph", scale=3.0
    ),
    "predict": Job("predict linear x.svm --jobs 1 -o p.tsv", "p.tsv", scale=10.0),
}


def make_data(folder: Path, scale: float = 1.0) -> None:
    """Three kinds of examples, a genome, and a model for each command that needs one."""
    rng, chance = np.random.default_rng(0), random.Random(0)
    rows = int(4000 * scale)
    X = rng.standard_normal((rows, 10)).round(3)
    y = np.where(X @ rng.standard_normal(10) + 2 * rng.standard_normal(rows) > 0, 1, -1)
    vectors = (f"{k} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for x, k in zip(X, y, strict=True))
    (folder / "x.svm").write_text("\n".join(vectors) + "\n")
    dna = ("".join(chance.choices("ACGT", (3, 2, 2, 2 + k), k=30)) for k in y)
    (folder / "d.fa").write_text("".join(f">{n} {k}\n{text}\n" for n, (text, k) in enumerate(zip(dna, y, strict=True))))
    words = ["offer", "free", "win", "meeting", "notes", "lunch", "report", "today", "money", "plan"]
    mails = (" ".join(chance.choices(words, [3 + k] * 3 + [3] * 7, k=12)) for k in y)
    (folder / "mails.csv").write_text("text,label\n" + "".join(f"{t},{k}\n" for t, k in zip(mails, y, strict=True)))
    genome = {f"chr{k}": "".join(chance.choices("ACGT", k=int(60_000 * scale))) for k in range(2)}
    transcripts = random_transcripts(chance, genome, 20)
    (folder / "g.fa").write_text(fasta(with_signals(genome, transcripts)))
    (folder / "g.gff3").write_text(gff3(transcripts, chance))
    shape = Shape("strings", length=LENGTH)
    phi = WeightedDegree(3).resolve(shape)
    w = rng.standard_normal((1, phi.dim)).astype(np.float32)
    Model(phi, shape, w, np.zeros(1), np.array([-1, 1])).save(folder / "sites")
    dotadd.LinearSVM(max_passes=2, tol=1.0).fit(folder / "x.svm").save(folder / "linear")


class Soak:
    """One job, disturbed in a folder of its own, which may be a disk of its own."""

    def __init__(self, job: Job, folder: Path, scale: float = 1.0, *, alone: bool = False, runs: int = 2) -> None:
        self.job, self.folder, self.alone = job, folder, alone
        make_data(folder, scale * job.scale)
        given = self.names()
        for _ in range(runs):  # what has to be compiled is compiled in the first, and is no part of the seconds
            process = self.start()
            self.wait_for_work(process)
            began = time.monotonic()
            said = process.communicate()[1]
            assert process.returncode == 0, said
            self.seconds = time.monotonic() - began
            self.expected, self.left = self.result(), self.names() - given
            self.clear()

    def names(self) -> set[str]:
        return set(os.listdir(self.folder))

    def clear(self) -> None:
        for name in self.left:
            (self.folder / name).unlink()

    def start(self, env: Mapping[str, str] | None = None, limit: Callable[[], None] | None = None) -> subprocess.Popen:
        resume = self.job.resumes and (self.folder / f"{self.job.output}.checkpoint").exists()
        command = [sys.executable, "-m", "dotadd", *self.job.command.split(" "), *(["--resume"] if resume else [])]
        return subprocess.Popen(
            command, cwd=self.folder, env={**os.environ, **(env or {})}, preexec_fn=limit,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, **more) -> subprocess.CompletedProcess:
        process = self.start(**more)
        said = process.communicate()[1]
        return subprocess.CompletedProcess(process.args, process.returncode, None, said)

    def result(self) -> bytes:
        """What the output holds; of a model, without date and seconds."""
        path = self.folder / self.job.output
        if not self.job.resumes:
            return path.read_bytes()
        model = dotadd.load(path)
        told = [model.training[name] for name in ("primal", "dual", "gap", "passes")]
        return model.w.tobytes() + model.intercept.tobytes() + repr(told).encode()

    def check_output(self) -> None:
        """It is whole, or not there."""
        if (self.folder / self.job.output).exists():
            assert self.result() == self.expected

    def check_end(self) -> None:
        """A run that is left alone ends as if nothing had been, and nothing is left of what was."""
        before = self.names()
        ended = self.run()
        assert ended.returncode == 0, ended.stderr
        assert self.result() == self.expected
        strange = self.names() - (before | self.left) | {
            name for name in self.names() if name.endswith((".tmp", ".lock"))
        }
        assert not strange
        self.clear()

    def wait_for_work(self, process: subprocess.Popen) -> bool:
        """Wait until something happens in the folder; returns whether it did before the process was over."""
        before = os.stat(self.folder).st_mtime_ns
        while os.stat(self.folder).st_mtime_ns == before:
            if process.poll() is not None:
                return False
            time.sleep(0.0005)
        return True

    def kill(self, chance: random.Random) -> bool:
        """Kill it at some time; returns whether it was at work by then."""
        process = self.start()
        if chance.random() < EARLY:
            time.sleep(chance.uniform(0.0, 1.0))
            at_work = False
        else:
            at_work = self.wait_for_work(process)
            time.sleep(chance.random() * self.seconds * (0.5 if self.job.resumes else 1.0))
        at_work = at_work and process.poll() is None
        process.kill()
        process.communicate()
        self.check_output()
        return at_work

    def fill_disk(self, room: int, cache: str | None = None) -> None:
        """There are so many bytes left on the disk, or, where it is not the job's own, for each file. Nothing can be
        written elsewhere. With a cache of compiled kernels, they are found there."""
        env = {"HOME": str(self.folder), "TMPDIR": str(self.folder)}
        if cache is not None:
            env["XDG_CACHE_HOME"] = cache
        if not self.alone:
            ended = self.run(env=env, limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
        else:
            filler = self.folder / "filler"
            with open(filler, "wb", buffering=0) as file:
                free = os.statvfs(self.folder)
                os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - room))
            ended = self.run(env=env)
            filler.unlink()
        if ended.returncode == 0:
            self.check_end()
            return
        assert ended.returncode in (1, 2), (ended.returncode, ended.stderr)
        assert "Traceback" not in ended.stderr, ended.stderr
        assert ended.stderr.splitlines()[-1].startswith("dotadd: error: "), ended.stderr
        self.check_output()
        self.check_end()

    def run_without_home(self, home: str = "/dev/null/home") -> None:
        """Neither home nor cache can be written, nor made; what is compiled is compiled again."""
        env = {**dict.fromkeys(CACHES, ""), "HOME": home, "DOTADD_CACHE_DIR": "/dev/null/cache"}
        ended = self.run(env=env)
        assert ended.returncode == 0, ended.stderr
        assert self.result() == self.expected
        self.clear()


def main(kills: int, seed: int, names: list[str]) -> None:
    chance = random.Random(seed)
    for name in names:
        with tempfile.TemporaryDirectory() as folder, disk(Path(folder)) as alone:
            soak = Soak(JOBS[name], Path(folder), alone=alone)
            landed = tried = 0
            while landed < kills:
                landed, tried = landed + soak.kill(chance), tried + 1
                if tried % 5 == 0 or landed == kills:
                    soak.check_end()
                assert tried < TRIES * kills, f"{name}: of {tried} kills only {landed} found it at work"
            for limit in LIMITS:
                soak.fill_disk(limit)
            with tempfile.TemporaryDirectory() as home, disk(Path(home), "size=4k,ro") as read_only:
                soak.run_without_home(*([home] if read_only else []))
        kind = "full disks" if alone else "limits on the size of files, as no disk could be mounted"
        sys.stdout.write(
            f"{name}: {landed} of {tried} kills found it at work, {soak.seconds:.2f} s long; {len(LIMITS)} {kind}; "
            f"{'a home that is read-only' if read_only else 'no home'}, no cache: all is well\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Kill, starve and resume commands, and see that nothing is lost.")
    parser.add_argument("--kills", type=int, default=100, help="for each of the jobs, those that find it at work")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", nargs="*", choices=list(JOBS), default=list(JOBS))
    given = parser.parse_args()
    main(given.kills, given.seed, given.jobs)
