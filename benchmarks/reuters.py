"""Reuters-21578: the news stories of the ModApte split, and which of them are about acquisitions.

9,603 stories train and 3,299 test. A story is its title and its body, or all of its text where it has no such parts;
entities are resolved, and runs of white space are one space.
"""

from __future__ import annotations

import html
import re
import tarfile
from typing import NamedTuple

import numpy as np

from benchmarks import datasets

SUBSET = 466  # stories, as many as in the paper's subset
ARCHIVE = datasets.FOLDER / "reuters21578" / "reuters21578.tar.xz"
TOPIC = "acq"
STORY = re.compile(r"<REUTERS ([^>]*)>(.*?)</REUTERS>", re.DOTALL)
PART = re.compile(r"<(TITLE|BODY)>(.*?)</\1>", re.DOTALL)
TEXT = re.compile(r"<TEXT[^>]*>(.*?)</TEXT>", re.DOTALL)
TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
END = "\x03"  # closes the texts of the archive


class Stories(NamedTuple):
    """Texts in the order of the archive, whether each is about the topic, and whether it is one to train on."""

    texts: list[str]
    about: np.ndarray
    train: np.ndarray

    @property
    def signs(self) -> np.ndarray:
        return np.where(self.about, 1, -1)

    def subset(self, count: int = SUBSET) -> Stories:
        """So many drawn at random, in their order."""
        return self.some(np.sort(np.random.default_rng(0).permutation(len(self.texts))[:count]))

    def some(self, rows: np.ndarray) -> Stories:
        return Stories([self.texts[row] for row in rows], self.about[rows], self.train[rows])


def load(topic: str = TOPIC, tiny: bool = False) -> Stories:
    """The stories of the split; tiny stands for made-up ones."""
    if tiny:
        return _made_up(60)
    texts, topics, train = _read()
    return Stories(texts, np.array([topic in some for some in topics]), np.array(train))


class Topical(NamedTuple):
    """Texts in the order of the archive, ones where they have a topic, the topics, and whether to train on them."""

    texts: list[str]
    topics: np.ndarray
    names: list[str]
    train: np.ndarray


def load_topics(tiny: bool = False) -> Topical:
    """The stories of the split with all of their topics; tiny stands for made-up ones."""
    if tiny:
        texts, topics, train = _made_up_topics(200)
    else:
        texts, topics, train = _read()
    names = sorted({topic for some in topics for topic in some})
    table = np.array([[name in some for name in names] for some in topics])
    return Topical(texts, table.astype(np.int8), names, np.array(train))


def _read() -> tuple[list[str], list[set[str]], list[bool]]:
    """Texts, topics, and whether to train on them."""
    texts, topics, train = [], [], []
    with tarfile.open(datasets.existing(ARCHIVE)) as archive:
        for name in sorted(name for name in archive.getnames() if name.endswith(".sgm")):
            file = archive.extractfile(name)
            assert file is not None
            for attributes, story in STORY.findall(file.read().decode("latin-1")):
                split = _split(attributes)
                if split is not None:
                    texts.append(_text(story))
                    topics.append(set(re.findall(r"<D>(.*?)</D>", TOPICS.findall(story)[0])))
                    train.append(split)
    return texts, topics, train


def _split(attributes: str) -> bool | None:
    """Whether a story is one to train on; None if it is not in the split."""
    if 'TOPICS="YES"' not in attributes:
        return None
    return {"TRAIN": True, "TEST": False}.get(re.findall(r'LEWISSPLIT="([^"]*)"', attributes)[0])


def _text(story: str) -> str:
    parts = [text for _, text in PART.findall(story)] or TEXT.findall(story)
    return " ".join(html.unescape(html.unescape(" ".join(parts))).replace(END, " ").split())


def _made_up_topics(count: int) -> tuple[list[str], list[set[str]], list[bool]]:
    rng = np.random.default_rng(0)
    words = {
        "acq": ["buys", "stake"],
        "grain": ["wheat", "corn"],
        "crude": ["oil", "barrel"],
        "trade": ["tariff", "deal"],
    }
    topics = [{name for name in words if rng.random() < 0.35} for _ in range(count)]
    common = ["the", "company", "said", "on", "monday", "of"]
    texts = [
        " ".join([*rng.choice(common, 8), *(word for name in sorted(some) for word in words[name])]) for some in topics
    ]
    return texts, topics, (rng.random(count) < 0.75).tolist()


def _made_up(count: int) -> Stories:
    rng = np.random.default_rng(0)
    about = rng.random(count) < 0.4
    words = [["buys", "stake", "merger", "shares"], ["wheat", "rates", "crude", "trade"]]
    common = ["the", "company", "said", "on", "monday", "of"]
    texts = [" ".join(rng.choice(common + words[int(not one)], 12)) for one in about]
    return Stories(texts, about, rng.random(count) < 0.75)
