"""View of an operator for a binder."""

from __future__ import annotations

from typing import Any, Protocol

from fluidnb.op.define import OpDef
from fluidnb.proto.desc import OpDesc
from fluidnb.utils.source_location import SourceLocation


class OpView(Protocol):
    """View of a lowered operator for a binder; ``guard`` is None where that of its type does not apply."""

    desc: OpDesc
    definition: OpDef
    guard: Any
    inputs: dict[str, list[str]]
    number: int
    outputs: dict[str, list[str]]

    def text(self) -> str:
        """The operator as text."""

    def where(self) -> SourceLocation | None:
        """The user's line."""
