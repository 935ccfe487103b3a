"""ParamAttr: what a user may say about a layer's parameter."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Annotated, Any

from fluidnb.arguments import Checked, Count, Rule
from fluidnb.errors import OpTypeError, OpValueError, typed
from fluidnb.initializer import Initializer, check_initializer
from fluidnb.regularizer import WeightDecayRegularizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fluidnb.program import Variable

__all__ = ["ParamAttr", "WeightNormParamAttr"]


class ParamAttr(Checked):
    """Name, initializer and training options of a parameter.

    Args:
        name: the parameter's name; parameters with one name are one parameter. None makes a name.
        initializer: its initial value; None takes the layer's default.
        learning_rate: factor on the optimizer's learning rate, a number or a variable of shape [1].
        regularizer: weight decay of this parameter; it goes before the optimizer's.
        trainable: whether optimizers change it.
        gradient_clip: clipping of its gradient, for example ``GradientClipByValue(1.0)``.
        do_model_average: whether model averaging takes it in.
        clip: another name for ``gradient_clip``.

    Raises:
        OpValueError: both ``gradient_clip`` and ``clip`` are given.

    Example:
        >>> x = fluid.layers.data("x", [13])
        >>> h = fluid.layers.fc(x, 4, param_attr=ParamAttr(name="w", learning_rate=0.5))
        >>> h.param.name
        'w'

    Source: developer guide, section on a parameter's own initialisation.
    """

    #: What a message says where one is expected.
    argument_hint = 'for example ParamAttr(name="w", initializer=fluid.initializer.Constant(0.0)).'

    def __init__(
        self, name: str | None = None, initializer: Initializer | None = None, learning_rate: float | Variable = 1.0,
        regularizer: WeightDecayRegularizer | None = None, trainable: bool = True, gradient_clip: Any = None,
        do_model_average: bool = False, *, clip: Any = None,
    ) -> None:  # fmt: skip
        if clip is not None and gradient_clip is not None:
            raise OpValueError("clip is another name for gradient_clip: give one of them.")
        if initializer is not None:
            check_initializer(initializer)
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.gradient_clip = gradient_clip if clip is None else clip
        self.do_model_average = do_model_average

    def __repr__(self) -> str:
        changed = {k: v for k, v in vars(self).items() if _differs(v, _PLAIN.get(k))}
        return f"ParamAttr({', '.join(f'{k}={v!r}' for k, v in changed.items())})"

    @staticmethod
    def to_attr(arg: ParamAttrLike) -> ParamAttr | None:
        """Read what users write where a parameter is described.

        Args:
            arg: a ParamAttr, a name, an initializer, a regularizer; None or True for defaults; False for no parameter.

        Returns:
            A new ParamAttr (so that a shared one keeps no generated name), or None for no parameter.

        Raises:
            OpTypeError: for anything else.

        Example:
            >>> ParamAttr.to_attr("w").name
            'w'
        """
        return described_by(arg)

    @staticmethod
    def to_attrs(arg: ParamAttrLike | Sequence[ParamAttrLike], length: Count) -> list[ParamAttr | None]:
        """Descriptions for several parameters of a layer.

        Args:
            arg: one description for all (they get separate names), or a list with one for each.
            length: how many parameters there are.

        Returns:
            A list of ``length``.

        Example:
            >>> len(ParamAttr.to_attrs(None, 2))
            2
        """
        return descriptions(arg, length)

    def to_kwargs(self) -> dict[str, Any]:
        """The arguments for ``Block.create_parameter``.

        Example:
            >>> ParamAttr("w").to_kwargs()["optimize_attr"]
            {'learning_rate': 1.0}
        """
        return {
            "name": self.name, "optimize_attr": {"learning_rate": self.learning_rate}, "regularizer": self.regularizer,
            "trainable": self.trainable, "gradient_clip_attr": self.gradient_clip,
            "do_model_average": self.do_model_average,
        }  # fmt: skip


class WeightNormParamAttr(ParamAttr):
    """A weight ``g · v / |v|``, whose length g and direction v are trained apart.

    Args:
        dim: the axis along which each part has a separate length; None for one length of the whole weight.
        name: start of the names of both parameters; None generates one.
        initializer: of the direction; the length is that of what it gives.
        learning_rate: see `ParamAttr`, also for the other arguments; they are for both parameters.

    Example:
        >>> attr = fluid.WeightNormParamAttr(dim=1, name="w")
        >>> y = fluid.layers.fc(fluid.layers.data("x", [3]), 2, param_attr=attr)
        >>> [p.name for p in y.params]
        ['w_v', 'w_g', 'fc_0.b_0']
    """

    def __init__(
        self, dim: int | None = None, name: str | None = None, initializer: Initializer | None = None,
        learning_rate: float | Variable = 1.0, regularizer: WeightDecayRegularizer | None = None,
        trainable: bool = True, gradient_clip: Any = None, do_model_average: bool = False, *, clip: Any = None,
    ) -> None:  # fmt: skip
        arguments = (name, initializer, learning_rate, regularizer, trainable, gradient_clip, do_model_average)
        super().__init__(*arguments, clip=clip)
        self.dim = dim

    def part(self, suffix: str) -> ParamAttr:
        """The description of one of the two parameters, whose name ends in the suffix."""
        plain = ParamAttr()
        vars(plain).update({k: v for k, v in vars(self).items() if k != "dim"}, name=f"{self.name}{suffix}")
        return plain


_PLAIN = vars(ParamAttr())


def described_by(arg: Any) -> ParamAttr | None:
    """As `ParamAttr.to_attr`, which is called for each parameter; its check would cost as much again."""
    if arg is False:
        return None
    if arg is None or arg is True:
        return _of_facts(ParamAttr, _PLAIN)
    if isinstance(arg, ParamAttr):
        return _of_facts(type(arg), vars(arg))
    if isinstance(arg, str):
        return ParamAttr(name=arg)
    if isinstance(arg, Initializer):
        return ParamAttr(initializer=arg)
    if isinstance(arg, WeightDecayRegularizer):
        return ParamAttr(regularizer=arg)
    raise OpTypeError(
        "This does not describe a parameter.",
        expected="ParamAttr, a name, an initializer, a regularizer, None, True or False", received=typed(arg),
        hint='for example ParamAttr(name="w", initializer=fluid.initializer.Constant(0.0)).',
    )  # fmt: skip


def descriptions(arg: Any, length: int) -> list[ParamAttr | None]:
    """As `ParamAttr.to_attrs`, for arguments that are checked."""
    if not isinstance(arg, list | tuple):
        return [described_by(arg) for _ in range(length)]
    if len(arg) != length:
        raise OpValueError(
            "parameter number mismatch", expected=f"{length} descriptions, one for each input", received=len(arg)
        )
    return [described_by(a) for a in arg]


def _of_facts(kind: type[ParamAttr], facts: dict[str, Any]) -> ParamAttr:
    """A new description with the same attributes."""
    attr = kind.__new__(kind)
    vars(attr).update(facts)
    return attr


def _differs(value: object, plain: object) -> bool:
    """Whether a value is not the default; != of a Variable would append an operator, of an array give an array."""
    return value is not plain and not (isinstance(value, numbers.Real) and value == plain)


ParamAttrLike = Annotated[
    ParamAttr | str | Initializer | WeightDecayRegularizer | bool | None,
    Rule(
        "a ParamAttr, a name, an initializer, a regularizer, None, True or False", many="descriptions of parameters",
        hint='for example ParamAttr(name="w", initializer=fluid.initializer.Constant(0.0)).',
    ),
]  # fmt: skip
