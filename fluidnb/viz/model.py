"""What a picture shows, as plain data: a program with its nested blocks, a tree of scopes, the summary of a tensor.

Faces (terminal, SVG, HTML) read only this, so that they agree with each other and can be tested without a front end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

#: The three parts of a program, in the order in which it is built.
ROLES = ("forward", "backward", "optimizer")


@dataclass(frozen=True, slots=True)
class VarRow:
    """One variable.

    Args:
        name: its name.
        kind: what it is, in lower case: ``lod_tensor``, ``lod_tensor_array``, ``step_scopes``; empty if not declared.
        dtype: the name of its dtype, or empty.
        shape: sizes with -1 for unknown ones, or None.
        lod_level: levels of sequence nesting.
        persistable: whether it outlives a run.
        parameter: whether an optimizer may train it.
        data: whether it is fed.
        place: the cell that made it, for example ``cell net``; empty if unknown.

    Example:
        >>> VarRow("x", "lod_tensor", "int64", (-1, 1), 1, data=True).facts
        'int64[-1, 1] lod 1'
    """

    name: str
    kind: str = ""
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    lod_level: int = 0
    persistable: bool = False
    parameter: bool = False
    data: bool = False
    place: str = ""

    @property
    def facts(self) -> str:
        """Dtype, shape and LoD level in a few characters; the kind where it is no plain tensor."""
        if self.shape is None:
            return self.kind
        text = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        if self.lod_level:
            text += f" lod {self.lod_level}"
        return text if self.kind in ("", "lod_tensor") else f"{self.kind} of {text}"


@dataclass(frozen=True, slots=True)
class SlotRow:
    """One slot of an operator with the variables in it.

    Args:
        name: the slot's name.
        vars: the variables, in order.
    """

    name: str
    vars: tuple[VarRow, ...]


@dataclass(frozen=True, slots=True)
class OpRow:
    """One operator.

    Args:
        block: index of its block.
        index: its place in the block.
        type: the operator's type.
        role: forward, backward or optimizer.
        ins: what it reads.
        outs: what it writes.
        attrs: the attributes that differ from their defaults, as (name, text).
        place: where the user's code made it, for example ``cell net, line 3``; empty if unknown.
        source: that line's text.
        blocks: the blocks that it runs.

    Example:
        >>> x, y = VarRow("x"), VarRow("y")
        >>> OpRow(0, 2, "scale", "forward", (SlotRow("X", (x,)),), (SlotRow("Out", (y,)),), (("scale", "2.0"),)).text
        'y = scale(x, scale=2.0)'
    """

    block: int
    index: int
    type: str
    role: str
    ins: tuple[SlotRow, ...] = ()
    outs: tuple[SlotRow, ...] = ()
    attrs: tuple[tuple[str, str], ...] = ()
    place: str = ""
    source: str = ""
    blocks: tuple[BlockRow, ...] = ()

    @property
    def reads(self) -> tuple[VarRow, ...]:
        """Everything it reads, slot by slot."""
        return tuple(v for s in self.ins for v in s.vars)

    @property
    def writes(self) -> tuple[VarRow, ...]:
        """Everything it writes, slot by slot."""
        return tuple(v for s in self.outs for v in s.vars)

    @property
    def left(self) -> str:
        """The names that it writes, with commas."""
        return ", ".join(v.name for v in self.writes)

    @property
    def arguments(self) -> str:
        """What stands between its parentheses: variables, with the slot's name where there are several; attributes."""
        named = len(self.ins) > 1
        parts = [(f"{s.name}=" if named else "") + _group([v.name for v in s.vars]) for s in self.ins]
        return ", ".join(parts + [f"{k}={v}" for k, v in self.attrs])

    @property
    def text(self) -> str:
        """The operator as one line of pseudo code."""
        return f"{self.left} = {self.type}({self.arguments})" if self.outs else f"{self.type}({self.arguments})"


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One block.

    Args:
        index: its place in the program.
        parent: the block around it, -1 for the first.
        ops: its operators.
        vars: the variables that it declares.
    """

    index: int
    parent: int
    ops: tuple[OpRow, ...] = ()
    vars: tuple[VarRow, ...] = ()

    def walk(self, depth: int = 0) -> Iterator[tuple[int, OpRow]]:
        """All operators, those of nested blocks right after the operator that runs them.

        Args:
            depth: the depth of this block, in the nesting.

        Yields:
            (depth, operator).
        """
        for op in self.ops:
            yield depth, op
            for block in op.blocks:
                yield from block.walk(depth + 1)


@dataclass(frozen=True, slots=True)
class ProgramPicture:
    """A whole program.

    Args:
        root: the first block; the others hang from the operators that run them.
        loose: blocks that no operator runs (yet).
        title: how it is called.
    """

    root: BlockRow
    loose: tuple[BlockRow, ...] = ()
    title: str = "program"

    @property
    def counts(self) -> str:
        """How many blocks, operators and parameters, in words."""
        blocks = [self.root, *self.loose]
        ops = [op for b in blocks for _, op in b.walk()]
        n = len(blocks) + sum(len(op.blocks) for op in ops)
        params = sum(v.parameter for v in self.root.vars)
        return ", ".join(plural(k, what) for k, what in ((n, "block"), (len(ops), "op"), (params, "parameter")) if k)


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """What there is to say about a tensor without printing it.

    Args:
        name: the variable that holds it, or empty.
        dtype: the name of its dtype.
        shape: sizes.
        lod: offsets per level.
        where: the device that holds it.
        nbytes: its size in bytes.
        nan: how many elements are NaN.
        inf: how many are infinite.
        low: smallest finite element, or None.
        high: largest finite element, or None.
        mean: mean of the finite elements, or None.
        std: their standard deviation, or None.
        histogram: how many finite elements fall in each of equal parts between low and high.
        values: the elements as text when they are few, else empty.

    Example:
        >>> TensorSummary("x", "float32", (2, 3), low=0.0, high=5.0, mean=2.5, std=1.7).facts
        'float32[2, 3]'
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    lod: tuple[tuple[int, ...], ...] = ()
    where: str = ""
    nbytes: int = 0
    nan: int = 0
    inf: int = 0
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    std: float | None = None
    histogram: tuple[int, ...] = ()
    values: str = ""

    @property
    def facts(self) -> str:
        """Dtype and shape."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def statistics(self) -> str:
        """Mean, deviation and range, or the elements themselves when they are few; NaN and infinities first."""
        parts = [plural(k, what, "") for k, what in ((self.nan, "NaN"), (self.inf, "Inf")) if k]
        if self.values:
            parts.append(self.values)
        elif self.mean is not None:
            parts.append(f"{self.mean:.3g} ± {self.std:.2g} in [{self.low:.3g}, {self.high:.3g}]")
        return "  ".join(parts)


@dataclass(frozen=True, slots=True)
class Held:
    """What a scope holds under one name.

    Args:
        name: the variable's name.
        kind: what it holds, in words: ``LoDTensor``, ``step scopes``, ….
        tensor: its summary when it is a tensor.
    """

    name: str
    kind: str
    tensor: TensorSummary | None = None


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope and the scopes inside it.

    Args:
        title: how it is called.
        held: its own variables.
        kids: the scopes inside it.
    """

    title: str
    held: tuple[Held, ...] = ()
    kids: tuple[ScopeRow, ...] = field(default=())


def plural(count: int, what: str, ending: str = "s") -> str:
    """A count with its noun.

    Example:
        >>> plural(1, "op"), plural(12, "op")
        ('1 op', '12 ops')
    """
    return f"{count:,} {what}{ending if count != 1 else ''}"


def _group(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"
