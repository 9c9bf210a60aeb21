"""Plain twins of what is said of variants: the usual form, deltaSVM, gain and loss; each from two whole sequences."""

from __future__ import annotations

from naive_genome import windows


def usual(text: str, pos: int, ref: str, alt: str) -> tuple[int, str, str]:
    """The form of `vt normalize`: right ends are cut while they agree, and empty alleles grow to the left."""
    changed = True
    while changed:
        changed = False
        if ref and alt and ref[-1] == alt[-1]:
            ref, alt, changed = ref[:-1], alt[:-1], True
        if not ref or not alt:
            pos -= 1
            ref, alt, changed = text[pos - 1] + ref, text[pos - 1] + alt, True
        if ref == alt:
            break
    while len(ref) > 1 and len(alt) > 1 and ref[0] == alt[0]:
        pos, ref, alt = pos + 1, ref[1:], alt[1:]
    return pos, ref, alt


def change(text: str, pos: int, ref: str, alt: str) -> tuple[int, int, str]:
    """From which letter on how many go, and which come; without the letter that insertions and deletions begin with."""
    pos, ref, alt = usual(text, pos, ref, alt)
    if len(ref) != len(alt) and ref[0] == alt[0]:
        pos, ref, alt = pos + 1, ref[1:], alt[1:]
    return pos - 1, len(ref), alt


def delta(text: str, pos: int, ref: str, alt: str, weights: dict[str, float], order: int) -> float:
    """The sum of the weights of all l-mers of the whole changed sequence less that of the sequence as it was."""

    def total(letters: str) -> float:
        return sum(weights[letters[k : k + order]] for k in range(len(letters) - order + 1))

    start, gone, new = change(text, pos, ref, alt)
    low, high = start - order + 1, start + gone + order - 1
    return total(text[low:start] + new + text[start + gone : high]) - total(text[low:high])


def effect(model, floor, text, pos, ref, alt, *, signal, length, before, distance):
    """Gain, loss, and the exon letters where they are, less POS in the usual form; None where nothing changes."""
    start, gone, new = change(text, pos, ref, alt)
    changed = text[:start] + new + text[start + gone :]

    def scores(letters: str, last: int, coordinate) -> dict[tuple[object, str], float]:
        found = windows({"x": letters}, signal, length, before)[0]
        near = [one for one in found if start - distance <= one.position - 1 <= last + distance - 2]
        score = model.decision_function([one.letters for one in near]) if near else []
        return {(coordinate(one.position - 1), one.strand): max(s, floor) for one, s in zip(near, score, strict=True)}

    def of_changed(place: int) -> object:
        if place < start:
            return place
        if place >= start + len(new):
            return place + gone - len(new)
        return place if place < start + gone else ("new", place)

    old = scores(text, start + gone, lambda place: place)
    now = scores(changed, start + len(new), of_changed)
    rises = {key: round(now.get(key, floor) - old.get(key, floor), 9) for key in old | now}
    gain, loss = max([0.0, *rises.values()]), max([0.0, *(-rise for rise in rises.values())])
    usual_pos = usual(text, pos, ref, alt)[0]

    def exon(value: float, sign: int) -> int | None:
        if value == 0.0:
            return None
        place, strand = next(key for key, rise in rises.items() if sign * rise == value)
        place = max(start, start + gone - 1) if isinstance(place, tuple) else place
        right = (strand == "+") == (signal == "acceptor")
        return (place + 2 if right else place - 1) + 1 - usual_pos

    return gain, loss, exon(gain, 1), exon(loss, -1)
