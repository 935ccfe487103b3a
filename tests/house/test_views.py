"""Only the files named here make arrays over addresses or strides; all others ask `fluidnb.memory` for views."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ["fluidnb", "kernels/fluidnb_kernels", "magics/fluidnb_magics"]
#: Names that make an array, or reach memory, without a proof that it stays inside what it is a view of.
UNPROVEN = {
    "as_strided", "from_address", "from_buffer", "string_at", "wstring_at", "memmove", "memset", "ctypeslib",
    "as_array", "from_dlpack", "diagonal", "c_void_p", "py_object", "DummyArray",
    "__array_interface__", "__array_struct__",
}  # fmt: skip
#: Where they may be used: allocators, arrays over a pool's block, the CUDA emulator and its backend, cuBLAS, addresses
#: that are read and never followed.
ALLOWED = {
    "fluidnb/memory/views.py": {"as_strided", "from_address", "ndarray", "__array_interface__"},
    "fluidnb/memory/block.py": {"__array_interface__"},
    "fluidnb/memory/system_allocator.py": {"from_buffer", "c_void_p", "py_object"},
    # Addresses of arrays that a segment's calls hold, and of numpy's own loops.
    "fluidnb/runtime/native/exact_functions.py": {"c_void_p"},
    "fluidnb/runtime/native/functions.py": {"c_void_p", "py_object"},
    "fluidnb/runtime/native/matrix_products.py": {"c_void_p"},
    "fluidnb/runtime/native/numpy_loops.py": {"c_void_p", "from_address"},
    "fluidnb/runtime/native/regions.py": {"__array_interface__"},
    "fluidnb/runtime/native/statements.py": {"__array_interface__"},
    "kernels/fluidnb_kernels/tensor/diagonals.py": {"diagonal"},
    "kernels/fluidnb_kernels/tensor/strided_copy.py": {"__array_interface__"},
    "kernels/fluidnb_kernels/cuda/libcublas.py": {"c_void_p"},
    "kernels/fluidnb_kernels/emulator/raw.py": {"c_void_p"},
    # Addresses of arrays whose sizes are compared with what oneDNN is told.
    "kernels/fluidnb_kernels/onednn/library.py": {"__array_interface__", "c_void_p"},
    "kernels/fluidnb_kernels/cuda_emulator_backend/array.py": {"__array_interface__"},
    "kernels/fluidnb_kernels/cuda_emulator_backend/cublas.py": {"from_address"},
    "kernels/fluidnb_kernels/cuda_emulator_backend/memory.py": {"c_void_p", "memset"},
    "kernels/fluidnb_kernels/cuda_emulator_backend/runtime.py": {"from_buffer", "memmove", "memset"},
}


def unproven(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each use."""
    for node in ast.walk(tree):
        if isinstance(node, ast.alias) and node.name.rpartition(".")[2] in UNPROVEN:
            yield node.lineno, node.name.rpartition(".")[2]
        elif isinstance(node, ast.Attribute) and node.attr in UNPROVEN:
            yield node.lineno, node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.ndarray", "numpy.ndarray"):
            yield node.lineno, "ndarray"



@pytest.mark.parametrize("package", PACKAGES)
def test_views_are_proven(package: str) -> None:
    wrong = [
        f"{name}:{line}: {what}; take fluidnb.memory.strided or view_of"
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in [path.relative_to(ROOT).as_posix()]
        for line, what in unproven(ast.parse(path.read_text()))
        if what not in ALLOWED.get(name, ())
    ]
    assert not wrong, "\n".join(wrong)


def test_what_is_allowed_is_used() -> None:
    for name, allowed in ALLOWED.items():
        assert {what for _, what in unproven(ast.parse((ROOT / name).read_text()))} == allowed, name


@pytest.mark.parametrize(
    "text",
    [
        "from numpy.lib.stride_tricks import as_strided", "np.lib.stride_tricks.as_strided(x, (1,), (8,))",
        "y = np.ndarray((2,), 'f4', buffer, 8)", "ctypes.c_char.from_address(8)", "ctypes.string_at(8)",
    ],
)  # fmt: skip
def test_the_rule_sees(text: str) -> None:
    assert list(unproven(ast.parse(text)))
