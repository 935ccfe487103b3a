"""PIR programs as programs of operators: a ProgramDesc, which Fluid, Paddle 2 and Paddle 3 run."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.op import EMPTY, get_op, has_op
from fluidnb.pir.op_versions import OP_VERSIONS
from fluidnb.pir.reader import Block, Module, Operation, Type, Value
from fluidnb.pir.signatures import LINES, Operand, Signature, signature
from fluidnb.program import Program
from fluidnb.program.sub_blocks import outer_names
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from fluidnb.values import VarType, dtypes

#: What the bytes say of the Paddle that wrote them: its operators are those of the table.
_PADDLE = 2006002
#: Attributes that every operation may have, and that no operator needs.
DROPPED = {"struct_name", "place", "stop_gradient", "op_callstack"}
#: Attributes that code of an operation reads, with the values that it takes.
READ = {(f"{name}_linear", "qmax"): "2^n - 1" for name in ("quantize", "dequantize")}


@dataclass
class Converted:
    """A converted program.

    Args:
        program: with operators feed and fetch at its ends.
        feeds: names of the variables that are fed.
        fetches: names of the variables that are fetched.
        unknown: operations without a counterpart, with their counts; they are in the program under their own names.
        dropped: attributes without a counterpart, as ``operation.attribute``, with their counts.
    """

    program: Program
    feeds: list[str]
    fetches: list[str]
    unknown: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)


def convert(module: Module) -> Converted:
    """Converts a PIR program.

    Args:
        module: the program, as `fluidnb.pir.read` returns it.

    Raises:
        EnforceNotMet: an operation reads a value that none computes.
    """
    return _Converter(module).run()


@dataclass(frozen=True, slots=True)
class _Constant:
    """A value that is known: it becomes an attribute, or an operator where a tensor is needed."""

    values: list[Any]
    type: Type
    shape: list[int]


class _Converter:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.desc = ProgramDesc()
        self.desc.pb.version.version = _PADDLE
        self.block: BlockDesc = self.desc.blocks[0]
        self.done = Converted(Program(self.desc), [], [])
        self.names: dict[int, str] = {}
        self.types: dict[int, Type] = {}
        self.vectors: dict[int, list[int]] = {}
        self.constants: dict[int, _Constant] = {}
        self.written: dict[tuple[int, int], str] = {}  # (block, number of a constant) -> its variable there
        self.fetched: dict[int, int] = {}  # column -> number of a value
        self.scope = "/"
        self.count = 0
        self.taken = {
            str(o.attrs.get(key))
            for o in module.each()
            for kind, key in (("pd_op.data", "name"), ("builtin.parameter", "parameter_name"))
            if o.name == kind
        }

    def run(self) -> Converted:
        """Converts everything."""
        self.operations(self.module.block)
        done = self.done
        done.fetches = [self.tensor(number) for _, number in sorted(self.fetched.items())]
        for name, type in (("feed", VarType.FEED_MINIBATCH), ("fetch", VarType.FETCH_LIST)):
            self.block.add_var(VarDesc(name, type)).set_persistable(True)
        kinds = {op.optype for block in self.desc.blocks for op in block.ops}
        for kind in sorted(kinds & OP_VERSIONS.keys()):
            pair = self.desc.pb.op_version_map.pair.add(op_name=kind)
            pair.op_version.version = OP_VERSIONS[kind]
        for column, name in reversed(list(enumerate(done.feeds))):
            self.block.prepend_op(OpDesc("feed", {"X": ["feed"]}, {"Out": [name]}, {"col": column}))
        for column, name in enumerate(done.fetches):
            self.block.append_op(OpDesc("fetch", {"X": [name]}, {"Out": ["fetch"]}, {"col": column}))
        return done

    def operations(self, block: Block) -> None:
        """Converts the operations of a block into the current block."""
        for operation in block.operations:
            struct = operation.attrs.get("struct_name")
            self.scope = struct if isinstance(struct, str) and struct else "/"
            try:
                self.operation(operation)
            except FluidError:
                raise
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                raise EnforceNotMet(
                    f"{self.module.path} is damaged: {operation.name} cannot be converted.",
                    expected="its operands, results and attributes, as Paddle 3 writes them",
                    received=f"{type(error).__name__} {error}"[:120], hint="export it again.",
                ) from None  # fmt: skip

    def operation(self, operation: Operation) -> None:
        """Converts one operation."""
        special = _SPECIAL.get(operation.name)
        line = signature(operation.name.removeprefix("pd_op."))
        if special is not None:
            special(self, operation)
        elif line is not None:
            self.by_table(operation, line)
        else:
            self.unknown(operation)

    # Variables.

    def new_name(self, stem: str, number: int | None = None) -> str:
        """A name that no other variable has."""
        if number is None:
            self.count += 1
        name = f"{stem}_{number if number is not None else f'new_{self.count}'}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def declare(self, name: str, type: Type, block: BlockDesc | None = None, kind: VarType | None = None) -> VarDesc:
        """Declares a variable."""
        var = VarDesc(name) if kind is None else VarDesc(name, kind)
        if kind is None:
            if type.dtype:
                var.set_dtype(dtypes.var_type(type.dtype))
            var.set_shape(type.shape)
        return (block or self.block).add_var(var)

    def result(self, operation: Operation, value: Value, dtype: str = "") -> list[str]:
        """Declares the variables of a result; several for a vector."""
        stem = operation.name.partition(".")[2].strip("_")
        self.types[value.number] = value.type
        if value.type.items is None:
            name = self.names[value.number] = self.new_name(stem, value.number)
            self.declare(name, Type(dtype or value.type.dtype, value.type.shape))
            return [name]
        numbers = []
        for i, item in enumerate(value.type.items):
            number = -(value.number << 16 | i) - (1 << 40)  # numbers that no file has
            self.names[number] = self.new_name(f"{stem}_{value.number}", i)
            self.types[number] = item
            self.declare(self.names[number], item)
            numbers.append(number)
        self.vectors[value.number] = numbers
        return [self.names[n] for n in numbers]

    def tensor(self, number: int) -> str:
        """The variable of a value; a constant becomes an operator here."""
        if number in self.names:
            return self.names[number]
        constant = self.constants.get(number)
        if constant is None:
            raise EnforceNotMet(
                f"{self.module.path} is damaged: value {number} is used, and nothing computes it.",
                expected="the number of a value", received=number, hint="export it again.",
            )  # fmt: skip
        for block in self.block.chain():
            if (block.idx, number) in self.written:
                return self.written[block.idx, number]
        name = self.written[self.block.idx, number] = self.new_name("constant", number)
        self.declare(name, constant.type)
        self.constant_operator(name, constant)
        return name

    def constant_operator(self, name: str, constant: _Constant) -> None:
        """Appends what computes a constant."""
        values, dtype = constant.values, constant.type.dtype
        number = int(dtypes.var_type(dtype))
        if len(set(map(repr, values))) == 1 or not values:
            value = values[0] if values else 0
            whole = isinstance(value, float) and value.is_integer() and "int" in dtype
            attrs = {"shape": constant.shape, "dtype": number, "value": float(value),
                     "str_value": repr(int(value) if whole else value), "force_cpu": False}  # fmt: skip
            return self.append("fill_constant", {}, {"Out": [name]}, attrs)
        slot = {"bool": "bool_values", "int32": "int32_values", "int64": "int64_values"}.get(dtype, "fp32_values")
        convert: Callable[[Any], Any] = float if slot == "fp32_values" else int
        attrs = {"shape": constant.shape, "dtype": number, slot: [convert(v) for v in values]}
        return self.append("assign_value", {}, {"Out": [name]}, attrs)

    def tensors(self, number: int) -> list[str]:
        """The variables of a value: several of a vector, none of an operand that is left out."""
        if number == 0:
            return []
        if number in self.vectors:
            return [self.tensor(n) for n in self.vectors[number]]
        return [self.tensor(number)]

    # Operators.

    def append(
        self, kind: str, ins: dict[str, list[str]], outs: dict[str, list[str]], attrs: dict[str, Any],
    ) -> None:  # fmt: skip
        """Appends an operator; attributes get the types that its definition declares."""
        declared = get_op(kind).attrs if has_op(kind) else {}
        types, values = {}, {}
        for name, value in attrs.items():
            spec = declared.get(name)
            if spec is not None:
                types[name], values[name] = spec.number, spec.convert(kind, name, value)
            elif value is not None:
                values[name] = value
        values["op_namescope"] = self.scope
        self.block.append_op(OpDesc(kind, ins, outs, values, types))

    def by_table(self, operation: Operation, line: Signature) -> None:
        """Appends the operator of a line of the table."""
        declared = get_op(line.operator).attrs if has_op(line.operator) else None
        attrs: dict[str, Any] = {}
        for name, value in operation.attrs.items():
            name = line.renamed.get(name, name)
            if name in DROPPED or name in line.dropped:
                continue
            if declared is not None and name not in declared:
                self.done.dropped[f"{operation.name.partition('.')[2]}.{name}"] += 1
                if value:  # false, 0 or empty changes nothing
                    self.done.unknown[f"{operation.name} with {name} {value}"] += 1
                continue
            attrs[name] = _dtype_number(value) if name.endswith("dtype") else value
        ins: dict[str, list[str]] = {}
        given = dict(zip(line.operands, operation.operands, strict=False))
        for operand, number in given.items():
            if operand.attr and not self.constant_operand(operand, number, attrs, ins):
                self.done.unknown[f"{operation.name} with a computed {operand.attr}"] += 1
            elif not operand.attr and operand.slot and number:
                ins[operand.slot] = self.tensors(number)
        for name, of in line.empty.items():
            attrs[name] = not attrs.get(of)
        for name, slot in line.dtypes.items():
            number = next(n for operand, n in given.items() if operand.slot == slot)
            attrs[name] = int(dtypes.var_type(self.types[number].dtype))
        attrs |= line.fixed
        if declared is not None:
            attrs = {
                n: v[0] if isinstance(v, list) and len(v) == 1 and not declared[n].is_list else
                [v] if declared[n].is_list and not isinstance(v, list) else v
                for n, v in attrs.items() if n in declared or n in line.fixed
            }  # fmt: skip
        outs: dict[str, list[str]] = {}
        casts = []
        for output, value in zip(line.results, operation.results, strict=False):
            if output.input:
                self.names[value.number] = ins[output.input][0]
                self.types[value.number] = value.type
                outs[output.slot] = ins[output.input]
            elif output.slot:
                outs[output.slot] = self.result(operation, value)
                if output.dtype and output.dtype != value.type.dtype:
                    raw = self.new_name("raw", value.number)
                    self.declare(raw, Type(output.dtype, value.type.shape))
                    casts.append((raw, outs[output.slot], output.dtype, value.type.dtype))
                    outs[output.slot] = [raw]
        for output in line.results[len(operation.results) :]:
            name = self.new_name(output.slot.lower(), operation.results[0].number)
            shape = self.types.get(operation.operands[0], Type()).shape
            self.declare(name, Type(operation.results[0].type.dtype, (0, *shape)))
            outs[output.slot] = [name]
        self.append(line.operator, ins, outs, attrs)
        for raw, into, old, new in casts:
            self.cast(raw, into[0], old, new)

    def cast(self, name: str, into: str, old: str, new: str) -> None:
        """Appends a cast."""
        kinds = {"in_dtype": int(dtypes.var_type(old)), "out_dtype": int(dtypes.var_type(new))}
        self.append("cast", {"X": [name]}, {"Out": [into]}, kinds)

    def constant_operand(
        self, operand: Operand, number: int, attrs: dict[str, Any], ins: dict[str, list[str]]
    ) -> bool:  # fmt: skip
        """Puts an operand into an attribute, or where its value is not known, into a slot; False if there is none."""
        if number in self.constants:
            constant = self.constants[number]
            attrs[operand.attr] = constant.values if constant.type.shape else constant.values[0]
        elif number in self.vectors:
            parts = [self.constants.get(n) for n in self.vectors[number]]
            attrs[operand.attr] = [-1 if part is None else part.values[0] for part in parts]
            if any(part is None for part in parts):
                if not operand.list_slot:
                    return False
                ins[operand.list_slot] = self.tensors(number)
        elif number:
            if not operand.slot:
                return False
            ins[operand.slot] = self.tensors(number)
        return True

    def unknown(self, operation: Operation) -> None:
        """Appends an operation without a counterpart under its own name: it is drawn, and cannot run."""
        self.done.unknown[operation.name] += 1
        ins = {f"operand_{i}": self.tensors(n) for i, n in enumerate(operation.operands) if n}
        outs = {f"result_{i}": self.result(operation, v) for i, v in enumerate(operation.results)}
        attrs = {n: v for n, v in operation.attrs.items() if n not in DROPPED and not isinstance(v, dict)}
        self.append(operation.name.partition(".")[2], ins, outs, attrs)

    # Operations that have no line.

    def parameter(self, operation: Operation) -> None:
        """A parameter: a persistable variable of block 0."""
        (value,) = operation.results
        name = self.names[value.number] = str(operation.attrs["parameter_name"])
        self.types[value.number] = value.type
        var = self.declare(name, value.type, self.desc.blocks[0])
        var.set_persistable(operation.attrs["persistable"])
        var.set_is_parameter(operation.attrs["persistable"])
        var.set_stop_gradient(not operation.attrs["trainable"])

    def data(self, operation: Operation) -> None:
        """A variable that is fed."""
        (value,) = operation.results
        name = self.names[value.number] = str(operation.attrs["name"])
        self.types[value.number] = value.type
        var = self.declare(name, value.type)
        var.set_is_data(True)
        var.set_need_check_feed(True)
        self.done.feeds.append(name)

    def fetch(self, operation: Operation) -> None:
        """A value that is fetched."""
        self.fetched[int(operation.attrs["col"])] = operation.operands[0]

    def full(self, operation: Operation) -> None:
        """A tensor of one value."""
        shape = operation.attrs.get("shape", [])
        self.constant(operation, [operation.attrs["value"]] if max(shape, default=0) < 2 else None, shape)

    def constant(self, operation: Operation, values: Sequence[Any] | None, shape: list[int]) -> None:
        """Notes a constant; a large one becomes an operator at once."""
        (value,) = operation.results
        self.types[value.number] = value.type
        if values is None:
            name = self.names[value.number] = self.new_name("constant", value.number)
            self.declare(name, value.type)
            self.constant_operator(name, _Constant([operation.attrs["value"]], value.type, shape))
            return
        cast: Callable[[Any], Any] = {"bool": bool, "float": float}.get(value.type.dtype.rstrip("0123456789"), int)
        self.constants[value.number] = _Constant([cast(v) for v in values], value.type, shape)

    def full_int_array(self, operation: Operation) -> None:
        """A list of numbers."""
        values = operation.attrs["value"]
        self.constant(operation, values, [len(values)])

    def assign_value(self, operation: Operation) -> None:
        """A tensor of given values."""
        self.constant(operation, operation.attrs["values"], [int(n) for n in operation.attrs["shape"]])

    def combine(self, operation: Operation) -> None:
        """Several values as one vector."""
        self.vectors[operation.results[0].number] = list(operation.operands)

    def split(self, operation: Operation) -> None:
        """The values of a vector."""
        for value, number in zip(operation.results, self.items(operation.operands[0]), strict=True):
            self.alias(value, number)

    def slice(self, operation: Operation) -> None:
        """One value of a vector."""
        self.alias(operation.results[0], self.items(operation.operands[0])[int(operation.attrs["index"])])

    def items(self, number: int) -> list[int]:
        """The values of a vector, which must be one."""
        if number not in self.vectors:
            raise EnforceNotMet(f"{self.module.path} is damaged: value {number} is no vector.", hint="export it again.")
        return self.vectors[number]

    def alias(self, value: Value, number: int) -> None:
        """Another number of a value."""
        self.types[value.number] = value.type
        if number in self.constants:
            self.constants[value.number] = self.constants[number]
        else:
            self.names[value.number] = self.tensor(number)

    def quantize(self, operation: Operation) -> None:
        """An operation whose largest whole number becomes a number of bits; Paddle 3 itself reads no ``qmin``."""
        largest = int(operation.attrs["qmax"])
        bits = largest.bit_length() + 1
        if largest != (1 << bits - 1) - 1:
            self.done.unknown[f"{operation.name} with qmax {largest}"] += 1
        line = signature(operation.name.removeprefix("pd_op."))
        assert line is not None
        self.by_table(replace(operation, attrs=operation.attrs | {"bit_length": bits}), line)

    def deformable(self, operation: Operation) -> None:
        """A convolution with offsets; without a mask it is another operator."""
        line = signature("deformable_conv")
        assert line is not None
        masked = len(operation.operands) == 4 and operation.operands[3]
        self.by_table(operation, line if masked else replace(line, operator="deformable_conv_v1"))

    # Blocks.

    def branch(self, operation: Operation) -> None:
        """``if``: both blocks as conditional blocks, and a choice for each result, as Paddle 2 exports it."""
        condition = self.tensor(operation.operands[0])
        before, shape = condition, self.types[operation.operands[0]].shape
        chosen = []
        yes_block, no_block = operation.blocks
        for i, block in enumerate((yes_block, no_block)):
            outs = [self.new_name("branch", v.number) for v in operation.results]
            for name, value in zip(outs, operation.results, strict=True):
                self.declare(name, value.type)
            if i == 1:
                negated = self.new_name("logical_not")
                self.declare(negated, Type("bool", shape))
                self.append("logical_not", {"X": [condition]}, {"Out": [negated]}, {})
                condition = negated
            self.conditional_block(condition, block, outs)
            chosen.append(outs)
        if not operation.results:
            return
        mask = self.new_name("mask")
        self.declare(mask, Type("int32", shape))
        self.cast(before, mask, "bool", "int32")
        for value, yes, no in zip(operation.results, *chosen, strict=True):
            (name,) = self.result(operation, value)
            self.append("select_input", {"X": [no, yes], "Mask": [mask]}, {"Out": [name]}, {})

    def conditional_block(self, condition: str, block: Block, outs: list[str]) -> None:
        """Appends a conditional block that assigns what its block yields."""
        inner = self.inside(block)
        for name, number in zip(outs, inner.yielded, strict=True):
            self.append_inside(inner.desc, "assign", {"X": [inner.name(self, number)]}, {"Out": [name]})
        scope = self.new_name("scope")
        self.declare(scope, Type(), kind=VarType.STEP_SCOPES)
        op = OpDesc(
            "conditional_block", {"Cond": [condition], "Input": []}, {"Out": outs, "Scope": [scope]},
            {"is_scalar_condition": True, "op_namescope": self.scope},
        )  # fmt: skip
        op.set_block_attr("sub_block", inner.desc)
        self.block.append_op(op)
        reads, _ = outer_names(self.desc, self.block, op)
        op.set_input("Input", sorted(reads - {condition, EMPTY, *outs}))

    def loop(self, operation: Operation) -> None:
        """``while``: variables that the body assigns anew, as Paddle 2 exports it."""
        start, *initial = operation.operands
        condition = self.new_name("condition")
        self.declare(condition, self.types.get(start, Type("bool")))
        self.append("assign", {"X": [self.tensor(start)]}, {"Out": [condition]}, {})
        variables = []
        for value, number in zip(operation.results, initial, strict=True):
            (name,) = self.result(operation, value)
            self.append("assign", {"X": [self.tensor(number)]}, {"Out": [name]}, {})
            variables.append(name)
        (body,) = operation.blocks
        for argument, name in zip(body.arguments, variables, strict=True):
            self.names[argument.number], self.types[argument.number] = name, argument.type
        inner = self.inside(body)
        values = [inner.name(self, number) for number in inner.yielded]
        targets = [condition, *variables]
        for i, (value_name, target) in enumerate(zip(values, targets, strict=True)):
            if value_name in targets and value_name != target:  # it may be assigned before it is read
                values[i] = self.new_name("copy")
                self.declare(values[i], self.types[inner.yielded[i]], inner.desc)
                self.append_inside(inner.desc, "assign", {"X": [value_name]}, {"Out": [values[i]]})
        for value_name, target in zip(values, targets, strict=True):
            if value_name != target:
                self.append_inside(inner.desc, "assign", {"X": [value_name]}, {"Out": [target]})
        scopes = self.new_name("scopes")
        self.declare(scopes, Type(), kind=VarType.STEP_SCOPES)
        op = OpDesc(
            "while", {"Condition": [condition], "X": []}, {"Out": targets, "StepScopes": [scopes]},
            {"is_test": True, "op_namescope": self.scope},
        )  # fmt: skip
        op.set_block_attr("sub_block", inner.desc)
        self.block.append_op(op)
        reads, _ = outer_names(self.desc, self.block, op)
        op.set_input("X", sorted(reads | set(variables) - {condition}))

    def inside(self, block: Block) -> "_Inside":
        """Converts the block of an operation; what it yields is still to be used."""
        outer, scope = self.block, self.scope
        self.block = inner = self.desc.append_block(outer)
        if not block.operations or block.operations[-1].name != "cf.yield":
            raise EnforceNotMet(f"{self.module.path} is damaged: a block yields nothing.", hint="export it again.")
        self.operations(block)
        self.block, self.scope = outer, scope
        return _Inside(inner, block.operations[-1].operands)

    def append_inside(self, block: BlockDesc, kind: str, ins: dict[str, list[str]], outs: dict[str, list[str]]) -> None:
        """Appends an operator to another block than the current one."""
        self.block, outer = block, self.block
        self.append(kind, ins, outs, {})
        self.block = outer

    def ignore(self, operation: Operation) -> None:
        """The end of a block; what runs the block reads its operands."""


@dataclass(frozen=True, slots=True)
class _Inside:
    """A converted block, and the values that it yields."""

    desc: BlockDesc
    yielded: tuple[int, ...]

    def name(self, converter: _Converter, number: int) -> str:
        """The variable of a value in the block."""
        converter.block, outer = self.desc, converter.block
        name = converter.tensor(number)
        converter.block = outer
        return name


def _dtype_number(value: Any) -> Any:
    """The number of a dtype that PIR names; -1 for an undefined one."""
    if not isinstance(value, str):
        return value
    return -1 if value.startswith("Undefined") else int(dtypes.var_type(value))


_SPECIAL: dict[str, Callable[[_Converter, Operation], None]] = {
    "builtin.parameter": _Converter.parameter,
    "builtin.combine": _Converter.combine,
    "builtin.split": _Converter.split,
    "builtin.slice": _Converter.slice,
    "cf.yield": _Converter.ignore,
    "pd_op.data": _Converter.data,
    "pd_op.fetch": _Converter.fetch,
    "pd_op.full": _Converter.full,
    "pd_op.full_int_array": _Converter.full_int_array,
    "pd_op.assign_value": _Converter.assign_value,
    "pd_op.assign_value_": _Converter.assign_value,
    "pd_op.deformable_conv": _Converter.deformable,
    "pd_op.quantize_linear": _Converter.quantize,
    "pd_op.dequantize_linear": _Converter.quantize,
    "pd_op.if": _Converter.branch,
    "pd_op.while": _Converter.loop,
}
#: Operations without a line in the table of signatures, by their names without a dialect.
STRUCTURAL = tuple(sorted({n.partition(".")[2].strip("_") for n in _SPECIAL} - LINES.keys()))
