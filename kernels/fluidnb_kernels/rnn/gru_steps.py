"""The steps of a GRU, forward and backward.

All arrays are packed (see `batches`). Columns of gates are update, reset, candidate. The weight's memory holds a matrix
[width, 2 · width] for update and reset, and then one [width, width] for the candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fluidnb.op import Array
from fluidnb_kernels.rnn.activations import Activation
from fluidnb_kernels.rnn.batches import Batches, Blocks, parts
from fluidnb_kernels.rnn.step_views import StepViews


@dataclass(frozen=True, slots=True)
class Gru:
    """Parameters of a GRU beside its arrays."""

    batches: Batches  # how sequences become steps
    blocks: Blocks  # the steps of what comes in
    gate: Activation  # activation of the update and reset gates
    candidate: Activation  # activation of the candidate
    origin: bool  # whether the update gate is the share of the old state (Cho et al. 2014), not of the candidate


def halves(weight: Array) -> tuple[Array, Array]:
    """The two matrices in a weight's memory, [width, 2 · width] and [width, width]."""
    width = round((weight.size // 3) ** 0.5)
    cut = 2 * width * width
    return weight[:cut].reshape(width, 2 * width), weight[cut:].reshape(width, width)


def forward_views(
    net: Gru, gates: Array, reset: Array, hidden: Array, first: Array, room: Array
) -> Iterator[tuple[Array, ...]]:
    """Yield the views of each step of `forward`, in the order of its loop."""
    for (now, before), z in zip(net.batches, net.blocks.steps(gates), strict=True):
        n = now.stop - now.start
        old = first if before is None else hidden[before]
        more = room[: 2 * n].reshape(2, n, -1)
        yield z[:2], *z, old, more, reset[now], more[0], hidden[now]


def forward(net: Gru, steps: StepViews, weight: Array, known: bool, packed: tuple[Array, ...]) -> None:
    """Run the steps over the arrays of `forward_views`; the gates come as the input with its bias."""
    to_gates, to_candidate = halves(weight)
    weights = parts(to_gates, len(to_gates))
    for both, update, gate, candidate, old, more, reset, room, h in steps(*packed):
        if known:
            np.matmul(old, weights, more)
            np.add(both, more, both)
        net.gate.apply(both, both)
        np.multiply(old, gate, reset)
        if known:
            np.dot(reset, to_candidate, room)
            np.add(candidate, room, candidate)
        known = True
        net.candidate.apply(candidate, candidate)
        one, other = (old, candidate) if net.origin else (candidate, old)
        np.subtract(one, other, h)  # h = other + update · (one - other)
        np.multiply(h, update, h)
        np.add(h, other, h)


def backward_views(
    net: Gru, gates: Array, g: Array, dz: Array, slopes: Array, kept: Array, room: Array, share: Array
) -> Iterator[tuple[Array, ...]]:
    """Yield the views of each step of `backward`, in the order of its loop."""
    stays = gates[0] if net.origin else kept
    for now, _, going_on in net.batches.backwards():
        dh, d, n = g[now], dz[:, now], now.stop - now.start
        each, slope = room[:, :n], tuple(slopes[:, now])
        yield dh, dh[:going_on], tuple(d), slope, d[:2], gates[1, now], stays[now], each, tuple(each), *share[:, :n]


def backward(net: Gru, steps: StepViews, weight: Array, packed: tuple[Array, ...], old: Array) -> Array:
    """Run the steps back over the arrays of `backward_views`; returns the gradient of the initial state."""
    to_gates, to_candidate = halves(weight)
    weights = parts(to_gates, len(to_gates)).copy().transpose(0, 2, 1).copy()  # quicker than views
    back = to_candidate.T.copy()
    gates, _, _, slopes, kept, _, share = packed
    update, _, candidate = gates
    net.gate.slope(gates[:2], slopes[:2])
    net.candidate.slope(candidate, slopes[2])
    np.subtract(1, update, kept)  # the share of the one that the update gate leaves out
    slopes[0] *= old - candidate if net.origin else candidate - old
    slopes[1] *= old
    slopes[2] *= kept if net.origin else update
    ahead = share[0, :0]
    for dh, on, d, slope, both, gate, stays, each, (one, two), dold, dreset in steps(*packed):
        np.add(on, ahead, on)
        np.multiply(dh, slope[0], d[0])
        np.multiply(dh, slope[2], d[2])
        np.dot(d[2], back, dreset)
        np.multiply(dreset, slope[1], d[1])
        np.matmul(both, weights, each)
        np.multiply(dh, stays, dold)
        np.multiply(dreset, gate, dreset)
        for more in one, two, dreset:
            np.add(dold, more, dold)
        ahead = dold
    return ahead


def weight_grad(old: Array, reset: Array, dz: Array, out: Array) -> None:
    """Write the gradient of the weight; ``old`` has the state before each row, ``reset`` that times the reset gate."""
    dgates, dcandidate = halves(out)
    np.matmul(old.T, dz[:2], parts(dgates, len(dgates)))
    np.matmul(reset.T, dz[2], dcandidate)
