"""A fit leaves nothing of an earlier one behind."""

import numpy as np
import pandas as pd
import pytest
from problems import noisy

import dotadd
from dotadd import DataError, KernelSVM, LinearSVM
from dotadd.cluster.engine import LocalEngine
from dotadd.cluster.shard import Shard

TEXTS, LABELS = ["ACACAC", "GTGTGT", "ACACAA", "GTGTTT"], [1, -1, 1, -1]


def table():
    X, y = noisy(n=60)
    return pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])]), y


def fitted(svm):
    return {name for name in vars(svm) if name.endswith("_")} | {
        name for name in ("n_features_in_", "feature_names_in_") if hasattr(svm, name)
    }


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("make", [lambda: LinearSVM("Spectrum(2)"), lambda: KernelSVM("Spectrum(2)")])
def test_a_fit_on_strings_forgets_the_columns_of_a_table(make):
    svm = make()
    of_table = svm.set_params(**{"phi" if isinstance(svm, LinearSVM) else "kernel": "Linear()"}).fit(*table())
    assert of_table.n_features_in_ == len(of_table.feature_names_in_)
    svm.set_params(**{"phi" if isinstance(svm, LinearSVM) else "kernel": "Spectrum(2)"}).fit(TEXTS, LABELS)
    fresh = make().fit(TEXTS, LABELS)
    assert fitted(svm) == fitted(fresh)
    assert svm.predict(TEXTS).tolist() == LABELS
    assert svm.predict(pd.DataFrame({"dna": TEXTS})).tolist() == LABELS


def test_a_fit_on_parts_forgets_the_columns_of_a_table():
    X, y = noisy(n=60)
    svm = LinearSVM(random_state=0).fit(*table())
    parts = LocalEngine([Shard(dotadd.open(X[:, :3], y), 10**6)])
    svm.fit(None, engine=parts)
    assert not hasattr(svm, "feature_names_in_")
    assert svm.n_features_in_ == 3
    assert svm.predict(X[:, :3]).shape == (60,)


@pytest.mark.parametrize("machine", [LinearSVM, KernelSVM])
def test_a_fit_that_fails_leaves_no_earlier_model(machine):
    svm = machine(random_state=0).fit(*table())
    with pytest.raises(DataError):
        svm.fit(np.eye(3), [1, 1, 1])
    assert not fitted(svm)
    assert not svm.__sklearn_is_fitted__()
