"""Expressions of any kind, however hostile: what they describe, which writes itself again, or one line that refuses."""

from __future__ import annotations

import numpy as np
import pytest

from dotadd.automata import builders as transducers
from dotadd.data import transforms
from dotadd.errors import DotaddError
from dotadd.features import expression as features
from dotadd.kernel_svm import expression as kernels

CASES = 500  # of each kind
KINDS = {"features": features, "kernels": kernels, "transforms": transforms, "transducers": transducers}
NAMES = [
    *features.KNOWN, *kernels.KNOWN, *transforms.KNOWN, *transducers.KNOWN,
    "hashed", "indexed", "normalized", "__class__", "eval", "Nothing", "x" * 300,
]  # fmt: skip
KEYWORDS = [
    "k", "n", "bits", "span", "weights", "alphabet", "degree", "coef0", "gamma", "decay", "gaps", "levels", "window",
    "size", "length", "strands", "phi", "n_features", "transducer", "digest", "steps", "fill", "nonsense",
]  # fmt: skip
NUMBERS = [
    "0", "1", "2", "3", "8", "-1", "0.5", "1e-320", "1e15", "1e308", "1e400", "-1e308", "1" + "0" * 30, "9" * 400,
    "9" * 5000, "10**9", "1000000000", "0x7fffffffffffffff", "1j", "nan", "inf", "True",
]  # fmt: skip
TEXTS = ["'dna'", "'bytes'", "'A'", "''", "'\\0'", "'x.fst'", "'hash_table'", "'uniform'", "'both'", "'ab' 'c'", "b'a'"]
RUBBISH = [
    "\0",
    "\ud800",
    "\n",
    "#",
    "...",
    "lambda: 0",
    "*",
    "**{}",
    "\uff53",
    "(",
    ")",
    "[",
    "]",
    "{}",
    "'",
    ":=",
    "-" * 50,
]


def argument(rng, depth):
    kind = rng.integers(8)
    if kind < 3:
        return str(rng.choice(NUMBERS))
    if kind < 4:
        return str(rng.choice(TEXTS))
    if kind < 5:
        return str(rng.choice(["None", "False", "...", "[]", "()"]))
    if kind < 6:
        inside = ", ".join(argument(rng, depth + 1) for _ in range(rng.integers(4))) if depth < 4 else "1"
        return f"({inside},)" if rng.random() < 0.5 else f"[{inside}]"
    if kind < 7 and depth < 4:
        return expression(rng, depth + 1)
    return f"{rng.choice(KEYWORDS)}={rng.choice([*NUMBERS, *TEXTS])}"


def expression(rng, depth=0):
    call = f"{rng.choice(NAMES)}({', '.join(argument(rng, depth) for _ in range(rng.integers(4)))})"
    while rng.random() < 0.3:
        call = f"{call}.{rng.choice(NAMES)}({rng.choice(['', *NUMBERS, *TEXTS])})"
    if depth < 4 and rng.random() < 0.3:
        call = f"{call} {rng.choice(['+', '*', '-', '**', '/', '@'])} {expression(rng, depth + 1)}"
    return f"{rng.choice(NUMBERS)} * {call}" if rng.random() < 0.2 else call


def mutated(rng, text):
    """Some letters lost, doubled or replaced."""
    for _ in range(rng.integers(3)):
        at = int(rng.integers(len(text) + 1))
        text = text[:at] + str(rng.choice(RUBBISH)) + text[at + int(rng.integers(3)) :]
    return text


def held_to_the_rule(parse, text):
    """Whether the text was read; it may be refused, in one line."""
    made, refused = None, ""
    try:
        made = parse(text)
    except DotaddError as error:
        refused = str(error)
    assert "\n" not in refused, text
    assert len(refused) < 1500, text
    assert refused or parse(repr(made)) == made, text
    return not refused


@pytest.mark.parametrize("kind", KINDS)
def test_any_text_is_read_or_refused_in_one_line(kind):
    rng, parse = np.random.default_rng(17), KINDS[kind].parse
    for _ in range(CASES):
        held_to_the_rule(parse, mutated(rng, expression(rng)))


@pytest.mark.parametrize("kind", KINDS)
def test_calls_of_known_names_with_any_arguments_are_read_or_refused(kind):
    """Deeper than random text comes: names are known, and arguments mostly of the right type."""
    rng, module = np.random.default_rng(18), KINDS[kind]
    known = list(module.KNOWN)
    some = ["1", "2", "3", "'dna'", "0.5", "(1, 2)", "None", *NUMBERS]
    read = 0
    for _ in range(CASES):
        arguments = ", ".join(str(rng.choice(some)) for _ in range(rng.integers(3)))
        read += held_to_the_rule(module.parse, f"{rng.choice(known)}({arguments})")
    assert read > 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "(" * 150 + "Linear()" + ")" * 150,
        "-" * 9000 + "1",
        "+".join(["Linear()"] * 1000),
        "*".join(["translate(1)"] * 700),
        "+".join(["ngram(2)"] * 900),
        "Linear()" + ".normalized()" * 700,
        "Linear()" + ".hashed(8)" * 900,
        "Hashed(4, " * 900 + "Linear()" + ")" * 900,
        "9" * 9000,
        "x" * 1_000_000,
        "'" + "x" * 9000 + "'",
        "\0",
        "Linear(\0)",
        "",
        " \n ",
    ],
    ids=lambda text: text[:12] if text.isprintable() else None,
)
def test_long_and_deep_text_is_read_or_refused_in_one_line(kind, text):
    held_to_the_rule(KINDS[kind].parse, text)


@pytest.mark.parametrize(
    "text",
    [
        "NGrams((1, 1000000000))", "WordNGrams((1, 1000000000))", "Polynomial(1000000000)", "Spectrum(1000000)",
        "Hashed(bits=1000000)", "Linear().hashed(1000000)", "MismatchSpectrum(30, 30)", "1e308 * Linear()",
        "Hashed(4, phi=3)", "Hashed(4, phi=ngram(2))", "Linear().indexed([])", "Rational('\\0')",
        "Spectrum(3, span=(1" + "0" * 300 + ", None))", "WeightedDegree(3, length=1" + "0" * 300 + ")",
    ],
)  # fmt: skip
def test_what_asks_for_too_much_is_refused(text):
    assert not held_to_the_rule(features.parse, text)
