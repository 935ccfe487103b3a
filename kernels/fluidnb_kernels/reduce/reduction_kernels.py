"""The CUDA kernels of reductions and norms, and their registration."""

from collections.abc import Callable, Iterable, Iterator

from fluidnb.op import Binder, kernel
from fluidnb_kernels.cuda import CTYPES, Source
from fluidnb_kernels.cuda.axis_reduction import Fold, fold, fold_types, spread
from fluidnb_kernels.emit import FLOATS

#: Dtypes in which numbers are reduced.
NUMBERS = (*FLOATS, "int32", "int64")
_OF_NUMBERS = ("total", "product", "largest", "smallest")
_OF_FLOATS = (
    "mean", "squares", "length", "root", "powers", "power_length", "power_root", "sizes", "counts", "largest_size",
    "smallest_size", "logsumexp",
)  # fmt: skip
_SPREADS = (
    "share", "extreme", "product", "logsumexp", "square", "length", "size", "count", "extreme_size", "power",
)  # fmt: skip


def _kernels() -> Iterator[str]:
    yield from (f"fold<r::{name}, bool, bool>" for name in ("every", "some"))
    for names, dtypes in ((_OF_NUMBERS, NUMBERS), (_OF_FLOATS, FLOATS)):
        for name in names:
            yield from (f"fold<r::{name}, {types}>" for types in fold_types(dtypes))
    for name in _SPREADS:
        for dtype in FLOATS:
            yield from (f"spread<s::{name}, {CTYPES[dtype]}, {index}>" for index in ("unsigned", "long long"))


CUDA = Source(__file__, "reduce.cu", _kernels)

TOTAL, SIZES, COUNTS = Fold("r::total"), Fold("r::sizes", then="r::total"), Fold("r::counts", then="r::total")
MEAN = Fold("r::mean", "r::total", "r::total", "r::mean")
SQUARES = Fold("r::squares", then="r::total")
LENGTH = Fold("r::length", "r::squares", "r::total", "r::root")
POWER_LENGTH = Fold("r::power_length", "r::powers", "r::total", "r::power_root")
LARGEST_SIZE = Fold("r::largest_size", then="r::largest")
SMALLEST_SIZE = Fold("r::smallest_size", then="r::smallest")
LOGSUMEXP = Fold("r::logsumexp")


def launch(
    type: str, how: Fold, slope: str, axes: Callable[[Binder], Iterable[int]] = (lambda b: range(b["X"].ndim)),
    number: Callable[[Binder], float] = lambda b: 1.0,
    numbers: Callable[[Binder], tuple[float, float]] = lambda b: (0.0, 0.0),
) -> None:  # fmt: skip
    """Register the CUDA kernels of a reduction of X, and of its gradient.

    Args:
        slope: the gradient in ``reduce.cu``.
        number: what the folds get.
        numbers: what the gradient gets.
    """

    @kernel(type, place="cuda", dtypes=FLOATS)
    def forward(b: Binder) -> None:
        fold(b, CUDA, how, b["X"], axes(b), b["Out"], number(b))

    @kernel(type + "_grad", place="cuda", dtypes=FLOATS)
    def backward(b: Binder) -> None:
        spread(b, CUDA, slope, axes(b), b["X"], b["Out"], b["Out@GRAD"], b["X@GRAD"], numbers(b))
