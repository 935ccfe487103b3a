"""The operator SDK: definitions, attribute checks, shape rules, gradients, kernels that bind, and their registry."""

from fluidnb.op.attr import Attr
from fluidnb.op.binder import Array, Binder
from fluidnb.op.check import SlotError, check_desc, check_inputs, check_loaded
from fluidnb.op.compile_context import CompileContext, Spec, infer_compile
from fluidnb.op.context import EMPTY, GRAD, Context, RuleError
from fluidnb.op.control import Backward, Branch, Control, Loop, sums_of
from fluidnb.op.cost import Cost, cost_of
from fluidnb.op.define import (
    OpDef,
    Slot,
    all_ops,
    get_op,
    grad_op,
    has_op,
    kernel,
    kernels_of,
    op,
    prefer,
    registry,
    remove_kernel,
    remove_op,
)
from fluidnb.op.factory import (
    CondOp,
    DynamicRecurrentOp,
    OpDescCreationMethod,
    Operator,
    OperatorFactory,
    OpInfo,
    RecurrentOp,
    create_op_creation_method,
    is_str,
)
from fluidnb.op.grad import default_grad, grad_desc, grad_names, has_grad, linear_grad, make_grad, no_slope, second_grad
from fluidnb.op.guards import ValuesOf, values_of
from fluidnb.op.input_spec import InputSpec, takes
from fluidnb.op.kernel_type import Kernel, OpKernelType
from fluidnb.op.proto import get_all_op_protos, op_proto
from fluidnb.op.rng import Clock, Stream, normal, seed, uniform, unit
from fluidnb.op.rules import aliases, broadcast_dim, like_forward, product, same
from fluidnb.proto.desc import OpDesc
from fluidnb.values.copies import register_copy

__all__ = [
    "EMPTY", "GRAD", "Array", "Attr", "Backward", "Binder", "Branch", "Clock", "CompileContext", "CondOp", "Context",
    "Control", "Cost", "DynamicRecurrentOp", "InputSpec", "Kernel", "Loop", "OpDef", "OpDesc", "OpDescCreationMethod",
    "OpInfo", "OpKernelType", "Operator", "OperatorFactory", "RecurrentOp", "RuleError", "Slot", "SlotError", "Spec",
    "Stream", "ValuesOf", "aliases", "all_ops", "broadcast_dim", "check_desc", "check_inputs", "check_loaded",
    "cost_of", "create_op_creation_method", "default_grad", "get_all_op_protos", "get_op", "grad_desc", "grad_names",
    "grad_op", "has_grad", "has_op", "infer_compile", "is_str", "kernel", "kernels_of", "like_forward", "linear_grad",
    "make_grad", "no_slope", "normal", "op", "op_proto", "prefer", "product", "register_copy", "registry",
    "remove_kernel", "remove_op", "same", "second_grad", "seed", "sums_of", "takes", "uniform", "unit", "values_of",
]  # fmt: skip
