"""Kernel selection: compares the expected kernel type (place, dtype, library) with that of the inputs."""

from typing import Any, NamedTuple

from fluidnb.errors import EnforceNotMet
from fluidnb.memory import flags
from fluidnb.op.define import OpDef, registry
from fluidnb.op.kernel_type import Kernel


class Choice(NamedTuple):
    """The kernel that runs and the dtype in which it wants its floating inputs (None: as they are)."""

    kernel: Kernel
    cast: str | None = None  # dtype name to which inputs are cast, or None


#: (operator, dtype, place, use_cudnn, use_mkldnn) -> (version of the registry, what was chosen)
_choices: dict[tuple[str, str, str, bool, bool], tuple[int, Choice]] = {}


def select(definition: OpDef, dtype: str, place: str, attrs: dict[str, Any]) -> Choice:
    """The kernel for an operator's inputs on a place; a place without one falls back to the CPU's."""
    key = definition.type, dtype, place, bool(attrs.get("use_cudnn")), _uses_mkldnn(attrs)
    version, choice = _choices.get(key, (-1, None))
    if choice is None or version != registry.version:
        choice = _select(definition, dtype, place, attrs)
        _choices[key] = registry.version, choice
    return choice


def _select(definition: OpDef, dtype: str, place: str, attrs: dict[str, Any]) -> Choice:
    if not definition.kernels:
        raise EnforceNotMet(f"There are no kernels which are registered in the {definition.type} operator.")
    wish = registry.preferences.get(definition.type, {})
    wanted = wish.get("place", place)
    library = wish.get("library") or library_of(definition, dtype, attrs)
    cast = wish.get("data_type")
    need = cast or dtype
    for where in (wanted, "cpu"):
        for kernel in reversed(definition.kernels):
            if kernel.place != where or kernel.library != library or not kernel.takes(need):
                continue
            if "layout" in wish and kernel.layout != wish["layout"]:
                continue
            return Choice(kernel, cast if cast != dtype else None)
    have = [f"{t}" for k in definition.kernels if k.place in (wanted, "cpu") for t in k.types()]
    raise EnforceNotMet(
        f"op {definition.type} does not have kernel for "
        f"data_type[{need}]:data_layout[{wish.get('layout', 'ANY_LAYOUT')}]:place[{wanted}]:library_type[{library}].",
        expected="one of " + "; ".join(have),
        received=f"{need} on {wanted}" + "".join(f", {k} {v}" for k, v in wish.items() if k in ("layout", "library")),
        hint="cast the input, or register a kernel with fluidnb.op.kernel.",
    )


def library_of(definition: OpDef, dtype: str, attrs: dict[str, Any]) -> str:
    """The library that an operator's switches or FLAGS_use_mkldnn choose; PLAIN where it has no kernel for a dtype."""
    for switched, library in ((bool(attrs.get("use_cudnn")), "CUDNN"), (_uses_mkldnn(attrs), "MKLDNN")):
        if switched and any(k.library == library and k.takes(dtype) for k in definition.kernels):
            return library
    return "PLAIN"


def _uses_mkldnn(attrs: dict[str, Any]) -> bool:
    return flags.values["use_mkldnn"] or bool(attrs.get("use_mkldnn"))
