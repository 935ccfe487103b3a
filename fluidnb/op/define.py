"""Definitions of operators and their kernels, and their registry."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from fluidnb.absent import OPERATORS
from fluidnb.errors import NotFound, OpValueError, near
from fluidnb.op.attr import Attr
from fluidnb.op.input_spec import InputSpec
from fluidnb.op.kernel_type import Kernel, OpKernelType, dtype_names
from fluidnb.op.rules import Rule, like_forward
from fluidnb.utils.source_location import warn
from fluidnb.values import kernel_packages

if TYPE_CHECKING:
    from fluidnb.op.context import Context
    from fluidnb.op.cost import Cost
    from fluidnb.op.grad import GradMaker

KernelFunction = Callable[[Any], Any]
#: Multiply-adds of an operator: a formula, or a function of a context; see `fluidnb.op.cost`.
CostRule = str | Callable[[Any], "int | Cost"]


class Slot(NamedTuple):
    """One input or output slot of an operator."""

    name: str
    phrase: str  # its meaning, one phrase
    duplicable: bool = False  # whether it takes a list
    dispensable: bool = False  # whether it may be left out
    intermediate: bool = False  # whether only the gradient reads it
    specs: tuple[InputSpec, ...] = ()  # kinds of values that it takes; none for any value

    @property
    def key(self) -> str:
        """The key that declares it, for example ``Ids?: int64[N, 1]``."""
        marks = "*" * self.duplicable + ("~" if self.intermediate else "?" * self.dispensable)
        return f"{self.name}{marks}" + (f": {self.spec}" if self.specs else "")

    @property
    def spec(self) -> str:
        """The kinds of values as text; empty for any value."""
        return " | ".join(map(str, self.specs))

    @property
    def doc(self) -> str:
        """The kinds of values and the meaning."""
        return f"{self.spec}: {self.phrase}" if self.specs and self.phrase else self.spec or self.phrase


def _slots(declared: Mapping[str, str]) -> dict[str, Slot]:
    """The slots that keys such as ``X*``, ``Y?``, ``XShape~`` and ``Ids: int64[N, 1]`` declare, with their phrases."""
    out: dict[str, Slot] = {}
    for key, phrase in declared.items():
        head, _, spec = key.partition(": ")
        name = head.rstrip("*?~")
        if name in out:
            raise OpValueError(
                f"[{name}] is duplicated", expected="each slot once", received=", ".join(declared),
                hint="a slot is declared once, with all its marks: X*? takes a list and may be left out.",
            )  # fmt: skip
        specs = InputSpec.parse(spec) if spec else ()
        out[name] = Slot(name, phrase, "*" in head, "?" in head or "~" in head, "~" in head, specs)
    return out


@dataclass(slots=True)
class OpDef:
    """The definition of an operator type."""

    type: str  # its name in an OpDesc
    inputs: dict[str, Slot] = field(default_factory=dict)
    outputs: dict[str, Slot] = field(default_factory=dict)
    attrs: dict[str, Attr] = field(default_factory=dict)
    infer: Rule | None = None  # shape rule, or None when the kernel creates its outputs itself
    grad: GradMaker | None = None  # maker of gradient operators, or None when there is no gradient
    # rule over all attributes: the error as a sentence, or None
    check: Callable[[Mapping[str, Any]], str | None] | None = None
    # dependencies of a specialization beyond shapes, dtypes, LoDs and attributes; may read values
    guard: Callable[[Any], object] | None = None
    inplace: bool = False  # whether an output may be the input's own buffer
    # output slot -> input slot that it updates (``ParamOut`` is ``Param``)
    alias: dict[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()  # input slots that may have no value yet when the operator runs
    side_effect: bool = False  # whether it has side effects and is never pruned
    random: bool = False  # whether it draws random numbers
    # why it has no kernel for other places than the CPU, as a phrase; empty when it has or may have one
    host_only: str = ""
    data_shape: bool = False  # whether an output's shape depends on values
    control: bool = False  # whether it runs a sub-block (its kernel returns a `Control`)
    is_grad: bool = False  # whether it is a gradient operator: no proto, attributes copied from the forward operator
    dtype_slot: str = ""  # input slot whose dtype chooses the kernel; default: the first with a tensor
    doc: str = ""  # documentation, the kernel's docstring
    module: str = ""  # where it was defined
    # its kernels; a later one wins over an earlier one with the same key
    kernels: list[Kernel] = field(default_factory=list)
    # ``rows(context)``: the outputs that are SelectedRows, before a run: all (True), those of some slots, or none
    # (False or no slot); None for never any
    rows: Callable[[Context], bool | Collection[str]] | None = None
    # multiply-adds, see `fluidnb.op.cost`; None where it computes nothing, or for a gradient operator
    cost: CostRule | None = None


#: Decimal digits that short floating dtypes keep.
_COARSE = {"float16": 3, "bfloat16": 2}


class _Registry:
    """The operators by type. ``version`` rises with every change, so that prepared plans notice."""

    def __init__(self) -> None:
        self.ops: dict[str, OpDef] = {}
        self.version = 0
        self.preferences: dict[str, dict[str, str]] = {}


registry = _Registry()


def op(
    type: str, *, inputs: Mapping[str, str] | None = None, outputs: Mapping[str, str] | None = None,
    attrs: Mapping[str, Attr] | None = None, infer: Rule | None = None, grad: GradMaker | None = None,
    check: Callable[[Mapping[str, Any]], str | None] | None = None, guard: Callable[[Any], object] | None = None,
    inplace: bool = False, alias: Mapping[str, str] | None = None, unset: Sequence[str] = (), side_effect: bool = False,
    random: bool = False, host_only: str = "", data_shape: bool = False, control: bool = False, dtype_slot: str = "",
    dtypes: Sequence[str] | None = None, cuda: bool | Sequence[str] = False,
    rows: Callable[[Context], bool | Collection[str]] | None = None, cost: CostRule | None = None,
    replace: bool = False, doc: str = "",
) -> Callable[[KernelFunction], KernelFunction]:  # fmt: skip
    """Defines an operator; the function below it is its kernel for the CPU. Arguments not listed here: see `OpDef`.

    Args:
        type: its name in an OpDesc.
        inputs: slot -> phrase. A slot ``X*`` takes a list, ``Y?`` may be left out; ``Ids: int64[N, 1]`` declares dtype,
            axes and LoD (`InputSpec`).
        outputs: slot -> phrase. A slot ``XShape~`` is for the gradient alone.
        attrs: name -> `Attr`.
        dtypes: dtypes that the kernel takes; None for all.
        cuda: whether the function is the CUDA kernel too, or the dtypes that it takes there.
        replace: whether it may replace a registered operator.
        doc: documentation, where the kernel's docstring does not serve (tables of operators).

    Returns:
        A decorator that returns the kernel function itself.

    Example:
        >>> from fluidnb.op import same
        >>> @op("doctest_double", inputs={"X": "any"}, outputs={"Out": "2 X"}, infer=same())
        ... def double(b):
        ...     b(np.add, b["X"], b["X"], out=b["Out"])
        >>> get_op("doctest_double").outputs["Out"].doc
        '2 X'
        >>> remove_op("doctest_double")
    """

    def register(function: KernelFunction) -> KernelFunction:
        _register(OpDef(
            type, _slots(inputs or {}), _slots(outputs or {}), dict(attrs or {}), infer, grad, check, guard, inplace,
            dict(alias or {}), tuple(unset), side_effect, random, host_only, data_shape, control, False, dtype_slot,
            doc or function.__doc__ or "", function.__module__, _kernels(function, dtypes, cuda), rows, cost,
        ), replace)  # fmt: skip
        return function

    return register


def _kernels(function: KernelFunction, dtypes: Sequence[str] | None, cuda: bool | Sequence[str]) -> list[Kernel]:
    """The kernels that one function is: for the CPU, and for CUDA too where wanted."""
    kernels = [Kernel(function, dtypes=dtype_names(dtypes))]
    if cuda:
        kernels.append(Kernel(function, "cuda", None if isinstance(cuda, bool) else dtype_names(cuda)))
    return kernels


def _register(definition: OpDef, replace: bool) -> None:
    type = definition.type
    if not kernel_packages.is_own(definition.module):
        kernel_packages.load_own(type)
    if type in registry.ops and not replace:
        raise OpValueError(
            f"'{type}' is registered more than once.", expected="a type that is free",
            received=f"{type}, which {registry.ops[type].module} defines", hint="replace=True replaces the old one.",
        )  # fmt: skip
    registry.ops[type] = definition
    registry.version += 1


def grad_op(
    type: str, *, infer: Rule | None = like_forward, guard: Callable[[Any], object] | None = None,
    inplace: bool = False, unset: Sequence[str] = (), control: bool = False, dtype_slot: str = "",
    rows: Callable[[Context], bool | Collection[str]] | None = None, grad: GradMaker | None = None, host_only: str = "",
    cuda: bool | Sequence[str] = False,
    replace: bool = False,
) -> Callable[[KernelFunction], KernelFunction]:  # fmt: skip
    """Defines a gradient operator: without a proto, with the attributes of the forward operator. See `op` and `OpDef`.

    Args:
        type: its name, by custom the forward operator's with ``_grad``.
        infer: shape rule; by default ``S@GRAD`` has the shape of ``S``. None: set by the kernel.
        grad: maker of the operators that compute the gradient of the gradient, for example `second_grad`.

    Returns:
        A decorator that returns the kernel function itself.

    Example:
        >>> @grad_op("doctest_double_grad")
        ... def double_grad(b):
        ...     b(np.add, b["Out@GRAD"], b["Out@GRAD"], out=b["X@GRAD"])
        >>> remove_op("doctest_double_grad")
    """

    def register(function: KernelFunction) -> KernelFunction:
        _register(OpDef(
            type, infer=infer, grad=grad, guard=guard, inplace=inplace, unset=tuple(unset), control=control,
            is_grad=True, dtype_slot=dtype_slot, doc=function.__doc__ or "", module=function.__module__,
            kernels=_kernels(function, None, cuda), rows=rows, host_only=host_only,
        ), replace)  # fmt: skip
        return function

    return register


def kernel(
    type: str, *, place: str = "cpu", dtypes: Sequence[str] | None = None, layout: str = "ANY_LAYOUT",
    library: str = "PLAIN",
) -> Callable[[KernelFunction], KernelFunction]:  # fmt: skip
    """Adds a kernel to an operator that is defined; the newest wins over an older one with the same key.

    Args:
        place: the place's kind, for example ``cpu`` or ``cuda``.
        dtypes: dtypes that it takes; None for all.
        layout: the layout in which it requires 4-D tensors (``NHWC``, ``nChw8c``); they are transformed for it.
        library: ``PLAIN``, ``CUDNN``, ``MKLDNN`` or another name.

    Returns:
        A decorator that returns the kernel function itself.

    Example:
        >>> @kernel("relu", library="MINE")
        ... def mine(b):
        ...     b(np.maximum, b["X"], b.const(0, b["X"].dtype), out=b["Out"])
        >>> remove_kernel("relu", mine)
    """

    def register(function: KernelFunction) -> KernelFunction:
        get_op(type).kernels.append(Kernel(function, place, dtype_names(dtypes), layout, library))
        registry.version += 1
        return function

    return register


def remove_kernel(type: str, function: KernelFunction) -> None:
    """Unregisters a kernel by its function."""
    definition = get_op(type)
    definition.kernels = [k for k in definition.kernels if k.function is not function]
    registry.version += 1


def remove_op(type: str) -> None:
    """Unregisters an operator; an unknown one is ignored."""
    _find(type)
    registry.ops.pop(type, None)
    registry.version += 1


def _find(type: str) -> OpDef | None:
    """The definition of an operator type, whose module is imported at the first look-up; None where there is none."""
    definition = registry.ops.get(type)
    if definition is None:
        with _as_before():
            kernel_packages.load_for(type)
        definition = registry.ops.get(type)
    return definition


@contextmanager
def _as_before() -> Iterator[None]:
    """Import modules whose operators count as registered before: what is lowered stays good."""
    version = registry.version
    try:
        yield
    finally:
        registry.version = version


def has_op(type: str) -> bool:
    """Whether an operator of this type is registered."""
    return _find(type) is not None


def get_op(type: str) -> OpDef:
    """The definition of an operator type.

    Raises:
        NotFound: there is none; the message offers names close to it.

    Example:
        >>> get_op("relu").type
        'relu'
    """
    definition = registry.ops.get(type) or _find(type)
    if definition is None and (why := OPERATORS.get(type.removesuffix("_grad"))) is not None:
        raise NotFound(
            f'Operator "{type}" is not part of fluidnb: {why[0]}.', expected="a registered operator", received=type,
            hint=why[1],
        )  # fmt: skip
    if definition is None:
        raise NotFound(
            f'Operator "{type}" has not been registered.', expected="a registered operator", received=type,
            hint=near(type, [d.type for d in all_ops()])
            or "fluidnb.op.all_ops() has them all; fluidnb.op.op() defines one.",
        )  # fmt: skip
    return definition


def forward_of(definition: OpDef) -> OpDef:
    """The forward operator of a gradient operator of any order; a forward operator itself."""
    type = definition.type
    while definition.is_grad and type.endswith("_grad"):
        type = type.removesuffix("_grad")
        if has_op(type):
            definition = get_op(type)
    return definition


def all_ops() -> Iterator[OpDef]:
    """Every registered operator, by name.

    Example:
        >>> "relu" in [d.type for d in all_ops()]
        True
    """
    with _as_before():
        kernel_packages.load()  # by the call itself: some call this only so that all modules are imported
    return iter([registry.ops[name] for name in sorted(registry.ops)])


def kernels_of(type: str) -> list[OpKernelType]:
    """The keys of an operator's kernels.

    Example:
        >>> len(kernels_of("relu")) >= 1
        True
    """
    return [t for k in get_op(type).kernels for t in k.types()]


@contextmanager
def prefer(types: str | Iterable[str], **wish: str) -> Iterator[None]:
    """Selects library, layout, precision or place of certain operators' kernels, inside a ``with``.

    Args:
        types: operator type or types.
        wish: ``library``, ``layout``, ``data_type`` or ``place``; inputs and outputs are transformed for the kernel.

    Example:
        >>> with prefer("relu", data_type="float64"):
        ...     pass
    """
    names = [types] if isinstance(types, str) else list(types)
    if wish.get("data_type") in _COARSE:
        warn(f"{', '.join(names)} will compute in {wish['data_type']}: {_COARSE[wish['data_type']]} digits are kept.")
    before = {n: registry.preferences.get(n) for n in names}
    for n in names:
        registry.preferences[n] = {**(before[n] or {}), **wish}
    registry.version += 1
    try:
        yield
    finally:
        for n, old in before.items():
            if old is None:
                del registry.preferences[n]
            else:
                registry.preferences[n] = old
        registry.version += 1
