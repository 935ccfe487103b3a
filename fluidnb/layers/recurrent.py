"""Layers of recurrent networks over sequences, and single steps of them."""

from copy import copy
from typing import Any

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.fc import fc, operands
from fluidnb.layers.one_op import several
from fluidnb.layers.shape import concat
from fluidnb.op import takes
from fluidnb.param_attr import ParamAttr, ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["dynamic_gru", "dynamic_lstm", "dynamic_lstmp", "gru_unit", "lstm", "lstm_unit"]

ACTIVATIONS = ("identity", "sigmoid", "tanh", "relu")


def _width(size: int, times: int, layer: str) -> int:
    """The width behind a size that counts all gates."""
    if size <= 0 or size % times:
        fits = -(-max(size, 1) // times) * times
        raise OpValueError(
            f"size of {layer} counts the columns of all gates.", expected=f"{times} · width", received=size,
            hint=f"size={fits}, with layers.fc(x, size={fits}) in front, which makes the input.",
        )  # fmt: skip
    return size // times


def _bias(bias_attr: ParamAttrLike, layer: str) -> None:
    if bias_attr is False:
        raise OpValueError(
            f"bias_attr should not be False in {layer}.", expected="a description of the bias", received=False,
            hint="the operator always adds a bias; ParamAttr(trainable=False) with zeros does without one.",
        )  # fmt: skip


def _initial(h_0: Variable | None, c_0: Variable | None, layer: str) -> dict[str, Variable | None]:
    """The first states, which are given both or not at all."""
    if (h_0 is None) != (c_0 is None):
        raise OpTypeError(
            f"h_0 and c_0 of {layer} are given both or not at all.", expected="two Variables",
            received="h_0 alone" if c_0 is None else "c_0 alone",
            hint="without both they are zeros; layers.fill_constant_batch_size_like makes zeros for one of them.",
        )  # fmt: skip
    return {"H0": h_0, "C0": c_0}


@naming.layer
@takes(
    input="lstm.Input", h_0="lstm.H0", c_0="lstm.C0", gate_activation="lstm.gate_activation",
    cell_activation="lstm.cell_activation", candidate_activation="lstm.candidate_activation",
)  # fmt: skip
def dynamic_lstm(
    input: Variable, size: int, h_0: Variable | None = None, c_0: Variable | None = None,
    param_attr: ParamAttrLike = None, bias_attr: ParamAttrLike = None, use_peepholes: bool = True,
    is_reverse: bool = False, gate_activation: str = "sigmoid", cell_activation: str = "tanh",
    candidate_activation: str = "tanh", dtype: Any = "float32", name: str | None = None,
) -> tuple[Variable, Variable]:  # fmt: skip
    """A long short-term memory along each sequence.

    The input is projected already, by an fc in front: its columns belong to candidate, input gate, forget gate and
    output gate, and so do those of weight and bias.

    Args:
        input: [rows, 4 · width] with one level of LoD.
        size: 4 · width.
        h_0: [sequences, width]: hidden states before the first step; zeros without.
        c_0: [sequences, width]: cells before the first step; given with ``h_0``.
        param_attr: description of the weight [width, 4 · width], from the hidden state.
        bias_attr: description of the bias [1, 4 · width], or with peepholes [1, 7 · width]: three more weights for
            each cell.
        dtype: dtype of the parameters.

    Returns:
        Hidden state and cell after each row, both [rows, width] with the LoD of the input. Gradients pass through the
        hidden state alone, as in Fluid.

    Example:
        >>> x = fluid.layers.data("x", [32], lod_level=1)
        >>> hidden, cell = fluid.layers.dynamic_lstm(fluid.layers.fc(x, 4 * 16), size=4 * 16, use_peepholes=False)
        >>> hidden.shape, hidden.lod_level, hidden.param.shape
        ((-1, 16), 1, (16, 64))
    """
    width = _width(size, 4, "dynamic_lstm")
    _bias(bias_attr, "dynamic_lstm")
    first = _initial(h_0, c_0, "dynamic_lstm")
    helper = LayerHelper("lstm", param_attr=param_attr, bias_attr=bias_attr, name=name)
    weight = helper.create_parameter(helper.param_attr or False, [width, size], dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, (7 if use_peepholes else 4) * width], dtype, is_bias=True)
    outputs = dict.fromkeys(("Hidden", "Cell", "BatchGate", "BatchCellPreAct"), dtype)
    attrs = {
        "use_peepholes": use_peepholes, "is_reverse": is_reverse, "gate_activation": gate_activation,
        "cell_activation": cell_activation, "candidate_activation": candidate_activation,
    }  # fmt: skip
    inputs = {"Input": input, "Weight": weight, "Bias": bias, **first}
    hidden, cell, *_ = several("lstm", inputs, outputs, attrs, helper=helper)
    return hidden, cell


@naming.layer
@takes(
    input="lstmp.Input", h_0="lstmp.H0", c_0="lstmp.C0", gate_activation="lstmp.gate_activation",
    cell_activation="lstmp.cell_activation", candidate_activation="lstmp.candidate_activation",
    proj_activation="lstmp.proj_activation",
)  # fmt: skip
def dynamic_lstmp(
    input: Variable, size: int, proj_size: int, param_attr: ParamAttrLike = None, bias_attr: ParamAttrLike = None,
    use_peepholes: bool = True, is_reverse: bool = False, gate_activation: str = "sigmoid",
    cell_activation: str = "tanh", candidate_activation: str = "tanh", proj_activation: str = "tanh",
    dtype: Any = "float32", name: str | None = None, h_0: Variable | None = None, c_0: Variable | None = None,
    cell_clip: float | None = None, proj_clip: float | None = None,
) -> tuple[Variable, Variable]:  # fmt: skip
    """A long short-term memory along each sequence whose hidden state is projected to fewer numbers (Sak et al. 2014).

    The projection takes the hidden state's place in the next step; the rest is as in `dynamic_lstm`.

    Args:
        input: [rows, 4 · width] with one level of LoD.
        size: 4 · width.
        proj_size: numbers of the projection.
        param_attr: description of the weight [proj_size, 4 · width]; the projection's weight [width, proj_size] follows
            it, and is called ``<name>_proj`` where it has a name.
        bias_attr: description of the bias, as in `dynamic_lstm`.
        proj_activation: of the projection, alike.
        dtype: dtype of the parameters.
        h_0: [sequences, proj_size]: projections before the first step; zeros without.
        c_0: [sequences, width]: cells before the first step; given with ``h_0``.
        cell_clip: bound of the cell's values; None for none.
        proj_clip: bound of the projection's values; None for none.

    Returns:
        Projection [rows, proj_size] and cell [rows, width] after each row, with the LoD of the input.

    Example:
        >>> x = fluid.layers.data("x", [4 * 16], lod_level=1)
        >>> projection, cell = fluid.layers.dynamic_lstmp(x, size=4 * 16, proj_size=8)
        >>> projection.shape, cell.shape
        ((-1, 8), (-1, 16))
    """
    width = _width(size, 4, "dynamic_lstmp")
    _bias(bias_attr, "dynamic_lstmp")
    first = _initial(h_0, c_0, "dynamic_lstmp")
    helper = LayerHelper("lstmp", param_attr=param_attr, bias_attr=bias_attr, name=name)
    described = helper.param_attr
    other = copy(described)
    if isinstance(other, ParamAttr) and other.name is not None:
        other.name += "_proj"  # two parameters of one name would be one
    weight = helper.create_parameter(described or False, [proj_size, size], dtype)
    projection = helper.create_parameter(other or False, [width, proj_size], dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, (7 if use_peepholes else 4) * width], dtype, is_bias=True)
    outputs = dict.fromkeys(("Projection", "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden"), dtype)
    attrs = {
        "use_peepholes": use_peepholes, "is_reverse": is_reverse, "gate_activation": gate_activation,
        "cell_activation": cell_activation, "candidate_activation": candidate_activation,
        "proj_activation": proj_activation, "cell_clip": cell_clip or 0.0, "proj_clip": proj_clip or 0.0,
    }  # fmt: skip
    inputs = {"Input": input, "Weight": weight, "ProjWeight": projection, "Bias": bias, **first}
    projected, cell, *_ = several("lstmp", inputs, outputs, attrs, helper=helper)
    return projected, cell


@naming.layer
@takes(input="gru.Input", h_0="gru.H0", gate_activation="gru.gate_activation", candidate_activation="gru.activation")
def dynamic_gru(
    input: Variable, size: int, param_attr: ParamAttrLike = None, bias_attr: ParamAttrLike = None,
    is_reverse: bool = False, gate_activation: str = "sigmoid", candidate_activation: str = "tanh",
    h_0: Variable | None = None, origin_mode: bool = False,
) -> Variable:  # fmt: skip
    """A gated recurrent unit along each sequence.

    The input is projected already, by an fc in front: its columns belong to update gate, reset gate and candidate.

    Args:
        input: [rows, 3 · size] with one level of LoD.
        size: numbers of the state.
        param_attr: description of the weight [size, 3 · size]; its memory holds [size, 2 · size] for the gates and then
            [size, size] for the candidate.
        bias_attr: description of the bias [1, 3 · size]; False leaves it out.
        h_0: [sequences, size]: states before the first step; zeros without.
        origin_mode: whether the update gate is the share of the old state (Cho et al. 2014) or that of the candidate.

    Returns:
        The state after each row [rows, size], with the LoD of the input.

    Example:
        >>> x = fluid.layers.data("x", [32], lod_level=1)
        >>> hidden = fluid.layers.dynamic_gru(fluid.layers.fc(x, 3 * 16), size=16)
        >>> hidden.shape, hidden.lod_level
        ((-1, 16), 1)
    """
    helper = LayerHelper("gru", param_attr=param_attr, bias_attr=bias_attr)
    inputs = {"Input": input, **_gru_parameters(helper, size, input.dtype), "H0": h_0}
    outputs = dict.fromkeys(("Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden"), input.dtype)
    attrs = {
        "is_reverse": is_reverse, "gate_activation": gate_activation, "activation": candidate_activation,
        "origin_mode": origin_mode,
    }  # fmt: skip
    return several("gru", inputs, outputs, attrs, helper=helper)[0]


def _gru_parameters(helper: LayerHelper, width: int, dtype: Any) -> dict[str, Any]:
    weight = helper.create_parameter(helper.param_attr or False, [width, 3 * width], dtype)
    bias = helper.bias_attr and helper.create_parameter(helper.bias_attr, [1, 3 * width], dtype, is_bias=True)
    return {"Weight": weight, "Bias": bias}


@naming.layer
@takes(
    hidden="gru_unit.HiddenPrev",
    activation=("sigmoid", "tanh", "relu", "identity"),
    gate_activation=("sigmoid", "tanh", "relu", "identity"),
)
def gru_unit(
    input: Variable, hidden: Variable, size: int, param_attr: ParamAttrLike = None, bias_attr: ParamAttrLike = None,
    activation: str = "tanh", gate_activation: str = "sigmoid", origin_mode: bool = False,
) -> tuple[Variable, Variable, Variable]:  # fmt: skip
    """One step of a gated recurrent unit.

    Args:
        input: [batch, 3 · width]: the projected input, in columns update, reset, candidate.
        hidden: [batch, width]: the old state.
        size: 3 · width.
        param_attr: description of the weight [width, 3 · width], laid out as in `dynamic_gru`.
        bias_attr: description of the bias [1, 3 · width]; False leaves it out.
        activation: of the candidate: ``"sigmoid"``, ``"tanh"``, ``"relu"`` or ``"identity"``.
        gate_activation: of the gates, alike.
        origin_mode: as in `dynamic_gru`.

    Returns:
        The new state [batch, width], the old state times the reset gate [batch, width], and the gates
        [batch, 3 · width]. Gradients pass through the new state alone.

    Example:
        >>> x, h = fluid.layers.data("x", [3 * 16]), fluid.layers.data("h", [16])
        >>> new, reset, gates = fluid.layers.gru_unit(x, h, size=3 * 16)
        >>> new.shape, gates.shape
        ((-1, 16), (-1, 48))
    """
    width = _width(size, 3, "gru_unit")
    numbers = {}
    for argument, name in (("activation", activation), ("gate_activation", gate_activation)):
        if name not in ACTIVATIONS:
            raise OpValueError(
                f"{argument} of gru_unit names no activation.", expected=", ".join(ACTIVATIONS), received=repr(name)
            )
        numbers[argument] = ACTIVATIONS.index(name)
    helper = LayerHelper("gru_unit", param_attr=param_attr, bias_attr=bias_attr)
    inputs = {"Input": input, "HiddenPrev": hidden, **_gru_parameters(helper, width, input.dtype)}
    attrs = {**numbers, "origin_mode": origin_mode}
    outputs = dict.fromkeys(("Gate", "ResetHiddenPrev", "Hidden"), input.dtype)
    gates, reset, new = several("gru_unit", inputs, outputs, attrs, helper=helper)
    return new, reset, gates


@naming.layer
@takes(x_t="float[batch, features]", hidden_t_prev="float[batch, width]", cell_t_prev="lstm_unit.C_prev")
def lstm_unit(
    x_t: Variable, hidden_t_prev: Variable, cell_t_prev: Variable, forget_bias: float = 0.0,
    param_attr: ParamAttrLike = None, bias_attr: ParamAttrLike = None, name: str | None = None,
) -> tuple[Variable, Variable]:  # fmt: skip
    """One step of a long short-term memory: an fc of input and old hidden state, and the gates behind it.

    Args:
        x_t: [batch, any width]: the input.
        hidden_t_prev: [batch, width]: the old hidden state.
        cell_t_prev: [batch, width]: the old cell.
        forget_bias: added to the forget gate.
        param_attr: description of the fc's weight [width of ``x_t`` + width, 4 · width].
        bias_attr: description of the fc's bias [4 · width]; False leaves it out.

    Returns:
        The new hidden state and the new cell, both [batch, width].

    Example:
        >>> x, h, c = (fluid.layers.data(n, [size]) for n, size in (("x", 10), ("h", 16), ("c", 16)))
        >>> hidden, cell = fluid.layers.lstm_unit(x, h, c, forget_bias=1.0)
        >>> hidden.shape, cell.shape
        ((-1, 16), (-1, 16))
    """
    arguments = {"x_t": x_t, "hidden_t_prev": hidden_t_prev, "cell_t_prev": cell_t_prev}
    for argument, variable in arguments.items():
        _require(len(variable.shape) == 2, f"Rank of {argument} must be 2.", arguments)
    heights = {v.shape[0] for v in arguments.values()} - {-1}
    _require(len(heights) <= 1, "The 1st dimensions of x_t, hidden_t_prev and cell_t_prev must be the same.", arguments)
    _require(
        hidden_t_prev.shape[1] == cell_t_prev.shape[1],
        "The 2nd dimensions of hidden_t_prev and cell_t_prev must be the same.", arguments,
    )  # fmt: skip
    both = concat([x_t, hidden_t_prev], axis=1)
    gates = fc(both, 4 * cell_t_prev.shape[1], param_attr=param_attr, bias_attr=bias_attr)
    outputs, attrs = {"C": x_t.dtype, "H": x_t.dtype}, {"forget_bias": float(forget_bias)}
    cell, hidden = several("lstm_unit", {"X": gates, "C_prev": cell_t_prev}, outputs, attrs, name=name)
    return hidden, cell


def _require(holds: bool, message: str, arguments: dict[str, Variable]) -> None:
    if not holds:
        raise OpValueError(
            message, slots=[(name, *operands([v])[0][1:]) for name, v in arguments.items()],
            expected="x_t [batch, any], hidden_t_prev and cell_t_prev [batch, width]",
            received=", ".join(str(list(v.shape)) for v in arguments.values()),
            hint="the hidden state and the cell of a step are as wide as each other.",
        )  # fmt: skip


@naming.layer
@takes(init_h="cudnn_lstm.InitH", init_c="cudnn_lstm.InitC", input="cudnn_lstm.Input")
def lstm(
    input: Variable, init_h: Variable, init_c: Variable, max_len: int, hidden_size: int, num_layers: int,
    dropout_prob: float = 0.0, is_bidirec: bool = False, is_test: bool = False, name: str | None = None,
    default_initializer: Any = None, seed: int = -1,
) -> tuple[Variable, Variable, Variable]:  # fmt: skip
    """Layers of LSTMs over a batch of sequences of one length, with one parameter for all weights, as cuDNN has it.

    Args:
        input: float32 or float64 [time, batch, features].
        init_h: [layers, batch, hidden_size]: hidden states before the first step; with ``is_bidirec`` two rows for each
            layer.
        init_c: cells before the first step, alike.
        max_len: ignored (compatibility).
        hidden_size: width of the states.
        num_layers: how many layers.
        dropout_prob: how likely what goes up between layers is left out.
        is_bidirec: whether a second LSTM of each layer runs against time.
        is_test: leave nothing out.
        name: start of the name of the parameter.
        default_initializer: of the parameter.
        seed: of dropout; -1 draws new numbers in every run.

    Returns:
        The hidden states of the last layer [time, batch, hidden_size], twice as wide with ``is_bidirec``; the last
        hidden states and the last cells, as ``init_h``.

    Example:
        >>> x = fluid.layers.data("x", [20, 4, 8], append_batch_size=False)
        >>> state = fluid.layers.fill_constant([2, 4, 16], "float32", 0.0)
        >>> out, last_h, last_c = fluid.layers.lstm(x, state, state, 20, 16, num_layers=2)
        >>> out.shape, last_h.shape, fluid.default_main_program().global_block().all_parameters()[0].shape
        ((20, 4, 16), (2, 4, 16), (3840,))
    """
    if not input.shape:
        raise OpValueError(
            "lstm takes sequences of one length.", slots=operands([input]), expected="[time, batch, features]",
            received=[],
        )  # fmt: skip
    helper = LayerHelper("cudnn_lstm", name=name)
    features, sides = input.shape[-1], 2 if is_bidirec else 1
    rows = features + hidden_size + (num_layers - 1) * (sides + 1) * hidden_size + 2 * num_layers
    weight = helper.create_parameter(
        helper.param_attr, [4 * sides * hidden_size * rows], input.dtype, default_initializer=default_initializer
    )
    attrs = {
        "max_len": max_len, "is_bidirec": is_bidirec, "input_size": features, "hidden_size": hidden_size,
        "num_layers": num_layers, "is_test": is_test, "dropout_prob": dropout_prob, "seed": seed,
    }  # fmt: skip
    inputs = {"Input": input, "InitH": init_h, "InitC": init_c, "W": weight}
    outputs = dict.fromkeys(("Out", "last_h", "last_c", "Reserve"), input.dtype)
    out, last_h, last_c, _ = several("cudnn_lstm", inputs, outputs, attrs, helper=helper)
    return out, last_h, last_c
