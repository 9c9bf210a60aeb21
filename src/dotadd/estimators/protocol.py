"""scikit-learn's estimator protocol without scikit-learn: parameters, tags, feature names, routing of weights.

Importing scikit-learn takes longer than training on a small array, and nothing here needs it: an estimator is what has
`get_params`, `set_params` and tags. It is imported only where it asks for its own classes (tags, requests, exceptions).
"""

from __future__ import annotations

import copy
import inspect
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import numpy as np

from dotadd._util.threads import thread_count
from dotadd.errors import DotaddError, UntrainedClassWarning
from dotadd.features.base import FeatureMap
from dotadd.features.expression import parse
from dotadd.features.linear import Linear
from dotadd.model.file import NO_PROBABILITIES, Classifier, classifier_tags
from dotadd.model.plotted import Plots
from dotadd.problem.columns import ClassWeight, positive
from dotadd.solvers.result import Reason
from dotadd.sources.label_sets import ONE_EACH, given_sets
from dotadd.sources.table import Layout

if TYPE_CHECKING:
    from dotadd.explain.explanation import Explanation
    from dotadd.pictures.picture import Picture

T = TypeVar("T")
# A result, or a list of them where there are several classes: who writes `svm.result_.gap` knows which, and no type
# checker does, so the list is not held against them.
OneOrEach: TypeAlias = T | Any


class Estimator(Plots):
    """Base of the estimators: constructor arguments are parameters, attributes that end in _ come from fit.

    What fit has found is a `model_`, which has all it takes to predict.
    """

    phi: Any
    C: float
    tol: float
    max_time: float | None
    class_weight: ClassWeight | None
    random_state: Any
    n_jobs: int | None
    model_: Any
    result_: Any

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        signature = inspect.signature(cls.__init__)
        return {name: p.default for name, p in list(signature.parameters.items())[1:]}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments; with `deep` also those of the feature map, as phi__name."""
        params = {name: getattr(self, name) for name in sorted(self._defaults())}
        phi = params.get("phi")
        inside = phi.get_params() if deep and isinstance(phi, FeatureMap) else {}
        return params | {f"phi__{name}": value for name, value in inside.items()}

    def set_params(self, **params: Any) -> Self:
        """Change some of the constructor's arguments."""
        known = self._defaults()
        inside = {name: value for name, value in params.items() if name.startswith("phi__") and "phi" in known}
        for name, value in params.items():
            if name in inside:
                continue
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {sorted(known)}."
                )
            setattr(self, name, value)
        if inside:
            phi = getattr(self, "phi", None)
            phi = parse(phi) if isinstance(phi, str) else Linear() if phi is None else copy.copy(phi)
            self.phi = phi.set_params(**{name.removeprefix("phi__"): value for name, value in inside.items()})
        return self

    def __repr__(self) -> str:
        changed = []
        for name, default in self._defaults().items():
            value = getattr(self, name)
            if value is not default and repr(value) != repr(default):
                changed.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        from dotadd._util.wording import card

        known = self._defaults()
        changed = {name: repr(getattr(self, name)) for name in known if repr(getattr(self, name)) != repr(known[name])}
        if not self.__sklearn_is_fitted__():
            return card(f"{type(self).__name__}, not fitted", changed)
        names = ("rows", "solver", "gap", "violation", "reason")
        found = {name: self.model_.training[name] for name in names if self.model_.training.get(name) is not None}
        return card(f"{type(self).__name__}, fitted", changed | {"classes": self.classes_.tolist()} | found)

    def _plotted(self, X: object, y: object) -> tuple[Classifier, int | None]:
        self._require_fitted()
        if y is not None:  # a table that has its labels has one more column
            self._check_feature_names(X)
        return self.model_, self.n_jobs

    def plot_convergence(self) -> Picture:
        """How the gap fell while training ran, and what is proved of it at the end; of a kernel machine the violation,
        and of a solver that knows no gap the objective."""
        from dotadd.model.plots import plot_convergence

        self._require_fitted()
        found = self.result_
        return plot_convergence(self.model_, found if isinstance(found, list) else [found], self.tol)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: (n,) for two classes, where positive means the second; (n, classes) for more."""
        self._require_fitted()
        self._check_feature_names(X)
        model: Classifier = self.model_
        return model.decision_function(X, n_jobs=self.n_jobs)

    def predict(self, X: Any) -> Any:
        """Labels: an array, or where rows may have several, lists of labels or an indicator matrix, as they were given
        to fit."""
        scores = self.decision_function(X)
        return self.model_.labels_of(scores)

    def explain(
        self, X: object, *, method: str = "auto", target: object = None, largest: int = 20, rows: int | None = None
    ) -> Explanation:
        """What features, letters and columns add to the scores of these rows, as `Model.explain` tells."""
        self._require_fitted()
        self._check_feature_names(X)
        model: Classifier = self.model_
        return model.explain(X, method=method, target=target, largest=largest, rows=rows, n_jobs=self.n_jobs)

    @property
    def predict_proba(self) -> Callable[..., np.ndarray]:
        """predict_proba(X): probabilities of shape (rows, classes), where there are any: with the logistic loss, or if
        `model_` has a calibration. `predict` goes by scores."""
        return self._probable("predict_proba")

    @property
    def predict_log_proba(self) -> Callable[..., np.ndarray]:
        """predict_log_proba(X): their logarithms."""
        return self._probable("predict_log_proba")

    def _probable(self, name: str) -> Callable[..., np.ndarray]:
        """A method of the model, if it has it; before fit, if it will have it."""
        if self.__sklearn_is_fitted__():
            getattr(self.model_, name)
        elif getattr(self, "loss", None) != "logistic" and getattr(self, "probability", None) is None:
            raise AttributeError(NO_PROBABILITIES)

        def probabilities(X: object) -> np.ndarray:
            self._require_fitted()
            self._check_feature_names(X)
            found: np.ndarray = getattr(self.model_, name)(X, n_jobs=self.n_jobs)
            return found

        return probabilities

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy. What is not given, labels or weights, X brings itself, as a file or another source does."""
        self._require_fitted()
        if y is not None:  # a table that has its labels has one more column
            self._check_feature_names(X)
        model: Classifier = self.model_
        return model.score(X, column(y) if model.several is None else y, sample_weight, n_jobs=self.n_jobs)

    def set_fit_request(self, **requests: bool | str | None) -> Self:
        """Say which arguments of `fit` pipelines and searches of scikit-learn hand on, where its metadata routing is
        on: sample_weight=True."""
        return self._request("fit", requests)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """The same for `score`."""
        return self._request("score", requests)

    def get_metadata_routing(self) -> object:
        """What was said so, for scikit-learn; of the other arguments, that nothing was said."""
        from sklearn.utils.metadata_routing import MetadataRequest

        said = getattr(self, "_metadata_request", None)
        if said is None:
            said = MetadataRequest(owner=type(self).__name__)
            for method in ("fit", "score"):
                for name in self._metadata(method):
                    getattr(said, method).add_request(param=name, alias=None)
        return said

    @classmethod
    def _metadata(cls, method: str) -> list[str]:
        """Arguments of a method beside the data."""
        return [name for name in inspect.signature(getattr(cls, method)).parameters if name not in ("self", "X", "y")]

    def _request(self, method: str, requests: Mapping[str, bool | str | None]) -> Self:
        from sklearn import get_config

        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "This method is only available when metadata routing is enabled. You can enable it using "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        known = self._metadata(method)
        if unknown := sorted(set(requests) - set(known)):
            raise TypeError(f"{method} has no argument {unknown[0]!r} beside the data; it has {', '.join(known)}")
        said = self.get_metadata_routing()
        for name, alias in requests.items():
            getattr(said, method).add_request(param=name, alias=alias)
        self._metadata_request = said  # under this name scikit-learn's clone takes it along
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; `dotadd.load(path)` reads it."""
        self._require_fitted()
        self.model_.save(path)

    @property
    def classes_(self) -> np.ndarray:
        """The labels that it tells apart, sorted."""
        classes: np.ndarray = self.model_.classes
        return classes

    def _require_common(self) -> None:
        """Refuse parameters that both kinds of machine have, and that cannot act."""
        require, state = self._require, self.random_state
        require(positive(self.C), "C", "a positive number")
        require(positive(self.tol), "tol", "a positive number")
        require(self.max_time is None or positive(self.max_time), "max_time", "None or a positive number of seconds")
        given = self.class_weight
        sound = given is None or isinstance(given, Mapping) or (isinstance(given, str) and given == "balanced")
        require(sound, "class_weight", 'None, "balanced" or a dict of label: weight')
        seeded = state is None or whole(state, at_least=0) or hasattr(state, "integers") or hasattr(state, "randint")
        require(seeded, "random_state", "None, a whole number from 0 on, a RandomState or a Generator")
        require(self.n_jobs is None or whole(self.n_jobs, at_least=None), "n_jobs", "None or a whole number")
        thread_count(self.n_jobs)

    def _seed(self) -> int:
        """Where random numbers start, from the parameter `random_state`."""
        state = self.random_state
        if state is None:
            return int(np.random.SeedSequence().generate_state(1)[0])
        if isinstance(state, Integral):
            return int(state)
        return int(state.integers(2**31) if hasattr(state, "integers") else state.randint(2**31 - 1))

    def _require(self, condition: bool, name: str, wanted: str) -> None:
        """Refuse a parameter that cannot act."""
        if not condition:
            raise DotaddError(f"{name} is {getattr(self, name)!r}, and has to be {wanted}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit first.")

    def __sklearn_tags__(self) -> Any:
        return classifier_tags()

    def _forget(self) -> None:
        """Drop all that an earlier fit has found: what the next one does not set must not speak for its data."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _warn_of_untrained(self, results: Sequence[Any]) -> None:
        """Tell of classes that there is no answer for."""
        late = [result for result in results if not result.trained]
        never = [str(label) for label in self.classes_[self.model_.never_predicted()].tolist()]
        if not late or not (never or len(late) == len(results)):
            return
        what = (
            f"{len(never)} of {len(self.classes_)} classes were trained; they are never predicted: {', '.join(never)}"
        )
        what = what if never else "any class was trained, and predictions mean nothing"
        when = {Reason.MAX_TIME: "the time limit was reached"}.get(late[0].reason, "training ended")
        warnings.warn(f"{when} before {what}", UntrainedClassWarning, stacklevel=5)

    def _remember_feature_names(self, X: Any) -> None:
        names = _feature_names(X)
        if names is not None:
            self.feature_names_in_ = names

    def _check_feature_names(self, X: object) -> None:
        """Refuse a table whose columns are not those of fit; warn where only one of the two has names."""
        seen, names = getattr(self, "feature_names_in_", None), _feature_names(X)
        kind, columns = type(self).__name__, self.model_.columns
        if (seen is None and names is None) or (columns is not None and columns.kinds is not None):
            return  # where a map reads columns, they are found by name, among others and in any order
        if seen is None:
            if columns is None:  # a file has had names; by these they are found
                warnings.warn(f"X has feature names, but {kind} was fitted without feature names", stacklevel=3)
        elif names is None:
            if hasattr(X, "shape"):
                message = f"X does not have valid feature names, but {kind} was fitted with feature names"
                warnings.warn(message, stacklevel=3)
        elif list(names) != list(seen):
            message = "The feature names should match those that were passed during fit.\n"
            unseen, missing = sorted(set(names) - set(seen)), sorted(set(seen) - set(names))
            if unseen:
                message += "Feature names unseen at fit time:\n" + _listed(unseen)
            if missing:
                message += "Feature names seen at fit time, yet now missing:\n" + _listed(missing)
            if not unseen and not missing:
                message += "Feature names must be in the same order as they were in fit.\n"
            raise ValueError(message)


def columns_read(phi: FeatureMap | str | None) -> Layout | None:
    """The columns of a table that a map reads, where it reads several."""
    phi = parse(phi) if isinstance(phi, str) else phi
    return Layout.of_cells(phi.reads) if isinstance(phi, FeatureMap) and phi.reads else None


def whole(value: Any, *, at_least: int | None = 1) -> bool:
    """Whether this is a whole number, and large enough. True and False are no numbers."""
    return isinstance(value, Integral) and not isinstance(value, bool) and (at_least is None or int(value) >= at_least)


def _feature_names(X: Any) -> np.ndarray | None:
    """The names of a table's columns; None where there are none, or where they are numbers."""
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "shape"):
        return None
    names = list(columns)
    return np.array(names, dtype=object) if names and all(isinstance(name, str) for name in names) else None


def _listed(names: list[str], at_most: int = 5) -> str:
    rest = "- ...\n" if len(names) > at_most else ""
    return "".join(f"- {name}\n" for name in names[:at_most]) + rest


def column(y: Any) -> Any:
    """y as one column; a second dimension of length one is dropped with a warning, as scikit-learn does. Several labels
    a row are refused."""
    if y is None:
        return None
    if given_sets(y) is not None:
        raise DotaddError(ONE_EACH)
    array = np.asarray(y)
    if array.ndim != 2 or array.shape[1] != 1:
        return array
    from sklearn.exceptions import DataConversionWarning

    message = "A column-vector y was passed when a 1d array was expected."
    warnings.warn(message, DataConversionWarning, stacklevel=4)
    return array.ravel()
