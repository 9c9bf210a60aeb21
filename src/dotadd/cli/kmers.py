"""dotadd kmers: what each l-mer counts in a model of gapped k-mers."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from dotadd._util.atomic import require_writable
from dotadd._util.compressed import writing
from dotadd.cli.options import Whole
from dotadd.cli.progress import Bar
from dotadd.cli.screen import Json, write_json


def kmers(
    model: str,
    /,
    *,
    output: Annotated[str, Parameter(name=["--output", "-o"])],
    jobs: Whole | None = None,
    as_json: Json = False,
) -> None:
    """Write the weight of every l-mer, as deltaSVM reads it.

    One line an l-mer: its letters, a tab, and the score that the model gives it
    as a sequence of its own. An l-mer and its reverse complement have one weight,
    and the first of them in the alphabet stands for both. The model is one of
    gapped k-mers, trained here or by LS-GKM.

    Examples:

        dotadd kmers peaks.dotadd -o weights.tsv
        dotadd kmers ENCFF123ABC.model.txt.gz -o weights.tsv.gz

    Parameters
    ----------
    model
        The model file.
    output
        The file to write; compressed if its name ends in .gz, .bz2 or .xz.
    jobs
        Threads; all cores by default.
    """
    from dotadd.model.linear import load
    from dotadd.model.lmer_weights import lmer_scores, map_of_lmers

    require_writable(output)
    loaded = load(model)
    phi = map_of_lmers(loaded, model)
    total, done = 4**phi.order // (2 if phi.strands == "both" else 1), 0
    with Bar("scoring l-mers") as bar, writing(output) as file:
        for words, scores in lmer_scores(loaded, phi, n_jobs=jobs):
            letters, l = words.letters.tobytes().decode(), phi.order  # noqa: E741  # as everybody calls it
            pairs = ((letters[at * l : (at + 1) * l], score) for at, score in enumerate(scores.tolist()))
            file.write("".join(f"{word}\t{score:.6g}\n" for word, score in pairs).encode())
            done += len(words)
            bar(min(1.0, done / total))
    if as_json:
        write_json({"letters": phi.order, "lmers": done, "file": output})
