"""Layers of Fluid that fluidnb does not have: a call says why, and what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from fluidnb.errors import NotBuiltYet

#: (why, what to use instead) -> the layers of which it is true
_GROUPS = {
    (
        "it came with Paddle 1.5, for detectors that are not built",
        "put it together of other layers, or define an operator with fluidnb.op.",
    ): """deformable_conv deformable_roi_pooling retinanet_detection_output retinanet_target_assign
        sigmoid_focal_loss""",
    (
        "programs do not open data files by themselves",
        "layers.py_reader takes any Python reader; fluid.reader has map_readers for what a Preprocessor does.",
    ): "Preprocessor open_files",
}  # fmt: skip

#: layer -> (why, what to use instead)
ABSENT = {name: facts for facts, names in _GROUPS.items() for name in names.split()}


def absent(name: str) -> Callable[..., NoReturn]:
    """What stands in the place of a layer that there is not.

    Args:
        name: one of `ABSENT`.

    Returns:
        A function that raises, whatever it is given; looking at the name does not.

    Example:
        >>> fluid.layers.open_files(["a.recordio"])
        Traceback (most recent call last):
        fluidnb.errors.NotBuiltYet: fluid.layers.open_files is not part of fluidnb yet: programs do not open data ...
          ...
    """
    return refusal(f"fluid.layers.{name}", *ABSENT[name])


def refusal(path: str, why: str, instead: str) -> Callable[..., NoReturn]:
    """What stands in the place of something of Fluid's that there is not.

    Args:
        path: its name from ``fluid`` on.
        why: why there is none.
        instead: what to use.

    Returns:
        A function that raises, whatever it is given; so does a class statement with it as base.

    Example:
        >>> refusal("fluid.nets.magic", "it does not exist", "fluid.layers.fc does.")(3)
        Traceback (most recent call last):
        fluidnb.errors.NotBuiltYet: fluid.nets.magic is not part of fluidnb yet: it does not exist.
          hint:     fluid.layers.fc does.
    """

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotBuiltYet(f"{path} is not part of fluidnb yet: {why}.", hint=instead)

    refuse.__name__ = refuse.__qualname__ = path.rpartition(".")[2]
    refuse.__doc__ = f"Not part of fluidnb yet: {why}."
    vars(refuse)["__mro_entries__"] = refuse
    return refuse
