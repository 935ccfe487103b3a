"""Operators with attributes, dtypes and sizes chosen at random, with our gradients, run by us and by real Paddle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fluidnb.errors import FluidError
from fluidnb.op import has_op
from tests.paddle.grid import Case, cases
from tests.paddle.grid_dense import dense_cases
from tests.paddle.grid_proposals import proposal_cases
from tests.paddle.grid_sequence import sequence_cases
from tests.paddle.grid_tensor import tensor_cases
from tests.paddle.grid_vision import vision_cases
from tests.paddle.harness import require_paddle
from tests.paddle.random_cases import Mutations
from tests.paddle.test_sweep import build, difference, in_paddle, run
from tests.tools.sampling import sample

pytestmark = pytest.mark.paddle

#: Operator -> which of its cases differ, and why that is as it should be.
KNOWN: dict[str, tuple[Callable[[Case], bool], str]] = {
    "gather": (lambda c: c.attrs.get("axis", 0) != 0, "along another axis Paddle's gradient is one row, repeated"),
    "yolov3_loss": (lambda c: True, "of two objects in one place Paddle's gradient has the last one alone"),
    "roi_align": (lambda c: c.attrs.get("aligned", False), "Paddle's gradient is not that of its output"),
    "mish": (lambda c: c.attrs.get("threshold", 20.0) < 9, "Paddle's gradient is not that of its output"),
    "affine_grid": (lambda c: 1 in c.attrs["output_shape"][2:], "Paddle gives NaN for an image of one row or column"),
    "warpctc": (lambda c: c.attrs.get("blank", 0) != 0, "the labels hold the blank"),
    "unique": (
        lambda c: not all(c.attrs.get(f"return_{name}") for name in ("index", "inverse", "counts")),
        "Paddle leaves an output that is not wanted empty",
    ),
    "momentum": (lambda c: c.attrs.get("rescale_grad", 1.0) != 1, "Paddle's kernel for the CPU ignores rescale_grad"),
    "box_coder": (
        lambda c: bool(c.attrs.get("variance")) and c.inputs["PriorBox"].dtype == "float64",
        "Paddle reads the numbers of the attribute as float64",
    ),
    "deformable_conv": (lambda c: c.attrs.get("im2col_step", 1) > 1, "Paddle's gradient is not that of its output"),
    "deformable_conv_v1": (lambda c: c.attrs.get("im2col_step", 1) > 1, "Paddle's gradient is not that of its output"),
    "sequence_pool": (lambda c: c.attrs.get("pooltype") != "MAX", "Paddle leaves an output that is not wanted empty"),
    "sequence_conv": (lambda c: not c.attrs.get("paddingTrainable", False), "Paddle leaves it empty"),
    "reduce_any": (lambda c: len(set(c.attrs.get("dim", ()))) < len(c.attrs.get("dim", ())), "an axis is named twice"),
    "reduce_all": (lambda c: len(set(c.attrs.get("dim", ()))) < len(c.attrs.get("dim", ())), "an axis is named twice"),
    "partial_sum": (lambda c: c.attrs.get("start_index", 0) < 0, "Paddle reads other memory, or never ends"),
    "partial_concat": (lambda c: c.attrs.get("start_index", 0) < 0, "Paddle reads other memory, or never ends"),
    "celu": (lambda c: c.attrs.get("alpha", 1.0) < 0.01, "numbers too small for a float"),
    "dist": (lambda c: c.attrs.get("p", 2.0) < 0.01, "powers of a thousand overflow"),
}  # fmt: skip


@pytest.mark.parametrize("seed", sample(range(6), 2))
def test_random_attributes(tmp_path: Path, seed: int) -> None:
    require_paddle()
    grids = (*cases(), *dense_cases(), *sequence_cases(), *tensor_cases(), *vision_cases(), *proposal_cases())
    mutations = Mutations(seed, [c for c in grids if has_op(c.op)])
    ran, built, mine, wrong, refused = [], [], [], [], 0
    for case in (mutations.next() for _ in range(150)):
        if case.op in KNOWN and KNOWN[case.op][0](case):
            continue
        try:
            program, feed, fetch = build(case)
            program.desc.pb.version.version = 2006002
            program.desc.touch()
            mine.append(run(program, feed, fetch))
        except FluidError:
            refused += 1
        except Exception as e:  # noqa: BLE001  nothing else may come
            wrong.append(f"{case.id}: {type(e).__name__}: {e}")
        else:
            built.append((program, feed, fetch))
            ran.append(case)
    results = in_paddle(tmp_path, built)
    for case, (_, _, fetch), ours, theirs in zip(ran, built, mine, results, strict=True):
        if not isinstance(theirs, str) and (text := difference(case, ours, theirs, fetch)):
            wrong.append(f"{case.id}: {text}")
    compared = sum(not isinstance(theirs, str) for theirs in results)
    assert compared > 75 and refused > 3
    assert not wrong, f"{len(wrong)} of {compared} differ:\n" + "\n".join(wrong)
