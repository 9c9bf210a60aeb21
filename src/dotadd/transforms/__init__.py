"""Sets of transformations: changes of raw examples under which their labels stay what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotadd._lazy import lazy

if TYPE_CHECKING:
    from dotadd.transforms.base import TransformError as TransformError
    from dotadd.transforms.base import Transforms as Transforms
    from dotadd.transforms.expression import parse as parse
    from dotadd.transforms.images import mirror as mirror
    from dotadd.transforms.images import translate as translate
    from dotadd.transforms.product import Product as Product
    from dotadd.transforms.strings import reverse_complement as reverse_complement
    from dotadd.transforms.strings import shift as shift
    from dotadd.transforms.vectors import functions as functions
    from dotadd.transforms.warps import rotate as rotate
    from dotadd.transforms.warps import scale as scale

__all__, __getattr__ = lazy(
    __name__,
    {
        ".base": ["TransformError", "Transforms"],
        ".expression": ["parse"],
        ".images": ["mirror", "translate"],
        ".product": ["Product"],
        ".strings": ["reverse_complement", "shift"],
        ".vectors": ["functions"],
        ".warps": ["rotate", "scale"],
    },
)
