"""The products of a convolution, by the place that a kernel computes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels import verbs
from fluidnb_kernels.conv import device_products, host_products
from fluidnb_kernels.sliding import Axis, channel_first

Array = Any
#: ``product(b, one, other, out, axes, groups)`` emits one of the three products of a convolution.
Product = Callable[[Binder, Array, Array, Array, Sequence[Axis], int], None]


@dataclass(frozen=True, slots=True)
class Products:
    """The products of a convolution on one kind of place, and how images get there.

    Args:
        convolve: images with a filter.
        image_gradient: a gradient with a filter.
        filter_gradient: images with a gradient.
        read: gives images as [n, c, …].
        write: gives what is written for images as [n, c, …].
        written: brings that back.
        add: adds one array to another of its shape.
    """

    convolve: Product
    image_gradient: Product
    filter_gradient: Product
    read: Callable[[Binder, Array, str], Array]
    write: Callable[[Binder, Array, str], Array]
    written: Callable[[Binder, Array, Array], None]
    add: Callable[[Binder, Array, Array], None]


_ON_HOST = Products(
    host_products.convolve, host_products.image_gradient, host_products.filter_gradient,
    read=lambda b, x, layout: channel_first(x, layout),
    write=lambda b, out, layout: channel_first(out, layout),
    written=lambda b, out, view: None,
    add=lambda b, out, more: b(np.add, out, more, out=out),
)  # fmt: skip
_ON_DEVICE = Products(
    device_products.convolve, device_products.image_gradient, device_products.filter_gradient,
    device_products.reading, device_products.writing, device_products.written, device_products.add,
)  # fmt: skip


def products(b: Binder) -> Products:
    """The products for the kernel's place."""
    return _ON_DEVICE if verbs.on_cuda(b) else _ON_HOST
