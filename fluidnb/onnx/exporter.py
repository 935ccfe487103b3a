"""Programs as ONNX models: operators become nodes, parameters initializers.

A converter (in `export_math`, `export_tensors`, `export_layers`, `export_blocks`, `export_arrays`, `export_sequences`)
appends the nodes of one operator. A variable that is written again is a new tensor: ONNX writes each name once.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidnb.errors import NotBuiltYet, OpValueError
from fluidnb.extras import require
from fluidnb.files.atomic_write import atomic_write
from fluidnb.onnx import reader
from fluidnb.onnx.converters import Converters, Unsupported
from fluidnb.op import get_op, has_op
from fluidnb.program import Program
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc
from fluidnb.values import VarType, dtypes

if TYPE_CHECKING:
    import onnx

Array = np.ndarray[Any, Any]

#: Operator -> its converter.
converts = Converters()
#: The first set of operators that is written, and that of a model where none is asked for.
OLDEST, USUAL = 13, 17
#: Bytes of a large tensor.
_LARGE = 1024
#: Computed constants up to this many numbers are written as numbers.
_FOLDED = 1 << 16


@dataclass(frozen=True, slots=True)
class Op:
    """An operator, as its converter reads it.

    Args:
        desc: its description.
    """

    desc: OpDesc

    @property
    def type(self) -> str:
        """Its type."""
        return self.desc.optype

    def attr(self, name: str) -> Any:
        """An attribute, with the default that the operator declares."""
        if name in self.desc.attrs:
            return self.desc.attrs[name]
        return get_op(self.type).attrs[name].default

    def has(self, slot: str) -> bool:
        """Whether an input is given."""
        return bool(self.desc.ins.get(slot))

    def var(self, slot: str = "X", index: int = 0) -> str:
        """The variable of an input."""
        return self.desc.ins[slot][index]

    def vars(self, slot: str = "X") -> list[str]:
        """The variables of an input."""
        return list(self.desc.ins.get(slot, []))

    def out(self, slot: str = "Out", index: int = 0) -> str:
        """The variable of an output."""
        return self.desc.outs[slot][index]


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tensors about the sequences of a feed.

    Args:
        feed: the variable that is fed.
        counts: the length of each sequence.
        rows: position of each row in the padded batch, whose sequences are one after the other.
        owners: number of each row's sequence.
        starts: number of each sequence's first row.
        sizes: batch and time of the padded batch.
        room: their product.
    """

    feed: str
    counts: str
    rows: str
    owners: str
    starts: str
    sizes: str
    room: str


@dataclass
class Graph:
    """The nodes of a graph under construction, and which tensor each variable is now.

    Args:
        tensors: variable -> its tensor, where that has another name.
    """

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    tensors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Exported:
    """An ONNX model.

    Args:
        model: the model.
        large: tensors that have a second file, because one message cannot have all: name -> value; none else.
    """

    model: onnx.ModelProto
    large: dict[str, Array]


def export(
    program: Program, feeds: Sequence[str], fetches: Sequence[str], parameters: dict[str, Array], opset: int = USUAL
) -> Exported:
    """Converts an inference program.

    Args:
        program: the program.
        feeds: names of the variables that are fed.
        fetches: names of the variables that are results.
        parameters: the values of persistable variables, by name.
        opset: the set of ONNX's operators, from 13 on.

    Returns:
        The model.

    Raises:
        MissingPackage: the package onnx is not installed.
        NotBuiltYet: operators that ONNX does not have, all of them, with their counts.
        OpValueError: another opset.
    """
    return Exporter(program, parameters, opset).run(list(feeds), list(fetches))


def save(exported: Exported, path: str) -> list[str]:
    """Writes a model, checked.

    Args:
        exported: the model.
        path: the file; folders are created. One for large tensors has its name and ``.data``.

    Returns:
        The files.

    Raises:
        EnforceNotMet: a file cannot be written.
    """
    checker = require("onnx.checker", "Writing an ONNX model")
    files = [path, f"{path}.data"] if exported.large else [path]
    if exported.large:
        _save_large(exported, files[1])
    data = exported.model.SerializeToString()
    if not exported.large:
        checker.check_model(data)
    with atomic_write(path, parents=True, size=len(data)) as file:
        file.write(data)
    if exported.large:
        checker.check_model(path)
    return files


def _save_large(exported: Exported, path: str) -> None:
    """Writes the large tensors of a model into a file, and where each is into the model."""
    external = require("onnx.external_data_helper", "Writing an ONNX model")
    at = 0
    with atomic_write(path, parents=True, size=sum(v.nbytes for v in exported.large.values())) as file:
        for tensor in exported.model.graph.initializer:
            if (value := exported.large.get(tensor.name)) is None:
                continue
            tensor.raw_data = b""  # set_external_data requires the field
            external.set_external_data(tensor, os.path.basename(path), at, value.nbytes)
            tensor.ClearField("raw_data")
            file.write(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
            at += value.nbytes


class Exporter:
    """The state of one conversion, with what converters call.

    Args:
        program: the program.
        parameters: the values of persistable variables, by name.
        opset: the set of ONNX's operators.
    """

    def __init__(self, program: Program, parameters: dict[str, Array], opset: int) -> None:
        self.onnx = require("onnx", "Writing an ONNX model")
        newest = self.onnx.defs.onnx_opset_version()
        if not OLDEST <= opset <= newest:
            raise OpValueError(
                f"There is no opset {opset}.", expected=f"{OLDEST} to {newest}", received=opset,
                hint=f"opset={USUAL} is read by most runtimes.",
            )  # fmt: skip
        self.program, self.parameters, self.opset = program, parameters, opset
        self.block: BlockDesc = program.desc.blocks[0]
        self.graph = Graph()
        self.around: list[Graph] = []
        self.initializers: dict[str, Array] = {}
        self.same: dict[tuple[Any, ...], str] = {}  # a constant -> the initializer that has its value
        self.taken: set[str] = {name for block in program.desc.blocks for name in block.vars}
        self.count = 0
        self.scope = "/"
        self.missing: Counter[str] = Counter()
        self.fetches: list[str] = []
        self.lengths: dict[str, Lengths] = {}  # a variable with sequences -> their lengths

    def run(self, feeds: list[str], fetches: list[str]) -> Exported:
        """Converts everything."""
        from fluidnb.onnx import (  # noqa: F401
            export_arrays,
            export_blocks,
            export_detection,
            export_layers,
            export_math,
            export_tensors,
        )
        from fluidnb.onnx.export_sequences import feed_sequences, result

        helper = self.onnx.helper
        self.fetches = fetches
        inputs: list[Any] = []
        for name in feeds:
            levels = self.levels(name)
            if levels > 1:
                self.missing[f"feed of {levels} levels of sequences"] += 1
            inputs += feed_sequences(self, name) if levels == 1 else [self.value_info(name, name)]
        self.operators(self.block)
        if self.missing:
            listed = ", ".join(f"{n} {kind}" for kind, n in self.missing.most_common())
            raise NotBuiltYet(
                f"The program cannot be written as ONNX: it has {listed}.", expected="operators with a counterpart",
                received=listed, hint=f"a later opset (this is {self.opset}), or fetches before these operators.",
            )  # fmt: skip
        outs = []
        for name in fetches:
            if name in self.lengths:
                outs += result(self, name)
                continue
            written = {name for node in self.graph.nodes for name in node.output}
            tensor = self.tensor(name)
            if tensor not in written or tensor != name:
                tensor = self.node("Identity", [tensor], name if name not in written and name not in feeds else None)
            outs.append(self.value_info(tensor, name))
        nodes = self.simplified(self.graph.nodes, [out.name for out in outs])
        read = {name for node in nodes for name in _reads(node)}
        tensors = {n: v for n, v in self.initializers.items() if n in read}
        apart = sum(v.nbytes for v in tensors.values()) >= reader.LIMIT
        large = {n: v for n, v in tensors.items() if apart and v.nbytes >= _LARGE}
        to_tensor = self.onnx.numpy_helper.from_array
        graph = helper.make_graph(
            nodes, "fluidnb", inputs, outs,
            [self.without_numbers(n, v) if n in large else to_tensor(v, n) for n, v in tensors.items()],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", self.opset)]
        model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, producer_name="fluidnb")
        model.ir_version = helper.find_min_ir_version_for(opsets)
        return Exported(model, large)

    # The program.

    def operators(self, block: BlockDesc) -> None:
        """Converts the operators of a block into the current graph."""
        self.block, outer = block, self.block
        for desc in block.ops:
            if desc.optype in ("feed", "fetch"):
                continue
            op = Op(desc)
            self.scope = str(desc.attrs.get("op_namescope", "/")) or "/"
            converter = converts.get(desc.optype)
            try:
                if converter is None or not has_op(desc.optype):
                    raise Unsupported("")
                self.inherit_lengths(op)
                converter(self, op)
            except Unsupported as error:
                self.missing[f"{desc.optype} with {error}" if str(error) else desc.optype] += 1
        self.block = outer

    def levels(self, name: str) -> int:
        """The levels of sequences of a variable."""
        var = self.block.find_var_recursive(name)
        return var.lod_level() if var is not None and is_tensor(var) else 0

    def inherit_lengths(self, op: Op) -> None:
        """Gives the results of an operator that have sequences those of its first input that has some."""
        slots = [slot for slot in get_op(op.type).inputs if slot in op.desc.ins]
        known = [self.lengths[name] for slot in slots for name in op.vars(slot) if name in self.lengths]
        for name in op.desc.output_arg_names():
            self.lengths.pop(name, None)
            if known and self.levels(name) == 1:
                self.lengths[name] = known[0]

    def desc(self, name: str) -> VarDesc:
        """The description of a variable."""
        var = self.block.find_var_recursive(name)
        assert var is not None, name
        return var

    def shape(self, name: str) -> tuple[int, ...]:
        """The sizes of a variable; -1 where one is not known."""
        return tuple(self.desc(name).shape())

    def rank(self, name: str) -> int:
        """The number of axes of a variable."""
        return len(self.shape(name))

    def dtype(self, name: str) -> np.dtype[Any]:
        """The dtype of a variable."""
        return np.dtype(dtypes.np_dtype(self.desc(name).dtype()))

    def is_read(self, name: str) -> bool:
        """Whether an operator or a result depends on a variable."""
        ops = (op for block in self.program.desc.blocks for op in block.ops if op.optype != "fetch")
        return name in self.fetches or any(name in op.input_arg_names() for op in ops)

    # Tensors.

    def new(self, stem: str) -> str:
        """A name that nothing has."""
        self.count += 1
        return self.unique(f"{stem}.{self.count}")

    def unique(self, name: str) -> str:
        """A name, longer where another tensor has it."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def tensor(self, name: str) -> str:
        """The tensor that a variable is now; a parameter becomes an initializer here."""
        for graph in (self.graph, *reversed(self.around)):
            if name in graph.tensors:
                return graph.tensors[name]
        if name in self.parameters and name not in self.initializers:
            self.initializers[name] = self.parameters[name]
        return name

    def x(self, op: Op, slot: str = "X", index: int = 0) -> str:
        """The tensor of an input."""
        return self.tensor(op.var(slot, index))

    def require_axis(self, op: Op) -> None:
        """Refuses an operator along an axis whose input has none: ONNX has no such operators."""
        if not self.rank(op.var()):
            raise Unsupported("an input without dimensions")

    def written(self, name: str) -> str:
        """The name of the tensor that a variable becomes: its own the first time."""
        known = any(name in graph.tensors for graph in (self.graph, *self.around))
        packed = name in self.lengths and name in self.fetches  # its own name is that of the padded result
        again = known or packed or name in self.parameters or bool(self.around)
        tensor = self.new(name) if again else name
        self.graph.tensors[name] = tensor
        return tensor

    def alias(self, name: str, tensor: str) -> None:
        """Says that a variable is a tensor that is there."""
        self.graph.tensors[name] = tensor

    def initializer(self, value: Any, dtype: Any = None) -> str:
        """The tensor of a constant; equal ones are one."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.same:
            self.same[key] = self.new("constant")
            self.initializers[self.same[key]] = array
        return self.same[key]

    def ints(self, *values: int) -> str:
        """The tensor of a list of whole numbers."""
        return self.initializer(list(values), np.int64)

    def node(
        self, type: str, inputs: Sequence[str], into: str | None = None, outputs: Sequence[str] = (), **attrs: Any
    ) -> str:
        """Appends a node; its first result.

        Args:
            into: the tensor that it writes; a new one where it is left out.
            outputs: all tensors that it writes, in place of `into`.
        """
        outs = list(outputs) or [into or self.new(type.lower())]
        name = f"{self.scope.rstrip('/')}/{type}.{len(self.graph.nodes)}"
        made: onnx.NodeProto = self.onnx.helper.make_node(type, list(inputs), outs, name=name, **attrs)
        if self.scope != "/":
            made.metadata_props.add(key="pkg.fluidnb.scope", value=self.scope)
        self.graph.nodes.append(made)
        return outs[0]

    def into(self, op: Op, type: str, inputs: Sequence[str], slot: str = "Out", **attrs: Any) -> None:
        """Appends the node that computes an operator's output."""
        self.node(type, inputs, self.written(op.out(slot)), **attrs)

    def cast(self, tensor: str, dtype: Any, into: str | None = None) -> str:
        """A tensor in another dtype."""
        number = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", [tensor], into, to=number)

    def value_info(self, tensor: str, name: str) -> onnx.ValueInfoProto:
        """The declaration of a graph's input or result; a size that is not known gets a name."""
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(self.dtype(name))
        sizes = [n if n >= 0 else "batch" if i == 0 else f"{tensor}_{i}" for i, n in enumerate(self.shape(name))]
        declared: onnx.ValueInfoProto = self.onnx.helper.make_tensor_value_info(tensor, kind, sizes)
        return declared

    def without_numbers(self, name: str, value: Array) -> onnx.TensorProto:
        """The tensor of an initializer whose numbers are elsewhere."""
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
        made: onnx.TensorProto = self.onnx.TensorProto(name=name, data_type=kind, dims=value.shape)
        return made

    def simplified(self, nodes: Sequence[onnx.NodeProto], results: Sequence[str]) -> list[onnx.NodeProto]:
        """The nodes that results depend on; what only constants decide is computed."""
        evaluator = require("onnx.reference", "Writing an ONNX model").ReferenceEvaluator
        kept: list[onnx.NodeProto] = []
        computed = {self.same[key] for key in self.same}
        for node in nodes:
            known = [n for n in node.input if n]
            if known and all(n in computed for n in known) and not any(a.HasField("g") for a in node.attribute):
                try:
                    values = evaluator(node).run(None, {n: self.initializers[n] for n in known})
                except Exception:  # noqa: BLE001  the package's implementation lacks a case: the node stays
                    values = None
                if values is not None and sum(np.asarray(v).size for v in values) <= _FOLDED:
                    found = dict(zip(node.output, map(np.asarray, values), strict=True))
                    if not set(results) & set(found):
                        self.initializers |= found
                        computed |= set(found)
                        continue
            kept.append(node)
        read = set(results)
        out = []
        for node in reversed(kept):
            if not read.isdisjoint(node.output):
                out.append(node)
                read.update(_reads(node))
        return out[::-1]


def _reads(node: onnx.NodeProto) -> set[str]:
    """The tensors that a node reads, those of its graphs too."""
    names = set(node.input)
    for attr in node.attribute:
        if attr.HasField("g"):
            names |= {n for inner in attr.g.node for n in _reads(inner)} | {out.name for out in attr.g.output}
    return names


def is_array(var: VarDesc | None) -> bool:
    """Whether a variable is an array of tensors."""
    return var is not None and var.type() == VarType.LOD_TENSOR_ARRAY


def is_tensor(var: VarDesc | None) -> bool:
    """Whether a variable is a tensor."""
    return var is not None and var.type() == VarType.LOD_TENSOR
