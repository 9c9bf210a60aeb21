"""Seeded damage to bytes: what cut-off copies, broken disks, careless programs and enemies do to files."""

from __future__ import annotations

import random
import struct

NUMBERS = [0, 1, -1, 2, 7, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**62, -(2**63)]
TOKENS = [
    b"nan", b"inf", b"-inf", b"1e999", b"-1e308", b"1e-400", b"0x10", b"1_0", b"9" * 25, b"9" * 400, b"1" * 5000, b"-0",
    b"9007199254740993", b"18446744073709551615", b"100000000000", b"", b" ", b"\t", b"\n", b"\r", b"\r\n", b"\n\n",
    b",", b";", b":", b"#", b">", b'"', b"'", b'""', b"{", b"}", b"[", b"]", b"(", b")", b"null", b"true", b"label",
    b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", "\u00e9\u2028".encode(), b"[" * 2000,
    b"(" * 300, b"a" * 3000, b"\x7f", b"<eps>", b"-1", b"1.5", b"%s", b"../x", b"\x1b[31m",
]  # fmt: skip


def damaged(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """The data after one to five changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        data = rng.choice(CHANGES)(data, others, rng)
    return data


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    first = rng.randrange(len(data) + 1)
    return first, min(len(data), first + rng.choice((0, 1, 1, 2, 4, 8, 30, 200)))


def _flip(data: bytes, _: list[bytes], rng: random.Random) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _byte(data: bytes, _: list[bytes], rng: random.Random) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.choice((0, 1, 10, 32, 48, 57, 127, 128, 255, rng.randrange(256)))]) + data[at + 1 :]


def _number(data: bytes, _: list[bytes], rng: random.Random) -> bytes:
    """An interesting number over some bytes, as binary formats write them."""
    kind, size = rng.choice((("<q", 8), ("<i", 4), (">i", 4), ("<H", 2)))
    if len(data) < size:
        return data
    at = rng.randrange(len(data) - size + 1)
    value = rng.choice(NUMBERS)
    packed = struct.pack("<q", value if -(2**63) <= value < 2**63 else 0)[:size]
    return data[:at] + (packed[::-1] if kind == ">i" else packed) + data[at + size :]


def _delete(data: bytes, _: list[bytes], rng: random.Random) -> bytes:
    first, stop = _span(data, rng)
    return data[:first] + data[stop:]


def _double(data: bytes, _: list[bytes], rng: random.Random) -> bytes:
    first, stop = _span(data, rng)
    return data[:stop] + data[first:stop] * rng.choice((1, 1, 2, 50)) + data[stop:]


def _insert(data: bytes, _: list[bytes], rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(TOKENS) + data[at:]


def _replace(data: bytes, _: list[bytes], rng: random.Random) -> bytes:
    first, stop = _span(data, rng)
    return data[:first] + rng.choice(TOKENS) + data[stop:]


def _move(data: bytes, _: list[bytes], rng: random.Random) -> bytes:
    first, stop = _span(data, rng)
    rest = data[:first] + data[stop:]
    at = rng.randrange(len(rest) + 1)
    return rest[:at] + data[first:stop] + rest[at:]


def _truncate(data: bytes, _: list[bytes], rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _splice(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """The beginning of this with the end of another one."""
    other = rng.choice(others)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _lines(data: bytes, _: list[bytes], rng: random.Random) -> bytes:
    """Lines in another order, some of them twice or not at all."""
    lines = data.split(b"\n")
    return b"\n".join(rng.choices(lines, k=len(lines)))


CHANGES = [_flip, _byte, _number, _delete, _double, _insert, _replace, _move, _truncate, _splice, _lines]
