"""bipartite_match, mine_hard_examples and target_assign: priors matched with boxes, and what they learn."""

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb_kernels.cuda import Source, by_rows, ctype, each, of_dtype, typed
from fluidnb_kernels.rules import agree, attributes
from fluidnb_kernels.sequences import all_given, one_sequence_each, owners, require_lod, sized, slices

#: Distances below this are none.
NOTHING = 1e-6


def match(dist: Array, limit: float | None) -> tuple[Array, Array]:
    """Match rows and columns, the largest element first, each once: the row of each column (or -1), and the elements.

    A column that is left takes the row of its largest element if that is at least ``limit``, which may be None.
    """
    rows, columns = dist.shape
    left = np.where(dist < NOTHING, -1, dist).T
    index, found = np.full(columns, -1), np.zeros(columns, dist.dtype)
    for _ in range(min(rows, columns)):
        j, i = divmod(int(left.argmax()), rows)
        if left[j, i] < 0:
            break
        index[j], found[j] = i, dist[i, j]
        left[j], left[:, i] = -1, -1
    if limit is not None and rows:
        best = np.where(dist < NOTHING, -1, dist).argmax(0)
        value = dist[best, np.arange(columns)]
        late = (index < 0) & (value >= max(limit, NOTHING))
        index, found = np.where(late, best, index), np.where(late, value, found)
    return index, found


def match_all(dist: Array, parts: list[slice], limit: float | None, index: Array | None, found: Array | None) -> None:
    """Write the matches of every image [images, columns]; outputs without a consumer are None."""
    for i, part in enumerate(parts):
        for out, value in zip((index, found), match(dist[part], limit), strict=True):
            if out is not None:
                out[i] = value


def _parts(c: Context) -> list[slice]:
    lod = c.lod("DistMat")
    return slices(lod[-1] if lod else (0, c["DistMat"].shape[0]))


def _match_infer(c: Context) -> None:
    dist = c["DistMat"]
    c.check_inputs()
    shape = (len(_parts(c)) if c.runtime else -1, dist.shape[1])
    c.set("ColToRowMatchIndices", shape, np.int32)
    c.set("ColToRowMatchDist", shape, dist.dtype)


@op(
    "bipartite_match",
    inputs={"DistMat: float[objects, priors]": "how near they are; a sequence for each image, or one image"},
    outputs={
        "ColToRowMatchIndices": "int32 [images, priors]: the object of each prior, counted in its image; -1 for none",
        "ColToRowMatchDist": "the same shape: how near they are; 0 for none",
    },
    attrs={
        "match_type": Attr(
            "string", "bipartite", "bipartite, or per_prediction, where priors that are left take an object too",
            enum=("bipartite", "per_prediction"),
        ),
        "dist_threshold": Attr("float", 0.5, "per_prediction: how near that object must be"),
    },
    infer=_match_infer,
    host_only="searches step by step: each step depends on the one before",
)  # fmt: skip
def bipartite_match(b: Binder) -> None:
    """Match objects and priors, the nearest pair first, each once; then, with per_prediction, the priors that are left.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("bipartite_match", {"DistMat": [[0.9, 0.8], [0.7, 0.1]]})["ColToRowMatchIndices"]
        array([[0, 1]], dtype=int32)

    Source: Fluid's bipartite_match_op.
    """
    limit = b.attr("dist_threshold") if b.attr("match_type") == "per_prediction" else None
    b(match_all, b["DistMat"], _parts(b), limit, b["ColToRowMatchIndices"], b["ColToRowMatchDist"])


def mine(cls: Array, loc: Array | None, matches: Array, dist: Array, how: Any) -> tuple[list[Array], Array]:
    """The hard examples of each image, and the matches that are left."""
    every, loss = how.mining_type == "hard_example", cls.reshape(matches.shape)
    if every and loc is not None:
        loss = loss + loc.reshape(matches.shape)
    free = matches == -1
    allowed = np.ones_like(free) if every else free & (dist < dist.dtype.type(how.neg_dist_threshold))
    negatives, left = [], matches.copy()
    for i in range(len(matches)):
        spots = np.flatnonzero(allowed[i])
        count = how.sample_size if every else int((~free[i]).sum() * np.float32(how.neg_pos_ratio))
        hard = np.sort(spots[np.argsort(-loss[i, spots], kind="stable")[:count]])
        if every:
            left[i, np.setdiff1d(np.flatnonzero(~free[i]), hard)] = -1
            hard = hard[free[i, hard]]
        negatives.append(hard)
    return negatives, left


def _counts(c: Context) -> tuple[int, ...]:
    """The number of negatives of each image."""
    if not all_given(c, "ClsLoss", "MatchIndices", "MatchDist"):
        return ()
    cls, loc, matches, dist = (c[slot] for slot in ("ClsLoss", "LocLoss", "MatchIndices", "MatchDist"))
    return tuple(map(len, mine(cls, loc, matches, dist, attributes(c))[0]))


def _mine_infer(c: Context) -> None:
    c.check_inputs("MatchIndices")
    shape = c["MatchIndices"].shape
    for slot in ("ClsLoss", "LocLoss", "MatchDist"):
        c.require(
            not c.has(slot) or agree(c[slot].shape[:2], shape),
            f"Input({slot}) of mine_hard_examples must go with Input(MatchIndices).", expected=list(shape),
            received=list(c[slot].shape) if c.has(slot) else None,
        )  # fmt: skip
    c.set("UpdatedMatchIndices", shape, c["MatchIndices"].dtype)
    rows, lod = sized(c, _counts)
    c.set("NegIndices", (rows, 1), np.int32, lod)


def write_mined(
    cls: Array, loc: Array | None, matches: Array, dist: Array, how: Any, negatives: Array | None, left: Array | None
) -> None:
    """Write the results of `mine`; outputs without a consumer are None."""
    parts, found = mine(cls, loc, matches, dist, how)
    if negatives is not None:
        negatives[:, 0] = np.concatenate([*parts, np.zeros(0, np.int64)])
    if left is not None:
        left[...] = found


def _check_mining(a: Any) -> str | None:
    if a["mining_type"] == "hard_example":
        return None if a["sample_size"] > 0 else "sample_size must be positive when mining_type is hard_example."
    if a["neg_pos_ratio"] <= 0:
        return "neg_pos_ratio must be positive when mining_type is max_negative."
    return None


@op(
    "mine_hard_examples",
    inputs={
        "ClsLoss: float[images, priors]": "losses of the classes",
        "LocLoss?: float[images, priors]": "losses of the places",
        "MatchIndices: int32[images, priors]": "the object of each prior, -1 for none",
        "MatchDist: float[images, priors]": "how near they are",
    },
    outputs={
        "NegIndices": "int32 [negatives, 1]: priors that learn that there is nothing; a sequence for each image",
        "UpdatedMatchIndices": "the matches that are left",
    },
    attrs={
        "neg_pos_ratio": Attr("float", 1.0, "max_negative: negatives for one match"),
        "neg_dist_threshold": Attr("float", 0.5, "max_negative: from how near on a prior is no negative"),
        "sample_size": Attr("int", 0, "hard_example: how many priors are chosen in an image"),
        "mining_type": Attr(
            "string", "max_negative", "max_negative, or hard_example, which chooses among matched priors too",
            enum=("max_negative", "hard_example"),
        ),
    },
    check=_check_mining,
    infer=_mine_infer,
    guard=_counts,
    data_shape=True,
    host_only="searches step by step: each step depends on the one before",
)  # fmt: skip
def mine_hard_examples(b: Binder) -> None:
    """NegIndices = the priors without match whose loss is highest; with hard_example, matches that are not hard end.

    Example:
        >>> from fluidnb.testing import run_op
        >>> losses, none = {"ClsLoss": [[1.0, 2.0, 3.0]], "MatchDist": [[0.9, 0.1, 0.2]]}, np.array([[0, -1, -1]])
        >>> run_op("mine_hard_examples", {"MatchIndices": none, **losses})["NegIndices"].array
        array([[2]], dtype=int32)

    Source: Liu et al., "SSD: Single Shot MultiBox Detector" (2016); Fluid's mine_hard_examples_op.
    """
    operands = (b["ClsLoss"], b["LocLoss"], b["MatchIndices"], b["MatchDist"])
    b(write_mined, *operands, attributes(b), b["NegIndices"], b["UpdatedMatchIndices"])


_DTYPES = ("float32", "float64", "int32", "int64")

CUDA = Source(__file__, "target_assign.cu", typed(("matched negatives", _DTYPES)))


def _infer(c: Context) -> None:
    x, match = c["X"], c["MatchIndices"]
    c.check_inputs()
    for slot in ("X", "NegIndices"):
        if c.has(slot):
            require_lod(c, slot, 1)
            if c.runtime:
                one_sequence_each(c, slot, match.shape[0], f"{match.shape[0]}, the rows of MatchIndices")
    if c.runtime:
        c.require(x.shape[1] > 0, "Input(X) of target_assign has no columns to take.", expected="1 or more", received=0)
    c.set("Out", (*match.shape, x.shape[2]), x.dtype)
    c.set("OutWeight", (*match.shape, 1), np.float32)


def assign(
    x: Array, match: Array, level: Array, negative: tuple[Array, Array] | None, mismatch: int,
    out: Array | None, weight: Array | None,
) -> None:  # fmt: skip
    """Write targets [images, priors, width] and weights [images, priors, 1], either None, given negatives by image."""
    found = match > -1
    if (match >= np.diff(level)[:, None]).any():
        image, prior = np.argwhere(match >= np.diff(level)[:, None])[0]
        raise EnforceNotMet(
            "An element of MatchIndices of target_assign is no object of its image.",
            expected=f"-1 or below {level[image + 1] - level[image]}, the objects of image {image}",
            received=f"{match[image, prior]} for prior {prior}",
        )  # fmt: skip
    if negative is not None and len(negative[1]) and not 0 <= negative[1].min() <= negative[1].max() < match.shape[1]:
        raise EnforceNotMet(
            "An element of NegIndices of target_assign is no prior.",
            expected=f"0 to {match.shape[1] - 1}", received=f"{negative[1].min()} to {negative[1].max()}",
        )  # fmt: skip
    if out is not None:
        out[...] = mismatch
        image, prior = np.nonzero(found)
        out[image, prior] = x[level[image] + match[image, prior], prior % x.shape[1]]
    if weight is not None:
        weight[..., 0] = found
    if negative is not None:
        for target, value in ((out, mismatch), (weight, 1)):
            if target is not None:
                target[negative] = value


@op(
    "target_assign",
    inputs={
        "X: float[objects, priors or 1, width] lod": "targets; a sequence for each image",
        "MatchIndices: int32[images, priors]": "the object of each prior, counted within its image; -1 for none",
        "NegIndices?: int32[negatives, 1] lod": "priors that learn the background; a sequence for each image",
    },
    outputs={
        "Out": "[images, priors, width]: the target of each prior",
        "OutWeight": "float32 [images, priors, 1]: 1 for a prior with an object and for a negative, else 0",
    },
    attrs={"mismatch_value": Attr("int", 0, "the target of a prior without an object, and of a negative")},
    infer=_infer,
    dtypes=_DTYPES,
    dtype_slot="X",
    cuda=_DTYPES,
)
def target_assign(b: Binder) -> None:
    """Out[i, j] = X[first object of image i + MatchIndices[i, j], j mod columns], or mismatch_value for no object.

    Example:
        >>> from fluidnb.testing import run_op
        >>> inputs = {"X": ([[[5.0]], [[7.0]]], [[2]]), "MatchIndices": np.array([[1, -1, 0]])}
        >>> found = run_op("target_assign", inputs)
        >>> found["Out"].ravel().tolist(), found["OutWeight"].ravel().tolist()
        ([7.0, 0.0, 5.0], [1.0, 0.0, 1.0])

    Source: Liu et al., "SSD: Single Shot MultiBox Detector" (2016); Fluid's target_assign_op.
    """
    x, match, chosen, level = b["X"], b["MatchIndices"], b["NegIndices"], np.array(b.lod("X")[0], np.int64)
    image = None if chosen is None else owners(np.diff(b.lod("NegIndices")[0]))
    if not b.on_cuda:
        negative = None if image is None else (image, chosen[:, 0])
        return b(assign, x, match, level, negative, b.attr("mismatch_value"), b["Out"], b["OutWeight"])
    outs = [np.uintp(0) if b[slot] is None else b[slot] for slot in ("Out", "OutWeight")]
    columns, width = x.shape[1:]
    value, sizes = x.dtype.type(b.attr("mismatch_value")), [np.int64(n) for n in (columns, width, match.shape[1])]
    match, level = of_dtype(b, match, np.dtype(np.int32)), b.table(level.astype(np.int32))
    by_rows(b, CUDA, f"matched<{ctype(x.dtype)}>", match.size, max(width, 1), x, match, level, *outs, value, *sizes)
    if image is not None and chosen.size:
        chosen, image = of_dtype(b, chosen, np.dtype(np.int32)), b.table(image.astype(np.int32))
        each(b, CUDA, f"negatives<{ctype(x.dtype)}>", len(chosen), chosen, image, *outs, value, *sizes[1:])
