"""A page is well-formed, needs nothing else, runs nothing, tells the truth, and fits on a phone."""

import html
import json
import re
import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dotadd import KernelSVM, LinearSVM, LinearSVMCV, NGrams, WordNGrams
from dotadd.errors import ModelError
from dotadd.model.linear import Model
from dotadd.report.mistakes import Mistakes
from dotadd.report.page import Subject, report_page, require_told, write_report
from dotadd.report.record import gap_sentence
from dotadd.report.study import held_out, studied
from dotadd.sources import open as open_source

XHTML = "{http://www.w3.org/1999/xhtml}"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


def subject(svm, X, y, **more):
    results = svm.result_ if isinstance(svm.result_, list) else [svm.result_]
    source = open_source(X, y)
    return Subject(
        svm.model_, "m.dotadd", ["train.csv"], results, studied(svm.model_, source, "test"), source=source, **more
    )


def numbers(classes, n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6)).astype(np.float32)
    noisy = X + 0.5 * rng.standard_normal(X.shape)
    return X, (noisy[:, 0] > 0).astype(int) if classes == 2 else noisy[:, :classes].argmax(axis=1)


def sequences(n=80):
    rng = np.random.default_rng(1)
    letters = rng.choice(list("ACGT"), (n, 20))
    y = np.arange(n) % 2
    letters[(y == 1) & (rng.random(n) < 0.9), 5:8] = list("GCG")
    return ["".join(row) for row in letters], y


def pages():
    """Name and page of every kind of machine."""
    X, y = numbers(2)
    yield "two", subject(LinearSVM(loss="logistic").fit(X, y), X, y)
    cv = LinearSVMCV(Cs=[0.01, 0.1, 1.0], cv=3, probability="sigmoid", threshold="recall=0.9", random_state=0).fit(X, y)
    yield "chosen", subject(cv, X, y, peak="1 GB")
    X, y = numbers(4)
    yield "several classes", subject(LinearSVM().fit(X, y), X, y)
    yield "kernel", subject(KernelSVM("RBF(gamma=0.5)").fit(X, y), X, y)
    y = [[k for k in range(3) if row[k] > 0] for row in X]
    yield "several labels", subject(LinearSVM().fit(X, y), X, y)
    X, y = sequences()
    yield "sequences", subject(LinearSVM("WeightedDegree(3)").fit(X, y), X, y)
    yield "unplaced", subject(LinearSVM("Gkm(4, 3)").fit(X, y), X, y)
    texts = ["buy <b>now</b> & win", "see you at lunch", "buy cheap", "lunch tomorrow", "buy lunch", "now see"] * 5
    labels = ["spam", "ham", "spam", "ham", "spam", "ham"] * 4 + ["ham", "spam"] * 3
    yield "words", subject(LinearSVM(WordNGrams((1, 2)).hashed(10)).fit(texts, labels), texts, labels)
    yield "no data", Subject(LinearSVM(NGrams(2)).fit(texts, labels).model_, "m", missing="not measured")


@pytest.fixture(scope="module")
def written():
    return {name: (about, report_page(about)) for name, about in pages()}


def require_harmless(page):
    """Parses, runs nothing, loads nothing; returns the tree."""
    tree = ElementTree.fromstring(page.replace("<!DOCTYPE html>", ""))
    assert not {part.tag for part in tree.iter() if re.search("script|iframe|object|embed|link$|img|base$", part.tag)}
    for part in tree.iter():
        names = {name.split("}")[-1] for name in part.attrib}
        assert not names & {"href", "src", "srcset", "action", "data"}
        assert not any(name.startswith("on") for name in names)
        assert "url(" not in part.get("style", "")
    for style in (part.text or "" for part in tree.iter() if part.tag.endswith("style")):
        assert "url(" not in style
        assert "@import" not in style
    known = ("http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg")
    assert not re.sub("|".join(known), "", page).count('"http')
    return tree


def test_pages_of_all_machines_are_harmless_and_whole(written):
    for name, (about, page) in written.items():
        tree = require_harmless(page)
        headings = [part.text for part in tree.iter(f"{XHTML}h2")]
        assert "What was trained" in headings, name
        assert ("How C was chosen" in headings) == (name == "chosen")
        assert ("The rows it is most wrong about" in headings) == (about.study is not None)
        assert ("What matters where" in headings) == (name == "sequences")
        assert ("The strongest features" in headings) == (name != "kernel")
        pictures = "".join(tree.itertext())
        assert ("Calibration" in pictures) == (name in ("two", "chosen")), name
        assert ("Confusion matrix" in pictures) == (name not in ("several labels", "no data")), name
        assert ("ROC curve" in pictures) == (name != "no data")
        assert ("Convergence" in pictures) == (name != "no data")


def test_a_page_tells_the_measures_of_the_evaluation(written):
    about, page = written["two"]
    found = about.study.evaluation
    for value in (found.accuracy, found.auroc[0], found.auprc[0], found.log_loss, found.calibration_error):
        assert f"{value:.4f}" in page
    assert f"{100 * about.model.training['gap']:.2g} %" in page
    about, page = written["chosen"]
    assert all(f"{mean:.4g}" in page for mean in about.model.training["cross_validation"]["mean"])
    assert f"scores above {about.model.threshold.value:.6g} are of it" in page
    about, page = written["several labels"]
    assert str(about.study.evaluation.micro_f1) in page


UGLY = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(
    labels=st.lists(UGLY, min_size=2, max_size=2, unique=True), texts=st.lists(UGLY, min_size=2, max_size=6), name=UGLY
)
def test_whatever_labels_texts_and_names_hold_is_text(labels, texts, name):
    phi, rng = NGrams(2).hashed(6), np.random.default_rng(0)
    shape_of = LinearSVM(phi).fit(["ab", "cd"], [0, 1]).model_
    model = Model(
        shape_of.phi, shape_of.shape, rng.standard_normal((1, 64)), [0.0], np.sort(np.array(labels)), {"rows": 2}
    )
    y = np.array([labels[k % 2] for k in range(len(texts))])
    source = open_source(texts, y)
    about = Subject(model, name, [name], study=studied(model, source, name), source=source)
    tree = require_harmless(report_page(about, largest=3))
    assert {part.tag.split("}")[1] for part in tree.iter()} <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "section", "dl", "dt", "dd", "div",
        "figure", "svg", "g", "path", "text", "circle", "rect", "ul", "li", "table", "thead", "tbody", "tr", "td", "th",
        "span",
    }  # fmt: skip


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("piece", [7, 1000])
def test_the_worst_rows_are_those_of_a_sort_of_all(classes, piece):
    X, y = numbers(classes)
    model = LinearSVM().fit(X, y).model_
    scores, kept = model.decision_function(X), Mistakes(model, 5)
    whole = open_source(X, y).load()
    for first in range(0, len(X), piece):
        stop = min(first + piece, len(X))
        kept.see(whole.slice(first, stop), scores[first:stop])
    taken = model.predict(X)
    if classes == 2:
        wrong = np.where(taken != y, np.abs(scores), 0.0)
    else:
        wrong = scores.max(axis=1) - scores[np.arange(len(y)), y]
    expected = np.argsort(-wrong, kind="stable")[:5]
    assert [mistake.row for mistake in kept.worst()] == expected.tolist()
    assert [mistake.wrong for mistake in kept.worst()] == pytest.approx(wrong[expected].tolist())
    assert all(mistake.truth == str(y[mistake.row]) for mistake in kept.worst())
    assert all(mistake.taken == str(taken[mistake.row]) for mistake in kept.worst())


def test_held_out_scores_are_measured_as_rows_in_order():
    X, y = numbers(2)
    svm = LinearSVMCV(Cs=[0.1, 1.0], cv=4, random_state=0).fit(X, y)
    found = held_out(svm.model_, open_source(X, y), svm.held_out_scores_, "folds")
    assert found.evaluation.rows == len(X)
    expected = ((svm.held_out_scores_ > 0) == (y == 1)).mean()
    assert found.evaluation.accuracy == pytest.approx(expected)
    assert expected == pytest.approx(svm.cv_results_["pooled_test_score"][svm.best_index_])
    assert held_out(svm.model_, open_source(X, y), svm.held_out_scores_[:-1], "folds") is None
    some = svm.held_out_scores_.copy()
    some[:10] = np.nan
    found = held_out(svm.model_, open_source(X, y), some, "folds")
    assert found.evaluation.rows == len(X) - 10
    assert min(mistake.row for mistake in found.worst) >= 10


def test_the_sentence_says_whether_the_answer_is_as_good_as_was_asked():
    assert "as good as was asked for" in gap_sentence({"gap": 5e-4, "tol": 1e-3})
    assert "0.05 %" in gap_sentence({"gap": 5e-4, "tol": 1e-3})
    early = gap_sentence({"gap": 0.25, "tol": 1e-3, "reason": "the time limit was reached"})
    assert "not as good" in early
    assert "25 %" in early
    assert "the time limit was reached" in early
    assert "not measured" in gap_sentence({"gap": None, "reason": "the objective no longer improves"})
    assert "0.002" in gap_sentence({"violation": 0.002, "tol": 0.001})


def test_a_model_of_which_nothing_is_known_is_refused(tmp_path):
    model = Model(LinearSVM().fit([[0.0], [1.0]], [0, 1]).model_.phi, *_bare())
    about = Subject(model, "m.dotadd")
    with pytest.raises(ModelError, match=r"m\.dotadd: the model has no record of its training"):
        write_report(about, tmp_path / "a.html")
    assert not list(tmp_path.iterdir())
    require_told(Subject(model, "m", study=studied(model, open_source(np.eye(2)[:, :1], [0, 1]), "here")))


def _bare():
    model = LinearSVM().fit([[0.0], [1.0]], [0, 1]).model_
    return model.shape, model.w, model.intercept, model.classes


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to look at pages with")
@pytest.mark.parametrize("wide", [400, 1200])
def test_pages_fit_and_run_without_errors_in_chromium(written, tmp_path, wide):
    look = """<script>addEventListener("load", () => {
      const inside = document.querySelector("iframe").contentDocument, out = [];
      const scrolls = part => part && (getComputedStyle(part).overflowX == "auto" || scrolls(part.parentElement));
      for (const part of inside.body.querySelectorAll("*")) if (!part.closest("svg") || part.tagName == "svg")
        if (!scrolls(part) && part.getBoundingClientRect().right > WIDE + 0.5)
          out.push(part.tagName + " " + part.textContent.slice(0, 40));
      const svg = inside.querySelector("svg").getBoundingClientRect();
      const told = {scroll: inside.documentElement.scrollWidth, high: svg.height, out};
      document.body.textContent = "told" + JSON.stringify(told) + "told";
    })</script>""".replace("WIDE", str(wide))
    for name, (about, page) in written.items():
        if about.study is None:
            continue
        frame = f'<iframe style="width:{wide}px;height:900px;border:0" srcdoc="{html.escape(page)}"></iframe>'
        path = tmp_path / "look.html"
        path.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{look}{frame}</body>", encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        done = subprocess.run([CHROMIUM, *options, profile, path.as_uri()], capture_output=True, text=True, timeout=120)
        assert "CONSOLE" not in done.stderr, done.stderr
        told = json.loads(html.unescape(done.stdout.split("told")[1]))
        assert told["scroll"] <= wide, (name, told)
        assert told["out"] == [], name
        assert told["high"] > 100
