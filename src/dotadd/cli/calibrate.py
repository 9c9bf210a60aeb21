"""dotadd calibrate: probabilities and a threshold for a model, from data that it was not trained on."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from dotadd._util.atomic import require_writable
from dotadd.cli.options import Reading, Whole, tell_skipped
from dotadd.cli.screen import Json, facts, write_json
from dotadd.errors import DotaddError


def calibrate(
    model: str,
    /,
    *data: str,
    output: Annotated[str, Parameter(name=["--output", "-o"])],
    method: Literal["sigmoid", "isotonic", "none"] = "sigmoid",
    threshold: str | None = None,
    jobs: Whole | None = None,
    as_json: Json = False,
    reading: Reading = Reading(),  # noqa: B008
) -> None:
    """Give a model probabilities, and a threshold for a purpose.

    Both are learned from labelled data that the model was not trained on: scores of
    rows that it has seen are better than those of others. The model that is written
    has what the other one has, and its predictions go by the threshold. Models of
    the logistic loss have probabilities without this.

    The threshold is the best one that holds to what is asked for: precision=0.99,
    recall=0.9, fpr=1e-4 (false positives among rows of the first class), or what
    mistakes cost, such as fp=5,fn=1 (taken for the second class, and missed).

    Examples:

        dotadd calibrate a9a.dotadd a9a.more -o sure.dotadd
        dotadd calibrate spam.dotadd mails.csv --label spam -o strict.dotadd \\
            --method isotonic --threshold precision=0.99

    Parameters
    ----------
    model
        The model file.
    data
        One or more files with labels, as for training, but with other rows.
    output
        The model file to write.
    method
        A sigmoid, for which a hundred rows are enough; a rising curve of any shape, which takes a thousand; or none.
    threshold
        What predictions are for; 0 is the threshold without it.
    jobs
        Threads; all cores by default.
    """
    from dotadd.model.linear import load
    from dotadd.model.threshold import Purpose

    if not data:
        raise DotaddError("give a data file to learn from")
    if method == "none" and threshold is None:
        raise DotaddError("--method none without --threshold would change nothing")
    if threshold is not None:
        Purpose.of(threshold)
    require_writable(output)
    loaded, source = load(model), reading.open(list(data))
    loaded.calibrate(source, method=None if method == "none" else method, threshold=threshold, n_jobs=jobs)
    tell_skipped(source)
    loaded.save(output)
    if as_json:
        method_used = None if loaded.calibration is None else loaded.calibration.method
        cut = None if loaded.threshold is None else loaded.threshold.to_dict()
        write_json({"probability": method_used, "threshold": cut, "model": output})
        return
    lines = {} if loaded.calibration is None else {"probabilities": f"by {loaded.calibration.method}"}
    facts(lines | ({} if loaded.threshold is None else {"threshold": str(loaded.threshold)}) | {"model": output})
