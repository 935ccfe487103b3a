"""lstm and lstmp: a long short-term memory over sequences, without and with a projection."""

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rnn.activations import ACTIVATIONS, IN_C, SLOPES_IN_C
from fluidnb_kernels.rnn.lstm_run import Lstm, emit, emit_back, network
from fluidnb_kernels.rules import agree, fits
from fluidnb_kernels.sequences import one_dtype, require_lod

ATTRS = {
    "use_peepholes": Attr("bool", True, "whether the gates see the cell"),
    "is_reverse": Attr("bool", False, "whether time runs from the last row of a sequence to the first"),
    "is_test": Attr("bool", False, "ignored (compatibility)"),
    "gate_activation": Attr("string", "sigmoid", "of the three gates", enum=tuple(ACTIVATIONS)),
    "cell_activation": Attr("string", "tanh", "of the cell state before the output gate", enum=tuple(ACTIVATIONS)),
    "candidate_activation": Attr("string", "tanh", "of the candidate", enum=tuple(ACTIVATIONS)),
}


def check(c: Context, state: int) -> int:
    """Check the inputs that an LSTM has with and without a projection."""
    one_dtype(c, "Input", "Weight", "ProjWeight", "Bias", "H0", "C0")
    x, weight, type = c["Input"], c["Weight"], c.definition.type
    fits(c, "Input", (-1, -1), f"Input(Input)'s rank of {type} must be 2.", "[n, 4 · width]")
    width = weight.shape[1] // 4 if weight.ndim == 2 and weight.shape[1] >= 0 else -1
    c.require(
        weight.ndim == 2 and agree(weight.shape, (state, 4 * width)) and agree((-1, 4 * width), x.shape),
        f"Input(Weight) of {type} must lead from the state to the four gates, which Input(Input) has as columns.",
        expected=f"Weight [{state if state >= 0 else 'state'}, {4 * width}] and Input [n, {4 * width}]",
        received=f"Weight {list(weight.shape)}, Input {list(x.shape)}",
        hint="layers.fc(x, size) in front makes an input of 4 · width columns.",
    )  # fmt: skip
    parts = 7 if c.attr("use_peepholes") else 4
    fits(
        c, "Bias", (1, parts * width), f"The second dimension of Input(Bias) of {type} should be {parts} · width.",
        hint="with peepholes the bias holds three more weights for each cell; use_peepholes=False does without.",
    )  # fmt: skip
    c.require(
        c.has("H0") == c.has("C0"), f"Input(H0) and Input(C0) of {type} must be given both or not at all.",
        expected="two first states", received="H0" if c.has("H0") else "C0",
    )  # fmt: skip
    require_lod(c, "Input", levels=1)
    count = len(c.lod("Input")[0]) - 1 if c.runtime else -1
    for slot, size in (("H0", state), ("C0", width)):
        expected = [count if count >= 0 else "sequences", size]
        fits(c, slot, (count, size), f"Input({slot}) of {type} must have a row for each sequence.", expected)
    return width


def _lstm_infer(c: Context) -> None:
    x, weight = c["Input"], c["Weight"]
    width = check(c, weight.shape[0] if weight.ndim == 2 else -1)
    c.require(
        weight.shape[0] in (-1, width), "Input(Weight) of lstm must be [width, 4 · width].",
        expected=[width, 4 * width], received=list(weight.shape),
    )  # fmt: skip
    for slot in ("Hidden", "Cell"):
        c.set(slot, (x.shape[0], width), x.dtype, c.lod("Input"))
    c.set("BatchGate", (x.shape[0], 4 * width), x.dtype)
    c.set("BatchCellPreAct", (x.shape[0], width), x.dtype)


@op(
    "lstm",
    inputs={
        "Input: float[n, 4 · width] lod": "columns for candidate, input, forget and output",
        "H0?: float[sequences, width]": "hidden state before the first step; zeros without",
        "C0?: float[sequences, width]": "cell before the first step; given with H0",
        "Weight: float[width, 4 · width]": "from the hidden state",
        "Bias: float[1, 4 or 7 · width]": "7 with the weights of peepholes to input, forget and output gates",
    },
    outputs={
        "Hidden": "[n, width]: the hidden state after each row",
        "Cell": "[n, width]: the cell after each row",
        "BatchGate~": "[n, 4 · width]: the gates, step by step",
        "BatchCellPreAct~": "[n, width]: the activated cells, step by step",
    },
    attrs=ATTRS,
    cost="Input * Weight[:1] + 2 * Input",
    infer=_lstm_infer,
    dtypes=FLOATS,
    grad=default_grad(
        "Input", "H0", "C0", "Weight", "Bias", "Hidden", "Cell", "BatchGate", "BatchCellPreAct", "Hidden@GRAD"
    ),
    cuda=FLOATS,
)
def lstm(b: Binder) -> None:
    """Runs an LSTM along each sequence; nothing is padded.

    With x the rows of Input, W the Weight, and w the weights of peepholes::

        candidate = tanh(x_c + h W_c + b_c)
        i, f = σ(x + h W + b + w · c)
        c' = f · c + i · candidate
        o = σ(x_o + h W_o + b_o + w_o · c')
        h' = o · tanh(c')

    A gradient that arrives through Cell is not passed on; give what needs one the hidden state.

    Example:
        >>> from fluidnb.testing import run_op
        >>> inputs = {"Input": (np.zeros((3, 8)), [[2, 1]]), "Weight": np.zeros((2, 8)), "Bias": np.zeros((1, 14))}
        >>> run_op("lstm", inputs)["Hidden"]
        LoDTensor(shape=[3, 2], dtype=float64, lod=[[0, 2, 3]], place=CPUPlace)

    Source: Fluid's lstm_op (Hochreiter and Schmidhuber 1997; peepholes of Gers and Schmidhuber 2000).
    """
    emit(b, network(b), "Hidden")


@c_code("lstm")
@c_code("lstm_grad")
def _lstm_in_c(c: Context) -> dict[str, Constant]:
    rows, width = c["Hidden"].shape
    return {
        "COUNT": rows * width, "WIDTH": width, "REVERSE": int(c.attr("is_reverse")),
        "PEEPHOLES": int(c.attr("use_peepholes")), "GATE": IN_C[c.attr("gate_activation")],
        "CELL": IN_C[c.attr("cell_activation")], "CANDIDATE": IN_C[c.attr("candidate_activation")],
        "GATE_SLOPE": SLOPES_IN_C[c.attr("gate_activation")], "CELL_SLOPE": SLOPES_IN_C[c.attr("cell_activation")],
        "CANDIDATE_SLOPE": SLOPES_IN_C[c.attr("candidate_activation")],
    }  # fmt: skip


@grad_op("lstm_grad", dtype_slot="Input", cuda=FLOATS)
def lstm_grad(b: Binder) -> None:
    """Gradients by backpropagation through time, from that of Hidden.

    Central differences are the reference: Paddle 2.6.2 gives zeros for three gates where the width is a multiple of 8.
    """
    emit_back(b, network(b), "Hidden")


def _lstmp_infer(c: Context) -> None:
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
    infer=_lstmp_infer,
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
