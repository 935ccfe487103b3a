"""hash: the bytes of each row as numbers below a bound, by XXH64."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, op
from fluidnb_kernels.rules import checked

_ONE, _TWO, _THREE, _FOUR, _FIVE = (
    np.uint64(n)
    for n in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)


def _turned(x: Array, bits: int) -> Array:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


def _round(state: Array, word: Array) -> Array:
    return _turned(state + word * _TWO, 31) * _ONE


def xxh64(rows: Array, seeds: Array) -> Array:
    """XXH64 (xxHash specification) of rows of bytes, for several seeds: uint64 [rows, seeds]."""
    count, length = rows.shape
    seeds = np.broadcast_to(np.asarray(seeds, np.uint64), (count, len(seeds)))
    at = 0

    def word(size: int) -> Array:
        own = np.ascontiguousarray(rows[:, at : at + size]).view(f"<u{size}")
        return own.astype(np.uint64)

    if length >= 32:
        states = [seeds + _ONE + _TWO, seeds + _TWO, seeds.copy(), seeds - _ONE]
        while length - at >= 32:
            for i in range(4):
                states[i] = _round(states[i], word(8))
                at += 8
        hashed = sum(_turned(s, bits) for s, bits in zip(states, (1, 7, 12, 18), strict=True))
        for state in states:
            hashed = (hashed ^ _round(np.zeros_like(state), state)) * _ONE + _FOUR
    else:
        hashed = seeds + _FIVE
    hashed = hashed + np.uint64(length)
    while length - at >= 8:
        hashed = _turned(hashed ^ _round(np.zeros_like(hashed), word(8)), 27) * _ONE + _FOUR
        at += 8
    if length - at >= 4:
        hashed = _turned(hashed ^ word(4) * _ONE, 23) * _TWO + _THREE
        at += 4
    while at < length:
        hashed = _turned(hashed ^ word(1) * _FIVE, 11) * _ONE
        at += 1
    hashed = (hashed ^ (hashed >> np.uint64(33))) * _TWO
    hashed = (hashed ^ (hashed >> np.uint64(29))) * _THREE
    return hashed ^ (hashed >> np.uint64(32))


def hash_rows(x: Array, out: Array, bound: int) -> None:
    """Hash each row with seeds 0, 1, … to numbers from 0 to before the bound."""
    rows = np.ascontiguousarray(x).view(np.uint8).reshape(len(x), -1)
    if len(x):
        seeds = np.arange(out.shape[1], dtype=np.uint64)
        out[..., 0] = (xxh64(rows, seeds) % np.uint64(bound)).astype(out.dtype)


@op(
    "hash",
    inputs={"X: int[n, length]": "ids"},
    outputs={"Out": "of the dtype of X, [n, num_hash, 1]: numbers from 0 to before mod_by"},
    attrs={
        "num_hash": Attr("int", 1, "how many numbers for each row", gt=0),
        "mod_by": Attr("long", 100000, "above all numbers", gt=0),
    },
    infer=checked(lambda c: c.set("Out", (c["X"].shape[0], c.attr("num_hash"), 1), c["X"].dtype, c.lod("X"))),
    dtypes=("int32", "int64"),
    dtype_slot="X",
    host_only="has a kernel for the CPU alone, as in Fluid",
)
def hash(b: Binder) -> None:
    """Out[i, k] = XXH64 of the bytes of X[i] with seed k, modulo mod_by; the LoD of X is propagated.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("hash", {"X": np.array([[7]])}, {"num_hash": 2, "mod_by": 1000})["Out"].shape
        (1, 2, 1)

    Source: Fluid's hash_op; Yann Collet, xxHash.
    """
    b(hash_rows, b["X"], b["Out"], b.attr("mod_by"))
