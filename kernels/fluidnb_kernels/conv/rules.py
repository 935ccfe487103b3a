"""Slots, attributes and shape rules of convolutions."""

from collections.abc import Sequence
from typing import Any

from fluidnb.op import Attr, Context, product
from fluidnb_kernels.rules import image_rank, per_axis
from fluidnb_kernels.sliding import Axis, padding_pairs, same_padding, shape_in, slide, split_shape, window_attrs

#: Attributes that choose a library's algorithm; results do not depend on them.
_HINTS = {
    "exhaustive_search": Attr("bool", False, "accepted, without effect"),
    "workspace_size_MB": Attr("int", 512, "accepted, without effect"),
}


def conv_attrs(rank: int, layout: str) -> dict[str, Attr]:
    """The attributes of a convolution."""
    return {
        **window_attrs(rank, layout),
        "dilations": Attr("ints", [1] * rank, "from element to element of a window, one for each axis", gt=0),
        "groups": Attr("int", 1, "groups of channels that do not see each other", ge=1),
        **_HINTS,
    }


def layout_of(c: Context) -> str:
    """The layout that a convolution or pooling has as an attribute."""
    found: str = c.attr("data_format", "NCHW")
    return found


def _operands(c: Context, transposed: bool) -> tuple[Any, Any, tuple[int, int, tuple[int, ...]]]:
    """Input, Filter, and (batch, channels, sizes) of the input, checked for rank and dtype."""
    name, x, w = c.definition.type.removesuffix("_grad"), c["Input"], c["Filter"]
    rank = image_rank(c, x, name)
    side = "[channels, filters / groups, …]" if transposed else "[filters, channels / groups, …]"
    c.require(
        w.ndim == rank + 2, f"The filter of {name} must have as many dimensions as its input.",
        expected=f"a filter {side} with {rank + 2} dimensions", received=list(w.shape),
    )  # fmt: skip
    c.require(
        x.dtype == w.dtype, f"Input and Filter of {name} must have one dtype.",
        expected=str(x.dtype), received=str(w.dtype), hint="cast one of them with layers.cast.",
    )  # fmt: skip
    for attr in ("strides", "dilations", "paddings"):
        per_axis(c, name, attr, rank, (rank, 2 * rank) if attr == "paddings" else (rank,))
    c.require(not c.has("Bias"), f"{name} takes no Bias here.", hint="add it with elementwise_add, axis=1.")
    return x, w, split_shape(x.shape, layout_of(c))


def conv_axes(c: Context, sizes: tuple[int, ...], window: tuple[int, ...]) -> tuple[Axis, ...]:
    """The windows of a convolution along each axis of an image."""
    rank = len(sizes)
    return slide(
        sizes, window, c.attr("strides", [1] * rank), c.attr("paddings", [0] * rank), c.attr("dilations", [1] * rank),
        c.attr("padding_algorithm", "EXPLICIT"),
    )  # fmt: skip


def _padding_hint(sizes: Sequence[int], filters: Sequence[int], dilations: Sequence[int]) -> str:
    """The smallest padding with which a filter fits into an image."""
    steps = [*dilations, *[1] * len(filters)]
    needs = [step * (f - 1) + 1 - size for size, f, step in zip(sizes, filters, steps, strict=False) if size > 0]
    if not needs:
        return "a larger padding makes it fit."
    return f"padding={-(-max(needs) // 2)} or more makes it fit; a filter of {min(sizes)} fits without."


def conv_infer(c: Context) -> None:
    """Rule of a convolution: an image of as many windows as fit, with a channel for each filter."""
    x, w, (n, channels, sizes) = _operands(c, False)
    name, groups = c.definition.type, c.attr("groups") or 1
    c.require(
        channels < 0 or w.shape[1] < 0 or channels == w.shape[1] * groups,
        f"The number of input channels of {name} should be equal to filter channels * groups.",
        expected=f"{w.shape[1]} * {groups} = {w.shape[1] * groups} channels", received=f"{channels} channels",
        hint="Filter is [filters, channels / groups, height, width].",
    )  # fmt: skip
    c.require(
        w.shape[0] < 0 or w.shape[0] % groups == 0, f"The number of filters of {name} should be divided by groups.",
        expected=f"a multiple of {groups} filters", received=f"{w.shape[0]} filters",
    )  # fmt: skip
    axes = conv_axes(c, sizes, w.shape[2:])
    for axis in axes:
        c.require(
            axis.out == -1 or axis.out > 0, f"The filter of {name} is larger than the padded image.",
            expected="at least one window along each axis",
            received=f"an image {list(sizes)} with a filter {list(w.shape[2:])}",
            hint=_padding_hint(sizes, w.shape[2:], c.attr("dilations", [])),
        )  # fmt: skip
    c.set("Output", shape_in(layout_of(c), n, w.shape[0], [a.out for a in axes]), x.dtype, c.lod("Input"))


def transposed_axes(c: Context, sizes: tuple[int, ...], window: tuple[int, ...]) -> tuple[Axis, ...]:
    """The windows on the *output* of a transposed convolution, one for each element of its input; -1 unknown."""
    rank = len(sizes)
    strides, dilations = c.attr("strides", [1] * rank), c.attr("dilations", [1] * rank)
    algorithm, pairs = c.attr("padding_algorithm", "EXPLICIT"), padding_pairs(c.attr("paddings", [0] * rank), rank)
    wanted, more = c.attr("output_size", []), c.attr("output_padding", [])
    axes = []
    for i, size in enumerate(sizes):
        dilation, stride = dilations[i], strides[i]
        if algorithm == "SAME":  # the padding of a convolution of the *input*, as Paddle has it
            pairs[i], dilation = same_padding(size, window[i], stride), 1
        elif algorithm == "VALID":
            pairs[i] = (0, 0)
        least = (size - 1) * stride - sum(pairs[i]) + dilation * (window[i] - 1) + 1
        out = wanted[i] if wanted else least + (more[i] if more else 0)
        known = size >= 0 and window[i] >= 0
        if known and wanted:
            c.require(
                least <= out < least + stride, "Attr(output_size) of a transposed convolution is out of reach.",
                expected=f"{least} to {least + stride - 1} along axis {i}", received=out,
            )  # fmt: skip
        axes.append(Axis(max(out, 0) if known or wanted else -1, window[i], stride, dilation, pairs[i][0], size))
    return tuple(axes)


def transposed_infer(c: Context) -> None:
    """Rule of a transposed convolution: the image whose convolution would have the shape of the input."""
    x, w, (n, channels, sizes) = _operands(c, True)
    name, groups, rank = c.definition.type, c.attr("groups") or 1, len(sizes)
    c.require(
        -1 in (channels, w.shape[0]) or channels == w.shape[0],
        f"The number of input channels of {name} should be that of its filter.",
        expected=f"{w.shape[0]} channels", received=f"{channels} channels",
        hint="Filter is [channels, filters / groups, height, width].",
    )  # fmt: skip
    c.require(
        w.shape[0] < 0 or w.shape[0] % groups == 0,
        f"The number of input channels of {name} should be divided by groups.",
        expected=f"a multiple of {groups} channels", received=f"{w.shape[0]} channels",
    )  # fmt: skip
    for attr in ("output_size", "output_padding"):
        given = c.attr(attr, [])
        c.require(
            len(given) in (0, rank), f"Attr({attr}) of {name} must have one number for each axis of the image.",
            expected=f"{rank} numbers or none", received=given,
        )  # fmt: skip
    out = [a.size for a in transposed_axes(c, sizes, w.shape[2:])]
    c.require(
        all(s > 0 or s == -1 for s in out), f"The output of {name} would be empty.",
        expected="a positive size along each axis", received=out,
    )  # fmt: skip
    c.set("Output", shape_in(layout_of(c), n, product((w.shape[1], groups)), out), x.dtype, c.lod("Input"))
