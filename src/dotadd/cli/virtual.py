"""The options for training on virtual examples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cyclopts import Parameter

if TYPE_CHECKING:
    from dotadd.distributed.partitions import Partitions
    from dotadd.sources.base import Source


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
        from dotadd.virtual import Virtual

        return Virtual(source, self.virtual, self.virtual_memory)

    def around_partitions(self, data: Partitions) -> Partitions:
        """The same of files that workers read."""
        if self._none():
            return data
        from dotadd.transforms.expression import parse

        return replace(data, transforms=parse(str(self.virtual)), virtual_memory=self.virtual_memory)

    def _none(self) -> bool:
        if self.virtual is None and self.virtual_memory is not None:
            from dotadd.errors import DotaddError

            raise DotaddError("--virtual-memory is for virtual examples: say which with --virtual")
        return self.virtual is None
