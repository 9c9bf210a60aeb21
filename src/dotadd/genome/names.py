"""Names of chromosomes: what one file calls chr1 another calls 1, and the mitochondrion is chrM here and MT there."""

from __future__ import annotations

from collections.abc import Iterable

_MITOCHONDRION = ("m", "mt")


def match_names(wanted: Iterable[str], present: Iterable[str]) -> dict[str, str]:
    """For each wanted name the one that is present for the same chromosome; names without one are left out.

    The name itself goes before the same one with or without "chr", and M is MT. Names are told apart by capitals
    but for those of "chr" and the mitochondrion. Where two present names would do equally well, the first is taken.
    """
    exact: dict[str, str] = {}
    alike: dict[str, str] = {}
    for name in present:
        exact.setdefault(name, name)
        alike.setdefault(_bare(name), name)
    found = {name: exact.get(name) or alike.get(_bare(name)) for name in dict.fromkeys(wanted)}
    return {name: other for name, other in found.items() if other is not None}


def _bare(name: str) -> str:
    """What the names of one chromosome have in common."""
    bare = name[3:] if name[:3].lower() == "chr" and len(name) > 3 else name
    return "MT" if bare.lower() in _MITOCHONDRION else bare
