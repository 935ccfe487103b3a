"""Layer calls: all or nothing, and results that are called as the user calls them.

``h = layers.fc(x, 10)`` may name its result ``h`` and its weight ``h.w_0``. The wish comes from `hooks.name_hint`;
without the hook, names are Fluid's: ``fc_0.tmp_0``, ``fc_0.w_0``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from fluidnb.arguments import Signature, parameter_names
from fluidnb.program import hooks, shared_docs
from fluidnb.program import unique_name as names
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc

if TYPE_CHECKING:
    from fluidnb.program.parameter import Parameter
    from fluidnb.program.variable import Variable

P = ParamSpec("P")
R = TypeVar("R")


class LayerCall(names.Watch):
    """The outermost layer call that runs now; ``hint`` has the names for its results, or is None."""

    def __init__(self, hint: hooks.Hint | None) -> None:
        super().__init__()
        self.hint = hint
        self.parameters: list[Parameter] = []
        self.created: list[BlockDesc | OpDesc | VarDesc] = []
        self.edited: list[tuple[OpDesc, bytes]] = []  # operators that were there, as they were
        self.starts: dict[BlockDesc, int] = {}  # number of operators of a block before the call wrote to it

    def undo(self) -> None:
        """Remove everything that the call created, and reset the counters."""
        for op, data in self.edited:
            op.copy_from(OpDesc.parse_from_string(data))
        for desc in reversed(self.created):
            if isinstance(desc, BlockDesc):
                if desc in desc.program.blocks:
                    desc.program.remove_blocks(desc.idx)
            elif isinstance(desc, VarDesc):
                if desc.block is not None and desc.block.vars.get(desc.name()) is desc:
                    desc.block.remove_var(desc.name())
            elif desc.block is not None:
                ops = desc.block.ops
                desc.block.remove_op(next(i for i in range(len(ops) - 1, -1, -1) if ops[i] is desc))
        super().undo()


#: Arguments that mean the same in most layers: `layer` adds their texts to docstrings that do not have the argument.
SHARED = {
    "act": "activation of the result.",
    "actual_shape": "an integer variable [2] that wins over ``out_shape`` and ``scale`` when the program runs.",
    "axis": "the axis, from the end when negative.",
    "background_label": "the class of no object; -1 for none.",
    "candidate_activation": "of the candidate, alike.",
    "cell_activation": "activation of the cell state before the output gate.",
    "class_num": "how many classes there are.",
    "cond": "an existing bool variable to write; None creates one.",
    "data_layout": '``"NCHW"`` or ``"NHWC"``.',
    "gate_activation": 'of the gates: ``"sigmoid"``, ``"tanh"``, ``"relu"`` or ``"identity"``.',
    "gt_boxes": "boxes of the objects [objects, 4]; a sequence for each image.",
    "ignore_index": "rows with this label have loss 0 and no gradient.",
    "im_info": "[images, 3]: height, width, and how much larger the network sees the image.",
    "image": "images [batch, channels, height, width].",
    "input_dim_idx": "axis of the input whose size is copied.",
    "is_reverse": "whether time runs from the last row of a sequence to the first.",
    "keep_top_k": "how many boxes of an image are kept; -1 for all.",
    "max": "upper bound.",
    "mean": "the mean.",
    "min": "lower bound.",
    "name": "name of the layer.",
    "nms_eta": "factor of ``nms_threshold`` after each box that is kept, while it is above 1/2.",
    "nms_threshold": "a box is dropped if its overlap with a better one exceeds this.",
    "nms_top_k": "how many boxes of a class are considered, the highest scores first; -1 for all.",
    "out": "an existing variable to write; None creates one.",
    "out_shape": "the new height and width, or an integer variable [2] with them.",
    "output_dim_idx": "axis of the result that gets it.",
    "pool_size": "height and width of a pooling window, or one number for both.",
    "pool_type": '``"max"`` or ``"avg"``.',
    "pooled_height": "rows of the result.",
    "pooled_width": "columns of the result.",
    "rank_table": "the result of `lod_rank_table`.",
    "reader": "a reader variable.",
    "rois": "regions [regions, 4]: left, top, right, bottom; a sequence for each image.",
    "seed": "another number than 0 gives the same draws at every run.",
    "shape": "all sizes known.",
    "soft_label": "whether labels are distributions.",
    "spatial_scale": "pixels of the images for one unit of the regions.",
    "std": "the standard deviation.",
    "steps": "pixels from one place to the next, across and down; 0 for the image's size over the map's.",
    "table": "the result of `lod_rank_table`.",
    "use_cudnn": "whether to use cuDNN on a GPU.",
    "use_peepholes": "whether the gates see the cell.",
    "variance": "four numbers that go with every box, for `box_coder`.",
    "x": "any shape.",
}

#: The outermost layer call, None outside layers.
call: LayerCall | None = None


def layer(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function a layer: its arguments are checked, its result knows its parameters, and an error leaves nothing.

    Layers called inside it take part in the outermost call. It takes ``main_program`` and ``startup_program`` too, as
    layers of version 0.11 did: the programs that it adds to.

    Args:
        function: appends operators and returns a variable, or a list or tuple of them.

    Example:
        >>> from fluidnb.program import Program
        >>> block = Program().global_block()
        >>> @layer
        ... def broken():
        ...     block.create_var(name="x", shape=[1], dtype="float32")
        ...     raise ValueError("no.")
        >>> broken()
        Traceback (most recent call last):
        ValueError: no.
        >>> block.has_var("x")
        False

    Source: return values of layers, Fluid's Python API design.
    """

    signature = Signature(function)
    run = cast("Callable[P, R]", signature.caller(function))

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if "main_program" in kwargs or "startup_program" in kwargs:
            with _programs(kwargs.pop("main_program", None), kwargs.pop("startup_program", None)):
                return wrapped(*args, **kwargs)
        if call is not None:
            before = len(call.parameters)
            result = run(*args, **kwargs)
            _own(call, result, before)
            return result
        hint = None if hooks.name_hint is None else hooks.name_hint(sys._getframe(1))
        with all_or_nothing(hint) as this:
            result = run(*args, **kwargs)
        _own(this, result, 0)
        _call_results(this, result)
        return result

    wrapped.argument_kinds = signature  # type: ignore[attr-defined]
    wrapped.__doc__ = shared_docs.document(function.__doc__, parameter_names(function), SHARED)
    return wrapped


def _programs(main: Any, startup: Any) -> AbstractContextManager[None]:
    """Sets the programs that a layer was given as the default ones."""
    from fluidnb.program import defaults  # which imports layers

    return defaults.program_guard(defaults.default_main_program() if main is None else main, startup)


class all_or_nothing:  # noqa: N801, like the functions of contextlib, which make twice as many Python calls
    """Remove everything created inside a ``with`` when the body raises; inside a layer, the layer does."""

    __slots__ = ("_hint", "_outer", "_this")

    def __init__(self, hint: hooks.Hint | None = None) -> None:
        self._hint, self._this, self._outer = hint, cast("LayerCall | None", None), names.watch

    def __enter__(self) -> LayerCall:
        global call
        if call is None:
            call = self._this = LayerCall(self._hint)
            self._outer, names.watch = names.watch, call
        return call

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        global call
        if self._this is None:
            return
        try:
            if kind is not None:
                self._this.undo()
        finally:
            call, names.watch = None, self._outer


def layer_name(layer_type: str) -> str:
    """The prefix of a layer's names: that of the user's line, else ``fc_0``, ``fc_1``, …."""
    if call is None or call.hint is None:
        return names.fresh(layer_type)
    return call.hint.prefix if call.hint.targets else names.fresh(f"{call.hint.prefix}.{layer_type}")


def note_parameter(parameter: Parameter) -> None:
    """Add a parameter of the main program to the layer call that runs; no effect outside layers."""
    if call is not None:
        name = parameter.desc.name()
        for known in call.parameters:
            if known.desc.name() == name:
                return
        call.parameters.append(parameter)


def note_made(desc: BlockDesc | OpDesc | VarDesc) -> None:
    """Record a description that the running layer call created; no effect outside layers."""
    if call is not None:
        call.created.append(desc)
        if type(desc) is OpDesc and desc.block is not None:
            call.starts.setdefault(desc.block, len(desc.block.ops) - 1)


def note_edit(op: OpDesc) -> None:
    """Record an operator that the running call is about to edit though another one made it."""
    if call is not None:
        call.edited.insert(0, (op, op.serialize_to_string()))


def _made(this: LayerCall, result: object) -> list[Variable | None]:
    """The results in order; None for those that the call did not make."""
    found: list[Variable | None] = []
    for one in result if isinstance(result, (list, tuple)) else (result,):
        desc = getattr(one, "desc", None)  # a Variable's; its class is in a module that imports this one
        made = isinstance(desc, VarDesc) and desc.name() in this.generated
        found.append(cast("Variable", one) if made else None)
    return found


def _own(this: LayerCall, result: object, before: int) -> None:
    """Record in the results which parameters their layer created."""
    for variable in _made(this, result):
        if variable is not None:
            variable._note_params(this.parameters[before:])


def _call_results(this: LayerCall, result: object) -> None:
    """Call the results as the user's line does."""
    if this.hint is not None:
        for variable, target in zip(_made(this, result), this.hint.targets, strict=False):
            if variable is not None and not variable.persistable:
                _rename(this, variable, target)


def _rename(this: LayerCall, variable: Variable, target: str) -> None:
    """Name a new variable ``h``, or the first of ``h_1``, ``h_2``, … that its block does not see yet.

    A counter keeps the numbers taken: ``for …: h = layers.fc(h, 10)`` must not search through all of them each time.
    """
    home = variable.desc.block
    assert home is not None
    while True:
        number = names.generator.count(f"called {target}")
        name = f"{target}_{number}" if number else target
        if not variable.block.has_var_recursive(name):
            break
    home.rename_var(variable.name, name, this.starts.get(home, 0))
