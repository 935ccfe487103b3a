"""The steps of a GRU, forward and backward.

All arrays are packed (see `batches`). Columns of gates are update, reset, candidate. The weight's memory holds a matrix
[width, 2 · width] for update and reset, and then one [width, width] for the candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb_kernels.rnn.activations import Activation
from fluidnb_kernels.rnn.batches import Batches

Array = Any


@dataclass(frozen=True, slots=True)
class Gru:
    """What a GRU is told beside its arrays.

    Args:
        batches: how sequences become steps.
        gate: activation of the update and reset gates.
        candidate: activation of the candidate.
        origin: whether the update gate is the share of the old state (Cho et al. 2014), not of the candidate.
    """

    batches: Batches
    gate: Activation
    candidate: Activation
    origin: bool


def halves(weight: Array) -> tuple[Array, Array]:
    """The two matrices that a weight holds.

    Args:
        weight: [width · 3 · width], its memory in row order.

    Returns:
        [width, 2 · width] and [width, width].

    Example:
        >>> halves(np.arange(3))
        (array([[0, 1]]), array([[2]]))
    """
    width = round((weight.size // 3) ** 0.5)
    cut = 2 * width * width
    return weight[:cut].reshape(width, 2 * width), weight[cut:].reshape(width, width)


def forward(
    net: Gru, weight: Array, bias: Array | None, h0: Array | None, gates: Array, reset: Array, hidden: Array
) -> None:
    """Run the steps.

    Args:
        net: what the network is.
        weight: see `halves`.
        bias: [1, 3 · width] or None.
        h0: [sequences, width], or None for zeros.
        gates: [n, 3 · width], which holds the input and is overwritten.
        reset: [n, width], written: the old state times the reset gate.
        hidden: [n, width], written: the state after each row.
    """
    to_gates, to_candidate = halves(weight)
    width = hidden.shape[1]
    first = net.batches.pack_initial(h0, width, hidden.dtype)
    room = np.empty((net.batches.first, 2 * width), gates.dtype)
    if bias is not None:
        np.add(gates, bias, gates)
    for now, before in net.batches:
        z, old, h = gates[now], first if before is None else hidden[before], hidden[now]
        n, both, candidate = len(z), z[:, : 2 * width], z[:, 2 * width :]
        going_on = before is not None or h0 is not None
        if going_on:
            np.dot(old, to_gates, room[:n])
            np.add(both, room[:n], both)
        net.gate.apply(both, both)
        np.multiply(old, z[:, width : 2 * width], reset[now])
        if going_on:
            candidate += np.dot(reset[now], to_candidate)
        net.candidate.apply(candidate, candidate)
        one, other = (old, candidate) if net.origin else (candidate, old)
        np.subtract(one, other, h)  # h = other + update · (one - other)
        np.multiply(h, z[:, :width], h)
        np.add(h, other, h)


def backward(
    net: Gru, weight: Array, gates: Array, old: Array, g: Array, dz: Array, room: tuple[Array, Array]
) -> Array:
    """Run the steps back.

    Args:
        net: what the network is.
        weight: see `halves`.
        gates: as `forward` left them.
        old: [n, width]: the state that each row goes on from.
        g: [n, width]: gradients of the states; overwritten.
        dz: [n, 3 · width], written: gradients of the gates before their activations.
        room: workspaces [n, 3 · width] and [n, width].

    Returns:
        The gradient of the first state.
    """
    to_gates, to_candidate = halves(weight)
    slopes, kept = room
    width = old.shape[1]
    update, candidate = gates[:, :width], gates[:, 2 * width :]
    net.gate.slope(gates[:, : 2 * width], slopes[:, : 2 * width])
    net.candidate.slope(candidate, slopes[:, 2 * width :])
    np.subtract(1, update, kept)  # the share of the one that the update gate leaves out
    new, stays = (kept, update) if net.origin else (update, kept)
    slopes[:, :width] *= old - candidate if net.origin else candidate - old
    slopes[:, width : 2 * width] *= old
    slopes[:, 2 * width :] *= new
    dold = np.zeros((0, width), g.dtype)
    for now, _, going_on in net.batches.backwards():
        dh, d, slope = g[now], dz[now], slopes[now]
        np.add(dh[:going_on], dold, dh[:going_on])
        np.multiply(dh, slope[:, :width], d[:, :width])
        np.multiply(dh, slope[:, 2 * width :], d[:, 2 * width :])
        dreset = np.dot(d[:, 2 * width :], to_candidate.T)
        np.multiply(dreset, slope[:, width : 2 * width], d[:, width : 2 * width])
        dold = np.dot(d[:, : 2 * width], to_gates.T)
        dold += dh * stays[now]
        dold += dreset * gates[now, width : 2 * width]
    return dold


def weight_grad(old: Array, reset: Array, dz: Array, out: Array) -> None:
    """Write the gradient of the weight.

    Args:
        old: [n, width]: the state that each row goes on from.
        reset: [n, width]: the same times the reset gate.
        dz: [n, 3 · width].
        out: see `halves`; written.
    """
    dgates, dcandidate = halves(out)
    width = old.shape[1]
    np.matmul(old.T, dz[:, : 2 * width], dgates)
    np.matmul(reset.T, dz[:, 2 * width :], dcandidate)
