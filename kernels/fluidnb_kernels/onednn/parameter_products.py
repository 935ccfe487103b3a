"""Products of a few rows by a parameter that stays as it is, which oneDNN reads in a special order.

OpenBLAS copies the matrix anew in each product, which takes most of the time where few rows meet a large one: 8 rows by
9,216 x 4,096 numbers take it 15 ms, and oneDNN 5.
"""

import numpy as np

from fluidnb.memory import flags, root
from fluidnb.op import Array, Binder
from fluidnb_kernels.onednn.converted_parameters import converted
from fluidnb_kernels.onednn.images import run
from fluidnb_kernels.onednn.library import SOURCE, TARGET, WEIGHTS, Conversion, Layout, Primitive, cached, path

#: Rows with which it is quicker, and elements of a matrix for which the conversion pays.
_ROWS, _ELEMENTS = range(1, 129), 100_000


@cached
def _primitive(
    shape: tuple[int, int], matrix: tuple[int, int], strides: tuple[int, int]
) -> tuple[Primitive, Conversion] | None:
    """The product for shapes, and the conversion of its matrix; None where oneDNN has none that is faster."""
    rows, columns = shape[0], matrix[1]
    x, y = (Layout.of(sizes, np.empty(sizes, np.float32).strides) for sizes in (shape, (rows, columns)))
    w, plain = Layout.of(matrix, None), Layout.of(matrix, strides)
    try:
        primitive = Primitive("matmul", x.handle, w.handle, None, y.handle)
        mine = primitive.layout(WEIGHTS)
        if mine == plain or not primitive.name.startswith("brg"):
            return None
        return primitive, Conversion(plain, mine)
    except NotImplementedError:
        return None


def by_parameter(b: Binder, x: Array, w: Array, out: Array) -> bool:
    """Emit ``out = x @ w`` where oneDNN is quicker; False: not.

    Args:
        w: the value of Y, or that transposed.
    """
    if not (flags.values["use_mkldnn"] and flags.values["constant_filters"] and path() is not None):
        return False
    whole = b["Y"]
    names = b.inputs.get("Y")
    if x.dtype != np.float32 or len(x) not in _ROWS or w.size < _ELEMENTS or not names or root(w) is not root(whole):
        return False
    if not (b.memory.is_constant(names[0]) and x.flags.c_contiguous and out.flags.c_contiguous):
        return False
    if not whole.flags.c_contiguous or w.size != whole.size:
        return False
    found = _primitive(x.shape, w.shape, w.strides)
    if found is None:
        return False
    primitive, conversion = found
    matrix = converted(b, "Y", whole, whole, (*w.shape, *w.strides), conversion, primitive.layout(WEIGHTS))
    run(b, primitive.call(SOURCE, WEIGHTS, TARGET), x, matrix, out)
    return True
