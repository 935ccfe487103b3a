"""Mutations of programs and their feeds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.errors import FluidError
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.proto.framework_pb2 import BLOCK, BLOCKS
from fluidnb.values import LoDTensor, LoDTensorArray, SelectedRows
from fluidnb.values.rank_table import LoDRankTable
from tests.fuzz.mutate_lod import mutated_lod

INTS = (0, -1, 1, 2, 7, 63, -5, 2**31 - 1, -(2**31), 2**14)
FLOATS = (0.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e38, 1e-38)
DTYPES = (0, 1, 2, 3, 4, 5, 6, 20, 21, 22)


class Victim:
    """A program with its feeds and fetches that is about to be broken.

    Args:
        program: the program.
        feed: variable -> array.
        fetch: names.
        held: variable -> what the scope holds before the run.
    """

    def __init__(
        self, program: Any, feed: dict[str, Any], fetch: list[str], held: dict[str, Any] | None = None
    ) -> None:
        self.program, self.feed, self.fetch, self.held = program, dict(feed), list(fetch), dict(held or {})

    def mutate(self, dice: random.Random) -> str:
        """Break something; gives what it was, in words.

        Args:
            dice: where chance comes from.

        Raises:
            FluidError: the change was noticed at once.
        """
        ways: list[Callable[[random.Random], str]] = [
            self.flip, self.attribute, self.slots, self.description, self.forget, self.operators, self.overwrite,
        ]  # fmt: skip
        ways += [self.array, self.array, self.lod] if self.feed else []
        ways += [self.lod] if any(isinstance(v, LoDTensor) and v.lod_ for v in self.feed.values()) else []
        ways += [self.kept] if self.held else []
        ways += [self.block, self.block, self.block] if len(self.program.desc.blocks) > 1 else []
        how = dice.choice(ways)
        return f"{how.__name__}: {how(dice)}"

    def _block(self, dice: random.Random) -> BlockDesc:
        return dice.choice([b for b in self.program.desc.blocks if b.ops])

    def _op(self, dice: random.Random) -> OpDesc:
        return dice.choice(self._block(dice).ops)

    # ---- the program

    def flip(self, dice: random.Random) -> str:
        """Change bytes of the program."""
        data = bytearray(self.program.desc.serialize_to_string())
        at = [dice.randrange(len(data)) for _ in range(dice.choice([1, 1, 2, 8]))]
        for i in at:
            data[i] ^= 1 << dice.randrange(8)
        self.program = fluid.Program.parse_from_string(bytes(data))
        return f"bytes {at}"

    def attribute(self, dice: random.Random) -> str:
        """Give an attribute an extreme value."""
        op = self._op(dice)
        names = [n for n in op.attr_names() if not n.startswith("op_") and op.attr_type(n) not in (BLOCK, BLOCKS)]
        if not names:
            return "none"
        name = dice.choice(names)
        old = op.attrs[name]
        new = self._other(old, dice)
        op.set_attr(name, new, op.attr_type(name))
        return f"{op.optype}.{name} = {str(new)[:60]}"

    def _other(self, old: Any, dice: random.Random) -> Any:
        if isinstance(old, bool):
            return not old
        if isinstance(old, int):
            return dice.choice(INTS)
        if isinstance(old, float):
            return dice.choice(FLOATS)
        if isinstance(old, str):
            return dice.choice(["", "x", "NHWC", "x" * 1000, "\0"])
        first = old[0] if old else 0
        size = dice.choice([0, len(old), len(old) + 1, 3, 12])
        return [self._other(first, dice) for _ in range(size)]

    def slots(self, dice: random.Random) -> str:
        """Drop a slot, empty it, give it too many arguments, or one that is not there."""
        block = self._block(dice)
        op = dice.choice(block.ops)
        inputs = dice.random() < 0.7
        names = op.input_names() if inputs else op.output_names()
        if not names:
            return "none"
        slot = dice.choice(names)
        old = op.input(slot) if inputs else op.output(slot)
        everything = [*block.vars, *self.program.desc.blocks[0].vars] or ["no_such_variable"]
        new = dice.choice([[], [*old, *old], ["no_such_variable"], [dice.choice(everything)], ["@EMPTY@"] * len(old)])
        (op.set_input if inputs else op.set_output)(slot, new)
        return f"{op.optype}.{slot} = {new}"

    def operators(self, dice: random.Random) -> str:
        """Leave an operator out, have it twice, or earlier than another."""
        block = self._block(dice)
        at, to = dice.randrange(len(block.ops)), dice.randrange(len(block.ops))
        way, kind = dice.choice(["without", "twice", "earlier"]), block.ops[at].optype
        if way == "twice":
            block.insert_op(to, block.ops[at].clone())
        else:
            (op,) = block.remove_op(at, at + 1)
            if way == "earlier":
                block.insert_op(min(to, at), op)
        return f"{way} {kind} in block {block.idx}"

    def overwrite(self, dice: random.Random) -> str:
        """Put another dtype and shape into what an operator reads, just before it."""
        block = self._block(dice)
        at = dice.randrange(len(block.ops))
        names = [n for n in block.ops[at].input_arg_names() if n != "@EMPTY@"]
        if not names:
            return "none"
        name, shape = dice.choice(names), dice.choice([[1], [2], [0], [1, 1], [3, 2], [2, 3, 4]])
        fill = OpDesc("fill_constant", {}, {"Out": [name]})
        dtype = dice.choice([0, 2, 3, 5, 6])
        for key, value in (("shape", shape), ("dtype", dtype), ("value", dice.choice([0.0, 1.0, 3.0, -2.0]))):
            fill.set_attr(key, value)
        block.insert_op(at, fill)
        return f"{block.ops[at + 1].optype} reads {name} as {shape} of {dtype}"

    def block(self, dice: random.Random) -> str:
        """Give an operator another block, a block another parent, or take a variable out of it."""
        blocks = self.program.desc.blocks
        holders = [(op, n) for b in blocks for op in b.ops for n in op.attr_names() if op.attr_type(n) == BLOCK]
        way = dice.choice(["index", "index", "parent", "variable", "empty", "names"])
        inner = dice.choice(blocks[1:])
        if way == "index" and holders:
            op, name = dice.choice(holders)
            index = dice.choice([0, -1, len(blocks), 99, *range(len(blocks))])
            op.set_attr(name, index, BLOCK)
            return f"{op.optype}.{name} = {index}"
        if way == "parent":
            inner.parent_idx = dice.choice([-1, inner.idx, 0, len(blocks), 77])
        elif way == "variable" and inner.vars:
            return f"no {inner.remove_var(dice.choice(list(inner.vars))).name()} in block {inner.idx}"
        elif way == "names" and holders:
            op, _ = dice.choice(holders)
            texts = [n for n in op.attr_names() if n in ("states", "ex_states")] or ["states"]
            op.set_attr(texts[0], dice.choice([[], ["no_such_variable"], ["a", "b", "c"]]))
            return f"{op.optype}.{texts[0]}"
        else:
            inner.remove_op(0, len(inner.ops))
        return f"{way} of block {inner.idx}"

    def description(self, dice: random.Random) -> str:
        """Change what the program says of a variable."""
        found = [v for b in self.program.desc.blocks for v in b.vars.values()]
        if not found:
            return "none"
        var = dice.choice(found)
        way = dice.choice(["dtype", "shape", "persistable", "need_check_feed", "lod_level", "type"])
        if way == "dtype":
            var.set_dtype(dice.choice(DTYPES))
        elif way == "shape":
            var.set_shape([dice.choice(INTS) for _ in range(dice.randrange(5))])
        elif way == "persistable":
            var.set_persistable(not var.persistable())
        elif way == "need_check_feed":
            var.set_need_check_feed(True)
        elif way == "type":
            var.set_type(dice.choice([7, 8, 9, 10, 11, 12, 13, 15, 17]))
        else:
            var.set_lod_level(dice.choice([0, 1, 3]))
        return f"{var.name()} {way}"

    # ---- what goes in

    def array(self, dice: random.Random) -> str:
        """Feed something of another shape, rank, dtype, or with other values."""
        name = dice.choice(list(self.feed))
        given = self.feed[name]
        old = np.asarray(given)
        floats = old.dtype.kind == "f"
        ways = {
            "empty": lambda: np.zeros((0, *old.shape[1:]), old.dtype),
            "rank up": lambda: old[None],
            "rank down": lambda: old.reshape(-1),
            "scalar": lambda: old.reshape(-1)[:1].reshape(()) if old.size else old,
            "rows": lambda: np.concatenate([old, old]) if old.ndim else old,
            "columns": lambda: old[..., :1] if old.ndim else old,
            "float64": lambda: old.astype("float64"),
            "int32": lambda: old.astype("int32"),
            "bool": lambda: old.astype("bool"),
            "int8": lambda: old.astype("int8"),
            "nan": lambda: np.full_like(old, np.nan if floats else -100),
            "big": lambda: np.full_like(old, np.inf if floats else 100),
            "huge": lambda: np.full(old.shape, 2**30, "int64"),
            "minus": lambda: -old if old.dtype != bool else ~old,
            "column order": lambda: np.asfortranarray(old),
            "steps": lambda: np.repeat(old, 2, 0)[::2] if old.ndim else old,
            "transposed": lambda: old.T,
        }
        way = dice.choice(list(ways))
        with np.errstate(all="ignore"):
            new = ways[way]()
        if isinstance(given, LoDTensor) and given.lod_ and dice.random() < 0.7:
            keeps = new.ndim and len(new) == given.lod_[-1][-1]
            new = LoDTensor(new, given.lod_ if keeps else ((0, len(new) if new.ndim else 0),))
        self.feed[name] = new
        return f"{name} {way}"

    def lod(self, dice: random.Random) -> str:
        """Feed other sequences."""
        name = dice.choice([n for n, v in self.feed.items() if isinstance(v, LoDTensor) and v.lod_] or list(self.feed))
        way, self.feed[name] = mutated_lod(self.feed[name], dice)
        return f"{name} {way}"

    def kept(self, dice: random.Random) -> str:
        """Put something else into the scope."""
        name = dice.choice(list(self.held))
        old = self.held[name]
        table = LoDRankTable()
        ways: dict[str, Callable[[], Any]] = {
            "nothing": lambda: None,
            "empty tensor": LoDTensor,
            "no elements": LoDTensorArray,
            "holes": lambda: LoDTensorArray([LoDTensor(), LoDTensor()]),
            "tensors": lambda: LoDTensorArray([LoDTensor(np.ones((2, 3), "float32")), LoDTensor(np.zeros((0, 3)))]),
            "tensor": lambda: LoDTensor(np.ones((2, 3), "int32")),
            "rows": lambda: SelectedRows([9, -1, 2], 4),
            "table": lambda: table,
            "sequences": lambda: LoDTensor(np.ones((3, 2), "float32"), ((0, 1, 3),)),
            "a part": lambda: LoDTensorArray(old[:1]) if isinstance(old, LoDTensorArray) else old,
        }
        way = dice.choice(list(ways))
        self.held[name] = ways[way]()
        return f"{name} holds {way}"

    def forget(self, dice: random.Random) -> str:
        """Leave a feed out, feed or fetch something that is not there."""
        way = dice.choice(["feed", "extra", "fetch", "all"])
        if way == "feed" and self.feed:
            name = dice.choice(list(self.feed))
            del self.feed[name]
            return f"no {name}"
        if way == "extra":
            self.feed["no_such_variable"] = np.zeros(1)
        elif way == "all":
            self.fetch = sorted({n for b in self.program.desc.blocks for n in b.vars})
        else:
            self.fetch.append("no_such_variable")
        return way


def is_clear(error: FluidError) -> bool:
    """Whether an error speaks of the user's program, not of what happened in a kernel."""
    _, failed, what = error.summary.partition(" failed: ")
    if not failed:
        return bool(str(error).strip())
    return what.split(":")[0] in (
        "MemoryError", "_ArrayMemoryError", "LinAlgError", "OSError", "FileNotFoundError", "FileExistsError",
        "IsADirectoryError", "NotADirectoryError", "PermissionError",
    )  # fmt: skip
