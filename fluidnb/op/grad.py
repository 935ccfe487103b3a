"""Makers of gradient operators: from an operator's description to the operators that compute its gradient."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from fluidnb.errors import OpValueError
from fluidnb.op.context import EMPTY, GRAD
from fluidnb.op.define import OpDef, get_op, registry
from fluidnb.proto.desc import OpDesc
from fluidnb.proto.op_desc import Attributes

#: ``maker(desc, definition, no_grad)`` gives the raw gradient operators of ``desc``.
GradMaker = Callable[[OpDesc, OpDef, Collection[str]], list[OpDesc]]


def default_grad(*uses: str, wrt: Collection[str] | None = None, type: str | None = None) -> GradMaker:
    """Maker of one gradient operator ``<type>_grad`` with the forward attributes.

    Args:
        uses: slots that it reads: forward inputs, forward outputs and output gradients (``Out@GRAD``). Without any,
            all of them, which is Fluid's own default.
        wrt: input slots that get a gradient; default all.
        type: the gradient operator's type; default the forward type with ``_grad``.

    Example:
        >>> maker = default_grad("Out", "Out@GRAD", wrt=["X"])
        >>> made = maker(OpDesc("relu", {"X": ["x"]}, {"Out": ["y"]}), get_op("relu"), set())
        >>> made[0].ins, made[0].outs
        ({'Out': ['y'], 'Out@GRAD': ['y@GRAD']}, {'X@GRAD': ['x@GRAD']})
    """

    def maker(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
        slots = uses or (*definition.inputs, *definition.outputs, *(o + GRAD for o in definition.outputs))
        ins: dict[str, list[str]] = {}
        for slot in slots:
            if slot.endswith(GRAD):
                ins[slot] = [n + GRAD for n in desc.outs.get(slot[: -len(GRAD)], [])]
            else:
                ins[slot] = list(desc.ins.get(slot) or desc.outs.get(slot) or [])
        outs = {s + GRAD: grad_names(desc, s, no_grad) for s in wrt or definition.inputs if desc.ins.get(s)}
        return [grad_desc(type or definition.type + "_grad", desc, {s: n for s, n in ins.items() if n}, outs)]

    return maker


@dataclass(frozen=True, slots=True)
class SecondGrad:
    """Maker of the gradient of a gradient operator, for `grad_op`; usually called `second_grad`.

    Args:
        type: the new operator's type, by custom the forward operator's with ``_grad_grad``.
        reads: its input slots -> slots of the gradient operator whose values they get.
        arriving: its input slots -> output slots of the gradient operator whose gradients they get.
        gives: its output slots -> input slots of the gradient operator whose gradients they hold.

    Example:
        >>> arriving, gives = {"grad_x@GRAD": "X@GRAD"}, {"grad_out@GRAD": "Out@GRAD"}
        >>> maker = second_grad("square_grad_grad", {"X": "X"}, arriving, gives)
        >>> first = OpDesc("square_grad", {"X": ["x"], "Out@GRAD": ["y@GRAD"]}, {"X@GRAD": ["x@GRAD"]})
        >>> maker(first, get_op("square_grad"), set())[0].ins
        {'X': ['x'], 'grad_x@GRAD': ['x@GRAD@GRAD']}
    """

    type: str
    reads: Mapping[str, str]
    arriving: Mapping[str, str]
    gives: Mapping[str, str]

    def __call__(self, desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
        ins = {slot: list(desc.ins.get(source) or desc.outs.get(source) or []) for slot, source in self.reads.items()}
        for slot, source in self.arriving.items():
            ins[slot] = [n + GRAD for n in desc.outs.get(source, []) if n != EMPTY]
        outs = {slot: grad_names(desc, source, no_grad) for slot, source in self.gives.items()}
        return [grad_desc(self.type, desc, {s: n for s, n in ins.items() if n}, {s: n for s, n in outs.items() if n})]


second_grad = SecondGrad


def linear_grad(type: str, slot: str = "X", also: Collection[str] = ()) -> GradMaker:
    """Maker of the gradient of a linear operator's gradient operator, which is the operator itself, for `grad_op`.

    Args:
        type: the linear operator.
        slot: its input.
        also: other inputs, which say how it moves elements.

    Example:
        >>> first = OpDesc("mean_grad", {"X": ["x"], "Out@GRAD": ["y@GRAD"]}, {"X@GRAD": ["x@GRAD"]})
        >>> [made] = linear_grad("mean")(first, get_op("mean_grad"), set())
        >>> made.optype, made.ins, made.outs
        ('mean', {'X': ['x@GRAD@GRAD']}, {'Out': ['y@GRAD@GRAD']})
    """
    return second_grad(type, {s: s for s in also}, {slot: slot + GRAD}, {"Out": "Out" + GRAD})


def no_slope(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    """Gradient maker for operators that read only shapes of their inputs: no gradient operators, no error."""
    return []


def grad_names(desc: OpDesc, slot: str, no_grad: Collection[str]) -> list[str]:
    """The names of the gradients of an input slot; ``@EMPTY@`` for those without a consumer.

    Example:
        >>> grad_names(OpDesc("sum", {"X": ["a", "b"]}, {"Out": ["c"]}), "X", {"b"})
        ['a@GRAD', '@EMPTY@']
    """
    return [EMPTY if n in no_grad else n + GRAD for n in desc.ins.get(slot, [])]


#: Attributes that a gradient operator does not take from its forward operator.
_OF_ONE = {"op_role", "op_role_var", "op_callstack", "op_namescope", "op_device"}
#: Types of a gradient operator and of its forward operator, and bytes of the attributes of this one -> those of that.
_attributes: dict[tuple[str, str, int, bytes], Attributes | None] = {}
_MOST = 4096


def grad_desc(type: str, desc: OpDesc, ins: dict[str, list[str]], outs: dict[str, list[str]]) -> OpDesc:
    """A gradient operator that carries every attribute of its forward operator, unknown ones too.

    Example:
        >>> grad_desc("scale", OpDesc("scale", attrs={"scale": 2.0}), {}, {}).attr("scale")
        2.0
    """
    shared = desc.shared
    key = None if shared is None else (type, desc.optype, registry.version, shared.data)
    if key is not None and key in _attributes:
        return OpDesc._made(type, ins, outs, _attributes[key])
    attrs = {name: value for name, value in desc.attrs.items() if name not in _OF_ONE}
    types = {name: kind for name, kind in desc.attr_types.items() if name in attrs}
    definition = get_op(desc.optype)
    for name, spec in definition.attrs.items():
        if name not in attrs and isinstance(spec.default, int | float | str | list):
            attrs[name], types[name] = spec.default, spec.number
    made = OpDesc(type, ins, outs, attrs, types)
    if key is not None and (made.shared is not None or not attrs):
        if len(_attributes) >= _MOST:
            _attributes.clear()
        _attributes[key] = made.shared
    return made


def has_grad(type: str) -> bool:
    """Whether an operator has a gradient.

    Example:
        >>> has_grad("relu"), has_grad("fill_constant")
        (True, False)
    """
    return get_op(type).grad is not None


def make_grad(desc: OpDesc, no_grad: Collection[str] = ()) -> list[OpDesc]:
    """The raw gradient operators of an operator in running order: names in ``@GRAD``, nothing renamed or summed yet.

    Args:
        no_grad: names of variables without gradient.

    Example:
        >>> [d.optype for d in make_grad(OpDesc("relu", {"X": ["x"]}, {"Out": ["y"]}))]
        ['relu_grad']
    """
    definition = get_op(desc.optype)
    if definition.grad is None:
        raise OpValueError(
            f"Operator {desc.optype} GradOpMaker has not been registered.", expected="an operator with a gradient",
            received=desc.optype,
            hint="it has no gradient; set stop_gradient on what it reads, or leave it out of the path to the loss.",
        )  # fmt: skip
    return definition.grad(desc, definition, no_grad)
