"""Kernels that compute element i of what they write from element i of what they read, described as data.

`fluidnb_kernels.device.groups` makes one kernel of several that follow each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

#: Name of a template -> how it computes an element.
element_kernels: dict[str, ElementKernel] = {}


class ElementKernel(NamedTuple):
    """A description of how the kernels of a template compute an element.

    Every expression is C++ in which ``{F}`` is a template argument, ``{x}`` the element of an array as ``wide_t``, or a
    parameter, and ``{C}`` is ``wide_t`` of the elements of the first array.

    Attributes:
        types: the names of the template's arguments, in order.
        parameters: the names of its parameters, in order, without the number of elements, which is the last.
        reads: the arrays of which it reads element i.
        results: array of which it writes element i -> expression; those that are None in a launch are left out.
        bands: array that is repeated -> its number of elements, and how often each is repeated: names of parameters.
        pointers: arrays of one element, or None.
    """

    types: str
    parameters: str
    reads: str
    results: Mapping[str, str]
    bands: Mapping[str, tuple[str, str]] = MappingProxyType({})
    pointers: str = ""


def describe(template: str, kernel: ElementKernel) -> None:
    """Registers the description of a template.

    Args:
        template: its name, the same in all files.
        kernel: the description.
    """
    element_kernels[template] = kernel
