"""After `dotadd warmup` nothing is left to compile for what people usually do.

What a process asks the cache for is noted, in one process for warmup and in another for the commands. So nothing needs
to be compiled anew for this test: machine code that is there from earlier runs will do.
"""

import os
import subprocess
import sys

import pytest
import test_cli_numbers as walk

from dotadd import _jit

NOTED = """
import sys
from dotadd import _jit
asked, load = set(), _jit.KernelCache.load_overload
def noted(cache, signature, context):
    asked.add(f"{cache.name(signature, context.codegen().magic_tuple())} {signature}")
    return load(cache, signature, context)
_jit.KernelCache.load_overload = noted
from dotadd.cli import run
for line in sys.stdin.read().splitlines():
    assert run(line.split("|")) == 0, line
open(sys.argv[1], "w").write("\\n".join(sorted(asked)))
"""
MAILS = "text,label,size,kind\n" + "".join(
    f"{'buy cheap pills now' if k % 2 else 'lunch at noon tomorrow'} {k},{'spam' if k % 2 else 'ham'},{k % 7},{k % 3}\n"
    for k in range(40)
)
THREE = "".join(f"{k % 3} 1:{k % 7}.5 2:{k % 5}\n" for k in range(40))
COMMANDS = (
    "train|rows.svm|-o|rows|-q",
    "train|three.svm|-o|three|-q",
    "train|rows.svm|-o|logistic|-q|--loss|logistic",
    "train|rows.svm|-o|auto|-q|-C|auto|--Cs|2|--cv|2",
    "train|rows.svm|-o|rbf|-q|--kernel|rbf",
    "train|mails.csv|-o|words|-q|--column|text|--features|WordNGrams((1, 2)).tfidf()",
    "train|mails.csv|-o|ngrams|-q|--column|text|--features|NGrams((3, 5)).normalized()",
    "train|mails.csv|-o|table|-q",
    "train|dna.tsv|-o|dna|-q|--column|0|--label|1|--features|Spectrum(3)",
    "train|dna.tsv|-o|gkm|-q|--column|0|--label|1|--features|Gkm(3, 2)",
    "windows|--fasta|genome.fa|--gff|genes.gff|--signal|acceptor|--length|12|--before|4|-o|sites.arrow",
    "train|sites.arrow|-o|sites|-q|--max-passes|9|--features|WeightedDegree(3).hashed(6) + WeightedSpectrum(3)",
    "predict|rows|rows.svm|-o|out.csv",
    "predict|three|three.svm|-o|out.csv",
    "predict|rbf|rows.svm|-o|out.csv",
    "predict|words|mails.csv|-o|out.csv",
    "predict|table|mails.csv|-o|out.csv",
    "predict|dna|dna.tsv|--column|0|--label|1|-o|out.csv",
    "evaluate|rows|rows.svm",
    "evaluate|three|three.svm",
    "evaluate|words|mails.csv",
    "evaluate|logistic|rows.svm",
    "calibrate|rows|rows.svm|-o|sure|--threshold|recall=0.5",
    "calibrate|rows|rows.svm|-o|sure|--method|isotonic",
    "scan|genome.fa|--model|sites|--signal|acceptor|--before|4|-o|out.bed",
    "variants|calls.vcf|--fasta|genome.fa|--model|gkm|-o|out.vcf",
    "variants|calls.vcf|--fasta|genome.fa|--model|sites|--before|4|-o|out.vcf",
    "explain|words|mails.csv|-o|out.tsv",
    "explain|dna|dna.tsv|--column|0|--label|1|-o|out.tsv",
    "explain|gkm|dna.tsv|--column|0|--label|1|-o|out.tsv",
    "kmers|gkm|-o|out.tsv",
    "tune|mails.csv|--column|text|-q|--Cs|2|--cv|2|--features|WordNGrams(1).tfidf()",
    "compare|rows.svm|-q|-o|out.json|--solvers|dcd,ocas",
    "inspect|words|--data|mails.csv|--column|text",
    "inspect|sites|--data|sites.arrow",
    "convert|rows.svm|out.arrow",
)


def asked_for(tmp_path, name, lines):
    """What the cache is asked for by these commands, in a process of their own."""
    where = tmp_path / name
    done = subprocess.run(
        [sys.executable, "-c", NOTED, str(where)], input="\n".join(lines), cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return set(where.read_text().splitlines())


@pytest.mark.skipif(_jit.STORE is None, reason="nothing is kept, so nothing can be compiled beforehand")
@pytest.mark.unchecked
def test_no_command_asks_for_what_warmup_has_not_compiled(tmp_path):
    texts = {"rows.svm": walk.ROWS, "three.svm": THREE, "mails.csv": MAILS, "dna.tsv": walk.DNA}
    texts |= {"genome.fa": walk.GENOME, "genes.gff": walk.GENES, "calls.vcf": walk.CALLED}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    asked = asked_for(tmp_path, "commands", COMMANDS)
    assert len(asked) > 50
    missing = asked - asked_for(tmp_path, "warmup", ["warmup|--jobs|1"])
    assert not missing, "\n".join(sorted(missing))
