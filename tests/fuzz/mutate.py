"""Mutations of one-operator programs and their feeds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.proto.desc import OpDesc

INTS = (0, -1, 1, 2, 7, 63, -5, 2**31 - 1, -(2**31), 10**6)
FLOATS = (0.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e38, 1e-38)


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
        ways = [self.flip, self.attribute, self.slots, self.array, self.array, self.description, self.forget]
        how = dice.choice(ways)
        return f"{how.__name__}: {how(dice)}"

    def flip(self, dice: random.Random) -> str:
        """Change bytes of the program."""
        data = bytearray(self.program.desc.serialize_to_string())
        at = [dice.randrange(len(data)) for _ in range(dice.choice([1, 1, 2, 8]))]
        for i in at:
            data[i] ^= 1 << dice.randrange(8)
        self.program = fluid.Program.parse_from_string(bytes(data))
        return f"bytes {at}"

    def _op(self, dice: random.Random) -> OpDesc:
        return dice.choice(self.program.desc.blocks[0].ops)

    def attribute(self, dice: random.Random) -> str:
        """Give an attribute an extreme value."""
        op = self._op(dice)
        names = [n for n in op.attr_names() if not n.startswith("op_")]
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
        op = self._op(dice)
        inputs = dice.random() < 0.7
        names = op.input_names() if inputs else op.output_names()
        if not names:
            return "none"
        slot = dice.choice(names)
        old = op.input(slot) if inputs else op.output(slot)
        everything = list(self.program.desc.blocks[0].vars)
        new = dice.choice([[], [*old, *old], ["no_such_variable"], [dice.choice(everything)], ["@EMPTY@"] * len(old)])
        (op.set_input if inputs else op.set_output)(slot, new)
        return f"{op.optype}.{slot} = {new}"

    def array(self, dice: random.Random) -> str:
        """Feed something of another shape, rank, dtype, or with other values."""
        name = dice.choice(list(self.feed))
        old = np.asarray(self.feed[name])
        floats = old.dtype.kind == "f"
        ways = {
            "empty": lambda: np.zeros((0, *old.shape[1:]), old.dtype),
            "rank up": lambda: old[None],
            "rank down": lambda: old.reshape(-1),
            "scalar": lambda: old.reshape(-1)[:1].reshape(()),
            "rows": lambda: np.concatenate([old, old]) if old.ndim else old,
            "columns": lambda: old[..., :1] if old.ndim else old,
            "float64": lambda: old.astype("float64"),
            "int32": lambda: old.astype("int32"),
            "bool": lambda: old.astype("bool"),
            "int8": lambda: old.astype("int8"),
            "nan": lambda: np.full_like(old, np.nan) if floats else np.full_like(old, -(2**30)),
            "inf": lambda: np.full_like(old, np.inf) if floats else np.full_like(old, 2**30),
            "minus": lambda: -old if old.dtype != bool else ~old,
            "column order": lambda: np.asfortranarray(old),
            "steps": lambda: np.repeat(old, 2, 0)[::2] if old.ndim else old,
            "transposed": lambda: old.T,
        }
        way = dice.choice(list(ways))
        self.feed[name] = ways[way]()
        return f"{name} {way}"

    def description(self, dice: random.Random) -> str:
        """Change what the program says of a variable."""
        var = dice.choice(list(self.program.desc.blocks[0].vars.values()))
        way = dice.choice(["dtype", "shape", "persistable", "need_check_feed", "lod_level"])
        if way == "dtype":
            var.set_dtype(dice.choice([0, 1, 2, 3, 4, 5, 6, 20, 21, 22]))
        elif way == "shape":
            var.set_shape([dice.choice(INTS) for _ in range(dice.randrange(5))])
        elif way == "persistable":
            var.set_persistable(not var.persistable())
        elif way == "need_check_feed":
            var.set_need_check_feed(True)
        else:
            var.set_lod_level(dice.choice([0, 1, 3]))
        return f"{var.name()} {way}"

    def forget(self, dice: random.Random) -> str:
        """Leave a feed out, feed or fetch something that is not there."""
        way = dice.choice(["feed", "extra", "fetch"])
        if way == "feed":
            name = dice.choice(list(self.feed))
            del self.feed[name]
            return f"no {name}"
        if way == "extra":
            self.feed["no_such_variable"] = np.zeros(1)
        else:
            self.fetch.append("no_such_variable")
        return way
