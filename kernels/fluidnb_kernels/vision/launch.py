"""Images scaled, shifted and put back on a GPU."""

from fluidnb_kernels.cuda import Source, typed
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.tensor.strided_copy import WORDS

CUDA = Source(__file__, "vision.cu", typed(
    ("affine", FLOATS), ("shifted", WORDS.values()), ("claimed_place", ("int32", "int64")),
    ("put_back", [word for word in WORDS.values() if word != WORDS[16]]),
))  # fmt: skip
