"""InferenceTranspiler: folds batch normalization into the preceding convolution."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from fluidnb.arguments import checked
from fluidnb.backward.emit import all_or_nothing
from fluidnb.errors import EnforceNotMet, OpTypeError
from fluidnb.program import Block, Program, hooks, origin
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.values.dtypes import np_dtype
from fluidnb.values.place import CPUPlace, Place

Array = np.ndarray[Any, Any]
_CONVOLUTIONS = ("conv2d", "depthwise_conv2d")
_SUFFIX = "_fuse_bn"


class _Match(NamedTuple):
    """A convolution, the bias added to it or None, and the batch normalization of the result."""

    conv: OpDesc
    bias: OpDesc | None
    norm: OpDesc


@checked
class InferenceTranspiler:
    """Makes a program for inference faster: it computes the same with fewer operators.

    Example:
        >>> x = fluid.layers.data("x", [3, 8, 8])
        >>> y = fluid.layers.batch_norm(fluid.layers.conv2d(x, 4, 3, bias_attr=False))
        >>> exe = fluid.Executor(fluid.CPUPlace()); out = exe.run(fluid.default_startup_program())
        >>> test = fluid.default_main_program().clone(for_test=True)
        >>> InferenceTranspiler().transpile(test, fluid.CPUPlace())
        >>> [op.type for op in test.global_block().ops]
        ['conv2d', 'elementwise_add']
    """

    def transpile(self, program: Program, place: Place | None = None, scope: Any = None) -> None:
        """Fold each batch_norm in test mode into the convolution whose output nothing else reads.

        The folded filter and bias are new parameters, with ``_fuse_bn`` behind their names; the old ones stay as they
        are, so that training can continue with the same scope. What the convolution itself gives is another value then;
        what came out of the batch_norm keeps its name.

        Args:
            program: a program in test mode, for example by ``clone(for_test=True)``; it is changed.
            place: where the new parameters live; default the CPU.
            scope: has the parameters; default the global scope.

        Raises:
            EnforceNotMet: a parameter has no value. Nothing has changed then.
        """
        scope = hooks.global_scope() if scope is None and hooks.global_scope is not None else scope
        place = CPUPlace() if place is None else place
        if not hasattr(scope, "find_var"):
            raise OpTypeError(
                "scope should be as Scope type or None", expected="Scope type or None", received=repr(scope)[:80],
                hint="transpile(program, place, scope) takes them in this order.",
            )  # fmt: skip
        origin.saw_list(program)
        origin.writing(program)
        matches = _matches(program.desc.block(0))
        values = {name: _value(scope, name) for match in matches for name in _parameters(match)}
        folded: dict[str, Array] = {}
        with all_or_nothing(program):
            for match in matches:
                _fold(program, match, values, folded)
        for name, array in folded.items():
            scope.var(name).get_tensor().set(array, place)


def _matches(block: BlockDesc) -> list[_Match]:
    """The convolutions of a block that can be folded."""
    reads = Counter(n for b in block.program.blocks for op in b.ops for n in op.input_arg_names())
    writer = {n: op for op in block.ops for n in op.output_arg_names()}
    matches = []
    for norm in block.ops:
        if not _is_still(norm) or norm.attrs.get("data_layout", "NCHW") not in ("NCHW", "AnyLayout"):
            continue
        name = norm.ins["X"][0]
        before, bias = writer.get(name), None
        if before is not None and before.optype == "elementwise_add" and _adds_a_channel_bias(block, before):
            bias, first = before, before.ins["X"][0]
            before = writer.get(first) if reads[first] == 1 else None
        if before is not None and before.optype in _CONVOLUTIONS and reads[name] == 1 and not before.ins.get("Bias"):
            match = _Match(before, bias, norm)
            if all(_is_kept(block, n, writer.get(n)) for n in _parameters(match)):
                matches.append(match)
    return matches


def _is_still(op: OpDesc) -> bool:
    """Whether an operator is a batch_norm that normalizes by its statistics and writes them as they were."""
    return op.optype == "batch_norm" and bool(op.attrs.get("is_test") or op.attrs.get("use_global_stats"))


def _is_kept(block: BlockDesc, name: str, writer: OpDesc | None) -> bool:
    """Whether a variable has the same value in every run."""
    var = block.find_var_recursive(name)
    return var is not None and var.persistable() and (writer is None or _is_still(writer))


def _adds_a_channel_bias(block: BlockDesc, op: OpDesc) -> bool:
    var = block.find_var_recursive(op.ins["Y"][0])
    return var is not None and var.persistable() and len(var.shape()) == 1 and op.attrs.get("axis") == 1


def _parameters(match: _Match) -> list[str]:
    names = [match.conv.ins["Filter"][0], *(match.norm.ins[s][0] for s in ("Scale", "Bias", "Mean", "Variance"))]
    return names if match.bias is None else [*names, match.bias.ins["Y"][0]]


def _value(scope: Any, name: str) -> Array:
    variable = scope.find_var(name)
    value = None if variable is None else variable.value
    if getattr(value, "array", None) is None:
        raise EnforceNotMet(
            f'"{name}" has no value in the scope, so that nothing can be folded into it.',
            expected="a scope with trained parameters", received="nothing",
            hint="run the startup program or load the parameters first, and give their scope.",
        )  # fmt: skip
    return np.asarray(value)


def _fold(program: Program, match: _Match, values: dict[str, Array], folded: dict[str, Array]) -> None:
    conv, bias, norm = match
    scale, shift, mean, variance = (values[norm.ins[s][0]] for s in ("Scale", "Bias", "Mean", "Variance"))
    factor = scale / np.sqrt(variance + norm.attrs.get("epsilon", 1e-5))
    block, filter_name = program.global_block(), conv.ins["Filter"][0]
    weight = values[filter_name] * factor.reshape(-1, 1, 1, 1)
    conv.set_input("Filter", [_parameter(block, folded, filter_name, weight)])
    start = 0 if bias is None else values[bias.ins["Y"][0]]
    old = norm.ins["Bias"][0] if bias is None else bias.ins["Y"][0]
    added = _parameter(block, folded, old, (start - mean) * factor + shift)
    place, out = block.desc.ops.index(norm), norm.outs["Y"][0]
    block.remove_op(place)
    if bias is not None:
        bias.set_input("Y", [added])
        bias.set_output("Out", [out])
    else:
        add = OpDesc("elementwise_add", {"X": conv.outs["Output"], "Y": [added]}, {"Out": [out]}, {"axis": 1})
        block.put_desc(add, place)


def _parameter(block: Block, folded: dict[str, Array], old: str, array: Array) -> str:
    """A new parameter beside an old one; gives its name."""
    name, count = old + _SUFFIX, 1
    while name in folded or block.desc.has_var(name):
        name, count = f"{old}{_SUFFIX}_{count}", count + 1
    like = block.var(old)
    folded[name] = array.astype(np_dtype(like.dtype))
    block.create_var(name=name, shape=array.shape, dtype=like.dtype, persistable=True)
    return name
