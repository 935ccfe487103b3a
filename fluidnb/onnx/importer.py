"""ONNX models as programs: graph inputs are fed, initializers are parameters, nodes are operators.

A converter (`import_math`, `import_tensors`, `import_layers`, `import_blocks`) appends the operators of one node. Sizes
that a model computes by nodes are followed as values and become attributes; what is then not read is left out.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.extras import require
from fluidnb.onnx.converters import Converters, Unsupported
from fluidnb.onnx.shape_values import ShapeValue, evaluate, ints
from fluidnb.program import Block, Program
from fluidnb.proto.desc import OpDesc, VarDesc
from fluidnb.values import VarType, dtypes

if TYPE_CHECKING:
    import onnx

Array = np.ndarray[Any, Any]

#: Operator -> its converter.
converts = Converters()
#: Results of nodes whose inputs are all known are computed at once, up to this many numbers.
_FOLDED = 1 << 20
#: Operators that are never computed at once: onnx's reference differs from their definition in some cases.
_NOT_FOLDED = {"LRN", "LpNormalization", "Softmax", "LogSoftmax", "OneHot", "Pad", "DequantizeLinear"}
#: What the bytes say of the Paddle that wrote them: its operators are those of the programs that we make.
_PADDLE = 2006002


@dataclass
class Imported:
    """An imported model.

    Args:
        program: with operators feed and fetch at its ends.
        feeds: names of the variables that are fed.
        fetches: names of the variables that are fetched.
        parameters: name -> value, of each persistable variable.
        unknown: nodes without a counterpart, with their counts; they are in the program under their own names.
    """

    program: Program
    feeds: list[str]
    fetches: list[str]
    parameters: dict[str, Array] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Node:
    """A node, as its converter reads it.

    Args:
        op: its operator.
        inputs: names of the tensors that it reads; an empty one is left out.
        outputs: names of the tensors that it writes; an empty one is not requested.
        attrs: its attributes, as Python values; tensors as arrays, graphs as messages.
        name: its own name, or empty.
        scope: the layer that it belongs to, as a path.
    """

    op: str
    inputs: list[str]
    outputs: list[str]
    attrs: dict[str, Any]
    name: str = ""
    scope: str = "/"

    def has(self, index: int) -> bool:
        """Whether an input is given."""
        return index < len(self.inputs) and bool(self.inputs[index])

    def wants(self, index: int) -> bool:
        """Whether an output is requested."""
        return index < len(self.outputs) and bool(self.outputs[index])


def convert(model: onnx.ModelProto, path: str = "") -> Imported:
    """Converts a model.

    Args:
        model: as `reader.read` returns it.
        path: its file, for messages.

    Raises:
        EnforceNotMet: a node has not the inputs or attributes that its operator takes.
    """
    return Importer(model, path).run()


class Importer:
    """The state of one conversion, with what converters call.

    Args:
        model: the model.
        path: its file, for messages.
    """

    def __init__(self, model: onnx.ModelProto, path: str) -> None:
        self.onnx = require("onnx", "Opening an ONNX model")
        self.model, self.path = model, path
        self.opset = max((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=1)
        self.done = Imported(Program(), [], [])
        self.program = self.done.program
        self.program.desc.pb.version.version = _PADDLE
        self.block: Block = self.program.global_block()
        self.constants: dict[str, Array] = {}
        self.shapes: dict[str, ShapeValue] = {}
        self.same: dict[str, str] = {}  # a tensor that is another one under a second name
        self.scope = "/"
        self.taken: set[str] = set()
        self.count = 0

    def run(self) -> Imported:
        """Converts everything."""
        from fluidnb.onnx import import_blocks, import_detection, import_layers, import_math, import_tensors  # noqa: F401

        graph, done = self.model.graph, self.done
        self.note_names(graph)
        self.initializers(graph)
        for each in graph.input:
            if each.name not in self.constants:
                self.feed(each)
        self.nodes(graph.node)
        for each in graph.output:
            name = each.name
            if (found := self.tensor(name)) != name or name in (*done.feeds, *done.parameters):
                name = name if found != name else self.new("result")
                self.append("assign", {"X": found}, {"Out": name})
            done.fetches.append(name)
            self.declare_shape(name, each)
        self.drop_unread(done.fetches)
        ends = (("feed", VarType.FEED_MINIBATCH), ("fetch", VarType.FETCH_LIST))
        for end, type in ends:
            self.block.desc.add_var(VarDesc(end, type)).set_persistable(True)
        for column, name in reversed(list(enumerate(done.feeds))):
            self.block.prepend_op("feed", {"X": "feed"}, {"Out": name}, {"col": column})
        for column, name in enumerate(done.fetches):
            self.block.append_op("fetch", {"X": name}, {"Out": "fetch"}, {"col": column})
        return done

    # The graph.

    def note_names(self, graph: onnx.GraphProto) -> None:
        """Notes all names of a graph, those of its blocks too: new variables get others."""
        for node in graph.node:
            self.taken.update(node.output)
            for attr in node.attribute:
                if attr.HasField("g"):
                    self.note_names(attr.g)
        self.taken.update(each.name for each in graph.input)
        self.taken.update(each.name for each in graph.initializer)

    def initializers(self, graph: onnx.GraphProto) -> None:
        """Reads the constants of a graph."""
        for tensor in graph.initializer:
            self.constants[tensor.name] = self.array(tensor)
        for sparse in graph.sparse_initializer:
            values, where = self.array(sparse.values), self.array(sparse.indices)
            whole = np.zeros(tuple(sparse.dims), values.dtype)
            whole[np.unravel_index(where, whole.shape) if where.ndim == 1 else tuple(where.T)] = values
            self.constants[sparse.values.name] = whole

    def array(self, tensor: onnx.TensorProto) -> Array:
        """The value of a tensor."""
        try:
            value: Array = self.onnx.numpy_helper.to_array(tensor, os.path.dirname(self.path))
        except (OSError, ValueError, TypeError, KeyError, self.onnx.checker.ValidationError) as error:
            raise self.damaged(f"The tensor {tensor.name} cannot be read.", str(error)) from None
        return value

    def feed(self, value: onnx.ValueInfoProto) -> None:
        """A variable that is fed; an axis without a size may have any."""
        if value.type.WhichOneof("value") != "tensor_type":
            raise self.damaged(f"The input {value.name} is no tensor.", str(value.type.WhichOneof("value")))
        tensor = value.type.tensor_type
        shape = [d.dim_value if d.WhichOneof("value") == "dim_value" else -1 for d in tensor.shape.dim]
        self.block.create_var(
            name=value.name, shape=shape, dtype=self.dtype(tensor.elem_type), is_data=True, stop_gradient=True
        )
        self.block.desc.vars[value.name].set_need_check_feed(True)
        self.done.feeds.append(value.name)

    def dtype(self, number: int) -> str:
        """The name of one of ONNX's dtypes."""
        try:
            name: str = self.onnx.helper.tensor_dtype_to_np_dtype(number).name
            dtypes.var_type(name)
        except (KeyError, TypeError, ValueError, FluidError):
            kinds = {value: kind for kind, value in self.onnx.TensorProto.DataType.items()}
            raise self.damaged(f"Programs have no dtype {kinds.get(number, number)}.", str(number)) from None
        return name

    def nodes(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Converts nodes into the current block."""
        for proto in nodes:
            node = self.node(proto)
            self.scope = node.scope
            if not self.known(node, proto):
                self.convert(node)

    def node(self, proto: onnx.NodeProto) -> Node:
        """A node as Python values."""
        attrs = {}
        for attr in proto.attribute:
            value = self.onnx.helper.get_attribute_value(attr)
            if isinstance(value, self.onnx.TensorProto):
                value = self.array(value)
            elif isinstance(value, bytes):
                value = value.decode(errors="replace")
            elif isinstance(value, list) and value and isinstance(value[0], bytes):
                value = [each.decode(errors="replace") for each in value]
            attrs[attr.name] = value
        op = proto.op_type if proto.domain in ("", "ai.onnx") else f"{proto.domain}.{proto.op_type}"
        return Node(op, list(proto.input), list(proto.output), attrs, proto.name, _scope(proto))

    def convert(self, node: Node) -> None:
        """Appends the operators of a node."""
        converter = converts.get(node.op)
        try:
            if converter is None:
                raise Unsupported("")
            converter(self, node)
        except Unsupported as error:
            self.done.unknown[f"{node.op} with {error}" if str(error) else node.op] += 1
            self.unknown(node)
        except FluidError as error:
            if self.done.unknown:
                self.unknown(node)
                return
            error.summary = f"Node {node.name or node.outputs[0]} ({node.op}) cannot be converted. {error.summary}"
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
            if self.done.unknown:  # what it reads may come from a node without a counterpart, and have no shape
                self.unknown(node)
                return
            raise self.damaged(
                f"Node {node.name or node.outputs[0]} ({node.op}) cannot be converted.",
                f"{type(error).__name__} {error}",
            ) from error

    def unknown(self, node: Node) -> None:
        """Appends a node without a counterpart under its own name: it is drawn, and cannot run."""
        attrs = {n: v for n, v in node.attrs.items() if isinstance(v, int | float | str | list)}
        ins = {f"input_{i}": [self.tensor(n)] for i, n in enumerate(node.inputs) if n}
        outs = {f"output_{i}": [n] for i, n in enumerate(node.outputs) if n}
        for (name,) in outs.values():
            if name not in self.block.desc.vars:  # a converter may have declared it before it gave up
                self.block.desc.add_var(VarDesc(name))
        self.block.desc.append_op(OpDesc(node.op, ins, outs, attrs | {"op_namescope": self.scope}))

    def damaged(self, summary: str, received: str) -> EnforceNotMet:
        """The error of a model that is not what ONNX says."""
        return EnforceNotMet(
            summary, expected="what the definition of the operator says", received=received[:160],
            hint=f"export {self.path or 'the model'} again; onnx.checker.check_model finds much of it.",
        )  # fmt: skip

    # Values that are known.

    def known(self, node: Node, proto: onnx.NodeProto) -> bool:
        """Computes a node whose inputs are known; True where nothing else is to be done."""
        value = evaluate(self, node)
        if value is not None and (numbers := ints(value)) is not None:
            self.constants[node.outputs[0]] = numbers.astype(value.dtype_name)
            return True
        if value is not None:
            self.shapes[node.outputs[0]] = value
        names = [n for n in node.inputs if n]
        foldable = node.op in converts.keys() - _NOT_FOLDED and not any(a.HasField("g") for a in proto.attribute)
        if node.op == "Constant":
            if not node.attrs:
                raise self.damaged(f"Node {node.outputs[0]} (Constant) has no value.", "no attribute")
            self.constants[node.outputs[0]] = self.constant_node(node)
            return True
        if not foldable or not names or any(n not in self.constants for n in map(self.resolve, names)):
            return False
        given = {n: self.constants[self.resolve(n)] for n in names}
        if sum(v.size for v in given.values()) > _FOLDED:
            return False
        results = self.reference(proto, given)
        if results is None or sum(np.asarray(r).size for r in results) > _FOLDED:
            return False
        self.constants |= {n: np.asarray(r) for n, r in zip(proto.output, results, strict=True) if n}
        return True

    def reference(self, proto: onnx.NodeProto, given: dict[str, Array]) -> list[Array] | None:
        """The results of a node by onnx's reference; None where it has no implementation."""
        evaluator = require("onnx.reference", "Opening an ONNX model").ReferenceEvaluator
        helper = self.onnx.helper
        values = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                  for n, v in given.items()]  # fmt: skip
        outs = [self.onnx.ValueInfoProto(name=n) for n in proto.output if n]
        graph = helper.make_graph([proto], "node", values, outs)
        model = helper.make_model(graph, opset_imports=self.model.opset_import)
        try:
            results: list[Array] = evaluator(model).run(None, given)
        except Exception:  # noqa: BLE001  whatever an implementation in the package raises: the node is converted
            return None
        return results if len(results) == len(proto.output) else None

    @staticmethod
    def constant_node(node: Node) -> Array:
        """The value of a node Constant."""
        (key, value), *_ = node.attrs.items()
        kind = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
        return value if isinstance(value, np.ndarray) else np.asarray(value, kind.get(key))

    def resolve(self, name: str) -> str:
        """The tensor that a name stands for."""
        while name in self.same:
            name = self.same[name]
        return name

    def constant(self, node: Node, index: int) -> Array | None:
        """The value of an input where it is known; None where it is computed or left out."""
        return self.constants.get(self.resolve(node.inputs[index])) if node.has(index) else None

    def required(self, node: Node, index: int, what: str) -> Array:
        """The value of an input that must be known."""
        value = self.constant(node, index)
        if value is None:
            raise Unsupported(f"a computed {what}")
        return value

    def shape_value(self, node: Node, index: int) -> ShapeValue | None:
        """The known sizes of an input that holds sizes."""
        return self.shapes.get(self.resolve(node.inputs[index]))

    # Variables.

    def new(self, stem: str) -> str:
        """A name that nothing has."""
        self.count += 1
        name = f"{stem}.{self.count}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def tensor(self, name: str) -> str:
        """The variable of a tensor; a constant becomes a parameter here."""
        name = self.resolve(name)
        if name in self.constants and name not in self.done.parameters:
            self.parameter(name, self.constants[name])
        return name

    def parameter(self, name: str, value: Array) -> None:
        """Declares a parameter in block 0."""
        kind = dtypes.dtype_name(dtypes.var_type(value.dtype.name))
        var = VarDesc(name)
        var.set_dtype(dtypes.var_type(kind))
        var.set_shape(list(value.shape))
        var.set_persistable(True)
        var.set_is_parameter(True)
        var.set_stop_gradient(not np.issubdtype(value.dtype, np.floating))
        self.program.global_block().desc.add_var(var)
        self.done.parameters[name] = np.ascontiguousarray(value).reshape(value.shape)

    def x(self, node: Node, index: int = 0) -> str:
        """The variable of an input."""
        return self.tensor(node.inputs[index])

    def made(self, value: Any, stem: str = "constant") -> str:
        """A parameter of a given value."""
        name = self.new(stem)
        self.parameter(name, np.asarray(value))
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        """The sizes of a variable; -1 where one is not known."""
        found = self.block.desc.find_var_recursive(name)
        return () if found is None else tuple(found.shape())

    def rank(self, name: str) -> int:
        """The number of axes of a variable."""
        return len(self.shape(name))

    def dtype_of(self, name: str) -> str:
        """The dtype of a variable."""
        found = self.block.desc.find_var_recursive(name)
        assert found is not None
        return dtypes.dtype_name(found.dtype())

    def axes(self, node: Node, index: int, rank: int | None = None) -> list[int] | None:
        """The axes of a node: an attribute in old models, an input in new ones; None where none are given."""
        value = node.attrs.get("axes")
        if value is None and node.has(index):
            value = self.required(node, index, "list of axes").reshape(-1).tolist()
        if value is None or rank is None:
            return None if value is None else [int(axis) for axis in value]
        return [int(axis) % rank for axis in value]

    def declare_shape(self, name: str, value: onnx.ValueInfoProto) -> None:
        """Adds the sizes of a result that the file knows and the shape rules do not."""
        var = self.block.desc.find_var_recursive(name)
        dims = value.type.tensor_type.shape.dim
        if var is None or len(dims) != len(var.shape()):
            return
        sizes = [d.dim_value if d.WhichOneof("value") == "dim_value" else -1 for d in dims]
        var.set_shape([old if old >= 0 else new for old, new in zip(var.shape(), sizes, strict=True)])

    # Operators.

    def append(
        self, type: str, ins: dict[str, Any], outs: dict[str, Any], scalar: bool = False, **attrs: Any
    ) -> None:
        """Appends an operator to the current block.

        Args:
            scalar: whether its results have no axes. Rules give such results one axis, as Fluid does, unless the
                program declares that they have none.
        """
        names = [n for given in outs.values() for n in ([given] if isinstance(given, str) else given)]
        for name in names:
            if self.block.desc.find_var_recursive(name) is None:
                self.block.desc.add_var(VarDesc(name)).set_shape([] if scalar else [-1])
        self.block.append_op(type, ins, outs, attrs | {"op_namescope": self.scope})

    def value(self, type: str, ins: dict[str, Any], slot: str = "Out", stem: str = "", **attrs: Any) -> str:
        """Appends an operator and returns the new variable of its result."""
        name = self.new(stem or type)
        self.append(type, ins, {slot: name, **self.others(type)}, **attrs)
        return name

    def others(self, type: str) -> dict[str, str]:
        """The slots of results that only a gradient reads, and that the operator needs all the same."""
        return {"XShape": self.new("xshape")} if type in _XSHAPE else {}

    def into(self, node: Node, type: str, ins: dict[str, Any], slot: str = "Out", **attrs: Any) -> None:
        """Appends the operator that writes a node's first output."""
        self.append(type, ins, {slot: node.outputs[0], **self.others(type)}, **attrs)

    def rename(self, node: Node, name: str) -> None:
        """Says that the first output of a node is a variable that is there."""
        self.same[node.outputs[0]] = self.resolve(name)

    def cast(self, name: str, dtype: str, into: str | None = None) -> str:
        """A variable in another dtype."""
        out, before = into or self.new("cast"), self.dtype_of(name)
        kinds: dict[str, Any] = {"in_dtype": int(dtypes.var_type(before)), "out_dtype": int(dtypes.var_type(dtype))}
        self.append("cast", {"X": name}, {"Out": out}, **kinds)
        return out

    def reshape(self, name: str, shape: list[int], into: str | None = None) -> str:
        """A variable in another shape."""
        out = into or self.new("reshape")
        self.append("reshape2", {"X": name}, {"Out": out, **self.others("reshape2")}, shape=shape)
        return out

    def transpose(self, name: str, axes: list[int], into: str | None = None) -> str:
        """A variable with its axes in another order."""
        out = into or self.new("transpose")
        self.append("transpose2", {"X": name}, {"Out": out, **self.others("transpose2")}, axis=axes)
        return out

    def drop_unread(self, fetches: list[str]) -> None:
        """Removes operators and variables that no result depends on: what has become attributes."""
        block = self.block.desc
        read = set(fetches)
        read.update(n for inner in self.program.desc.blocks[1:] for op in inner.ops for n in op.input_arg_names())
        for index in reversed(range(len(block.ops))):
            op = block.ops[index]
            if read.isdisjoint(op.output_arg_names()):
                block.remove_op(index, index + 1)
            else:
                read.update(op.input_arg_names())
        written = {n for op in block.ops for n in op.output_arg_names()}
        for name in [n for n in block.vars if n not in read | written and n not in self.done.feeds]:
            block.remove_var(name)
            self.done.parameters.pop(name, None)


#: Operators of Fluid that keep the shape of their input for their gradient.
_XSHAPE = ("reshape2", "transpose2", "squeeze2", "unsqueeze2", "flatten_contiguous_range")


def _scope(proto: onnx.NodeProto) -> str:
    """The layer of a node: torch writes it into the node's name, or into its metadata."""
    for entry in proto.metadata_props:
        if entry.key == "pkg.torch.onnx.name_scopes":
            parts = [p.strip().strip("'\"") for p in entry.value.strip("[]").split(",")]
            path = parts[-2] if len(parts) > 1 else ""
            return "/" + path.replace(".", "/") + "/" if path else "/"
    if proto.name.startswith("/") and proto.name.count("/") > 1:
        return proto.name.rpartition("/")[0] + "/"
    return "/"
