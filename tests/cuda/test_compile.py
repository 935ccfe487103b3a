"""Every kernel compiles for every architecture without a warning, and no register is spilled."""

from __future__ import annotations

import re
from typing import Any

import pytest

import fluidnb_kernels
from fluidnb_kernels.cuda import Source, nvrtc, sources
from fluidnb_kernels.cuda.nvrtc import ARCHITECTURES, CompileError, compile_for
from tests.tools.sampling import sample

fluidnb_kernels.import_all()  # so that all sources are known
pytestmark = pytest.mark.skipif(bool(nvrtc.missing()), reason=nvrtc.missing())


#: What is said of constants that none of the chosen kernels uses.
UNUSED = re.compile(r"warning #177-D: variable .* was declared but never referenced|^Remark: ")


def cases() -> list[Any]:
    """Each file with each architecture; in a sampled run, with one of them."""
    return [
        pytest.param(source, architecture, id=f"{name}-{architecture}")
        for source in sources
        for name, architecture in sample([(source.path.stem, each) for each in ARCHITECTURES], 1)
    ]


@pytest.mark.parametrize(("source", "architecture"), cases())
def test_a_file_compiles(source: Source, architecture: int) -> None:
    names = sample(list(source.kernels), 8)
    made = compile_for(architecture, source.text, source.path.name, names)
    whole = len(names) == len(source.kernels)
    assert [w for w in made.warnings if whole or not UNUSED.search(w)] == []
    assert made.spilled == 0
    assert made.cubin.startswith(b"\x7fELF") and 0 < made.registers <= 255


def test_an_error_names_its_line() -> None:
    text = 'extern "C" __global__ void f(float* x) {\n  x[0] = nope;\n}\n'
    with pytest.raises(CompileError, match=r"f.cu\(2\): error: .*nope"):
        compile_for(90, text, "f.cu", ["f"])


def test_spills_are_seen() -> None:
    body = "".join(f"  float a{i} = x[i * n + {i}];\n" for i in range(300))
    use = "".join(f"  x[{i}] = a{i} + a{(i * 7) % 300};\n" for i in range(300))
    head = 'extern "C" __global__ void __launch_bounds__(1024) f(float* x, int n) {\n  int i = threadIdx.x;\n'
    text = f"{head}{body}{use}}}\n"
    assert compile_for(90, text, "f.cu", ["f"]).spilled > 0
