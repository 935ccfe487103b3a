"""gather_tree: whole sentences from the words and parents of a beam search over dense tensors."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Binder, Context, op
from fluidnb_kernels.beam.search import CUDA
from fluidnb_kernels.cuda import ctype, each, of_dtype


def follow(ids: Array, parents: Array, out: Array) -> None:
    """Write the words of each beam, followed back from its last step by the parents."""
    beams = np.broadcast_to(np.arange(ids.shape[2]), ids.shape[1:])
    for words, origin, row in zip(ids[::-1], parents[::-1], out[::-1], strict=True):
        row[...] = np.take_along_axis(words, beams, 1)
        beams = np.take_along_axis(origin, beams, 1)


def _infer(c: Context) -> None:
    ids = c["Ids"]
    c.check_inputs()
    c.set("Out", ids.shape, ids.dtype)


@op(
    "gather_tree",
    inputs={
        "Ids: int[steps, batch, beams]": "the word of each beam at each step",
        "Parents: int[steps, batch, beams]": "the beam of the previous step that each beam continues",
    },
    outputs={"Out": "the same shape: the words of whole sentences"},
    infer=_infer,
    cuda=("int32", "int64"),
)
def gather_tree(b: Binder) -> None:
    """Out[:, n, k] = the sentence that ends in Ids[-1, n, k].

    Example:
        >>> from fluidnb.testing import run_op
        >>> ids, parents = np.array([[[2, 3]], [[4, 5]]]), np.array([[[0, 0]], [[1, 0]]])
        >>> run_op("gather_tree", {"Ids": ids, "Parents": parents})["Out"].tolist()
        [[[3, 2]], [[4, 5]]]

    Source: Paddle's gather_tree_op.
    """
    if not b.on_cuda:
        return b(follow, b["Ids"], b["Parents"], b["Out"])
    ids, (steps, batch, beams) = b["Ids"], b["Ids"].shape
    sizes = np.int64(steps), np.int64(beams)
    parents = of_dtype(b, b["Parents"], ids.dtype)
    count = batch * beams if steps else 0
    return each(b, CUDA, f"gather_tree<{ctype(ids.dtype)}>", count, ids, parents, b["Out"], *sizes)
