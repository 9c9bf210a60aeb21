"""The house in numbers: how large the tree is, and what is built in it more than once.

The tree is read and not run, but for the modules on the way of one `fit`. Numbers may fall and must not grow: limits
are in `house_limits.json` beside this file, `--check` fails where one is passed, and `--lower` writes those that fell.
Whoever has a reason to raise one does it by hand, and says why in the commit.

python -m benchmarks.house [--places | --check | --lower]
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMITS = Path(__file__).with_name("house_limits.json")
MANY = 10  # arguments that a person can still tell apart where a function is called
LISTED = 3  # names in one place that make a list of them

FORMATS = frozenset(["libsvm", "csv", "tsv", "jsonl", "fasta", "arrow", "parquet", "npy", "npz", "idx", "lattices"])
LINEAR = frozenset(
    [
        "dcd",
        "ocas",
        "newton",
        "lbfgs",
        "bmrm",
        "svmperf",
        "sgd",
        "pegasos",
        "stream",
        "cocoa",
        "average",
        "block_minimization",
    ]
)
KERNEL = frozenset(["double_chunking", "chunking", "smo"])

FIT = """
import sys, threading
from dotadd import LinearSVM

walked = set()

def look(frame, event, _):
    if event == "call":
        walked.add(frame.f_globals.get("__name__", ""))

svm = LinearSVM("NGrams((3, 5))").fit("mails.csv")  # imports all that the next one walks through
threading.setprofile(look)
sys.setprofile(look)
svm.fit("mails.csv")
sys.setprofile(None)
print(*(sum(name.partition(".")[0] == "dotadd" for name in names) for names in (walked, list(sys.modules))))
"""


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    path: Path  # below the package
    text: str
    tree: ast.Module

    @property
    def at_root(self) -> bool:
        return len(self.path.parts) == 1

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))


@dataclass(frozen=True)
class Row:
    """One line of the table: what is counted, how many the tree shall have at most in the end, and where they are."""

    name: str
    goal: int
    places: Callable[[list[Module]], list[str]]


def modules(package: Path = ROOT / "src" / "dotadd") -> list[Module]:
    paths = sorted(package.rglob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return [
        Module(path.relative_to(package), text, ast.parse(text, str(path)))
        for path, text in zip(paths, texts, strict=True)
    ]


def lines(tree: list[Module]) -> list[str]:
    return [str(module.path) for module in tree for _ in module.text.splitlines()]


def files(tree: list[Module]) -> list[str]:
    return [str(module.path) for module in tree]


def root_modules(tree: list[Module]) -> list[str]:
    return [str(module.path) for module in tree if module.at_root]


def called(*names: str) -> Callable[[list[Module]], list[str]]:
    """Call sites of functions or classes with one of these plain names."""

    def places(tree: list[Module]) -> list[str]:
        return [
            at(module, node)
            for module in tree
            for node in module.nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
        ]

    return places


def defined(name: str) -> Callable[[list[Module]], list[str]]:
    """Functions and methods of this name, with or without an underscore before it."""

    def places(tree: list[Module]) -> list[str]:
        return [
            at(module, node)
            for module in tree
            for node in module.nodes
            if isinstance(node, ast.FunctionDef) and node.name.lstrip("_") == name
        ]

    return places


def listing(names: frozenset[str]) -> Callable[[list[Module]], list[str]]:
    """Places that name several of these: a literal, a text that quotes them, or one function's comparisons."""

    def many(found: set[str]) -> bool:
        return len(found & names) >= LISTED

    def places(tree: list[Module]) -> list[str]:
        out = []
        for module in tree:
            if not many({name for name in names if name in module.text}):  # which is seen soon
                continue
            inside: set[int] = set()  # parts of a literal that was counted
            for node in module.nodes:
                if id(node) in inside:
                    continue
                if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
                    found = {leaf.value for leaf in ast.walk(node) if is_text(leaf)}
                elif isinstance(node, ast.FunctionDef):
                    compared = [part for part in own(node) if isinstance(part, ast.Compare)]
                    found = {leaf.value for part in compared for leaf in ast.walk(part) if is_text(leaf)}
                elif is_text(node):
                    found = set(re.findall(r"[\"'`](\w+)[\"'`]", node.value))
                else:
                    continue
                if many(found):
                    out.append(at(module, node))
                    if not isinstance(node, ast.FunctionDef):
                        inside.update(id(leaf) for leaf in ast.walk(node))
        return out

    return places


def own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What a function holds, without the functions inside of it."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def classes_named_twice(tree: list[Module]) -> list[str]:
    homes = Counter(
        node.name
        for module in tree
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return [name for name, homes_of_it in homes.items() if homes_of_it > 1]


def anys(tree: list[Module]) -> list[str]:
    """Lines that say `Any`, imports among them. Kernels have no annotations, so all of them are outside of kernels."""
    return [
        f"{module.path}:{line}"
        for module in tree
        if "Any" in module.text
        for line in sorted({t.start[0] for t in tokens(module) if t.type == tokenize.NAME and t.string == "Any"})
    ]


def ignores(tree: list[Module]) -> list[str]:
    return [f"{module.path}:{line}" for module in tree for line, _ in ignored(module)]


def ignores_without_a_reason(tree: list[Module]) -> list[str]:
    """`type: ignore[...]` after which nothing says why."""
    return [f"{module.path}:{line}" for module in tree for line, why in ignored(module) if not why]


def ignored(module: Module) -> Iterator[tuple[int, str]]:
    for token in tokens(module) if "type: ignore" in module.text else ():
        if token.type == tokenize.COMMENT and (match := re.search(r"type: ignore(\[[^]]*\])?(.*)", token.string)):
            yield token.start[0], match[2].strip(" #:")


def tokens(module: Module) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO(module.text).readline)


def kernels_of_many_arguments(tree: list[Module]) -> list[str]:
    """Compiled functions that Python calls, which `@kernel` marks; what only kernels call is marked `@inner`."""
    return [
        f"{at(module, node)} {node.name}: {len(node.args.args)}"
        for module in tree
        for node in module.nodes
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(mark, ast.Name) and mark.id == "kernel" for mark in node.decorator_list)
        and len(node.args.args) > MANY
    ]


def at(module: Module, node: ast.AST) -> str:
    return f"{module.path}:{getattr(node, 'lineno', 0)}"


TABLE = [
    Row("lines in src", 33_000, lines),
    Row("files", 185, files),
    Row("modules in the root", 6, root_modules),
    Row("call sites of `descend`", 1, called("descend")),
    Row("certificates: functions named `certify`", 1, defined("certify")),
    Row("builders of a result: call sites of `Result`, `KernelResult`", 2, called("Result", "KernelResult")),
    Row("would-move: functions named `would_move`", 1, defined("would_move")),
    Row("places that list formats", 1, listing(FORMATS)),
    Row("places that list solvers", 1, listing(LINEAR)),
    Row("places that list solvers of kernel machines", 1, listing(KERNEL)),
    Row("public class names used twice", 0, classes_named_twice),
    Row("lines with `Any`", 119, anys),
    Row("`type: ignore`", 14, ignores),
    Row("`type: ignore` without a reason", 0, ignores_without_a_reason),
    Row(f"kernels with more than {MANY} arguments", 11, kernels_of_many_arguments),
]
ON_THE_WAY = {  # of LinearSVM("NGrams((3, 5))").fit("mails.csv")
    "modules of which a `fit` from a file of texts calls something": 32,
    "modules that it has imported": 110,
}


def numbers() -> dict[str, int]:
    """All that can be read off the tree."""
    tree = modules()
    return {row.name: len(row.places(tree)) for row in TABLE}


def modules_of_a_fit() -> dict[str, int]:
    """How many modules of this package a new process walks through, and imports, to train on texts in a CSV file."""
    with tempfile.TemporaryDirectory() as folder:
        mails = [f"{label},{words}" for label, words in (("ham", "see you"), ("spam", "buy now")) for _ in range(4)]
        Path(folder, "mails.csv").write_text("\n".join(["label,text", *mails, ""]))
        out = subprocess.run([sys.executable, "-c", FIT], cwd=folder, capture_output=True, text=True, check=True)
    return dict(zip(ON_THE_WAY, map(int, out.stdout.split()), strict=True))


def grown(now: dict[str, int], limits: dict[str, int]) -> list[str]:
    """A sentence for each number that is larger than it may be."""
    return [
        f"{name}: {number:,}, and at most {limits[name]:,} were agreed on"
        for name, number in now.items()
        if number > limits[name]
    ]


def report(*, places: bool = False) -> str:
    """The table, in Markdown."""
    limits = json.loads(LIMITS.read_text())
    tree = modules()
    out = ["| | now | limit | goal |", "|---|--:|--:|--:|"]
    for row in TABLE:
        found = row.places(tree)
        out.append(f"| {row.name} | {len(found):,} | {limits[row.name]:,} | {row.goal:,} |")
        if places and 0 < len(found) < 400:
            out += [f"    {place}" for place in found]
    out += [f"| {name} | {n} | {limits[name]} | {ON_THE_WAY[name]} |" for name, n in modules_of_a_fit().items()]
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail where a number has grown; nothing is run")
    parser.add_argument("--lower", action="store_true", help="write the numbers that have fallen as the new limits")
    parser.add_argument("--places", action="store_true", help="say where they are")
    options = parser.parse_args()
    limits = json.loads(LIMITS.read_text()) if LIMITS.exists() else {}
    if options.lower:
        now = numbers() | modules_of_a_fit()
        lower = {name: min(number, limits.get(name, number)) for name, number in now.items()}
        LIMITS.write_text(json.dumps(lower, indent=2) + "\n")
    if options.check:
        if problems := grown(numbers(), limits):
            sys.exit("the house has grown (python -m benchmarks.house --places):\n" + "\n".join(problems))
        return
    sys.stdout.write(report(places=options.places))


if __name__ == "__main__":
    main()
