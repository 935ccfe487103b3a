"""Hostile changes to a program's bytes, and to what is fed: attributes, shapes, dtypes, indexes and offsets."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from fluidnb.proto import framework_pb2 as pb
from fluidnb.values import LoDTensor

INTS = (0, -1, 1, 2, 3, 4, 5, 7, 8, 63, 1000, -2, -3, -5, -100000, 100000, 2**31 - 1, -(2**31), 2**20, 65536)
LONGS = (*INTS, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -1.0, 0.5, 1.0, 2.0, 1e30, -1e30, 1e-30, float("inf"), -float("inf"), float("nan"))
TEXTS = ("", "x", "NCHW", "NHWC", "SAME", "VALID", "max", "avg", "MAX", "all", "channel", "constant", "x" * 300)
DTYPES = ("float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool")
SIZES = (0, 1, 2, 3, 5, 8)


def _int(dice: random.Random, old: int, wide: bool) -> int:
    near = (old - 1, old + 1, -old, old * 2, old * 1000)
    value = dice.choice(near) if dice.random() < 0.4 else dice.choice(LONGS if wide else INTS)
    bits = 63 if wide else 31
    return max(-(2**bits), min(2**bits - 1, value))


def _list(dice: random.Random, field: Any, draw: Callable[[Any], Any], some: Any) -> None:
    """Change an element of a repeated field, or its length."""
    if field and dice.random() < 0.75:
        at = dice.randrange(len(field))
        field[at] = draw(field[at])
        return
    values = [*field, draw(some), draw(some)][: dice.choice((0, len(field), len(field) + 1, max(len(field) - 1, 0)))]
    del field[:]
    field.extend(values)


def change_attribute(dice: random.Random, program: Any) -> str:
    """Change an attribute of an operator.

    Args:
        dice: the random numbers.
        program: a ProgramDesc message.
    """
    rows = [
        (op, attr) for block in program.blocks for op in block.ops for attr in op.attrs
        if not attr.name.startswith("op_") and attr.type not in (pb.BLOCK, pb.BLOCKS)
    ]  # fmt: skip
    if not rows:
        return "nothing"
    op, attr = dice.choice(rows)
    if attr.type in (pb.INT, pb.LONG):
        field = "i" if attr.type == pb.INT else "l"
        setattr(attr, field, _int(dice, getattr(attr, field), field == "l"))
    elif attr.type in (pb.INTS, pb.LONGS):
        field = "ints" if attr.type == pb.INTS else "longs"
        _list(dice, getattr(attr, field), lambda old: _int(dice, old, field == "longs"), 1)
    elif attr.type == pb.FLOAT:
        attr.f = dice.choice(FLOATS)
    elif attr.type == pb.FLOATS:
        _list(dice, attr.floats, lambda old: dice.choice(FLOATS), 1.0)
    elif attr.type == pb.BOOLEAN:
        attr.b = not attr.b
    elif attr.type == pb.STRING:
        attr.s = dice.choice(TEXTS)
    elif attr.type == pb.STRINGS:
        _list(dice, attr.strings, lambda old: dice.choice(TEXTS), "")
    return f"{op.type}.{attr.name}={str(attr).replace(chr(10), ' ')[:120]}"


def drop_attribute(dice: random.Random, program: Any) -> str:
    """Leave an attribute out."""
    rows = [(op, i) for b in program.blocks for op in b.ops for i, a in enumerate(op.attrs) if a.type != pb.BLOCK]
    if not rows:
        return "nothing"
    op, at = dice.choice(rows)
    name = op.attrs[at].name
    del op.attrs[at]
    return f"{op.type} without {name}"


def change_variable(dice: random.Random, program: Any) -> str:
    """Change the shape or the dtype that the program declares for a variable."""
    rows = [v for b in program.blocks for v in b.vars if v.type.HasField("lod_tensor")]
    if not rows:
        return "nothing"
    tensor = (var := dice.choice(rows)).type.lod_tensor
    if dice.random() < 0.3:
        tensor.tensor.data_type = dice.choice((0, 1, 2, 3, 4, 5, 6, 20, 21))
    else:
        _list(dice, tensor.tensor.dims, lambda old: _int(dice, old, True), 1)
    return f"{var.name}: {list(tensor.tensor.dims)} of {tensor.tensor.data_type}"


def swap_arguments(dice: random.Random, program: Any) -> str:
    """Let an operator read another variable than it did."""
    rows = [(op, slot) for b in program.blocks for op in b.ops for slot in op.inputs if slot.arguments]
    names = sorted({n for b in program.blocks for op in b.ops for slot in op.inputs for n in slot.arguments})
    if not rows:
        return "nothing"
    op, slot = dice.choice(rows)
    slot.arguments[dice.randrange(len(slot.arguments))] = dice.choice(names)
    return f"{op.type}.{slot.parameter}={list(slot.arguments)}"


def change_feed(dice: random.Random, feed: dict[str, Any]) -> str:
    """Feed another shape, dtype, other numbers or other offsets.

    Args:
        dice: the random numbers.
        feed: name -> value, changed.
    """
    if not feed:
        return "nothing"
    name = dice.choice(sorted(feed))
    given = feed[name]
    array, lod = np.array(given), list(getattr(given, "lod_", ()))
    how = dice.choice(["shape", "shape", "dtype", "numbers", "numbers", "rank", "lod", "lod"])
    if how == "shape" and array.ndim:
        axis = dice.randrange(array.ndim)
        array = np.resize(array, [dice.choice(SIZES) if i == axis else n for i, n in enumerate(array.shape)])
    elif how == "rank":
        array = array[None] if dice.random() < 0.5 else array.reshape(-1)
    elif how == "dtype":
        with np.errstate(all="ignore"):
            array = array.astype(dice.choice(DTYPES))
    elif how == "numbers" and array.size:
        flat = array.reshape(-1)
        for _ in range(dice.choice((1, 1, 3, array.size))):
            value = dice.choice(LONGS) if array.dtype.kind in "iu" else dice.choice(FLOATS)
            with np.errstate(all="ignore"):
                flat[dice.randrange(array.size)] = np.asarray(value).astype(array.dtype)
    elif how == "lod" and lod:
        level = dice.randrange(len(lod))
        offsets = [int(n) for n in lod[level]]
        offsets[dice.randrange(len(offsets))] = _int(dice, offsets[-1], True)
        lod[level] = tuple(sorted(offsets) if dice.random() < 0.6 else offsets)
    elif how == "lod" and array.ndim:
        lod = [(0, dice.randrange(len(array) + 2), len(array))]
    try:
        feed[name] = LoDTensor(array, [list(level) for level in lod]) if lod else array
    except Exception as e:  # refused where it is made
        return f"{name} {how} refused: {type(e).__name__}"
    return f"{name} {how} {array.dtype}{list(array.shape)} {lod or ''}"


def mutate(
    dice: random.Random, text: bytes, feed: dict[str, Any], keep: Collection[int] | None = None
) -> tuple[bytes, str]:
    """Break a program, and what it is fed.

    Args:
        dice: the random numbers.
        text: the program's bytes.
        feed: name -> value, changed.
        keep: which of its changes are made, by number; None for all.

    Returns:
        The changed bytes, and what was changed.
    """
    whole, fed, said = pb.ProgramDesc.FromString(text), feed, list[str]()
    for number in range(dice.choice((1, 1, 1, 2, 3))):
        kept = keep is None or number in keep
        program, feed = (whole, fed) if kept else (copy.deepcopy(whole), dict(fed))
        draw = dice.random()
        if draw < 0.5:
            words = change_attribute(dice, program)
        elif draw < 0.55:
            words = drop_attribute(dice, program)
        elif draw < 0.62:
            words = change_variable(dice, program)
        elif draw < 0.7:
            words = swap_arguments(dice, program)
        else:
            words = change_feed(dice, feed)
        if kept:
            said.append(words)
    return whole.SerializeToString(), "; ".join(said)
