"""layer_norm, group_norm and instance_norm: normalisation within each sample."""

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.norm.emit import LARGEST_EPSILON, View, normalise, normalise_grad
from fluidnb_kernels.norm.launch import Lines
from fluidnb_kernels.norm.second_gradients import SAVED, define, second_maker
from fluidnb_kernels.rules import vectors
from fluidnb_kernels.sliding import CHANNEL_LAST, LAYOUTS, split_shape


def _rows(c: Context) -> tuple[int, int]:
    """The number and the length of the rows of X (-1 unknown)."""
    x, begin = c["X"], c.attr("begin_norm_axis", 1)
    return product(x.shape[:begin]), product(x.shape[begin:])


def _layer_norm_view(b: Binder) -> View:
    return View(_rows(b), (1,), (0,))


def _layer_norm_infer(c: Context) -> None:
    x, begin = c["X"], c.attr("begin_norm_axis")
    c.require(
        begin < x.ndim, "'begin_norm_axis' must be less than the dimensions of X.",
        expected=f"< {x.ndim}", received=begin,
    )  # fmt: skip
    hint = f"a row is what X has from dimension begin_norm_axis = {begin} on."
    vectors(c, ("Scale", "Bias"), product(x.shape[begin:]), "element of a row", hint)
    c.set("Y", x.shape, x.dtype, c.lod("X"))
    for slot in ("Mean", "Variance"):
        c.set(slot, x.shape[:begin], x.dtype)


def _check_epsilon(value: float) -> str | None:
    fits = 0 <= value <= LARGEST_EPSILON
    return None if fits else "'epsilon' in Op(LayerNorm) should be between 0.0 and 0.001."


@op(
    "layer_norm",
    inputs={
        "X: float": "any shape with more than begin_norm_axis dimensions",
        "Scale?: float[length of a row]": "1 where it is left out",
        "Bias?: float[length of a row]": "0 where it is left out",
    },
    outputs={"Y": "X normalised", "Mean~": "the leading sizes of X", "Variance~": "the same, biased"},
    attrs={
        "epsilon": Attr("float", 1e-5, "keeps the divisor from zero", check=_check_epsilon),
        "begin_norm_axis": Attr("int", 1, "the dimensions before this one make rows, the others are normalised", gt=0),
        "is_test": Attr("bool", False, "ignored (compatibility)"),
    },
    cost="4 * X",
    infer=_layer_norm_infer,
    grad=default_grad("X", "Scale", "Bias", "Mean", "Variance", "Y@GRAD"), cuda=FLOATS,
)  # fmt: skip
def layer_norm(b: Binder) -> None:
    """Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias, with mean and variance of each row.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("layer_norm", {"X": np.array([[1.0, 3.0], [0.0, 4.0]])})["Y"].round(3)
        array([[-1.,  1.],
               [-1.,  1.]])

    Source: Ba, Kiros and Hinton, "Layer Normalization" (2016); Fluid's layer_norm_op.
    """
    normalise(b, _layer_norm_view(b), Lines(*_rows(b)), "Mean", "Variance")


@grad_op("layer_norm_grad", grad=second_maker("layer_norm", {"Mean": "Mean", "Variance": "Variance"}), cuda=FLOATS)
def layer_norm_grad(b: Binder) -> None:
    """dScale = Σ dY · x̂ and dBias = Σ dY over rows; with h = dY · Scale, dX = (h - mean h - x̂ · mean(h · x̂)) / σ."""
    normalise_grad(b, _layer_norm_view(b), Lines(*_rows(b)), "Mean", "Variance")


define("layer_norm", _layer_norm_view, "Mean", "Variance", inverted=False)


def _group_norm_infer(c: Context) -> None:
    x, groups, layout = c["X"], c.attr("groups"), c.attr("data_layout")
    c.check_inputs("X")
    n, channels, _ = split_shape(x.shape, layout)
    c.require(
        channels < 0 or 0 < groups <= channels and channels % groups == 0,
        "The number of groups of group_norm must divide the number of channels.",
        expected=f"a divisor of {channels}", received=groups,
    )  # fmt: skip
    vectors(c, ("Scale", "Bias"), channels)
    c.set("Y", x.shape, x.dtype, c.lod("X"))
    for slot in ("Mean", "Variance"):
        c.set(slot, (n, groups), x.dtype)


def _groups(b: Binder) -> tuple[View, Lines]:
    """X as [n, groups, channels of a group, …], and its groups as lines."""
    layout, groups = b.attr("data_layout", "NCHW"), b.attr("groups")
    n, channels, sizes = split_shape(b["X"].shape, layout)
    size, inner, around = channels // groups, product(sizes), tuple(range(3, 3 + len(sizes)))
    view = View((n, groups, size, *sizes), (2, *around), (0, *around), layout=layout)
    return view, Lines(n * groups, size * inner, groups, inner, layout in CHANNEL_LAST)


@op(
    "group_norm",
    inputs={
        "X: float[n, c, …]": "[n, …, c] with data_layout NHWC",
        "Scale?: float[c]": "1 where it is left out",
        "Bias?: float[c]": "0 where it is left out",
    },
    outputs={"Y": "X normalised", "Mean~": "[n, groups]", "Variance~": "[n, groups], biased"},
    attrs={
        "epsilon": Attr(
            "float", 1e-5, "keeps the divisor from zero",
            check=lambda e: None if 0 <= e <= 1 else "'epsilon' in Op(GroupNorm) should be between 0.0 and 1.0f.",
        ),
        "groups": Attr(
            "int", doc="how many groups the channels fall into",
            check=lambda g: None if g > 0 else "'groups' in Op(GroupNorm) should be greater than zero.",
        ),
        "data_layout": Attr("string", "NCHW", "where the channels are", enum=LAYOUTS),
    },
    cost="4 * X",
    infer=_group_norm_infer,
    grad=default_grad("X", "Scale", "Bias", "Y", "Mean", "Variance", "Y@GRAD"), cuda=FLOATS,
)  # fmt: skip
def group_norm(b: Binder) -> None:
    """Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias, with the moments of each image's groups of channels.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.array([1.0, 3.0, 0.0, 4.0]).reshape(1, 4, 1, 1)
        >>> run_op("group_norm", {"X": x}, {"groups": 2})["Y"].ravel().round(3)
        array([-1.,  1., -1.,  1.])

    Source: Wu and He, "Group Normalization" (ECCV 2018); Fluid's group_norm_op.
    """
    normalise(b, *_groups(b), "Mean", "Variance")


@grad_op("group_norm_grad", cuda=FLOATS)
def group_norm_grad(b: Binder) -> None:
    """dScale = Σ dY · x̂ and dBias = Σ dY; with h = dY · Scale, dX = (h - mean h - x̂ · mean(h · x̂)) / σ."""
    normalise_grad(b, *_groups(b), "Mean", "Variance")


def _instance_norm_infer(c: Context) -> None:
    x = c["X"]
    c.require(
        2 <= x.ndim <= 5, "The input of instance_norm must have 2 to 5 dimensions.",
        expected="[batch, channels, …]", received=list(x.shape),
    )  # fmt: skip
    n, channels = x.shape[:2]
    vectors(c, ("Scale", "Bias"), channels)
    c.set("Y", x.shape, x.dtype, c.lod("X"))
    for slot in ("SavedMean", "SavedVariance"):
        c.set(slot, (product((n, channels)),), x.dtype)


def _instance_norm_view(b: Binder) -> View:
    shape = b["X"].shape
    around = tuple(range(2, len(shape)))
    return View(shape, around, (0, *around))


def _lines(b: Binder) -> Lines:
    """The channels of all images."""
    n, channels, *sizes = b["X"].shape
    return Lines(n * channels, product(sizes), channels, product(sizes))


@op(
    "instance_norm",
    inputs={
        "X: float[n, c, …]": "",
        "Scale?: float[c]": "1 where it is left out",
        "Bias?: float[c]": "0 where it is left out",
    },
    outputs={
        "Y": "X normalised",
        "SavedMean~": "[n · c]",
        "SavedVariance~": "[n · c]: 1 / sqrt(biased variance + epsilon)",
    },
    attrs={"epsilon": Attr("float", 1e-5, "keeps the divisor from zero", ge=0)},
    cost="4 * X",
    infer=_instance_norm_infer,
    grad=default_grad("X", "Scale", "SavedMean", "SavedVariance", "Y@GRAD", wrt=["X", "Scale", "Bias"]),
    cuda=FLOATS,
)
def instance_norm(b: Binder) -> None:
    """Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias, with the moments of each channel of each image.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.array([1.0, 3.0, 0.0, 4.0]).reshape(1, 2, 2)
        >>> run_op("instance_norm", {"X": x})["Y"].ravel().round(3)
        array([-1.,  1., -1.,  1.])

    Source: Ulyanov et al., "Instance Normalization: The Missing Ingredient for Fast Stylization" (2016); Paddle's
    instance_norm_op.
    """
    normalise(b, _instance_norm_view(b), _lines(b), "SavedMean", "SavedVariance", inverted=True)


def _grad_infer(c: Context) -> None:
    x = c["X"]
    c.set("X@GRAD", x.shape, x.dtype, c.lod("X"))
    for slot in ("Scale@GRAD", "Bias@GRAD"):
        c.set(slot, (x.shape[1],), x.dtype)


@grad_op("instance_norm_grad", infer=_grad_infer, grad=second_maker("instance_norm", SAVED), cuda=FLOATS)
def instance_norm_grad(b: Binder) -> None:
    """dScale = Σ dY · x̂ and dBias = Σ dY; with h = dY · Scale, dX = (h - mean h - x̂ · mean(h · x̂)) / σ."""
    normalise_grad(b, _instance_norm_view(b), _lines(b), "SavedMean", "SavedVariance", inverted=True)


define("instance_norm", _instance_norm_view)


@c_code("layer_norm", "group_norm", "instance_norm", function="row_norm")
@c_code("layer_norm_grad", "group_norm_grad", "instance_norm_grad", function="row_norm_grad")
def _row_norm_in_c(c: Context) -> dict[str, Constant]:
    type, shape = c.definition.type.removesuffix("_grad"), c["X"].shape
    found: dict[str, Constant] = {"EPSILON": c.attr("epsilon", 1e-5), "AT": "row * N + i"}
    if type == "layer_norm":
        rows, n = _rows(c)
        return {**found, "ROWS": rows, "N": n, "FACTORS": n, "FACTOR": "i"}
    layout = c.attr("data_layout", "NCHW") if type == "group_norm" else "NCHW"
    batch, channels, sizes = split_shape(shape, layout)
    groups, pixels = c.attr("groups") if type == "group_norm" else channels, product(sizes)
    size = channels // groups
    found |= {"ROWS": batch * groups, "N": size * pixels, "FACTORS": channels, "GROUPS": groups, "PIXELS": pixels}
    if layout in CHANNEL_LAST:
        at = "(row / GROUPS * PIXELS + i / SIZE) * FACTORS + row % GROUPS * SIZE + i % SIZE"
        return {**found, "SIZE": size, "AT": at, "FACTOR": "row % GROUPS * SIZE + i % SIZE"}
    return {**found, "SIZE": size, "FACTOR": "row % GROUPS * SIZE + i / PIXELS"}
