"""What a binder must know of an operator."""

from __future__ import annotations

from typing import Protocol

from fluidnb.op.define import OpDef
from fluidnb.proto.desc import OpDesc
from fluidnb.where import Where


class OpView(Protocol):
    """What the binder must know of an operator of a plan."""

    desc: OpDesc
    definition: OpDef
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]

    def text(self) -> str:
        """The operator as text."""

    def where(self) -> Where | None:
        """The user's line."""
