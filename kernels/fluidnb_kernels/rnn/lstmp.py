"""lstmp: an LSTM whose hidden state is projected to fewer numbers before the next step (dynamic_lstmp)."""

from __future__ import annotations

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rnn.activations import ACTIVATIONS
from fluidnb_kernels.rnn.lstm import ATTRS, check
from fluidnb_kernels.rnn.lstm_run import emit, emit_back, network
from fluidnb_kernels.rnn.lstm_steps import Lstm
from fluidnb_kernels.rules import fits


def _infer(c: Context) -> None:
    x, projection = c["Input"], c["ProjWeight"]
    state = projection.shape[1] if projection.ndim == 2 else -1
    width = check(c, state)
    fits(c, "ProjWeight", (width, state), "Input(ProjWeight) of lstmp must lead from the cells to the state.")
    c.set("Projection", (x.shape[0], state), x.dtype, c.lod("Input"))
    c.set("Cell", (x.shape[0], width), x.dtype, c.lod("Input"))
    c.set("BatchGate", (x.shape[0], 4 * width), x.dtype)
    for slot in ("BatchCellPreAct", "BatchHidden"):
        c.set(slot, (x.shape[0], width), x.dtype)


def _network(b: Binder) -> Lstm:
    return network(
        b, projection=ACTIVATIONS[b.attr("proj_activation", "tanh")],
        cell_clip=b.attr("cell_clip", 0.0), proj_clip=b.attr("proj_clip", 0.0),
    )  # fmt: skip


@op(
    "lstmp",
    inputs={
        "Input: float[n, 4 · width] lod": "columns for candidate, input, forget and output",
        "H0?: float[sequences, state]": "projection before the first step; zeros without",
        "C0?: float[sequences, width]": "cell before the first step; given with H0",
        "Weight: float[state, 4 · width]": "from the projection",
        "ProjWeight: float[width, state]": "from the hidden state to its projection",
        "Bias: float[1, 4 or 7 · width]": "7 with the weights of peepholes to input, forget and output gates",
    },
    outputs={
        "Projection": "[n, state]: the projected hidden state after each row",
        "Cell": "[n, width]: the cell after each row",
        "BatchGate~": "[n, 4 · width]: the gates, step by step",
        "BatchCellPreAct~": "[n, width]: the activated cells, step by step",
        "BatchHidden~": "[n, width]: the hidden states, step by step",
    },
    attrs=ATTRS
    | {
        "cell_clip": Attr("float", 0.0, "bound of the cell's values; 0 for none", ge=0),
        "proj_clip": Attr("float", 0.0, "bound of the projection's values; 0 for none", ge=0),
        "proj_activation": Attr("string", "tanh", "of the projection", enum=tuple(ACTIVATIONS)),
    },
    cost="Input * Weight[:1] + Input[:1] * ProjWeight + 2 * Input",
    infer=_infer,
    dtypes=FLOATS,
    grad=default_grad(
        "Input", "H0", "C0", "Weight", "ProjWeight", "Bias", "Projection", "Cell", "BatchGate", "BatchCellPreAct",
        "BatchHidden", "Projection@GRAD",
    ), cuda=FLOATS,
)  # fmt: skip
def lstmp(b: Binder) -> None:
    """Runs an LSTM along each sequence; ``r = tanh(h · ProjWeight)`` takes the hidden state's place in the next step.

    The rest is as in ``lstm``. A gradient that arrives through Cell is not passed on.

    Example:
        >>> from fluidnb.testing import run_op
        >>> inputs = {"Input": (np.zeros((3, 8)), [[2, 1]]), "Weight": np.zeros((1, 8)), "Bias": np.zeros((1, 14))}
        >>> run_op("lstmp", {**inputs, "ProjWeight": np.zeros((2, 1))})["Projection"]
        LoDTensor(shape=[3, 1], dtype=float64, lod=[[0, 2, 3]], place=CPUPlace)

    Source: Fluid's lstmp_op (Sak et al. 2014).
    """
    emit(b, _network(b), "Projection")


@grad_op("lstmp_grad", dtype_slot="Input", cuda=FLOATS)
def lstmp_grad(b: Binder) -> None:
    """Gradients by backpropagation through time, from that of Projection."""
    emit_back(b, _network(b), "Projection")
