"""The steps of an LSTM, forward and backward, with or without a projection of the hidden state.

All arrays are packed (see `batches`). Columns of gates are candidate, input, forget, output. A step is one product of
matrices, and one call for each function of all its sequences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb_kernels.rnn.activations import Activation
from fluidnb_kernels.rnn.batches import Batches

Array = Any


@dataclass(frozen=True, slots=True)
class Lstm:
    """What an LSTM is told beside its arrays.

    Args:
        batches: how sequences become steps.
        gate: activation of the three gates.
        cell: activation of the cell on its way out.
        candidate: activation of the candidate.
        peepholes: whether the gates see the cell.
        projection: activation of the projection; None when the hidden state itself goes on to the next step.
        cell_clip: bound of the cell's values; 0 for none.
        proj_clip: bound of the projection's values; 0 for none.
    """

    batches: Batches
    gate: Activation
    cell: Activation
    candidate: Activation
    peepholes: bool
    projection: Activation | None = None
    cell_clip: float = 0.0
    proj_clip: float = 0.0


@dataclass(frozen=True, slots=True)
class Columns:
    """The parts of an array [n, 4 · width].

    Args:
        all: the array.

    Example:
        >>> Columns(np.array([[1, 2, 3, 4]])).forget
        array([[3]])
    """

    all: Array

    def _part(self, i: int) -> Array:
        width = self.all.shape[1] // 4
        return self.all[:, i * width : (i + 1) * width]

    @property
    def candidate(self) -> Array:
        """The candidate's columns."""
        return self._part(0)

    @property
    def input(self) -> Array:
        """The input gate's columns."""
        return self._part(1)

    @property
    def forget(self) -> Array:
        """The forget gate's columns."""
        return self._part(2)

    @property
    def output(self) -> Array:
        """The output gate's columns."""
        return self._part(3)


def peephole_weights(bias: Array) -> tuple[Array, Array]:
    """The weights from the cell to the input and forget gates [2, width], and to the output gate [width].

    Args:
        bias: [1, 7 · width].

    Example:
        >>> peephole_weights(np.arange(7)[None])
        (array([[4],
               [5]]), array([6]))
    """
    width = bias.shape[1] // 7
    return bias[0, 4 * width : 6 * width].reshape(2, width), bias[0, 6 * width :]


def forward(
    net: Lstm, parameters: tuple[Array, ...], h0: Array | None, c0: Array | None, packed: tuple[Array, ...]
) -> None:
    """Run the steps.

    Args:
        net: what the network is.
        parameters: weight [state, 4 · width], bias [1, 4 or 7 · width], projection [width, state] or None.
        h0: [sequences, state], or None for zeros.
        c0: [sequences, width], or None for zeros.
        packed: gates [n, 4 · width], which hold the input and are overwritten; cell, activated cell and hidden state
            [n, width], written; state [n, state], written (the hidden state where there is no projection).
    """
    weight, bias, projection = parameters
    gates, cells, seen, hidden, states = packed
    batches, width = net.batches, cells.shape[1]
    state0 = batches.pack_initial(h0, states.shape[1], states.dtype)
    cell0 = batches.pack_initial(c0, width, cells.dtype)
    room, kept = np.empty((batches.first, 4 * width), gates.dtype), np.empty((batches.first, width), gates.dtype)
    candidates, column = np.empty_like(cells), Columns(gates)
    inputs, forgets, outputs = column.input, column.forget, column.output
    np.add(gates, bias[:, : 4 * width], gates)
    for now, before in batches:
        z, cell, candidate, output = gates[now], cells[now], candidates[now], outputs[now]
        n = len(z)
        state, old = (state0, cell0) if before is None else (states[before], cells[before])
        if before is not None or h0 is not None:
            np.dot(state, weight, room[:n])
            np.add(z, room[:n], z)
        net.candidate.apply(z[:, :width], candidate)
        if net.peepholes:
            to_gates, to_output = peephole_weights(bias)
            both = z[:, width : 3 * width]
            both += (old[:, None] * to_gates).reshape(n, 2 * width)
            net.gate.apply(both, both)
        else:
            net.gate.apply(z, z)  # of the candidate's columns too: one piece of memory is quicker than its parts
        np.multiply(candidate, inputs[now], cell)
        np.multiply(old, forgets[now], kept[:n])
        np.add(cell, kept[:n], cell)
        if net.cell_clip:
            np.clip(cell, -net.cell_clip, net.cell_clip, cell)
        if net.peepholes:
            output += cell * to_output
            net.gate.apply(output, output)
        net.cell.apply(cell, seen[now])
        np.multiply(seen[now], output, hidden[now])
        if net.projection is not None:
            np.dot(hidden[now], projection, states[now])
            net.projection.apply(states[now], states[now])
            if net.proj_clip:
                np.clip(states[now], -net.proj_clip, net.proj_clip, states[now])
    np.copyto(column.candidate, candidates)


def backward(
    net: Lstm,
    parameters: tuple[Array, ...],
    packed: tuple[Array, ...],
    old: Array,
    g: Array,
    dz: Array,
    through: Array,
) -> tuple[Array, Array]:
    """Run the steps back.

    Args:
        net: what the network is.
        parameters: as for `forward`.
        packed: as `forward` left them.
        old: [n, width]: the cell that each row goes on from.
        g: [n, state]: gradients of the states; overwritten with those before the projection's activation.
        dz: [n, 4 · width], written: gradients of the gates before their activations.
        through: workspace [n, width].

    Returns:
        The gradients of the first state and of the first cell.
    """
    weight, bias, projection = parameters
    gates, cells, seen, _, states = packed
    width = cells.shape[1]
    _slopes(net, gates, old, seen, dz, through)  # which become gradients in place
    inside = np.abs(cells) < net.cell_clip if net.cell_clip else None
    forgets, transposed = Columns(gates).forget, np.ascontiguousarray(weight.T)  # quicker to multiply with than a view
    dstate, dcell = np.zeros((0, weight.shape[0]), g.dtype), np.zeros((0, width), g.dtype)
    for now, _, going_on in net.batches.backwards():
        dh, d, n = g[now], dz[now], now.stop - now.start
        np.add(dh[:going_on], dstate, dh[:going_on])
        if net.projection is not None:
            dh = _through_projection(net, dh, states[now], projection)
        np.multiply(dh, d[:, 3 * width :], d[:, 3 * width :])
        dc = dh * through[now]
        np.add(dc[:going_on], dcell, dc[:going_on])
        if net.peepholes:
            to_gates, to_output = peephole_weights(bias)
            dc += d[:, 3 * width :] * to_output
        if inside is not None:
            dc *= inside[now]
        parts = d.reshape(n, 4, width)
        np.multiply(dc[:, None], parts[:, :3], parts[:, :3])
        dcell = dc * forgets[now]
        if net.peepholes:
            dcell += (parts[:, 1:3] * to_gates).sum(1)
        dstate = np.dot(d, transposed)
    return dstate, dcell


def _slopes(net: Lstm, gates: Array, old: Array, seen: Array, slopes: Array, through: Array) -> None:
    """What the gradients of cell and hidden state are multiplied with to give those of the gates and of the cell."""
    value, slope = Columns(gates), Columns(slopes)
    net.gate.slope(gates, slopes)
    net.candidate.slope(value.candidate, slope.candidate)
    for part, factor in (
        (slope.candidate, value.input), (slope.input, value.candidate), (slope.forget, old), (slope.output, seen),
    ):  # fmt: skip
        np.multiply(part, factor, part)
    net.cell.slope(seen, through)
    np.multiply(through, value.output, through)


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
    """The gradients of the weights from the cell to the gates.

    Args:
        dz: [n, 4 · width].
        old: [n, width]: the cell that each row goes on from.
        cells: [n, width].

    Returns:
        [3 · width].
    """
    d = Columns(dz)
    return np.concatenate([(d.input * old).sum(0), (d.forget * old).sum(0), (d.output * cells).sum(0)])
