"""Reuters-21578: the stories of the ModApte split as strings, and whether each is about acquisitions."""

from __future__ import annotations

import html
import re
import tarfile

import numpy as np

from benchmarks import datasets

ARCHIVE = datasets.FOLDER / "reuters21578" / "reuters21578.tar.xz"
SUBSET = 466  # stories, as many as in the paper's subset
_STORY = re.compile(r"<REUTERS ([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_TEXT = re.compile(r"<(TITLE|BODY)>(.*?)</\1>", re.DOTALL)
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)


def stories() -> tuple[list[str], np.ndarray]:
    """All 12,902 stories of both parts, training first, in lower case with single blanks; 1 for acq, -1 otherwise."""
    found: dict[str, list[tuple[str, int]]] = {"TRAIN": [], "TEST": []}
    with tarfile.open(datasets.existing(ARCHIVE)) as archive:
        names = sorted(name for name in archive.getnames() if name.endswith(".sgm"))
        members = {name: archive.extractfile(name) for name in names}
        for name in names:
            file = members[name]
            assert file is not None
            for about, story in _STORY.findall(file.read().decode("latin-1")):
                split = re.search(r'LEWISSPLIT="(\w+)"', about)
                if 'TOPICS="YES"' not in about or split is None or split[1] not in found:
                    continue
                text = " ".join(html.unescape(" ".join(part for _, part in _TEXT.findall(story))).lower().split())
                topics = _TOPICS.search(story)
                found[split[1]].append((text, 1 if topics is not None and "<D>acq</D>" in topics[1] else -1))
    texts, labels = zip(*(found["TRAIN"] + found["TEST"]), strict=True)
    return list(texts), np.array(labels)


def subset(rows: int = SUBSET, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Some stories drawn at random, in their order."""
    texts, labels = stories()
    chosen = np.sort(np.random.default_rng(seed).permutation(len(texts))[:rows])
    return [texts[row] for row in chosen], labels[chosen]


def tiny(rows: int = 12, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Made up ones, for tests."""
    rng = np.random.default_rng(seed)
    words = ["oil", "shares", "bank", "buys", "grain", "net", "loss", "stake"]
    labels = np.where(np.arange(rows) % 2, 1, -1)
    return [" ".join(rng.choice(words[:6] if label > 0 else words[2:], 12)) for label in labels], labels
