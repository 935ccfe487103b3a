"""Weight decay: terms that are added to gradients between clipping and the optimizer's own operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fluidnb.arguments import Checked, checked
from fluidnb.errors import OpTypeError, typed
from fluidnb.program import unique_name
from fluidnb.utils.source_location import warn
from fluidnb.values.dtypes import VarType, dtype_name

if TYPE_CHECKING:
    from fluidnb.program import Block, Parameter, Variable

__all__ = [
    "L1Decay", "L1DecayRegularizer", "L2Decay", "L2DecayRegularizer", "WeightDecayRegularizer",
    "append_regularization_ops",
]  # fmt: skip


class WeightDecayRegularizer(Checked):
    """The base of regularizers: called with a parameter and its gradient, it appends the decay term and returns it.

    Args:
        regularization_coeff: the factor of the term.

    Example:
        >>> L2Decay(0.1)
        L2DecayRegularizer(regularization_coeff=0.1)
    """

    #: What a message says where one is expected.
    argument_hint = "for example fluid.regularizer.L2Decay(0.1)."

    def __init__(self, regularization_coeff: float = 0.0) -> None:
        self.regularization_coeff = float(regularization_coeff)

    def __call__(self, param: Variable, grad: Variable, block: Block) -> Variable:
        """Append the operators that compute the decay term.

        Args:
            param: the parameter.
            grad: its gradient.
            block: where the operators go.
        """
        raise NotImplementedError(f"{type(self).__name__} must define __call__(param, grad, block).")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(regularization_coeff={self.regularization_coeff!r})"


def _decay(param: Variable, block: Block) -> Variable:
    name = unique_name.generate(param.name + "_decay")
    return block.create_var(name=name, shape=param.shape, dtype=param.dtype, lod_level=param.lod_level)


class L2DecayRegularizer(WeightDecayRegularizer):
    """Adds ``coeff · param`` to the gradient: the gradient of ``coeff / 2 · sum(param²)``.

    Args:
        regularization_coeff: the factor.

    Example:
        >>> x = fluid.layers.data("x", [13])
        >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1, bias_attr=False))
        >>> ops, _ = fluid.optimizer.SGD(0.1, regularization=L2Decay(0.1)).minimize(loss)
        >>> [op.type for op in ops]
        ['scale', 'sum', 'sgd']
    """

    def __call__(self, param: Variable, grad: Variable, block: Block) -> Variable:
        decay = _decay(param, block)
        block.append_op(
            type="scale", inputs={"X": [param]}, outputs={"Out": [decay]}, attrs={"scale": self.regularization_coeff}
        )
        return decay


class L1DecayRegularizer(WeightDecayRegularizer):
    """Adds ``coeff · sign(param)`` to the gradient: the gradient of ``coeff · sum(|param|)``.

    Args:
        regularization_coeff: the factor.

    Example:
        >>> x = fluid.layers.data("x", [13])
        >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1, bias_attr=False))
        >>> ops, _ = fluid.optimizer.SGD(0.1, regularization=L1Decay(0.1)).minimize(loss)
        >>> [op.type for op in ops]
        ['sign', 'scale', 'sum', 'sgd']
    """

    def __call__(self, param: Variable, grad: Variable, block: Block) -> Variable:
        sign, decay = _decay(param, block), _decay(param, block)
        block.append_op(type="sign", inputs={"X": [param]}, outputs={"Out": [sign]})
        block.append_op(
            type="scale", inputs={"X": [sign]}, outputs={"Out": [decay]}, attrs={"scale": self.regularization_coeff}
        )
        return decay


L1Decay = L1DecayRegularizer
L2Decay = L2DecayRegularizer


@checked
def append_regularization_ops(
    parameters_and_grads: Sequence[tuple[Parameter, Variable | None]],
    regularization: WeightDecayRegularizer | None = None,
) -> list[tuple[Parameter, Variable | None]]:
    """Add the decay term to every gradient, in place; a parameter's own regularizer goes before the general one.

    A gradient of some rows only becomes a new variable with all rows, ``<gradient>@NEWGRAD@``, since every row
    decays.

    Args:
        parameters_and_grads: (parameter, gradient) pairs; a gradient may be None.
        regularization: for parameters without their own.

    Returns:
        The pairs, with the gradients that the optimizer is to use.

    Example:
        >>> append_regularization_ops([])
        []
    """
    overruled = [p.name for p, g in parameters_and_grads if g is not None and regularization and p.regularizer]
    if overruled:
        warn(f"The regularizer of {', '.join(overruled)} goes before the optimizer's {regularization!r}.")
    decayed: list[tuple[Parameter, Variable | None]] = []
    for param, grad in parameters_and_grads:
        term = param.regularizer or regularization
        if grad is not None and term is not None:
            with param.block.program.optimized_guard([param, grad]):
                grad = _add(param, grad, term)
        decayed.append((param, grad))
    return decayed


def _add(param: Parameter, grad: Variable, term: WeightDecayRegularizer) -> Variable:
    if not callable(term):
        raise OpTypeError(
            f"regularizer of {param.name} should be a WeightDecayRegularizer.",
            slots=[("param", param.name, dtype_name(param.dtype), list(param.shape))],
            expected="for example L2Decay(0.1)", received=typed(term),
            hint="ParamAttr(regularizer=...) and the optimizer's regularization take one.",
        )  # fmt: skip
    block, total = grad.block, grad
    decay = term(param, grad, block)
    if grad.type == VarType.SELECTED_ROWS:
        total = block.create_var(name=grad.name + "@NEWGRAD@", shape=param.shape, dtype=param.dtype)
    block.append_op(type="sum", inputs={"X": [grad, decay]}, outputs={"Out": [total]})
    return total
