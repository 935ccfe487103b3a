"""Slices: rows of a parameter that one server keeps, with those of its gradient."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


def slice_variable(var_list: Sequence[Any], slice_count: int, min_block_size: int) -> list[str]:
    """Divide variables into blocks of whole rows.

    Args:
        var_list: variables with known shapes.
        slice_count: the most blocks of one variable, one for each server.
        min_block_size: elements that a block has at least, before it is rounded up to whole rows.

    Returns:
        ``name:index:elements`` of each block.

    Example:
        >>> w = fluid.Program().global_block().create_var(name="w", shape=[28, 784], dtype="float32")
        >>> slice_variable([w], 3, 1024)
        ['w:0:7840', 'w:1:7840', 'w:2:6272']

    Source: fluid.transpiler.distribute_transpiler.slice_variable.
    """
    return [
        f"{var.name}:{index}:{elements}"
        for var in var_list
        for index, elements in enumerate(block_sizes(var.shape, slice_count, min_block_size))
    ]


def block_sizes(shape: Sequence[int], count: int, smallest: int) -> list[int]:
    """Elements of each block of a variable."""
    total, width = math.prod(shape), math.prod(shape[1:])
    blocks = max(1, min(count, total // smallest))
    size = math.ceil(math.ceil(total / blocks) / width) * width
    return [min(size, total - start) for start in range(0, total, size)]


@dataclass(frozen=True)
class Slice:
    """Rows of a parameter that one server keeps.

    Attributes:
        parameter: name of the whole parameter.
        gradient: name of its whole gradient.
        index: its place among the slices of the parameter.
        whole: whether it is the only one.
        shape: its shape.
        start: its first row.
        rows: whether the gradient comes as SelectedRows.
        endpoint: the server that keeps it.
    """

    parameter: str
    gradient: str
    index: int
    whole: bool
    shape: tuple[int, ...]
    start: int
    rows: bool
    endpoint: str = ""

    @property
    def name(self) -> str:
        """Name of the slice, on trainers and on its server."""
        return self.parameter if self.whole else f"{self.parameter}.block{self.index}"

    @property
    def merged(self) -> str:
        """Name of its gradient on its server, over all trainers."""
        return self.gradient if self.whole else f"{self.gradient}.block{self.index}"

    def sent(self, trainer: int | None) -> str:
        """Name of its gradient from one trainer; None where all trainers send under one name."""
        return self.merged if trainer is None else f"{self.merged}.trainer_{trainer}"


@dataclass(frozen=True)
class Table:
    """A table of embeddings whose rows all servers keep, row n on server n mod servers.

    Attributes:
        name: of the parameter.
        gradient: name of its gradient.
        height, width: its shape.
        servers: how many there are.
    """

    name: str
    gradient: str
    height: int
    width: int
    servers: int

    def rows(self, server: int) -> int:
        """Rows that a server keeps."""
        return len(range(server, self.height, self.servers))

    def merged(self, server: int) -> str:
        """Name of the gradient of a server's rows, over all trainers."""
        return f"{self.gradient}.pserver_{server}"

    def sent(self, trainer: int | None, server: int) -> str:
        """Name of the gradient of a server's rows from one trainer; None where all trainers send under one name."""
        return self.merged(server) if trainer is None else f"{self.gradient}.trainer_{trainer}.pserver_{server}"
