"""Shape rule and inputs that all optimizers share."""

from collections.abc import Callable
from typing import Any

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.op.define import KernelFunction
from fluidnb.op.rules import Rule
from fluidnb_kernels.arithmetic import Operand, formula
from fluidnb_kernels.optimizer.launch import gradient
from fluidnb_kernels.rows.values import shape_of
from fluidnb_kernels.rules import agree


def updates(pairs: dict[str, str]) -> Rule:
    """Rule: each output updates the input of its name; gradient and state have the parameter's shape."""

    def infer(c: Context) -> None:
        param, grad = c["Param"], shape_of(c["Grad"])
        c.require(
            agree(param.shape, grad),
            "Param and Grad must have the same shape.",
            expected=f"shape {tuple(param.shape)}, the shape of Param", received=f"shape {grad}",
        )  # fmt: skip
        for slot in _SCALARS:  # a device writes one number of each power, whatever its output's size
            if c.has(slot):
                c.check_inputs(slot)
        for out, source in pairs.items():
            state = c[source]
            if state is not None and "Pow" not in source:  # kernels of a device go through all of them by one number
                c.require(
                    agree(state.shape, param.shape), f"Param and {source} must have the same shape.",
                    expected=f"shape {tuple(param.shape)}, the shape of Param", received=f"shape {tuple(state.shape)}",
                )  # fmt: skip
            if c.wants(out):
                c.set(out, c[source].shape, c[source].dtype, c.lod(source))

    return infer


#: Inputs of one element.
_SCALARS = (
    "LearningRate", "Beta1Pow", "Beta2Pow", "Beta1Tensor", "Beta2Tensor", "EpsilonTensor", "SkipUpdate",
)  # fmt: skip
#: The slots with which most optimizers begin.
PARAM = {"Param: float": "the parameter, any shape"}
GRAD = {"Grad: float | rows": "its gradient, same shape; or SelectedRows"}
RATE = {"LearningRate: float[1]": "one number"}
MULTI_PRECISION = Attr("bool", False, "whether MasterParam is used")


def optimizer_op(
    type: str, pairs: dict[str, str], *, inputs: dict[str, str], outputs: dict[str, str] | None = None,
    attrs: dict[str, Attr] | None = None, master: bool = False, infer: Rule | None = None,
    alias: dict[str, str] | None = None, **more: Any,
) -> Callable[[KernelFunction], KernelFunction]:  # fmt: skip
    """`op` for the step of an optimizer; ``pairs``: output slot -> the input slot that it updates."""
    outs = {out: f"{'the parameter' if source == 'Param' else source} after the step" for out, source in pairs.items()}
    return op(
        type,
        inputs=inputs | ({"MasterParam?: float32": "copy of a float16 parameter"} if master else {}),
        outputs=outs | (outputs or {}) | ({"MasterParamOut?": "its float32 copy after the step"} if master else {}),
        attrs=(attrs or {}) | ({"multi_precision": MULTI_PRECISION} if master else {}),
        infer=infer or updates(pairs), alias=pairs | (alias or {}), dtype_slot="Param", side_effect=True,
        **{"inplace": True, **more},
    )  # fmt: skip


def scalar(b: Binder, slot: str) -> Any:
    """An input of one element as a 0-d view, with which numpy is three times as fast as with shape [1]."""
    return b[slot].reshape(())


def running_mean(mean: Operand, value: Operand, decay: float) -> Operand:
    """The mean with a new value."""
    return mean * decay + value * (1 - decay)


def step_formula(inputs: str, outputs: str) -> Callable[[Callable[..., Any]], KernelFunction]:
    """`formula` in which Grad is a whole tensor, and inputs of one element are scalars."""

    def read(b: Binder, slot: str) -> Array:
        return gradient(b) if slot == "Grad" else scalar(b, slot) if b.has(slot) and slot in _SCALARS else b[slot]

    return formula(inputs, outputs, read)
