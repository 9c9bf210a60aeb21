"""Peaks of a genome: windows around them, with a background that looks alike, gapped k-mers, which letters count, and
what changes of a letter do.

python examples/peaks_and_variants.py
"""

import random

from dotadd import LinearSVM
from dotadd.genome.peaks import Peaks

MOTIF = "CCACCAGGGGGCGC"  # like CTCF's
random.seed(0)
letters = random.choices("ACGT", k=200_000)
places = range(500, 199_500, 1000)
for at in places:
    letters[at : at + len(MOTIF)] = MOTIF
genome = "".join(letters)
with open("genome.fa", "w") as fasta, open("peaks.bed", "w") as bed:
    fasta.write(f">chr1\n{genome}\n")
    for at in places:
        bed.write(f"chr1\t{at - 20}\t{at + 20}\n")

train, test = (
    Peaks("genome.fa", "peaks.bed", length=80, holdout=0.3, stretch=5000, part=p) for p in ("train", "holdout")
)
svm = LinearSVM("Gkm(l=8, k=5).normalized()", random_state=0).fit(train)
print(f"{svm.model_.training['rows']} windows, right on {svm.score(test):.1%} of those of other places")

window = genome[places[0] - 30 : places[0] + 50]
row = svm.explain([window])[0]
print(window)
print("".join("^" if letter > row.letters.max() / 3 else " " for letter in row.letters), "what makes the score")

at = 30 + MOTIF.index("GGGGG") + 2
for where, name in ((at, "within"), (3, "outside")):
    changed = window[:where] + ("A" if window[where] != "A" else "T") + window[where + 1 :]
    before, after = svm.decision_function([window, changed])
    print(f"{window[where]} -> {changed[where]} {name} the motif: the score changes by {after - before:+.2f}")
