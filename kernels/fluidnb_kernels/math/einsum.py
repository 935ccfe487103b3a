"""einsum: sums of products along named axes."""

from collections.abc import Sequence
from math import prod
from string import ascii_letters

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.rules import checked

HOST = "no CUDA kernel yet: matmul_v2 and reduce_sum have them"


def _terms(c: Context) -> tuple[list[str], str]:
    """The axes of each operand and of the result."""
    equation = c.attr("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    operands = c.all("Operands")
    if "..." in equation:  # the last axes that no letter names, by letters that the equation leaves over
        spare = [letter for letter in ascii_letters if letter not in equation]
        counts = [x.ndim - len(t) + 3 if "..." in t else 0 for t, x in zip(terms, operands, strict=False)]
        named = ["".join(spare[max(counts) - max(n, 0) : max(counts)]) for n in counts]
        terms = [t.replace("...", names, 1) for t, names in zip(terms, named, strict=False)] + terms[len(operands) :]
        left, right = ",".join(terms), right.replace("...", "".join(spare[: max(counts)]), 1)
    c.require(
        bool(arrow) and all(t.isalpha() or not t for t in (*terms, right)),
        "Attr(equation) of einsum must name axes by letters.", expected='"ij,jk->ik"', received=equation,
    )  # fmt: skip
    c.require(
        len(terms) == len(operands) and all(len(t) == x.ndim for t, x in zip(terms, operands, strict=True)),
        "Attr(equation) of einsum must have a letter for each axis of each operand.",
        expected=", ".join(f"{x.ndim} letters" for x in operands), received=left,
    )  # fmt: skip
    c.require(
        len(set(right)) == len(right) and set(right) <= set(left),
        "The result of einsum must name axes of operands, each once.", expected=f"of {left}", received=right,
    )  # fmt: skip
    return terms, right


def _infer(c: Context) -> None:
    terms, right = _terms(c)
    sizes: dict[str, int] = {}
    for term, x in zip(terms, c.all("Operands"), strict=True):
        for letter, n in zip(term, x.shape, strict=True):
            known = sizes.setdefault(letter, n)
            if known in (-1, 1):
                sizes[letter] = known = n if n != -1 or known == 1 else known
            c.require(
                -1 in (n, known) or n in (1, known), f"Axes that einsum calls {letter} must have one size.",
                expected=known, received=n,
            )  # fmt: skip
    first = c.all("Operands")[0]
    c.set("Out", tuple(sizes[letter] for letter in right) or (1,), first.dtype)
    for slot in ("InnerCache", "XShape"):
        for i in range(len(c.outputs.get(slot, ()))):
            c.set(slot, (0,), first.dtype, (), i)


def multiply(equation: str, out: Array, *operands: Array) -> None:
    """Write a sum of products."""
    out[...] = np.einsum(equation, *operands, optimize=True).reshape(out.shape)


def multiply_back(terms: Sequence[str], right: str, i: int, dx: Array, g: Array, *operands: Array) -> None:
    """Write the gradient of one operand: dOut times the others, summed along the axes that it lacks."""
    others = [(t, x) for k, (t, x) in enumerate(zip(terms, operands, strict=True)) if k != i]
    own = "".join(dict.fromkeys(terms[i]))
    letters = set(right).union(*(t for t, _ in others))
    kept = "".join(letter for letter in own if letter in letters)
    equation = ",".join([right, *(t for t, _ in others)]) + "->" + kept
    part = np.einsum(equation, g.reshape(g.shape if right else ()), *(x for _, x in others), optimize=True)
    shape = [part.shape[kept.index(letter)] if letter in kept else 1 for letter in own]
    sizes = [dx.shape[terms[i].index(letter)] for letter in own]
    whole = np.broadcast_to(part.reshape(shape), [max(n, m) for n, m in zip(shape, sizes, strict=True)])
    repeated = tuple(k for k, (n, m) in enumerate(zip(whole.shape, sizes, strict=True)) if m == 1 < n)
    whole = whole.sum(repeated, keepdims=True) if repeated else whole
    dx[...] = 0
    np.einsum(f"{terms[i]}->{own}", dx)[...] = whole  # a view: the diagonal where a letter is there twice


def _cost(c: Context) -> int:
    """A multiplication for each combination of letters and each operand behind the first."""
    terms, _ = _terms(c)
    sizes: dict[str, int] = {}
    for term, x in zip(terms, c.all("Operands"), strict=True):
        sizes |= {letter: n for letter, n in zip(term, x.shape, strict=True) if sizes.get(letter, 1) == 1}
    return prod(sizes.values()) * max(len(terms) - 1, 1)


@op(
    "einsum",
    inputs={"Operands*: float": "one tensor or more"},
    outputs={
        "Out": "an axis for each letter behind the arrow",
        "InnerCache*~": "not written; for programs of Paddle", "XShape*~": "not written; for programs of Paddle",
    },
    attrs={"equation": Attr("string", doc='axes of operands and result by letters: "ij,jk->ik"; ... for the rest')},
    cost=_cost,
    infer=checked(_infer),
    grad=default_grad("Operands", "Out@GRAD", wrt=["Operands"]),
    dtype_slot="Operands",
    host_only=HOST,
)  # fmt: skip
def einsum(b: Binder) -> None:
    """Out = the sum of products of the operands along all axes that the result does not name.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("einsum", {"Operands": [np.ones((2, 3)), np.ones((3, 2))]}, {"equation": "ij,ji->i"})["Out"]
        array([3., 3.])

    Source: Paddle's einsum_op; Einstein's summation convention.
    """
    terms, right = _terms(b)
    b(multiply, ",".join(terms) + "->" + right, b["Out"], *b.all("Operands"))


@grad_op("einsum_grad", dtype_slot="Operands", host_only=HOST)
def einsum_grad(b: Binder) -> None:
    """dOperand = dOut times the other operands, summed along the axes that the operand lacks."""
    terms, right = _terms(b)
    for i in range(len(terms)):
        if b.wants("Operands@GRAD", i):
            b(multiply_back, terms, right, i, b.all("Operands@GRAD")[i], b["Out@GRAD"], *b.all("Operands"))


@c_code("einsum")
def _einsum_in_c(c: Context) -> dict[str, Constant]:
    terms, right = _terms(c)
    operands = c.all("Operands")
    sizes: dict[str, int] = {}
    for term, x in zip(terms, operands, strict=True):
        sizes |= {letter: n for letter, n in zip(term, x.shape, strict=True) if sizes.get(letter, 1) == 1}

    def steps(letters: str) -> list[int]:
        """For each operand the distance of its elements along each letter."""
        return [
            sum(prod(x.shape[i + 1 :]) for i, at in enumerate(term) if at == letter and x.shape[i] > 1)
            for term, x in zip(terms, operands, strict=True) for letter in letters
        ]  # fmt: skip

    found: dict[str, Constant] = {"OPERANDS": len(terms)}
    summed = "".join(letter for letter in sizes if letter not in right)
    for name, count, letters in (("", "COUNT", right), ("SUM_", "SUMMED", summed)):
        along = [sizes[letter] for letter in letters]
        found |= {count: prod(along), f"{name}SIZES": along or [1], f"{name}STEPS": steps(letters) or [0]}
        found[f"{name}RANK"] = len(letters)
    return found
