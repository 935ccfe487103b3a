"""The kernel of a group: its text, without addresses and numbers, which are parameters."""

from collections.abc import Collection
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fluidnb_kernels.cuda import BLOCKS, THREADS, Function, Source, ctype, vector
from fluidnb_kernels.cuda.source import included
from fluidnb_kernels.device.element_groups import Call, Group, Key, Step, key_of

_PATH = Path(__file__).with_name("group.cu")


def launch(group: Group, dead: Collection[Key]) -> Call:
    """The launch of a group's kernel.

    Args:
        group: its steps.
        dead: where nobody reads what it writes.
    """
    size, arrays = group.steps[0].size, group.arrays.values()
    width = min(vector(*arrays), *(16 // array.dtype.itemsize for array in arrays))
    text, args = _Text(group, dead).made()
    files = tuple(sorted({step.function.source.path for step in group.steps}))
    blocks = min(BLOCKS, -(-size // (THREADS * width)))
    return _function(files, text, width), ((blocks,), (THREADS,), 0, *args, np.int64(size))


class GroupFile(Source):
    """The text of one group's kernel, in the place of a file of kernels.

    Args:
        files: the files with the functions of its steps.
        own: its text.
    """

    def __init__(self, files: tuple[Path, ...], own: str) -> None:
        self.path, self.own = _PATH, own
        self.text = _head(files) + own


@lru_cache(256)
def _function(files: tuple[Path, ...], own: str, width: int) -> Function:
    return Function(GroupFile(files, own), f"group<{width}>")


@cache
def _head(files: tuple[Path, ...]) -> str:
    """The files with the functions of the steps, each of the files that they include once."""
    seen: set[str] = set()
    lines = included('#include "group.cuh"', _PATH, seen)
    for path in files:
        lines += included(path.read_text("utf-8"), path, seen)
    return "\n".join([*lines, f'#line 1 "{_PATH.name}"', ""])


class _Text:
    """Writes the text of a group's kernel."""

    def __init__(self, group: Group, dead: Collection[Key]) -> None:
        self._group, self._stored = group, group.stored.difference(dead)
        self._slots = {key: number for number, key in enumerate(group.arrays)}
        self._parameters: list[str] = []
        self._args: list[Any] = []
        self._loads: list[str] = []
        self._lines: list[str] = []

    def made(self) -> tuple[str, list[Any]]:
        """The text, and the arguments of a launch but for the number of elements."""
        group = self._group
        for key, number in self._slots.items():
            kind = key[1]
            value = f"pack<{kind}, N> v{number}"
            if key in group.loaded | self._stored:
                self._parameter(f"{'' if key in self._stored else 'const '}{kind}*", f"a{number}", group.arrays[key])
            self._loads.append(f"{value} = load<{kind}, N>(a{number}, i);" if key in group.loaded else f"{value};")
        for number, step in enumerate(group.steps):
            self._step(number, step)
        stores = [f"store<{k[1]}, N>(a{n}, i, v{n});" for k, n in self._slots.items() if k in self._stored]
        names = ", ".join(parameter.split()[-1] for parameter in self._parameters)
        parameters = "".join(f"\n    {parameter}," for parameter in self._parameters)
        body = "\n".join(
            [*(f"  {line}" for line in self._loads), "#pragma unroll", "  for (int k = 0; k < N; ++k) {"]
            + [f"    {line}" for line in self._lines] + ["  }"] + [f"  {line}" for line in stores]
        )  # fmt: skip
        text = (
            "template <int N> __device__ __forceinline__\n"
            f"void elements({parameters}\n    long long i) {{\n{body}\n}}\n\n"
            f"template <int N> __global__ void group({parameters}\n    long long n) {{\n"
            f"  EACH(i, 0, n / N) elements<N>({names}, i);\n"
            f"  EACH(i, n / N * N, n) elements<1>({names}, i);\n}}\n"
        )
        return text, self._args

    def _parameter(self, kind: str, name: str, value: Any) -> str:
        self._parameters.append(f"{kind} {name}")
        self._args.append(value)
        return name

    def _step(self, number: int, step: Step) -> None:
        kernel, given, types = step.kernel, step.given, step.types
        first = ctype(step.read[0].dtype)
        values = {**types, "C": f"wide_t<{first}>"}
        for name in kernel.parameters.split():
            if name in kernel.reads.split():
                values[name] = self._value(given[name])
            elif name in kernel.bands:
                kind = ctype(given[name].dtype)
                at = self._parameter(f"const {kind}*", f"b{number}_{name}", given[name])
                sizes = [self._number(number, size, given[size]) for size in kernel.bands[name]]
                self._loads.append(f"pack<{kind}, N> q{number} = bands<{kind}, N>({at}, i, {', '.join(sizes)});")
                values[name] = f"up<{kind}>(q{number}.at[k])"
            elif name in kernel.pointers.split():
                values[name] = self._parameter(f"const {first}*", f"p{number}_{name}", given[name])
            elif name not in kernel.results and not any(name in sizes for sizes in kernel.bands.values()):
                values[name] = self._number(number, name, given[name])
        for name, expression in kernel.results.items():
            if given[name] is not None:
                kind = ctype(given[name].dtype)
                self._lines.append(f"const {kind} r{number}_{name} = down<{kind}>({expression.format(**values)});")
        for name in kernel.results:
            if given[name] is not None:
                self._lines.append(f"v{self._slots[key_of(given[name])]}.at[k] = settled(r{number}_{name});")

    def _value(self, array: Any) -> str:
        key = key_of(array)
        return f"up<{key[1]}>(v{self._slots[key]}.at[k])"

    def _number(self, number: int, name: str, value: Any) -> str:
        return self._parameter(ctype(value.dtype), f"n{number}_{name}", value)
