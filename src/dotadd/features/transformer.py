"""Transformer: a map as scikit-learn sees it, with parameters, `fit`, `transform` to CSR or to a data frame, and names
of features.

A map is a description. `fit(X)` keeps beside it what the data has told (columns, lengths, features that occur), and
`transform` works with that; whoever makes another map of this one starts from the description alone. Maps that need to
see no data (hashed ones, k-mers that are counted through) transform without `fit`.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from dotadd._util.memory import available, words
from dotadd.core.block import Block
from dotadd.data.batches import Batch
from dotadd.errors import FeatureError
from dotadd.features.filling import Filling

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from dotadd.features.base import FeatureMap
    from dotadd.sources.base import Source

MOST_NAMES = 1 << 24
WIDEST = 2**63 - 1  # columns of a matrix of SciPy
OUTPUTS = ("default", "pandas", "polars")
BESIDE = ("_fitted", "_sklearn_output_config")  # what is kept of maps beside their description


class Transformer:
    """scikit-learn's protocol, over what every FeatureMap has."""

    _fitted: FeatureMap | None = None
    """What `fit` has made of this map; None before, and where it is the map itself."""
    _sklearn_output_config: Mapping[str, str] = {}
    """What `set_output` was told, under the name that scikit-learn looks for."""

    def fit(self, X: object, y: object = None) -> Self:
        """See the data, where that is needed: the number of columns, the longest string, the features that occur.

        X: anything `dotadd.open` takes. `y` is not looked at.
        """
        from dotadd.features.base import Shape

        source = self._opened(X)
        batches = (chunk.batch for chunk in source.chunks())
        phi = self._map.resolve(reduce(Shape.joined, map(Shape.of, batches)))
        learner, more = phi.learner(), True
        while more:
            for batch in _checked(source, phi):
                learner.see(batch)
                if not phi.learns:  # any rows will do
                    break
            more = learner.again()
        phi = learner.done()
        self._fitted = None if phi is self else phi
        return self

    def transform(self, X: object) -> csr_array:
        """phi of each row: a matrix in which an index that occurs twice in a row has the sum of its values; or a data
        frame, if `set_output` or the configuration of scikit-learn say so.

        X: anything `dotadd.open` takes. A map that has to see data first raises until `fit` was called.
        """
        return self._put_out(self._matrix(X), X)

    def _matrix(self, X: object) -> csr_array:
        from scipy.sparse import vstack

        phi = self._as_fitted
        if phi.dim > WIDEST:
            raise FeatureError(f"{self!r} has more ids than a matrix has columns: use .indexed() or .hashed(bits)")
        pieces = [piece for batch in _checked(self._opened(X), phi) for piece in _pieces(phi, batch)]
        matrix = pieces[0] if len(pieces) == 1 else vstack(pieces, format="csr")
        matrix.eliminate_zeros()
        return matrix

    def fit_transform(self, X: object, y: object = None) -> csr_array:
        """`fit` and then `transform` of the same rows."""
        source = self._opened(X)
        return self._put_out(self.fit(source)._matrix(source), X)

    def set_output(self, *, transform: str | None = None) -> Self:
        """What `transform` gives: "default" a sparse matrix, "pandas" or "polars" a data frame of dense columns; None
        leaves it as it is. Columns are called as `get_feature_names_out` does; those of a hash by their numbers."""
        if transform is not None:
            if transform not in OUTPUTS:
                raise FeatureError(f"transform has to be one of {', '.join(OUTPUTS)}, and not {transform!r}")
            self._sklearn_output_config = {"transform": transform}
        return self

    def _put_out(self, matrix: csr_array, X: object) -> csr_array:
        """The matrix as it is wanted."""
        wanted = self._output
        if wanted == "default":
            return matrix
        nbytes = 8 * matrix.shape[0] * matrix.shape[1]
        if nbytes > available():
            raise FeatureError(
                f"a data frame of {self!r} takes {words(nbytes)}, and {words(available())} are free: "
                'set_output(transform="default") gives a sparse matrix'
            )
        given = list(getattr(X, "columns", [])) if hasattr(X, "shape") else []
        named = bool(given) and all(isinstance(name, str) for name in given)
        columns = self.get_feature_names_out(given if named else None).tolist()
        if wanted == "polars":
            import polars

            return cast("csr_array", polars.DataFrame(matrix.toarray(), schema=columns, orient="row"))
        import pandas

        index = X.index if isinstance(X, pandas.DataFrame | pandas.Series) else None
        return cast("csr_array", pandas.DataFrame(matrix.toarray(), index, columns))

    @property
    def _output(self) -> str:
        """What `transform` gives: as `set_output` or else the configuration of scikit-learn says."""
        usual = sys.modules["sklearn"].get_config()["transform_output"] if "sklearn" in sys.modules else "default"
        return self._sklearn_output_config.get("transform", usual)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """What the columns of `transform` are called, where their numbers tell it: columns by their names (or x0, x1,
        ..), k-mers by their letters, with @ and the position where it counts. Features of a hash have no names, and in
        data frames their numbers: x17.

        input_features: the names of the columns of the data.
        """
        phi = self._as_fitted
        if phi.dim > MOST_NAMES:
            raise FeatureError(f"{self!r} spans {phi.dim:.3g} features, too many to be named: use .indexed()")
        columns = None if input_features is None else [str(name) for name in input_features]
        names = phi.names(np.arange(phi.dim), columns)
        if self._output != "default":
            names = [f"x{slot}" if name is None else name for slot, name in enumerate(names)]
        if any(name is None for name in names):
            raise FeatureError(
                f"{self!r} has no names for its features: a hash does not know what fell into it. Use .indexed(), "
                "which is exact, or name the strongest by data (dotadd inspect --data); a map of one's own needs invert"
            )
        return np.array(names, object)

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """The parameters by name: the constructor's, those of a map inside under their own names, and those of the
        parts of a stack as part__name. Of maps of one's own, the arguments that are kept under their names."""
        parameters = inspect.signature(type(self).__init__).parameters.values()
        names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)][1:]
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    def set_params(self, **params: object) -> Self:
        """Change some parameters of this very map, as scikit-learn asks for it; what it has seen is forgotten."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise FeatureError(f"{self!r} has no parameter {name!r}; it has {', '.join(known)}")
        if params:
            told = self._sklearn_output_config
            self.__dict__ = dict(vars(self.with_params(params)))
            self._sklearn_output_config = told
        return self

    def with_params(self, params: Mapping[str, object]) -> FeatureMap:
        """A map like this one, with some parameters changed."""
        make = cast("Callable[..., FeatureMap]", type(self))
        return make(**self.get_params(deep=False) | dict(params))

    def _opened(self, X: object) -> Source:
        from dotadd.sources import open as open_source
        from dotadd.sources.table import Layout

        reads = self._map.reads
        return open_source(X, like=Layout.of_cells(reads) if reads else None)

    @property
    def _map(self) -> FeatureMap:
        return cast("FeatureMap", self)

    @property
    def _as_fitted(self) -> FeatureMap:
        """What `fit` has made of it, where there is something to be made."""
        return self._map if self._fitted is None else self._fitted

    def __copy__(self) -> Self:
        """What is made of a copy is another map: it has seen nothing."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update({name: value for name, value in vars(self).items() if name != "_fitted"})
        return twin

    def __sklearn_clone__(self) -> Self:
        return copy.copy(self)

    def __sklearn_is_fitted__(self) -> bool:
        phi = self._as_fitted
        try:
            phi.state()  # raises where there is something to be learned
            return phi.dim > 0
        except FeatureError:
            return False

    def __sklearn_tags__(self) -> object:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(sparse=True, string=True, three_d_array=True),
        )


def _checked(source: Source, phi: FeatureMap) -> Iterator[Batch]:
    """The rows of a source, the first one that phi cannot take being refused. Virtual ones are made."""
    from dotadd.features.base import require_kind

    for chunk in source.chunks():
        batch = chunk.batch.own()
        require_kind(phi, batch)
        if (bad := phi.check(batch)) is not None:
            raise chunk.error(bad.row, bad.message, bad.column)
        yield batch


def _pieces(phi: FeatureMap, batch: Batch) -> Iterator[csr_array]:
    phi = phi.prepared(batch)
    for block, at, _ in Filling(phi, batch, np.float64).blocks(np.arange(len(batch), dtype=np.int64)):
        yield block_matrix(block, at, phi.dim)


def block_matrix(block: Block, at: np.ndarray, dim: int) -> csr_array:
    """These rows of a block as a matrix, equal indices merged."""
    from scipy.sparse import csr_array

    start, counts = block.start[at], (block.end - block.start)[at]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    places = inside + np.repeat(start, counts)
    indices = inside if block.indices is None else block.indices[places]
    values = np.ones(len(places)) if block.values is None else block.values[places].astype(np.float64)
    narrow = np.int32 if max(dim, len(places)) < 2**31 else np.int64
    matrix = csr_array((values, indices.astype(narrow), offsets.astype(narrow)), shape=(len(at), dim))
    matrix.sum_duplicates()
    return matrix
