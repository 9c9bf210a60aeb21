"""The methods that make another map of a map: its slots, its lengths, its values.

So base.py tells what a map is, and nothing else; what they make is imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotadd.features.transformer import Transformer

if TYPE_CHECKING:
    from dotadd.features.base import FeatureMap


class Methods(Transformer):
    """What every FeatureMap has."""

    def hashed(self, bits: int) -> FeatureMap:
        """This map folded into 2**bits slots by a hash."""
        from dotadd.features.terms import Hashed

        return Hashed(bits, self._map)

    def indexed(self, form: str = "hash_table") -> FeatureMap:
        """This map with a slot of w only for the features that occur in training, found through an index.

        form: "hash_table", "sorted_array", "trie", "suffix_array" or "dense".
        """
        from dotadd.features.terms import Term, checked_form

        return Term(self._map, form=checked_form(form))

    def normalized(self) -> FeatureMap:
        """This map with every row scaled to length one."""
        from dotadd.features.terms import Term

        return Term(self._map, unit=True)

    def normalized_repr(self) -> str:
        """The expression of that."""
        return f"{in_brackets(self._map)}.normalized()"

    def binary(self) -> FeatureMap:
        """This map with the value 1 for whatever occurs in a row, however often."""
        from dotadd.features.counts import ChangedCounts

        return ChangedCounts(self._map, "binary")

    def log(self) -> FeatureMap:
        """This map with 1 + ln of each count of a row (sublinear tf)."""
        from dotadd.features.counts import ChangedCounts

        return ChangedCounts(self._map, "log")

    def sqrt(self) -> FeatureMap:
        """This map with the square root of each count of a row."""
        from dotadd.features.counts import ChangedCounts

        return ChangedCounts(self._map, "sqrt")

    def idf(self, smooth: bool = True) -> FeatureMap:
        """This map with each slot times its inverse document frequency: ln((1 + rows) / (1 + rows with it)) + 1, or,
        if not `smooth`, ln(rows / rows with it) + 1. Learned from the training rows."""
        from dotadd.features.scales import Idf

        return Idf(self._map, smooth)

    def tfidf(self, smooth: bool = True) -> FeatureMap:
        """`idf`, and then every row scaled to length one, as scikit-learn's TfidfTransformer does."""
        return self.idf(smooth).normalized()

    def frequent(self, min_df: float = 1, max_df: float = 1.0) -> FeatureMap:
        """This map without the slots that fewer than min_df or more than max_df of the training rows have: whole
        numbers are rows, others a share of them."""
        from dotadd.features.scales import Frequent

        return Frequent(self._map, min_df, max_df)

    def scaled(self, how: str = "std", center: bool | None = None) -> FeatureMap:
        """This map with each slot scaled by what the training rows have there.

        how: "std" for a standard deviation of 1, "max" for a largest value of 1, "robust" for quartiles that are 1
            apart. Slots that do not vary stay as they are.
        center: whether the mean (of "robust" the median) is subtracted first. By default where data is dense, since
            sparse rows would become so.
        """
        from dotadd.features.scales import Scaled

        return Scaled(self._map, how, center)


def in_brackets(phi: FeatureMap) -> str:
    """Its expression, to be followed by a method."""
    return f"({phi!r})" if phi.is_sum else repr(phi)
