"""From CUDA C++ to C++: what headers and macros cannot do is done to the text, and every line stays where it is."""

import re

_HEADERS = re.compile(r"#\s*include\s*<(cuda_fp16|cuda_bf16|cuda_runtime|cuda|math_constants)\.h>[^\n]*")
_DYNAMIC = re.compile(r"extern\s+__shared__\s+(?:__align__\(\d+\)\s*)?([\w:\s<>]+?)\s+(\w+)\s*\[\s*\]\s*;")
_SHARED = re.compile(r"(?<!\w)__shared__\s+((?:__align__\(\d+\)\s*)?(?:typename\s+)?[\w:]+(?:<[^;]*?>)?)\s+([^;]*);")
_KERNEL = re.compile(
    r'extern\s*"C"\s*__global__\s+(?:__launch_bounds__\([^)]*\)\s*)?void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\('
)


def kernels_in(text: str) -> list[str]:
    """The names of a file's ``extern "C" __global__`` functions, in order."""
    return _KERNEL.findall(text)


def translate(text: str, name: str, kernels: list[str]) -> str:
    """A file as C++ that g++ compiles into a library with an entry for each kernel.

    Example:
        >>> print(translate("__global__ void f(int n) {\\n  __shared__ float s[2], t;\\n}", "f.cu", ["f"]))
        #include "cuda.h"
        #line 1 "f.cu"
        __global__ void f(int n) {
          __shared__ float s[2], t; EMU_SHARED(s) EMU_SHARED(t)
        }
        EMU_KERNEL(0, f)
        <BLANKLINE>
    """
    text = _HEADERS.sub("", text)
    text = re.sub(r'extern\s*"C"\s*(?=__global__)', "", text)
    text = _DYNAMIC.sub(r"\1* \2 = EMU_DYNAMIC(\1);", text)
    text = _SHARED.sub(_known, text)
    entries = "".join(f"EMU_KERNEL({i}, {kernel})\n" for i, kernel in enumerate(kernels))
    return f'#include "cuda.h"\n#line 1 "{name}"\n{text}\n{entries}'


def _known(match: re.Match[str]) -> str:
    """A declaration of shared memory, and each of its names made known."""
    names = []
    for part in _split(match[2]):
        found = re.match(r"\s*(?:.*\s)?\*?(\w+)\s*(?:\[|$)", part.strip())
        assert found is not None, match[0]
        names.append(found[1])
    return match[0] + "".join(f" EMU_SHARED({name})" for name in names)


def _split(text: str) -> list[str]:
    """The parts between commas outside all brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts
