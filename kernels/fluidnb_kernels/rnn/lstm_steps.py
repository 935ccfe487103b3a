"""The steps of an LSTM, forward and backward, with or without a projection of the hidden state.

All arrays are packed (see `batches`). Columns of gates are candidate, input, forget, output. A step is one product of
matrices, and one call for each function of all its sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fluidnb.op import Array
from fluidnb_kernels.rnn.activations import Activation, Squash
from fluidnb_kernels.rnn.batches import Batches, Blocks, parts
from fluidnb_kernels.rnn.step_views import StepViews


@dataclass(frozen=True, slots=True)
class Lstm:
    """Parameters of an LSTM beside its arrays."""

    batches: Batches  # how sequences become steps
    blocks: Blocks  # the steps of what comes in
    gate: Activation  # activation of the three gates
    cell: Activation  # activation of the cell state before the output gate
    candidate: Activation  # activation of the candidate
    peepholes: bool  # whether the gates see the cell
    # activation of the projection; None when the hidden state itself is the state of the next step
    projection: Activation | None = None
    cell_clip: float = 0.0  # bound of the cell's values; 0 for none
    proj_clip: float = 0.0  # bound of the projection's values; 0 for none


def forward_views(
    net: Lstm, gates: Array, cells: Array, seen: Array, hidden: Array, states: Array, first: Array, cell: Array,
    room: Array, kept: Array,
) -> Iterator[tuple[Array, ...]]:  # fmt: skip
    """Yield the views of each step of `forward`, in the order of its loop."""
    for (now, before), z in zip(net.batches, net.blocks.steps(gates), strict=True):
        n = now.stop - now.start
        old = (first, cell) if before is None else (states[before], cells[before])
        more = room[: 4 * n].reshape(z.shape)
        yield z, tuple(z), *old, more, kept[:n], cells[now], seen[now], hidden[now], states[now]


def forward(net: Lstm, steps: StepViews, parameters: tuple[Array, ...], known: bool, packed: tuple[Array, ...]) -> None:
    """Run the steps over the arrays of `forward_views`; the gates come as the input with its bias."""
    weight, bias, projection = parameters
    width = packed[1].shape[1]
    weights, biases, squash = parts(weight, width), parts(bias, width), Squash(net.candidate, net.gate, weight.dtype)
    for z, (candidate, into, forget, output), state, old, more, kept, cell, seen, hidden, new in steps(*packed):
        if known:
            np.matmul(state, weights, more)
            np.add(z, more, z)
        known = True
        if net.peepholes:
            z[1:3] += old * biases[4:6]
            squash(z[:3])
        else:
            squash(z)
        np.multiply(candidate, into, cell)
        np.multiply(old, forget, kept)
        np.add(cell, kept, cell)
        if net.cell_clip:
            np.clip(cell, -net.cell_clip, net.cell_clip, cell)
        if net.peepholes:
            output += cell * biases[6]
            net.gate.apply(output, output)
        net.cell.apply(cell, seen)
        np.multiply(seen, output, hidden)
        if net.projection is not None:
            np.dot(hidden, projection, new)
            net.projection.apply(new, new)
            if net.proj_clip:
                np.clip(new, -net.proj_clip, net.proj_clip, new)


def backward_views(
    net: Lstm, gates: Array, cells: Array, states: Array, g: Array, through: Array, room: Array, kept: Array
) -> Iterator[tuple[Array, ...]]:
    """Yield the views of each step of `backward`, in the order of its loop."""
    values, dz = gates
    for now, _, going_on in net.batches.backwards():
        dh, dc, d, n = g[now], through[now], dz[:, now], now.stop - now.start
        coming = dh[:going_on], dc[:going_on]
        yield dh, dc, *coming, d, d[:3], d[3], values[2, now], cells[now], states[now], room[:, :n], kept[:n]


def backward(
    net: Lstm, steps: StepViews, parameters: tuple[Array, ...], packed: tuple[Array, ...], seen: Array, old: Array
) -> tuple[Array, Array]:
    """Run the steps back over the arrays of `backward_views`; returns the gradients of initial state and cell."""
    weight, bias, projection = parameters
    (gates, dz), cells, _, _, through, _, kept = packed
    width = cells.shape[1]
    _slopes(net, gates, old, seen, dz, through)  # which become gradients in place
    transposed = parts(weight, width).copy().transpose(0, 2, 1).copy()  # quicker to multiply with than a view
    biases = parts(bias, width)
    dstate, dcell = np.zeros((0, len(weight)), dz.dtype), kept[:0]
    for dh, dc, dh_on, dc_on, d, inner, output, forget, cell, state, each, dcell_now in steps(*packed):
        np.add(dh_on, dstate, dh_on)
        if net.projection is not None:
            dh = _through_projection(net, dh, state, projection)
        np.multiply(dh, output, output)
        np.multiply(dh, dc, dc)
        np.add(dc_on, dcell, dc_on)
        if net.peepholes:
            dc += output * biases[6]
        if net.cell_clip:
            dc *= np.abs(cell) < net.cell_clip
        np.multiply(dc, inner, inner)
        dcell = dcell_now
        np.multiply(dc, forget, dcell)
        if net.peepholes:
            dcell += (d[1:3] * biases[4:6]).sum(0)
        np.matmul(d, transposed, each)
        dstate = np.add.reduce(each, 0)
    return dstate, dcell


def _slopes(net: Lstm, gates: Array, old: Array, seen: Array, slopes: Array, through: Array) -> None:
    """The factors of the gradients of cell and hidden state that give those of the gates and of the cell."""
    candidate, into, _, output = gates
    net.candidate.slope(candidate, slopes[0])
    net.gate.slope(gates[1:], slopes[1:])
    for slope, factor in zip(slopes, (into, candidate, old, seen), strict=True):
        np.multiply(slope, factor, slope)
    net.cell.slope(seen, through)
    np.multiply(through, output, through)


def _through_projection(net: Lstm, dr: Array, state: Array, projection: Array) -> Array:
    """The gradient of the hidden state from that of its projection, which becomes that before the activation."""
    assert net.projection is not None
    if net.proj_clip:
        dr *= np.abs(state) < net.proj_clip
    slope = np.empty_like(dr)
    net.projection.slope(state, slope)
    dr *= slope
    return np.dot(dr, projection.T)


def peephole_grads(dz: Array, old: Array, cells: Array) -> Array:
    """The gradients [3 · width] of the weights from the cell to the gates."""
    return np.concatenate([(d * seen).sum(0) for d, seen in zip(dz[1:], (old, old, cells), strict=True)])
