"""Small functions of Numba that are called by the hundred thousand while something compiles, made quicker.

They return what Numba's own do; together they take a tenth of the time less. Whoever compiles with another Numba than
those that this was tried with (`linking.TRIED`) has Numba's.
"""

from __future__ import annotations

from numba.core import ir
from numba.core.targetconfig import TargetConfig

NO_VARIABLES = {ir.Loc, str, int, float, bool, type(None)}


def _variables_in(self: ir.Inst, value: object) -> list[ir.Var]:
    """`ir.Inst._rec_list_vars`: the variables in a value, which mostly is a name, a place in the source or one."""
    if type(value) in NO_VARIABLES:
        return []
    if isinstance(value, ir.Var):
        return [value]
    if isinstance(value, ir.Inst):
        return list(value.list_vars())
    found: list[ir.Var] = []
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        kind = type(part)
        if kind is ir.Var:
            found.append(part)
        elif kind not in NO_VARIABLES:
            found += self._rec_list_vars(part)
    return found


_equal_at_length = TargetConfig.__eq__


def _equal(self: TargetConfig, other: object) -> bool:
    """`TargetConfig.__eq__`, but what was set is compared before what was not is looked up."""
    if self is other or (
        isinstance(other, TargetConfig) and type(self) is type(other) and self._values == other._values
    ):
        return True
    return _equal_at_length(self, other)


def _hash(self: TargetConfig) -> int:
    """`TargetConfig.__hash__` is a hash of the names of all options: the same for all of a class."""
    return hash(type(self))


def make_quicker() -> None:
    for where, name, function in (
        (ir.Inst, "_rec_list_vars", _variables_in),
        (TargetConfig, "__eq__", _equal),
        (TargetConfig, "__hash__", _hash),
    ):
        setattr(where, name, function)
