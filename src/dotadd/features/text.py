"""NGrams, BagOfWords and WordNGrams: hashed features of text.

Text is the bytes of its UTF-8, so a letter beyond ASCII counts as two or more. Lower case is made of ASCII's capitals.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from dotadd._jit import inner, kernel
from dotadd.core.block import Block, table_size
from dotadd.data.batches import Batch, Strings
from dotadd.errors import FeatureError
from dotadd.features.alphabet import Alphabet
from dotadd.features.base import Origins
from dotadd.features.forms import slot_of
from dotadd.features.kmer_layout import KmerLayout, packed, shared_hash_layout
from dotadd.features.kmers import KmerMap, LetterMap, Writer
from dotadd.features.leaves import checked_bits, checked_flag, checked_int, named_by_row
from dotadd.features.spectrum import MAX_ORDER


@lru_cache
def _letter_codes(lowercase: bool) -> np.ndarray:
    codes = np.arange(256, dtype=np.uint16)
    if lowercase:
        codes[ord("A") : ord("Z") + 1] += 32
    return codes


def _lengths(n: int | tuple[int, int]) -> tuple[int, int]:
    """The shortest and the longest of the lengths that n allows."""
    pair = tuple(n) if isinstance(n, tuple | list) else (n, n)
    if len(pair) != 2:
        raise FeatureError(f"n has to be a length or a pair (shortest, longest), and not {n!r}")
    shortest = checked_int("n", pair[0], 1, MAX_ORDER)
    return shortest, checked_int("n", pair[1], shortest, MAX_ORDER)


class TextMap(LetterMap):
    """Runs of n characters or words, hashed into 2**bits slots."""

    def __init__(self, n: int | tuple[int, int], bits: int, lowercase: bool) -> None:
        self.shortest, self.longest = _lengths(n)
        self.bits, self.lowercase = checked_bits(bits), checked_flag("lowercase", lowercase)

    @property
    def n(self) -> int | tuple[int, int]:
        return self.longest if self.shortest == self.longest else (self.shortest, self.longest)

    @property
    def dim(self) -> int:
        return 2**self.bits


class NGrams(TextMap, KmerMap):
    """Counts of the runs of n characters, blanks and all, hashed into 2**bits slots.

    n: their length, or a pair (shortest, longest) for all lengths between. Where texts are not equally long, use
    `.normalized()`: counts of long ones would outweigh the others.
    """

    keeps = True  # in texts the same runs come again and again, and are one non-zero once they are kept
    alphabet = Alphabet("bytes")

    def __init__(self, n: int | tuple[int, int], *, bits: int = 20, lowercase: bool = True) -> None:
        super().__init__(n, bits, lowercase)

    def codes(self) -> np.ndarray:
        return _letter_codes(self.lowercase)

    def layout(self) -> KmerLayout:
        betas = (0.0,) * (self.shortest - 1) + (1.0,) * (self.longest - self.shortest + 1)
        return shared_hash_layout(betas, self.alphabet.size, self.bits)


class WordNGrams(TextMap):
    """Counts of the runs of n words, hashed into 2**bits slots. A word is a run of letters, digits and underscores.

    Words follow each other whatever stands between them, and their order counts. Every byte beyond ASCII counts as a
    letter. With binary=True a slot that occurs has the value 1, however often.

    n: how many words, or a pair (shortest, longest) for all lengths between: (1, 2) are single words and pairs.
    """

    def __init__(
        self, n: int | tuple[int, int], *, bits: int = 20, lowercase: bool = True, binary: bool = False
    ) -> None:
        super().__init__(n, bits, lowercase)
        self.once = self.distinct = checked_flag("binary", binary)  # `binary` is a method of maps
        self._plan = packed((self.shortest, self.longest, self.bits, self.once))

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return super().get_params(deep) | {"binary": self.once}

    def bound(self, batch: Batch) -> int | np.ndarray:
        assert isinstance(batch, Strings)
        letters = batch.lengths().astype(np.int64) if batch.width is None else batch.width
        words = (letters + 1) // 2  # between two words is at least one byte
        runs = sum(np.maximum(words - n + 1, 0) for n in range(self.shortest, self.longest + 1))
        return runs if isinstance(runs, np.ndarray) else int(runs)

    def codes(self) -> np.ndarray:
        return _word_codes(self.lowercase)

    def writer(self) -> Writer:
        return _write_words, self._plan

    def origins(self, batch: Batch, rows: np.ndarray, nth: np.ndarray) -> tuple[Origins, np.ndarray]:
        assert isinstance(batch, Strings)
        return named_by_row(self, rows, nth, lambda row: self._runs(batch.take(np.array([row]))))

    def _runs(self, text: Strings) -> list[bytes]:
        """The runs of words of one text in the order in which `fill` writes them."""
        words = re.findall(rb"[0-9A-Za-z_\x80-\xff]+", text[0].lower() if self.lowercase else text[0])
        lengths = range(self.longest, self.shortest - 1, -1)
        runs = [b" ".join(words[last - n : last]) for last in range(1, len(words) + 1) for n in lengths if n <= last]
        if not self.once:
            return runs
        twin = WordNGrams(self.n, bits=self.bits, lowercase=self.lowercase)
        block = Block.scratch(np.array([len(runs)]), self.dim)
        twin.fill(text, np.zeros(1, np.int64), block)
        assert block.indices is not None
        _, first = np.unique(block.indices, return_index=True)
        return [runs[k] for k in np.sort(first)]


class BagOfWords(WordNGrams):
    """Counts of words, hashed into 2**bits slots: WordNGrams(1).

    bits, lowercase, binary: as for WordNGrams.
    """

    def __init__(self, *, bits: int = 20, lowercase: bool = True, binary: bool = False) -> None:
        super().__init__(1, bits=bits, lowercase=lowercase, binary=binary)


@lru_cache
def _word_codes(lowercase: bool) -> np.ndarray:
    """For each byte the letter it stands for, plus one; 0 between words."""
    codes = _letter_codes(lowercase) + np.uint16(1)
    between = [byte for byte in range(128) if not (chr(byte).isalnum() or chr(byte) == "_")]
    codes[between] = 0
    return codes


@kernel
def _write_words(letters, starts, ends, codes, plan, base, scale, cursor, out_indices, out_values):
    shortest, longest, bits, binary = plan[0], plan[1], plan[2], plan[3] != 0
    most = np.int64(0)
    if binary:
        for j in range(len(starts)):
            most = max(most, np.int64(ends[j] - starts[j]))
    orders = longest - shortest + 1
    table = np.zeros(_words_table(most, orders), np.uint64)  # of the row's slots, each + 1; 0 is an empty place
    run = np.zeros(longest + 1, np.uint64)  # the hash of the last n words at n
    for j in range(len(starts)):
        p = np.uint64(cursor[j])
        h = np.uint64(0)
        words = 0
        seen = table[: _words_table(ends[j] - starts[j], orders)] if binary else table
        for i in range(np.uint64(starts[j]), np.uint64(ends[j])):
            code = np.uint64(codes[letters[i]])
            if code != np.uint64(0):
                h = _stirred(h + code)
            if h == np.uint64(0) or (code != np.uint64(0) and i + np.uint64(1) < np.uint64(ends[j])):
                continue
            words += 1
            for n in range(min(words, longest), 0, -1):
                run[n] = h if n == 1 else _stirred(_stirred(run[n - 1]) + h)
                if n < shortest:
                    continue
                slot = slot_of(run[n], bits)
                if binary and not _insert(seen, slot):
                    continue
                out_indices[p] = np.uint64(base) + slot
                out_values[p] = scale
                p += np.uint64(1)
            h = np.uint64(0)
        if binary:
            seen[:] = np.uint64(0)
        cursor[j] = p


@inner
def _words_table(letters, orders):
    """Places for the slots of a text of so many letters, which has a word for every two of them at most."""
    return table_size((letters + 1) // 2 * orders)


@inner
def _stirred(h):
    """One step of a hash."""
    h = np.uint64(h * np.uint64(0x9E3779B97F4A7C15))
    return np.uint64(h ^ (h >> np.uint64(29)))


@inner
def _insert(seen, slot):
    """Put a slot into the table, and say whether it is new there."""
    mask = np.uint64(len(seen) - 1)
    place = slot & mask
    while seen[place] != np.uint64(0):
        if seen[place] == slot + np.uint64(1):
            return False
        place = (place + np.uint64(1)) & mask
    seen[place] = slot + np.uint64(1)
    return True
