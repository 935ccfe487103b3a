"""Images scaled, shifted and put back on a GPU."""

from __future__ import annotations

from collections.abc import Iterator

from fluidnb_kernels.cuda import CTYPES, Source
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.tensor.strided_copy import WORDS


def _kernels() -> Iterator[str]:
    yield from (f"affine<{CTYPES[dtype]}>" for dtype in FLOATS)
    yield from (f"shifted<{word}>" for word in WORDS.values())
    yield from (f"claimed_place<{index}>" for index in ("int", "long long"))
    yield from (f"put_back<{word}>" for word in WORDS.values() if word != WORDS[16])


CUDA = Source(__file__, "vision.cu", _kernels)
