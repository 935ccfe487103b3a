"""Products of float32 matrices in C, in place of numpy's, where these take longer with OpenBLAS.

A process has them from the first run of a program on, or never: their last digits are others than those of OpenBLAS,
and a training must not depend on when a compiler is done. Where they are not compiled yet, later processes have them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fluidnb.errors import FluidError
from fluidnb.memory import address, flags
from fluidnb.runtime.native.compiler import kept_library, library
from fluidnb.runtime.native.functions import bound_call
from fluidnb.runtime.native.segment_code import LEAST_PRODUCT, Calls, NativeCall, nothing
from fluidnb.runtime.native.statements import collapsed, overlap

Array = Any
#: Columns from which on they are the quicker ones, and the size that one of m, n and k has at most. On an Intel Xeon,
#: with one thread, products of 262,144 multiplications and more take 0.66 to 0.86 of OpenBLAS's time (geometric means
#: over many sizes, by layout) and 0.5 to 1.4 of it; with 8 columns up to 1.7, and 1.05 to 1.2 where all sizes are 500
#: or more. In a program OpenBLAS's own threads cost more than they gain: they begin late and wait without sleeping.
_COLUMNS, _MOST = 9, 400
#: Products and sums are one instruction there.
_FLAG = "-ffp-contract=fast"
_core: Any = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
#: Names of the function of OpenBLAS that gives its number of threads, in numpy's wheels and elsewhere.
_THREADS = (
    "scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads", "openblas_get_num_threads64_",
    "openblas_get_num_threads",
)  # fmt: skip


class Products:
    """The products of matrices in C.

    Args:
        number: the function of OpenBLAS that gives the number of threads.
    """

    def __init__(self, number: Any) -> None:
        self._number = number  # which stays
        self._address: int = ctypes.cast(number, ctypes.c_void_p).value or 0
        self._path: Path | None = None
        self._decided = self._offered = False

    @property
    def ready(self) -> bool:
        """Whether this process has them."""
        return self._path is not None

    def decide(self) -> None:
        """Have them, with FLAGS_native=require, or where they are compiled already.

        Raises:
            NotFound: there is no compiler, and FLAGS_native is ``require``.
            EnforceNotMet: the compiler fails.
        """
        if flags.values["native"] == "require" and self._path is None:
            self._path = library(text(), _FLAG)
        elif not self._decided:
            try:
                self._path = kept_library(text(), _FLAG)
                if self._path is not None:
                    bound_call(self._path, "product", [0], ())  # loads it
            except (OSError, FluidError):  # of the cache folder: the compiler in the background gives the one notice
                self._path = None
        self._decided = True

    def offer(self, submit: Callable[[Products], None]) -> None:
        """Let them be compiled in the background for later processes, where this one has none."""
        if not self.ready and not self._offered:
            self._offered = True
            submit(self)

    def build(self) -> None:
        """Compile them for later processes."""
        library(text(), _FLAG)

    def replace(self, plain: Calls, lives: Callable[[], Mapping[int, Any]]) -> tuple[Calls, list[NativeCall]]:
        """The calls of a segment with products in C in place of others, at the same places, and a report of these.

        Args:
            lives: gives the buffers of its arrays; what has none may be read later.
        """
        assert self._path is not None
        calls, report = list(plain.calls), list[NativeCall]()
        for i, call in enumerate(calls):
            product = _product(*call)
            if product is None:
                continue
            turned = _turned(product, calls[i + 1]) if i + 1 < len(calls) else None
            if not _pays(turned or product):
                continue
            life = None if turned is None else lives().get(id(product.out))
            alone = life is not None and life.last == i + 1  # nobody else reads what is copied
            for one in (turned, product) if alone else (product,):
                table = None if one is None else _table(one)
                if one is not None and table is not None:
                    calls[i] = bound_call(self._path, "product", [self._address, *table], one)
                    if one is turned:
                        calls[i + 1] = nothing, ()
                    report.append(NativeCall([plain.ops[i]], 2 if one is turned else 1, 0, text()))
                    break
        return plain._replace(calls=calls), report


class _Product(NamedTuple):
    """The arrays of a product."""

    x: Array
    y: Array
    out: Array


@cache
def products() -> Products | None:
    """The products in C; None where the processor has no vectors of 64 bytes, or numpy no OpenBLAS."""
    if not getattr(_core, "__cpu_features__", {}).get("AVX512F"):
        return None
    numpy_library = ctypes.CDLL(_core.__file__)  # which finds functions of the libraries that it loads, too
    for name in _THREADS:
        function = getattr(numpy_library, name, None)
        if function is not None:
            return Products(function)
    return None


@cache
def text() -> str:
    """The C code."""
    return Path(__file__).with_name("matrix_product.c").read_text("utf-8")


def _product(function: Any, args: Any) -> _Product | None:
    """The arrays of a call that is a product of matrices."""
    if type(function) is partial and function.func is np.matmul and function.keywords.keys() == {"out"}:
        args = *args, function.keywords["out"]
    elif function is not np.dot and function is not np.matmul:
        return None
    if len(args) != 3 or any(type(x) is not np.ndarray or x.dtype != np.float32 or x.ndim < 2 for x in args):
        return None
    return _Product(*args)


def _turned(product: _Product, after: Any) -> _Product | None:
    """A transposed product that is copied right after it, as one without a copy."""
    function, args = after
    if function is not np.copyto or len(args) != 2 or product.out.ndim != 2:
        return None
    to, source = args
    turned = product.out.T
    same = type(source) is np.ndarray and address(source) == address(turned) and source.dtype == turned.dtype
    if not same or (source.shape, source.strides) != (turned.shape, turned.strides) or to.dtype != turned.dtype:
        return None
    return _Product(product.y.T, product.x.T, to) if to.shape == turned.shape else None


def _pays(product: _Product) -> bool:
    """Whether the product in C is the quicker one. The number of threads has no part in it: bits would depend on it."""
    (m, n), k = product.out.shape[-2:], product.x.shape[-1]
    return bool(m * n * k >= LEAST_PRODUCT and 2 <= min(m, n, k) <= _MOST and n >= _COLUMNS)


def _table(product: _Product) -> list[int] | None:
    """The numbers that the C code reads; None where it cannot compute the product."""
    x, y, out = product
    batch, (m, n), k = out.shape[:-2], out.shape[-2:], x.shape[-1]
    if out.strides[-1] != 4 or any(s % 4 for a in product for s in a.strides) or overlap(x, out) or overlap(y, out):
        return None
    around = [np.broadcast_to(a, (*batch, *a.shape[-2:])).strides[:-2] for a in product]
    sizes, apart = collapsed(batch, around, around[-1])
    if len(sizes) > 1:
        return None
    table = [*(sizes or (1,)), m, n, k]
    for array, steps in zip(product, apart, strict=True):
        table += [address(array), *(s // 4 for s in (*(steps or (0,)), *array.strides[-2:]))]
    return table
