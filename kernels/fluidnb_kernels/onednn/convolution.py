"""The products of convolutions by oneDNN, which wants filters in a special order."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.conv import host_products
from fluidnb_kernels.emit import reading, writing, written
from fluidnb_kernels.onednn.converted_parameters import converted
from fluidnb_kernels.onednn.images import channels_last, dense, run, windows_of
from fluidnb_kernels.onednn.library import (
    SOURCE,
    SOURCE_GRADIENT,
    TARGET,
    TARGET_GRADIENT,
    WEIGHTS,
    WEIGHTS_GRADIENT,
    Call,
    Conversion,
    Layout,
    Primitive,
    Step,
    cached,
    operand_of,
)
from fluidnb_kernels.onednn.steps import step_of
from fluidnb_kernels.sliding import Axis

_TRAINING, _DIRECT = 64, 1
#: kind of primitive -> its argument for the filter.
_FILTER = {
    "convolution_forward": WEIGHTS,
    "convolution_backward_data": WEIGHTS,
    "convolution_backward_weights": WEIGHTS_GRADIENT,
}
Shape = tuple[int, ...]
#: What a product is found by: kind, shapes of images, windows and filter, axes.
Key = tuple[str, Shape, Shape, Shape, tuple[Axis, ...]]


class Product(NamedTuple):
    """A primitive, and the conversion of its filter from the order of Paddle or into it; None where it needs none."""

    primitive: Primitive
    conversion: Conversion | None


@cached
def _product(
    kind: str, images: Shape, windows: Shape, filters: Shape, axes: tuple[Axis, ...], steps: tuple[Step, ...] = ()
) -> Product | None:
    """The product for shapes, with steps for each element of its result; None where oneDNN has none."""
    x, y = (Layout.of(shape, channels_last(shape)) for shape in (images, windows))
    w, plain = Layout.of(filters, None), Layout.of(filters, np.empty(filters, np.float32).strides)
    sliding = windows_of(axes)
    try:
        primitive = forward = Primitive(
            "convolution_forward", _TRAINING, _DIRECT, x.handle, w.handle, None, y.handle, *sliding, steps=steps
        )  # fmt: skip
        if kind == "convolution_backward_data":
            primitive = Primitive(kind, _DIRECT, x.handle, w.handle, y.handle, *sliding, forward.description)
        elif kind == "convolution_backward_weights":
            primitive = Primitive(kind, _DIRECT, x.handle, w.handle, None, y.handle, *sliding, forward.description)
        if primitive.name.startswith("ref"):  # what oneDNN compares itself with: a hundred times as slow
            return None
        mine = primitive.layout(_FILTER[kind])
        if mine == plain:
            return Product(primitive, None)
        return Product(
            primitive, Conversion(mine, plain) if _FILTER[kind] == WEIGHTS_GRADIENT else Conversion(plain, mine)
        )
    except NotImplementedError:
        return None


def _found(kind: str, x: Array, w: Array, y: Array, axes: Sequence[Axis], groups: int) -> tuple[Product, Key] | None:
    """A product of images, filter and windows, and what it was found by; None: numpy computes it."""
    filters = w.shape if groups == 1 else (groups, w.shape[0] // groups, *w.shape[1:])
    if not (x.size and y.size and w.size):
        return None
    key = kind, x.shape, y.shape, filters, tuple(axes)
    product = _product(*key)
    return None if product is None else (product, key)


class Convolution(Call):
    """A convolution, which takes in the functions of its result that follow it.

    Args:
        primitive: the convolution.
        key: what it was found by.
    """

    target = 2

    def __init__(self, primitive: Primitive, key: Key) -> None:
        super().__init__(primitive, primitive.layouts(SOURCE, WEIGHTS, TARGET))
        self._key = key

    def takes_in(self, array: Array, calls: Sequence[Any]) -> tuple[Array, int] | None:
        """The result of a step, and how many calls it stands for; see `Joining` in `joined_calls`."""
        found = step_of(array, calls)
        return None if found is None else (found.out, found.calls)

    def joined(self, args: Sequence[Array], calls: Sequence[Any]) -> tuple[Any, tuple[Any, ...]] | None:
        """One call for the convolution and its steps; None where oneDNN has none that is fast."""
        source, filters, result, workspace = args
        steps: list[Step] = []
        layouts, operands = {}, []
        at = 0
        while at < len(calls):
            found = step_of(result, calls[at:])
            assert found is not None
            step, operand, result, taken = found
            at += taken
            if operand is not None:
                layouts[operand_of(len(steps))] = Layout.of(step.shape, step.strides)
                operands.append(operand)
            steps.append(step)
        product = _product(*self._key, steps=tuple(steps))
        # where products of matrices make the convolution, such steps take twenty times as long as it
        if product is None or "gemm" in product.primitive.name:
            return None
        primitive = product.primitive
        if primitive.layout(WEIGHTS) != self.primitive.layout(WEIGHTS):
            return None
        if primitive.workspace > workspace.nbytes:
            workspace = np.empty(primitive.workspace, np.uint8)
        one = Call(primitive, primitive.layouts(SOURCE, WEIGHTS, TARGET, more=layouts))
        return one, (source, filters, result, *operands, workspace)


def _filter(b: Binder, product: Product, w: Array, shape: Shape) -> Array:
    """Emit a filter as the primitive wants it."""
    plain, conversion = reading(b, w, shape), product.conversion
    if not plain.flags.c_contiguous:
        strided, plain = plain, b.tmp(shape, w.dtype)
        b(np.copyto, plain, strided)
    if conversion is None:
        return plain
    return converted(b, "Filter", w, plain, shape, conversion, product.primitive.layout(WEIGHTS))


def convolve(b: Binder, x: Array, w: Array, out: Array, axes: Sequence[Axis], groups: int) -> None:
    """Emit the convolution of images [n, c, …] with a filter [f, c / groups, window…]."""
    found = _found("convolution_forward", x, w, out, axes, groups)
    if found is None:
        return host_products.convolve(b, x, w, out, axes, groups)
    product, key = found
    source, result, filters = dense(b, x, True), dense(b, out, False), _filter(b, product, w, key[3])
    run(b, Convolution(product.primitive, key), source, filters, result)
    if result is not out:
        b(np.copyto, out, result)


def image_gradient(b: Binder, g: Array, w: Array, dx: Array, axes: Sequence[Axis], groups: int) -> None:
    """Emit the gradient of a convolution's images."""
    found = _found("convolution_backward_data", dx, w, g, axes, groups)
    if found is None:
        return host_products.image_gradient(b, g, w, dx, axes, groups)
    product, key = found
    slopes, result, filters = dense(b, g, True), dense(b, dx, False), _filter(b, product, w, key[3])
    run(b, product.primitive.call(TARGET_GRADIENT, WEIGHTS, SOURCE_GRADIENT), slopes, filters, result)
    if result is not dx:
        b(np.copyto, dx, result)


def filter_gradient(b: Binder, x: Array, g: Array, dw: Array, axes: Sequence[Axis], groups: int) -> None:
    """Emit the gradient of a convolution's filter."""
    found = _found("convolution_backward_weights", x, dw, g, axes, groups)
    if found is None:
        return host_products.filter_gradient(b, x, g, dw, axes, groups)
    (primitive, conversion), (*_, shape, _) = found
    source, slopes = dense(b, x, True), dense(b, g, True)
    result = writing(b, dw, shape) if dw.flags.c_contiguous else b.tmp(shape, dw.dtype)
    mine = result if conversion is None else b.tmp((primitive.layout(WEIGHTS_GRADIENT).size,), np.uint8)
    run(b, primitive.call(SOURCE, TARGET_GRADIENT, WEIGHTS_GRADIENT), source, slopes, mine)
    if conversion is not None:
        run(b, conversion.call(), mine, result)
    written(b, dw, result)
