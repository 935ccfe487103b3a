"""Descriptions of kernels that compute element by element agree with the kernels, and groups of them compile."""

from __future__ import annotations

import re
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidnb_kernels
from fluidnb_kernels.cuda import CTYPES, Source, ctype, nvrtc, sources
from fluidnb_kernels.cuda.element_kernels import ElementKernel, element_kernels
from fluidnb_kernels.cuda.nvrtc import ARCHITECTURES, compile_for
from fluidnb_kernels.device.element_groups import Group, Step, step_of
from fluidnb_kernels.device.group_text import launch

fluidnb_kernels.import_all()  # so that all sources are known


def with_kernels(template: str) -> list[Source]:
    """The files that have kernels of a template."""
    return [source for source in sources if any(name.startswith(f"{template}<") for name in source.kernels)]


@pytest.mark.parametrize("template", element_kernels)
def test_a_description_has_the_parameters_of_the_kernel(template: str) -> None:
    kernel = element_kernels[template]
    found = with_kernels(template)
    assert found
    for source in found:
        heads = re.findall(rf"template <([^>]*)>\s*__global__ void {template}\(([^)]*)\)", source.text)
        assert len(heads) == 1, f"{source.path.name}: two templates of one name"
        types, parameters = ([re.split(r"[\s*]+", part.strip())[-1] for part in text.split(",")] for text in heads[0])
        assert types == kernel.types.split() and parameters == [*kernel.parameters.split(), "n"]


class Steps:
    """Steps over arrays without memory, that follow each other."""

    def __init__(self) -> None:
        self._address = count(1 << 30, 1 << 20)

    def array(self, kind: str) -> Any:
        """An array of 1024 elements of a type of C++."""
        dtype = np.dtype(next(name for name, other in CTYPES.items() if other == kind))
        data = SimpleNamespace(ptr=next(self._address))
        return SimpleNamespace(dtype=dtype, data=data, nbytes=1024 * dtype.itemsize)

    def of(self, source: Source, name: str, x: Any) -> Step:
        """A launch of a kernel that reads an array."""
        template, _, rest = name.rstrip(">").partition("<")
        kernel: ElementKernel = element_kernels[template]
        types = dict(zip(kernel.types.split(), rest.split(", "), strict=True))
        result = types.get("R", types.get("U", types["T"]))
        number = (np.float64 if types["T"] == "double" else np.float32)(1)
        args: list[Any] = []
        for parameter in kernel.parameters.split():
            if parameter in kernel.results:
                args.append(self.array(result))
            elif parameter in kernel.reads.split():
                args.append(x)
            elif parameter in kernel.bands:
                args.append(self.array(types["T"]))
            else:
                args.append(None if parameter in kernel.pointers.split() else number)
        made = step_of((source[name], ((4,), (256,), 0, *args, np.int64(1024))))
        assert made is not None
        return made


@pytest.mark.skipif(bool(nvrtc.missing()), reason=nvrtc.missing())
@pytest.mark.parametrize("kind", ["float", "double", "__half"])
def test_groups_compile_for_every_architecture(kind: str) -> None:
    steps = Steps()
    group: Group | None = None
    x: Any = steps.array(kind)
    for template in element_kernels:
        for source in with_kernels(template):
            at = element_kernels[template].types.split().index("T")
            names = [n for n in source.kernels if n.startswith(f"{template}<")]
            names = [n for n in names if re.split(r"[<>]|, ", n)[1 + at] == kind]
            if not names:
                continue
            step = steps.of(source, names[len(names) // 2], x)
            if group is None:
                group = Group(step)
            elif not group.take(step):
                check(group)
                group = Group(step)
            x = step.written[0] if ctype(step.written[0].dtype) == kind else steps.array(kind)
    assert group is not None
    check(group)


def check(group: Group) -> None:
    """The kernel of a group compiles without warnings and spilled registers."""
    function, _ = launch(group, ())
    for architecture in (ARCHITECTURES[0], ARCHITECTURES[-1]):
        made = compile_for(architecture, function.source.text, "group.cu", [function.name])
        assert made.spilled == 0 and made.cubin.startswith(b"\x7fELF"), made.log
