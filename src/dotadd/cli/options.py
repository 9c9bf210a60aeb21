"""The options of commands: how to read data, virtual examples, the problem and when it is solved, kernel machines.

Numbers are what was typed, neither rounded nor cut, or a line says what is wanted.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter, Token

from dotadd._util.standard_input import DEVICE, NAME, standard_input
from dotadd.cli.screen import tell
from dotadd.cli.updating import unsaid
from dotadd.errors import DotaddError
from dotadd.estimators.course import Ends
from dotadd.sources.formats import FOLDERS, FORMATS

if TYPE_CHECKING:
    from dotadd.cli.large import Streaming
    from dotadd.cluster.partitions import Partitions
    from dotadd.estimators.kernel import KernelSVM
    from dotadd.estimators.linear import LinearSVM
    from dotadd.estimators.protocol import Estimator
    from dotadd.model.file import Record
    from dotadd.sources.base import Source
    from dotadd.sources.table import Layout

    FormatName = str
else:
    FormatName = Literal[(*FORMATS, *FOLDERS)]  # --help and complaints list them

DIGITS = 19  # of the largest whole number that is taken, 2**63 - 1
PROCESSES = 1024  # workers on one machine


def whole(least: int = 1 - (1 << 63), most: int = (1 << 63) - 1) -> Parameter:
    """An option that takes whole numbers of this range."""
    bounds = [f"of at least {least:,}"] * (least > -(1 << 62)) + [f"of at most {most:,}"] * (most < 1 << 62)

    def number(_: object, tokens: Sequence[Token]) -> int:
        try:
            found = Decimal(tokens[0].value)
        except InvalidOperation:
            found = Decimal("nan")
        if found.is_finite() and found.adjusted() < DIGITS and found == int(found) and least <= found <= most:
            return int(found)
        raise ValueError(f"{tokens[0].value!r} is not a whole number {' and '.join(bounds)}".rstrip())

    return Parameter(converter=number)


def _finite(_: object, tokens: Sequence[Token]) -> float:
    try:
        found = float(tokens[0].value)
    except ValueError:
        found = math.nan
    if math.isfinite(found):
        return found
    raise ValueError(f"{tokens[0].value!r} is not a finite number")


def _cost(kind: object, tokens: Sequence[Token]) -> float | Literal["auto"]:
    return "auto" if tokens[0].value == "auto" else _finite(kind, tokens)


Real = Annotated[float, Parameter(converter=_finite)]
Whole = Annotated[int, whole()]
Count = Annotated[int, whole(1)]
Processes = Annotated[int, whole(1, PROCESSES)]
Seed = Annotated[int, whole(0, (1 << 32) - 1)]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]  # an option that is given or not


@Parameter(name="*", group="Reading the data")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read data."""

    format: FormatName | None = None
    """Format of the file, where name and content do not tell; of standard input, for a model by default as its data
    was. Folders hold texts or images."""

    label: str | None = None
    """Column with the labels, "label" by default; or array of an .npz file."""

    column: str | None = None
    """Column with the text or sequence; without it, all columns of numbers. Of an .npz file, the array of examples."""

    separator: str | None = None
    """What stands between labels, where a cell may have several, such as ","; an empty cell has none. Lists of labels
in JSON lines and Parquet need none."""

    weight: str | None = None
    """Column with the weights of the rows."""

    labels: str | None = None
    """Second file of names and labels, for FASTA, lattices and folders; for idx images, the idx file of labels."""

    no_header: Flag = False
    """The first line of CSV or TSV is an example; columns are called by their numbers, from 0."""

    zero_based: Flag = False
    """Indices of LIBSVM files count from 0."""

    size: str | None = None
    """Rows of numbers are images of this height and width, such as 24x32."""

    symbols: str | None = None
    """Words of lattices and their numbers, one of each a line; without it, words are hashed."""

    semiring: Literal["log", "real"] | None = None
    """Weights of lattices are costs (log, the default) or stand as they are (real)."""

    on_bad_row: Literal["error", "skip"] = "error"
    """Stop at a row that cannot be used, or leave it out and count it."""

    def given(self) -> Record:
        """The options that were given. Others are not passed on, so that one without meaning for the format is
        refused."""
        given = {name: value for name, value in asdict(self).items() if value not in (None, False)}
        return given | {"header": not given.pop("no_header")} if self.no_header else given

    def open(
        self,
        data: Sequence[str],
        like: Layout | None = None,
        *,
        read_as: Record | None = None,
        ids: Sequence[str] = (),
    ) -> Source:
        """The source of these files, or of standard input; of a table, with the columns of `like`. `read_as` is how a
        model's data was read, and goes behind what was given. `ids` are carried along."""
        from dotadd.sources import open as open_source

        given = self.given()
        if DEVICE in data:
            data, given["format"] = [self._spooled(data)], self.format or format_of_input(read_as)
        return open_source([Path(name) for name in data], like=like, read_as=read_as, ids=ids, **given)

    def _spooled(self, data: Sequence[str]) -> str:
        if len(data) > 1:
            raise DotaddError("standard input (-) is read alone, and not with other files")
        return standard_input()


def format_of_input(read_as: Record | None) -> str | None:
    """The format of standard input where nobody says: that of the model's data, unless it plainly is another."""
    from dotadd.sources.formats import certain_format, first_bytes

    before = (read_as or {}).get("format")
    name = "txt" if before == "texts" else before
    if name not in FORMATS:
        return None
    return certain_format(first_bytes(standard_input())) or (name if FORMATS[name].doubt else None)


def columns_for(svm: Estimator, source: Source, *, quiet: bool) -> Layout | None:
    """The columns of a table that the features read. Where nobody has said which features, they are chosen and told."""
    from dotadd.estimators.proposal import propose
    from dotadd.estimators.protocol import columns_read
    from dotadd.features.expression import parse

    if svm.phi is None and (proposal := propose(source)) is not None:
        svm.phi = parse(proposal.expression)
        if not quiet:
            tell(str(proposal))
    return columns_read(svm.phi)


def tell_skipped(source: Source | Partitions) -> None:
    """One line on stderr if rows were left out."""
    if source.skipped.count:
        tell(f"left out {source.skipped.count:,} bad rows; the first: {source.skipped.first}")


def title_of(data: Sequence[str]) -> str:
    """What to call the data on screen."""
    if data[0] == DEVICE:
        return NAME
    return os.path.basename(data[0]) + (f" and {len(data) - 1} more" if len(data) > 1 else "")


@Parameter(name="*", group="Virtual examples")
@dataclass(frozen=True, kw_only=True)
class VirtualExamples:
    """Which changed copies of the examples are trained on beside them."""

    virtual: str | None = None
    """Train on all changes of each example, such as "translate(2) * rotate(6, step=3) * scale(0.05)"; there are
mirror(), and for strings shift(letters) and reverse_complement()."""

    virtual_memory: str | None = None
    """What changed images may take that are better kept than made again; by default a quarter of what is free."""

    def around(self, source: Source) -> Source:
        """The source of the virtual examples, or the one given if there are none."""
        if self._none():
            return source
        from dotadd.sources.around import Virtual

        return Virtual(source, self.virtual, self.virtual_memory)

    def around_partitions(self, data: Partitions) -> Partitions:
        """The same of files that workers read."""
        if self._none():
            return data
        from dotadd.data.transforms import parse

        return replace(data, transforms=parse(str(self.virtual)), virtual_memory=self.virtual_memory)

    def _none(self) -> bool:
        if self.virtual is None and self.virtual_memory is not None:
            raise DotaddError("--virtual-memory is for virtual examples: say which with --virtual")
        return self.virtual is None


OUTPUT = Group("Output", sort_key=1)
PROBLEM = Group("The problem", sort_key=2)
STOPPING = Group("Solving it", sort_key=3)
MEMORY = Group("Data larger than memory", sort_key=4)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Training:
    """What is the same for all features and values of C: the loss, and how far to go."""

    loss: Annotated[Literal["hinge", "squared_hinge", "logistic"], Parameter(group=PROBLEM)] = unsaid("hinge")
    """What a wrong or narrow decision costs."""

    intercept: Annotated[Literal["regularized", "free", "none"], Parameter(group=PROBLEM)] = unsaid("regularized")
    """The intercept: a constant feature, free of any penalty, or none."""

    class_weight: Annotated[str, Parameter(group=PROBLEM)] = "none"
    """"balanced" lets each class weigh the same in total; spam=3,ham=1 weighs single ones, and others by 1. Labels with
commas are quoted."""

    tol: Annotated[Real, Parameter(group=STOPPING)] = 1e-3
    """Stop when the relative duality gap is no larger."""

    max_passes: Annotated[Whole, Parameter(group=STOPPING)] = 1000
    """Stop after so many passes over the data."""

    max_time: Annotated[Real | None, Parameter(group=STOPPING)] = None
    """Stop after so many seconds."""

    seed: Annotated[Seed, Parameter(group=STOPPING)] = 0
    """Start of the random numbers; the same seed gives the same model."""

    jobs: Annotated[Whole | None, Parameter(group=STOPPING)] = None
    """Threads; all cores by default."""

    memory: Annotated[str | None, Parameter(group=MEMORY)] = None
    """What examples may take of memory, as 500MB or 2GB; half of what is free by default. More is read in turns."""

    keep: Annotated[bool, Parameter(group=MEMORY)] = True
    """Keep features that take longer to make than to read, such as words, as far as the memory has room."""

    @property
    def limits(self) -> Ends:
        return Ends(self.tol, self.max_passes, self.max_time)

    def budget(self) -> int:
        """Bytes that examples may take."""
        from dotadd._util.memory import available, parse_bytes

        return available() // 2 if self.memory is None else parse_bytes(self.memory)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Solving(Training):
    """The problem, and how far to solve it."""

    features: Annotated[str | None, Parameter(group=PROBLEM)] = None
    """The feature map, written as in Python; the numbers themselves by default."""

    cost: Annotated[float | Literal["auto"], Parameter(name=["-C", "--cost"], converter=_cost, group=PROBLEM)] = unsaid(
        1.0
    )
    """C, the weight of the losses against the size of w; "auto" chooses it by cross-validation."""

    def svm(self, solver: str) -> LinearSVM:
        """The estimator that these options describe; the expression of the features is read at once."""
        from dotadd.estimators.linear import LinearSVM
        from dotadd.features.expression import parse

        return LinearSVM(
            parse(self.features) if self.features else None,
            loss=self.loss,
            solver=solver,
            intercept=self.intercept,
            max_passes=self.max_passes,
            memory=self.memory,
            keep=self.keep,
            **self.of_both_machines(),
        )

    def of_both_machines(self) -> Record:
        """The parameters that linear and kernel machines have in common."""
        if self.cost == "auto":
            raise DotaddError("-C auto is for `dotadd train`: give a number")
        return {
            "C": self.cost,
            "class_weight": class_weights(self.class_weight),
            "tol": self.tol,
            "max_time": self.max_time,
            "random_state": self.seed,
            "n_jobs": self.jobs,
        }


def class_weights(text: str) -> dict[str, float] | str | None:
    """The weights of classes that --class-weight gives: label=weight, between commas."""
    if text in ("none", "balanced"):
        return None if text == "none" else text
    weights: dict[str, float] = {}
    for part in next(csv.reader([text]), []):
        label, equals, weight = (word.strip() for word in part.rpartition("="))
        try:
            value = float(weight) if equals and label else math.nan
        except ValueError:
            value = math.nan
        if not 0.0 < value < math.inf:
            raise DotaddError(
                f"--class-weight {text}: {part!r} is no label=weight with a number above 0; write balanced, or such as "
                "spam=3,ham=1"
            )
        if label in weights:
            raise DotaddError(f"--class-weight {text}: {label} has two weights")
        weights[label] = value
    if not weights:
        raise DotaddError("--class-weight is empty: write balanced, or such as spam=3,ham=1")
    return weights


KERNELS_WITH = {"of": ("rbf",), "gamma": ("rbf", "poly", "sigmoid"), "degree": ("poly",), "coef0": ("poly", "sigmoid")}


@Parameter(name="*", group="Kernel machines")
@dataclass(frozen=True, kw_only=True)
class KernelOptions:
    """The kernel, if there is one, and its parameters."""

    kernel: str | None = None
    """Train a kernel machine: linear, poly, rbf, sigmoid, precomputed, or an expression such as "Spectrum(4)".
--memory is then what kernel values may take, 500MB by default; --solver is double_chunking, chunking or smo."""

    of: str | None = None
    """Features whose distance rbf takes, such as "Gkm().normalized()"."""

    gamma: Annotated[str | None, Parameter(show_default=False)] = None
    """gamma of rbf, poly and sigmoid: a number, "scale" (the default) or "auto"."""

    degree: Annotated[Count | None, Parameter(show_default=False)] = None
    """The degree of poly, 3 by default."""

    coef0: Annotated[Real | None, Parameter(show_default=False)] = None
    """What poly and sigmoid add to inner products, 0 by default."""

    def require(self, solving: Solving, streaming: Streaming) -> None:
        """Refuse options that would not act."""
        given = [name for name in KERNELS_WITH if getattr(self, name) is not None]
        if self.kernel is None:
            if given:
                raise DotaddError(f"--{given[0]} means nothing without --kernel")
            return
        for name in given:
            if self.kernel not in (owners := KERNELS_WITH[name]):
                raise DotaddError(f"--{name} is for --kernel {' or '.join(owners)}, and not for {self.kernel}")
        unused = [name for name in ("features", "loss", "intercept", "max_passes") if _changed(solving, name)]
        unused += [name for name in asdict(streaming) if _changed(streaming, name)]
        if unused:
            instead = ": write the feature map as --kernel" if unused[0] == "features" else ""
            raise DotaddError(f"--{unused[0].replace('_', '-')} means nothing with --kernel{instead}")

    def svm(self, solving: Solving, solver: str) -> KernelSVM:
        """The estimator that these options describe; the expression of the kernel is read at once."""
        from dotadd.estimators.kernel import KernelSVM
        from dotadd.kernel_svm.expression import named
        from dotadd.kernel_svm.problem import USUAL

        assert self.kernel is not None
        gamma: float | str = "scale" if self.gamma is None else self.gamma
        if gamma not in ("scale", "auto"):
            try:
                gamma = float(gamma)
            except ValueError:
                raise DotaddError(f'--gamma {gamma}: give a number, "scale" or "auto"') from None
        kernel = named(self.kernel, gamma, self.degree or 3, self.coef0 or 0.0, self.of)
        name, memory = USUAL if solver == "auto" else solver, solving.memory or "500MB"
        return KernelSVM(kernel, solver=name, memory=memory, **solving.of_both_machines())


def _changed(options: Solving | Streaming, name: str) -> bool:
    return getattr(options, name) != getattr(type(options)(), name)
