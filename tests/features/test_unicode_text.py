"""Text beyond ASCII, and what a word is: held against Python's `re`, scikit-learn, and twins letter by letter."""

from __future__ import annotations

import re

import naive_features as naive
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from dotadd import LinearSVM
from dotadd.data.batches import Strings
from dotadd.errors import FeatureError
from dotadd.features import BagOfWords, NGrams, WordNGrams, parse
from dotadd.features.checks import check_feature_map, materialize
from dotadd.features.forms import slot_of
from dotadd.features.reading import TextReading

WORDS = TextReading("words", True, "keep", True)
EVERY = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
TEXTS = [
    "",
    "Straße STRASSE straße",
    "ΟΔΟΣ οδος Οδυσσεύς",
    "İstanbul ISTANBUL \u0131stanbul",
    "Æther naïve NAÏVE naive Ñandú",
    "Ещё раз, ЕЩЁ другой ДРУГОЙ",
    "हिन्दी में लिखा",
    "我们 喜欢 机器学习。我們",
    "𝔸𐐀𐐨 ǅ ﬁn K Å",
    "don't--stop42 stop_42 e\u0301te\u0301",
    "x" * 9 + " " + "x" * 8 + " " + "é" * 17,
]
LANGUAGES = TEXTS[1:2] + TEXTS[4:8] + TEXTS[9:]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
mixed = st.lists(st.one_of(texts, st.sampled_from(["A", "é", " ", "_", "Σ", "ﬁ", "ab", "9", "\u0301"]))).map("".join)
broken = st.lists(st.one_of(texts.map(str.encode), st.binary(max_size=5)), max_size=6).map(b"".join)


def counts_match(phi, rows: list[str | bytes], counts: list[dict]) -> None:
    """Rows have the inner products of these counts, and no two features share a slot."""
    matrix = materialize(phi, Strings.from_list(rows))
    assert len(np.unique(matrix.indices)) == len(set().union(*counts))
    assert np.allclose(naive.gram(naive.rows_of(matrix)), naive.gram(counts))


@pytest.mark.parametrize("first", range(0, len(EVERY), 0x8000))
def test_every_character_is_a_letter_where_re_says_so_and_has_its_small_letter(first):
    text = " ".join(EVERY[first : first + 0x8000])
    assert WORDS.words(text.encode()) == [word.encode() for word in re.findall(r"\w", naive.small(text))]


@settings(max_examples=200)
@given(broken)
@example("a\u0130b\u03a3 \u03c2".encode() + b"\xff\xc3 c\xe4\xb8 \xed\xa0\x80 \xf4\x90\x80\x80 \xc0\xaf \xf0\x9f\x98")
def test_words_of_any_bytes_are_those_of_re(text):
    assert WORDS.words(text) == [word.encode("utf-8", "surrogateescape") for word in naive.unicode_words(text)]


@settings(max_examples=200)
@given(mixed)
def test_accents_are_stripped_as_scikit_learn_does_but_no_letter_becomes_longer(text):
    assert TextReading("text", False, "strip", True).clean(text.encode()) == naive.bare(text).encode()


@settings(max_examples=200)
@given(mixed)
@example("HTTPServer2 parseURLs_x9ÄÖÜber iOS15Beta é\u0301ÉA A1B2 οδος aȺ ΣΑς \u0130\u0130a")
def test_identifiers_are_split_as_their_reader_would(text):
    wanted = [word.encode() for word in naive.identifiers(text)]
    assert TextReading("identifiers", True, "keep", True).words(text.encode()) == wanted


@settings(max_examples=200)
@given(st.lists(st.one_of(st.sampled_from(["%", "%2f", "%C3%BC", "_", "/", "a", "É"]), texts)).map("".join))
@example("https://www.Example.com/a%20b/c_d-e?q=1&r=%zz#top%2")
def test_urls_are_split_at_all_but_letters_and_digits(text):
    wanted = [word.encode() for word in naive.url_words(text)]
    assert TextReading("urls", True, "keep", True).words(text.encode()) == wanted


@pytest.mark.parametrize("unicode", [True, False])
def test_escapes_of_urls_end_words_wherever_they_stand(unicode):
    """Also across the stretches of 32 bytes that are looked at together, beside other letters, and at the end."""
    rng = np.random.default_rng(0)
    parts = ["%", "%20", "%2", "%%2F", "%é0", "a" * 7, "Bc9", "_", " ", "é", "20", "f"]
    rows = ["".join(rng.choice(parts, rng.integers(0, 60))) for _ in range(300)]
    rows += ["x" * k + "%20" + y + z for k in range(70) for y in ("", "2", "y" * 40) for z in ("", "é")]
    urls = BagOfWords(bits=30, tokens="urls", unicode=unicode)
    if unicode:
        wanted = [naive.url_words(row) for row in rows]
        assert [[word.decode() for word in urls.reading.words(row.encode())] for row in rows] == wanted
    else:
        blanks = [re.sub(rb"%[0-9a-fA-F]{2}|_", b" ", row.encode()) for row in rows]
        wanted = [[word.decode() for word in re.findall(rb"[0-9A-Za-z\x80-\xff]+", row.lower())] for row in blanks]
    found = materialize(urls, Strings.from_list(rows))
    plain = BagOfWords(bits=30, unicode=unicode)
    assert (found != materialize(plain, Strings.from_list([" ".join(words) for words in wanted]))).nnz == 0


@pytest.mark.parametrize("unicode", [True, False])
@pytest.mark.parametrize("known", [3, 200, 4000])
def test_words_that_are_left_out_leave_the_slots_of_the_others(known, unicode):
    rng = np.random.default_rng(known)
    words = ["".join(rng.choice(list("abcdé犬"), n)) for n in rng.integers(1, 20, 5000)]
    stop, shortest = tuple(words[:known]), 3
    rows = [" ".join(rng.choice(words, 50)) for _ in range(200)]
    kept = [[word for word in row.split() if word not in set(stop) and len(word) >= shortest] for row in rows]
    for n in (1, (1, 2)):
        found = WordNGrams(n, bits=30, stop=stop, shortest_word=shortest, unicode=unicode)
        plain = materialize(WordNGrams(n, bits=30, unicode=unicode), Strings.from_list([" ".join(row) for row in kept]))
        assert (materialize(found, Strings.from_list(rows)) != plain).nnz == 0


@pytest.mark.parametrize("n", [1, (1, 2), (2, 3)])
def test_counts_are_those_of_words(n):
    shortest, longest = (n, n) if isinstance(n, int) else n
    counts = [naive.runs(naive.unicode_words(text.encode()), shortest, longest) for text in TEXTS]
    counts_match(WordNGrams(n, bits=30), TEXTS, counts)


@pytest.mark.parametrize(
    ("phi", "options"),
    [
        (WordNGrams((1, 2), bits=30), {"token_pattern": r"(?u)\w+", "ngram_range": (1, 2)}),
        (WordNGrams((1, 3), bits=30, shortest_word=2), {"ngram_range": (1, 3)}),
        (BagOfWords(bits=30, accents="strip", shortest_word=2), {"strip_accents": "unicode"}),
        (BagOfWords(bits=30, lowercase=False, shortest_word=2), {"lowercase": False}),
        (
            "WordNGrams((1, 2), bits=30, stop=('The', 'раз', 'naïve'), shortest_word=2)",  # which a kernel reads
            {"ngram_range": (1, 2), "stop_words": ["the", "раз", "naïve"]},
        ),
        (NGrams((1, 4), bits=30, unit="characters"), {"analyzer": "char", "ngram_range": (1, 4)}),
        (NGrams(5, bits=30, unit="characters", within="words"), {"analyzer": "char_wb", "ngram_range": (5, 5)}),
        (NGrams((1, 6), bits=30, unit="characters", within="words"), {"analyzer": "char_wb", "ngram_range": (1, 6)}),
        (
            NGrams((3, 9), bits=30, unit="characters", within="words", accents="strip"),
            {"analyzer": "char_wb", "ngram_range": (3, 9), "strip_accents": "unicode"},
        ),
    ],
)
def test_counts_are_those_of_scikit_learn(phi, options):
    rows = [*LANGUAGES, "The cat, the CAT\tand the_hat. A b", "the раз cat naïve the cat", "x"]
    if options.get("analyzer") != "char":  # there it makes one blank of several
        rows += ["  The  cat \n sat"]
    analyze = CountVectorizer(**options).build_analyzer()
    phi = parse(phi) if isinstance(phi, str) else phi
    counts_match(phi, rows, [naive.runs(analyze(text), 1, 1) for text in rows])


@pytest.mark.parametrize("n", [1, 2, 4, (1, 5), (4, 6)])
@pytest.mark.parametrize("within", ["text", "words"])
def test_ngrams_of_bytes_are_those_of_the_folded_text(n, within):
    shortest, longest = (n, n) if isinstance(n, int) else n
    analyzer = "char_wb" if within == "words" else "char"
    options = {"analyzer": analyzer, "ngram_range": (shortest, longest), "lowercase": False}
    analyze = CountVectorizer(**options).build_analyzer()
    # a letter for each byte; those of Latin-1 that are blanks would be taken for such
    letters = {byte: chr(0x4E00 + byte) for byte in range(0x80, 0x100)}
    rows = [naive.small(text).encode().decode("latin-1").translate(letters) for text in TEXTS]
    counts_match(NGrams(n, bits=30, within=within), TEXTS, [naive.runs(analyze(row), 1, 1) for row in rows])


def test_stop_words_are_folded_and_leave_out_as_if_they_were_not_there():
    batch = Strings.from_list(["The Ärger of ÄRGER and the end", "ärger", "the of"])
    without = Strings.from_list(["ÄRGER and end", "", ""])
    phi = WordNGrams((1, 2), bits=24)
    left = WordNGrams((1, 2), bits=24, stop=("THE", "of"))
    twice = Strings.from_list(["Ärger ÄRGER and end", "ärger", ""])
    assert (materialize(left, batch) != materialize(phi, twice)).nnz == 0
    assert (materialize(WordNGrams(1, bits=24, stop=("the", "of", "Ärger")), batch)[0].sum()) == 2
    assert (materialize(BagOfWords(bits=24, stop="english"), batch)[0].sum()) == 3  # ärger twice, end
    assert materialize(phi, without).sum() == 5


def test_words_of_many_bytes_are_told_apart_by_each_of_them():
    rng = np.random.default_rng(0)
    words = {"".join(rng.choice(list("ab"), n)) for n in range(1, 40) for _ in range(50)}
    counts_match(
        BagOfWords(bits=32), [" ".join(words), *words], [dict.fromkeys(words, 1.0), *({w: 1.0} for w in words)]
    )


def test_words_stand_anywhere_among_the_eights():
    rng = np.random.default_rng(0)
    rows = ["".join(rng.choice(list("ab ,"), n)) for n in range(200)]
    counts_match(BagOfWords(bits=30), rows, [naive.runs(re.findall(r"\w+", row), 1, 1) for row in rows])


@pytest.mark.parametrize(
    "expression",  # since stop words are read by a kernel, which each worker would compile while it collects
    [
        "WordNGrams((1, 2), bits=8, accents='strip', tokens='identifiers')",
        "WordNGrams((1, 2), bits=8, tokens='urls', binary=True, stop='english')",
        "BagOfWords(stop=('cat',), shortest_word=2)",
        "BagOfWords(bits=6, unicode=False)",
        "NGrams((1, 3), bits=8, within='words')",
        "NGrams((2, 5), unit='characters', accents='strip')",
        "NGrams((1, 2), bits=5, within='words', unit='characters')",
        "NGrams((1, 2), unicode=False)",
    ],
)
def test_maps_of_unicode_keep_the_contract(expression):
    phi = parse(expression)
    check_feature_map(phi, Strings.from_list(TEXTS))
    check_feature_map(phi, Strings.from_list([EVERY[:5000], "aB1" * 50, "a " * 50, "\ufdfa" * 30, "½⑴" * 30]))
    check_feature_map(phi, Strings(np.frombuffer("äb CD, é F ABab!".encode()[:16], np.uint8), width=8))


@pytest.mark.parametrize("accents", ["keep", "strip"])
@settings(max_examples=50, deadline=None)
@given(st.lists(broken, min_size=1, max_size=4))
def test_no_text_has_more_features_than_its_bound(accents, rows):
    batch = Strings.from_list(rows)
    for phi in (
        BagOfWords(accents=accents),
        WordNGrams((1, 3), accents=accents, tokens="identifiers"),
        NGrams((1, 3), accents=accents),
        NGrams((1, 4), accents=accents, within="words"),
        NGrams((3, 4), accents=accents, within="words", unit="characters"),
    ):
        bound = np.asarray(phi.bound(batch))
        for row in range(len(batch)):
            written = phi.origins(batch, np.array([row]), np.array([10**6]))[1]
            assert 10**6 - written[0] <= bound[row]


@pytest.mark.parametrize("unit", ["bytes", "characters"])
def test_chinese_and_japanese_are_told_apart_by_ngrams(unit):
    rng = np.random.default_rng(0)
    topics = {
        "machines": "机器学习模型训练数据算法预测神经网络優化参数 データ学習モデルを訓練する予測アルゴリズム".replace(
            " ", ""
        ),
        "kitchen": "厨房做菜米饭面条蔬菜味道好吃酱油晚餐料理 台所で野菜を炒めて醤油を加え晩ご飯を食べる".replace(
            " ", ""
        ),
    }
    rows, y = [], []
    for label, text in topics.items():
        for _ in range(60):
            at = rng.integers(0, len(text) - 6, 3)
            rows.append("。".join(text[k : k + 6] for k in at))
            y.append(label)
    phi = NGrams((3, 6) if unit == "bytes" else (1, 2), unit=unit).normalized()
    order = rng.permutation(len(rows))
    rows, y = [rows[k] for k in order], np.array(y)[order]
    svm = LinearSVM(phi, random_state=0).fit(rows[:60], y[:60])
    assert svm.score(rows[60:], y[60:]) > 0.95


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NGrams(2, within="lines"), "within has to be one of text, words"),
        (lambda: NGrams(2, unit="letters"), "unit has to be one of bytes, characters"),
        (lambda: NGrams(2, unit="characters", unicode=False), "needs unicode=True"),
        (lambda: BagOfWords(accents="strip", unicode=False), "needs unicode=True"),
        (lambda: BagOfWords(accents="drop"), "accents has to be one of keep, strip"),
        (lambda: BagOfWords(tokens="lines"), "tokens has to be one of words, identifiers, urls"),
        (lambda: BagOfWords(shortest_word=0), "shortest_word has to be"),
        (lambda: BagOfWords(stop="german"), 'stop has to be "english" or a tuple of words'),
        (lambda: BagOfWords(stop=("the", 3)), 'stop has to be "english" or a tuple of words'),
        (lambda: BagOfWords(stop=("don't",)), "is 2 words as text is read"),
        (lambda: BagOfWords(unicode=1), "unicode has to be True or False"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(make, message):
    with pytest.raises(FeatureError, match=message):
        make()


@pytest.mark.parametrize("tokens", ["words", "identifiers", "urls"])
def test_long_texts_are_read_as_short_ones_are(tokens):
    """They are gone through piece by piece, wherever a piece ends: in blanks, behind half a character, in a word."""
    rng = np.random.default_rng(0)
    parts = ["a", "B", "9", "é", "我", "_", "%20", " ", "  ", "\n", "wordByWord", "x" * 300]
    reading = TextReading(tokens, True, "keep", True)
    for blank in (0.0, 0.001, 0.3):
        chances = np.array([1.0 - blank if part.strip(" ") else blank for part in parts])
        text = "".join(rng.choice(parts, 9_000, p=chances / chances.sum())) + " "
        counts = [naive.runs(reading.words(text.encode()), 1, 2)]
        counts_match(WordNGrams((1, 2), bits=32, tokens=tokens), [text], counts)


def test_a_word_has_the_slot_that_saved_models_have_it_in():
    """Eight bytes at a time, each eight stirred into those before; then as all ids are hashed."""

    def stirred(h: int) -> int:
        h = h * 0x9E3779B97F4A7C15 % 2**64
        return h ^ h >> 29

    words = ["a", "Ärger", "eightbyt", "ninebytes", "x" * 16, "y" * 17, "z" * 40]
    for word in words:
        letters, h = naive.small(word).encode(), 0
        while len(letters) > 8:
            h, letters = stirred(h ^ int.from_bytes(letters[:8], "little")), letters[8:]
        number = h ^ int.from_bytes(letters, "little")
        phi = BagOfWords(bits=30)
        assert materialize(phi, Strings.from_list([word])).indices == slot_of(np.uint64(number), 30)
        assert materialize(WordNGrams(2, bits=30), Strings.from_list([f"{word} {word}"])).indices == slot_of(
            np.uint64(stirred((stirred(number) + number) % 2**64)), 30
        )
