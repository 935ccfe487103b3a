"""Table of the operators that operations of PIR correspond to, one line each.

A line reads ``operator(operands; attributes) -> results``.

    X           the operand goes into the input slot X; a vector of values fills it with all of them
    @axis       the operand is a constant, and becomes the attribute axis
    @k|K        the same; where it is no constant, it goes into the slot K
    @shape|Shape|ShapeTensor    the same; a vector of tensors goes into ShapeTensor
    _           the operand, or the result, has no counterpart
    a>b         the attribute a is called b
    -a          the attribute a has no counterpart, and changes nothing
    a="x"       the attribute a has this value (JSON)
    a=!b        the attribute a is whether the list b is empty
    a=dtype(X)  the attribute a is the dtype of what is in the slot X
    Out         the result is in the output slot Out
    Out:int32   the same; the operator computes int32, which is cast to the dtype of the result
    MeanOut=Mean    the result is the variable in the input slot Mean, changed in place
    XShape      a slot after the last result gets a variable without a consumer

Attributes that no part of a line names keep their names.
"""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

#: Operations of one tensor X, called like their operators.
_UNARY = """
abs acos acosh asin asinh assign atan atanh ceil cos cosh digamma elu erf exp expm1 floor gelu isfinite_v2 isinf_v2
isnan_v2 lgamma log log10 log1p log2 log_softmax logical_not logit logsigmoid reciprocal relu round rsqrt selu
sigmoid sign silu sin sinh softmax softsign sqrt square stanh swish tan tanh tanh_shrink trunc celu
logsumexp p_norm pixel_shuffle frobenius_norm bitwise_not
""".split()

#: Operations of two tensors that are broadcast, and their operators.
_BINARY = {
    "add": "elementwise_add", "subtract": "elementwise_sub", "multiply": "elementwise_mul", "divide": "elementwise_div",
    "maximum": "elementwise_max", "minimum": "elementwise_min", "remainder": "elementwise_mod",
    "floor_divide": "elementwise_floordiv", "elementwise_pow": "elementwise_pow", "fmax": "elementwise_fmax",
    "fmin": "elementwise_fmin", "bmm": "bmm", "dot": "dot", "kron": "kron", "dist": "dist",
    "equal_all": "equal_all",
    **{name: name for name in ("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal")},
    **{name: name for name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")},
}  # fmt: skip

_REDUCED = {"mean": "reduce_mean", "max": "reduce_max", "min": "reduce_min", "prod": "reduce_prod"}
_INTERPOLATED = ("bilinear_interp", "nearest_interp", "bicubic_interp", "trilinear_interp", "linear_interp")
_CONV = "(Input, Filter) -> Output"
_CONV_TRANSPOSE = "(Input, Filter, @output_size) -> Output"
_SET = "Input, @starts|StartsTensorList|StartsTensorList, @ends|EndsTensorList|EndsTensorList, @steps|StepsTensorList"

LINES: dict[str, str] = {
    **{name: f"{name}(X) -> Out" for name in _UNARY},
    **{name: f"{operator}(X, Y) -> Out" for name, operator in _BINARY.items()},
    **{
        name: f"{operator}(X, @dim; keepdim>keep_dim, reduce_all=!dim) -> Out" for name, operator in _REDUCED.items()
    },
    **{
        name: f"{name}_v2(X, OutSize, SizeTensor, Scale; data_format>data_layout) -> Out" for name in _INTERPOLATED
    },
    **{name: name + _CONV for name in ("conv2d", "conv3d", "depthwise_conv2d")},
    **{name: name + _CONV_TRANSPOSE for name in ("conv2d_transpose", "depthwise_conv2d_transpose")},
    "affine_grid": "affine_grid(Theta, @output_shape|OutputShape) -> Output",
    "all": "reduce_all(X; axis>dim, keepdim>keep_dim, reduce_all=!dim) -> Out",
    "any": "reduce_any(X; axis>dim, keepdim>keep_dim, reduce_all=!dim) -> Out",
    "arange": "range(Start, End, Step; -dtype) -> Out",
    "argmax": "arg_max(X, @axis) -> Out",
    "argmin": "arg_min(X, @axis) -> Out",
    "atan2": "atan2(X1, X2) -> Out",
    "argsort": "argsort(X; -stable) -> Out, Indices",
    "assign_out_": "assign(X, _) -> Out",
    "batch_norm": "batch_norm(X, Mean, Variance, Scale, Bias; data_format>data_layout)"
    " -> Y, MeanOut=Mean, VarianceOut=Variance, SavedMean, SavedVariance, ReserveSpace",
    "box_coder": "box_coder(PriorBox, PriorBoxVar, TargetBox) -> OutputBox",
    "cast": "cast(X; dtype>out_dtype, in_dtype=dtype(X)) -> Out",
    "clip": "clip(X, @min|Min, @max|Max) -> Out",
    "concat": "concat(X, @axis|AxisTensor) -> Out",
    "conv3d_transpose": "conv3d_transpose(Input, Filter) -> Output",
    "cumsum": "cumsum(X, @axis) -> Out",
    "deformable_conv": "deformable_conv(Input, Offset, Filter, Mask) -> Output",
    "dequantize_linear":
        "dequantize_linear(X, Scale, ZeroPoint, InAccum, InState; -qmin, -qmax) -> Y, OutState, OutAccum, OutScale",
    "diag": "diag_v2(X) -> Out",
    "dropout": "dropout(X, _, @dropout_prob; mode>dropout_implementation) -> Out, Mask",
    "einsum": "einsum(Operands) -> Out, InnerCache, XShape",
    "embedding": "lookup_table_v2(Ids, W; sparse>is_sparse) -> Out",
    "expand": "expand_v2(X, @shape|Shape|expand_shapes_tensor) -> Out",
    "expand_as": "expand_as_v2(X, Y) -> Out",
    "eye": "eye(@num_rows, @num_columns) -> Out",
    "flatten": "flatten_contiguous_range(X) -> Out, XShape",
    "flip": "flip(X) -> Out",
    "full_like": "fill_any_like(X, @value) -> Out",
    "full_with_tensor": "fill_constant(@value|ValueTensor, @shape|ShapeTensor|ShapeTensorList) -> Out",
    "gather": "gather(X, Index, @axis|Axis) -> Out",
    "gather_nd": "gather_nd(X, Index) -> Out",
    "grid_sample": "grid_sampler(X, Grid) -> Output",
    "group_norm": "group_norm(X, Scale, Bias; data_format>data_layout) -> Y, Mean, Variance",
    "hardshrink": "hard_shrink(X) -> Out",
    "hardsigmoid": "hard_sigmoid(X) -> Out",
    "hardswish": "hard_swish(X) -> Out",
    "hardtanh": "brelu(X) -> Out",
    "increment": "increment(X; value>step) -> Out=X",
    "index_sample": "index_sample(X, Index) -> Out",
    "index_select": "index_select(X, Index; axis>dim) -> Out",
    "instance_norm": "instance_norm(X, Scale, Bias) -> Y, SavedMean, SavedVariance",
    "layer_norm": "layer_norm(X, Scale, Bias) -> Y, Mean, Variance",
    "leaky_relu": "leaky_relu(X; negative_slope>alpha) -> Out",
    "linspace": "linspace(Start, Stop, Num) -> Out",
    "masked_select": "masked_select(X, Mask) -> Y",
    "matmul": "matmul_v2(X, Y; transpose_x>trans_x, transpose_y>trans_y) -> Out",
    "matrix_nms": "matrix_nms(BBoxes, Scores) -> Out, Index, RoisNum",
    "max_pool2d_with_index": "max_pool2d_with_index(X; kernel_size>ksize) -> Out, Mask",
    "mean_all": "mean(X) -> Out",
    "meshgrid": "meshgrid(X) -> Out",
    "multiclass_nms3": "multiclass_nms3(BBoxes, Scores, RoisNum) -> Out, Index, NmsRoisNum",
    "nonzero": "where_index(Condition) -> Out",
    "mish": "mish(X; lambda>threshold) -> Out",
    "mv": "mv(X, Vec) -> Out",
    "norm": "norm(X) -> Out, Norm",
    "numel": "size(Input) -> Out",
    "one_hot": "one_hot_v2(X, @depth|depth_tensor) -> Out",
    "pad": "pad(X, @pad_value) -> Out",
    "pad3d": "pad3d(X, @paddings|Paddings; pad_value>value) -> Out",
    "pool2d": "pool2d(X, @ksize) -> Out",
    "pool3d": "pool3d(X; kernel_size>ksize) -> Out",
    "pow": "pow(X; y>factor) -> Out",
    "prelu": "prelu(X, Alpha) -> Out",
    "prior_box": "prior_box(Input, Image) -> Boxes, Variances",
    "put_along_axis": "put_along_axis(Input, Index, Value; axis>Axis, reduce>Reduce, include_self>Include_self)"
    " -> Result",
    "quantize_linear":
        "quantize_linear(X, Scale, ZeroPoint, InAccum, InState; -qmin, -qmax) -> Y, OutState, OutAccum, OutScale",
    "relu6": "relu6(X; threshold=6.0) -> Out",
    "reshape": "reshape2(X, @shape|Shape|ShapeTensor) -> Out, XShape",
    "reverse": "reverse(X, @axis) -> Out",
    "rnn": "rnn(Input, PreState, WeightList, SequenceLength, _) -> Out, DropoutState, State, Reserve",
    "roi_align": "roi_align(X, ROIs, RoisNum) -> Out",
    "roll": "roll(X, @shifts|ShiftsTensor) -> Out",
    "scale": "scale(X, @scale|ScaleTensor) -> Out",
    "scatter": "scatter(X, Ids, Updates) -> Out",
    "scatter_nd_add": "scatter_nd_add(X, Index, Updates) -> Out",
    "set_value": f"set_value({_SET}; dtype=dtype(Input)) -> Out",
    "set_value_with_tensor":
        f"set_value(Input, ValueTensor, {_SET.removeprefix('Input, ')}; dtype=dtype(Input), shape=[]) -> Out",
    "shape": "shape(Input) -> Out",
    "shape64": "shape(Input) -> Out:int32",
    "shuffle_channel": "shuffle_channel(X) -> Out",
    "slice": "slice(Input, @starts|StartsTensor|StartsTensorList, @ends|EndsTensor|EndsTensorList) -> Out",
    "softplus": "softplus(X) -> Out",
    "softshrink": "softshrink(X; threshold>lambda) -> Out",
    "split": "split(X, @sections|SectionsTensorList|SectionsTensorList, @axis|AxisTensor) -> Out",
    "split_with_num": "split(X, @axis|AxisTensor) -> Out",
    "squeeze": "squeeze2(X, @axes) -> Out, XShape",
    "stack": "stack(X) -> Y",
    "strided_slice": "strided_slice(Input, @starts|StartsTensor|StartsTensorList, @ends|EndsTensor|EndsTensorList,"
    " @strides|StridesTensor|StridesTensorList) -> Out",
    "sum": "reduce_sum(X, @dim; keepdim>keep_dim, dtype>out_dtype, reduce_all=!dim) -> Out",
    "add_n": "sum(X) -> Out",
    "take_along_axis": "take_along_axis(Input, Index; axis>Axis) -> Result",
    "temporal_shift": "temporal_shift(X) -> Out",
    "tile": "tile(X, @repeat_times|RepeatTimes|repeat_times_tensor) -> Out",
    "topk": "top_k_v2(X, @k|K) -> Out, Indices",
    "trace": "trace(Input) -> Out",
    "transpose": "transpose2(X; perm>axis) -> Out, XShape",
    "tril": "tril_triu(X; lower=true) -> Out",
    "triu": "tril_triu(X; lower=false) -> Out",
    "unbind": "unbind(X) -> Out",
    "unfold": "unfold(X) -> Y",
    "unsqueeze": "unsqueeze2(X, @axes|AxesTensor|AxesTensorList) -> Out, XShape",
    "unstack": "unstack(X) -> Y",
    "where": "where(Condition, X, Y) -> Out",
    "yolo_box": "yolo_box(X, ImgSize) -> Boxes, Scores",
    "isnan": "isnan_v2(X) -> Out",
    "isinf": "isinf_v2(X) -> Out",
    "isfinite": "isfinite_v2(X) -> Out",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operand:
    """Target of an operand: into an attribute where it is a constant, or into slots."""

    attr: str
    slot: str
    list_slot: str


@dataclass(frozen=True, slots=True)
class Output:
    """Target of a result."""

    slot: str
    dtype: str  # what the operator computes; empty for the dtype of the result
    input: str  # the input slot that is changed in place; empty for a new variable


@dataclass(frozen=True, slots=True)
class Signature:
    """A line of the table."""

    operator: str
    operands: tuple[Operand, ...]
    results: tuple[Output, ...]
    renamed: dict[str, str]
    dropped: frozenset[str]
    fixed: dict[str, Any]
    empty: dict[str, str]
    dtypes: dict[str, str]


@cache
def signature(name: str) -> Signature | None:
    """The line of an operation, which may be one in place (``relu_``); None where the table has none.

    Example:
        >>> signature("leaky_relu_").operator, signature("leaky_relu").renamed
        ('leaky_relu', {'negative_slope': 'alpha'})
    """
    line = LINES.get(name) or LINES.get(name.removesuffix("_"))
    if line is None:
        return None
    head, _, results = line.partition(" -> ")
    operator, _, inside = head.removesuffix(")").partition("(")
    operands, _, options = inside.partition(";")
    found: dict[str, dict[str, Any]] = {"renamed": {}, "fixed": {}, "empty": {}, "dtypes": {}}
    dropped = set()
    for option in filter(None, map(str.strip, options.split(","))):
        key, _, value = option.partition("=")
        if option.startswith("-"):
            dropped.add(option[1:])
        elif not value:
            old, _, new = option.partition(">")
            found["renamed"][old] = new
        elif value.startswith("!"):
            found["empty"][key] = value[1:]
        elif value.startswith("dtype("):
            found["dtypes"][key] = value[6:-1]
        else:
            found["fixed"][key] = json.loads(value)
    return Signature(
        operator, tuple(_operand(o.strip()) for o in operands.split(",")),
        tuple(_output(r.strip()) for r in results.split(",")), dropped=frozenset(dropped), **found,
    )  # fmt: skip


def _operand(text: str) -> Operand:
    if text == "_":
        return Operand("", "", "")
    if not text.startswith("@"):
        return Operand("", text, text)
    attr, slot, list_slot = (*text[1:].split("|"), "", "")[:3]
    return Operand(attr, slot, list_slot)


def _output(text: str) -> Output:
    slot, _, dtype = text.partition(":")
    slot, _, inside = slot.partition("=")
    return Output("" if slot == "_" else slot, dtype, inside)
