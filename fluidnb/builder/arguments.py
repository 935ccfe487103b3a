"""The arguments of recipes: their kinds, and the values of the texts that users type for them."""

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from fluidnb.debug.expressions import tree_of
from fluidnb.errors import FluidError, OpTypeError
from fluidnb.op import InputSpec, OpDef, Slot, get_op, has_op
from fluidnb.op.attr import REQUIRED, Attr
from fluidnb.op.input_spec import declared
from fluidnb.program import Variable
from fluidnb.values import dtypes

#: Kinds that are chosen among the variables in reach.
INPUTS = ("variable", "variables")
#: annotation -> kind; any other is a ``value``, an expression that only the layer itself can judge
_KINDS = {
    "int": "int", "float": "float", "bool": "bool", "str": "string", "Sequence[int]": "ints",
    "Sequence[float]": "floats",
}  # fmt: skip
_LISTS = re.compile(r"(Sequence|list|tuple)\[Variable")
_ACTIVATIONS = ("relu", "sigmoid", "tanh", "softmax", "leaky_relu", "elu", "relu6", "softplus", "swish", "square")
_DTYPES = ("float32", "float64", "float16", "int64", "int32", "int16", "uint8", "bool")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a recipe.

    Example:
        >>> size = Argument("size", "int", "number of output features", True)
        >>> size.read("10", {}, "fc")
        ('10', 10)
    """

    name: str
    # ``variable``, ``variables``, ``int``, ``float``, ``bool``, ``string``, ``dtype``, ``ints``, ``floats``, ``sizes``
    # (a number or several) or ``value``
    kind: str
    doc: str = ""  # its documentation, a phrase
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()  # texts that fit; others may fit too
    takes_variable: bool = False  # whether a variable may stand for the value
    rule: Attr | None = None  # the operator's own rule about it
    specs: tuple[InputSpec, ...] = ()  # the values that an input takes; none for any value

    @property
    def is_input(self) -> bool:
        """Whether it is chosen among variables."""
        return self.kind in INPUTS

    @property
    def default_text(self) -> str:
        """The default as one would type it; empty where there is none."""
        if self.required or self.default is None:
            return ""
        return self.default if self.kind in ("string", "dtype") else str(self.default)

    def read(self, text: str, names: Mapping[str, Any], owner: str) -> tuple[str, Any]:
        """Parses a user's text to a value.

        Args:
            text: the typed text; a string needs no quotes.
            names: the Python names that it may mention.
            owner: the recipe's name, for messages.

        Returns:
            The source of the value, and the value; None for the value of a call, which is not made here.
        """
        text = text.strip()
        if self.kind in ("string", "dtype"):
            value: Any = text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
            source = json.dumps(value, ensure_ascii=False)
        else:
            source, value = text, self._value(text, names, owner)
        if isinstance(value, Variable) and (self.takes_variable or self.is_input or self.kind == "value"):
            return source, value
        if value is not None and (self.kind in ("string", "dtype") or "fluid." not in text or "(" not in text):
            self._check(value, owner)
        elif value is None and text == "None" and self.default is not None:
            self._check(None, owner)
        return source, value

    def _value(self, text: str, names: Mapping[str, Any], owner: str) -> Any:
        try:
            tree = tree_of(text)
        except SyntaxError:
            return text  # no expression: the check says what it should be
        if _calls_in(tree):
            return self._called(text, tree, owner)
        mentioned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if mentioned - names.keys():
            return text
        values = {name: names[name] for name in mentioned}
        if _computes(tree) and any(isinstance(value, Variable) for value in values.values()):
            return text  # it would append an operator
        try:
            return eval(compile(tree, "<argument>", "eval"), {}, values)
        except FluidError:
            raise
        except Exception:
            return text

    def _called(self, text: str, tree: ast.Expression, owner: str) -> None:
        """Accept only calls of ``fluid`` descriptions such as ``fluid.ParamAttr(...)``; others may have effects."""
        for node in _calls_in(tree):
            if not re.match(r"fluid\.(\w+\.)*\w+$", ast.unparse(node.func)):
                raise OpTypeError(
                    f"{self.name} of {owner} cannot be a call here.", expected="a value, a name, or fluid.…(…)",
                    received=text, hint="give it a name in a cell, then use the name.",
                )  # fmt: skip

    def _check(self, value: Any, owner: str) -> None:
        if value is None and self.default is None and not self.required:
            return
        if self.rule is not None:
            self.rule.convert(owner, self.name, value)
        elif self.kind == "dtype":
            dtypes.var_type(value)
        elif self.is_input:
            raise OpTypeError(
                f"{self.name} of {owner} must be a Variable.", expected="a Variable", received=f"{value!r}",
                hint="choose one of those in reach.",
            )  # fmt: skip
        elif self.kind != "value":
            kind = ("int" if isinstance(value, int) else "ints") if self.kind == "sizes" else self.kind
            default = REQUIRED if self.required or self.default is None or self.kind == "sizes" else self.default
            Attr(kind, default, self.doc.rstrip(".")).convert(owner, self.name, value)


def arguments_of(function: Any, owner: str, skip: tuple[str, ...] = ()) -> Iterator[Argument]:
    """The arguments of a function; the operator of the name ``owner`` describes those of the same names."""
    docs = argument_docs(inspect.getdoc(function) or "")
    own, definition = declared(function), get_op(owner) if has_op(owner) else None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in skip or parameter.kind is parameter.VAR_KEYWORD:
            continue
        parts = _members(evaluated(parameter.annotation, function))
        required = parameter.default is parameter.empty
        doc = docs.get(parameter.name, "")
        kind = _kind(parameter.name, parts)
        takes = own.get(parameter.name)
        about = _slot_or_attr(definition, parameter.name) if takes is None else _declaration(takes)
        rule = about if isinstance(about, Attr) else None
        yield Argument(
            parameter.name, kind, doc, required, None if required else parameter.default,
            takes if isinstance(takes, tuple) else _choices(parameter.name, kind, rule), "Variable" in parts,
            rule if rule is not None and rule.kind == kind and takes is None else None,
            about.specs if isinstance(about, Slot) else () if about is None or isinstance(about, Attr) else about,
        )  # fmt: skip


def slot_argument(slot: Slot) -> Argument:
    """The argument for an input slot of an operator."""
    return Argument(slot.name, INPUTS[slot.duplicable], slot.doc, not slot.dispensable, specs=slot.specs)


def attr_argument(name: str, attr: Attr) -> Argument:
    """The argument for an attribute of an operator."""
    kind = attr.kind if attr.kind in ("int", "float", "bool", "string", "ints", "floats") else "value"
    required = attr.default is REQUIRED
    default = None if required else attr.default
    return Argument(name, kind, attr.doc, required, default, tuple(map(str, attr.enum or ())), rule=attr)


def argument_docs(doc: str) -> dict[str, str]:
    """The documentation of each argument, from a docstring."""
    section = re.search(r"^Args:\n(.*?)(?:\n\n|\Z)", doc, re.DOTALL | re.MULTILINE)
    docs: dict[str, str] = {}
    name = ""
    for line in section[1].splitlines() if section else ():
        head = re.match(r" {4}(\w+): (.*)", line)
        if head:
            name, docs[head[1]] = head[1], head[2]
        elif name:
            docs[name] += " " + line.strip()
    return docs


def evaluated(annotation: Any, function: Any) -> Any:
    """An annotation of a function or of a class's constructor, which is text where its file puts it off."""
    if not isinstance(annotation, str):
        return annotation
    called = inspect.getattr_static(function, "__init__") if isinstance(function, type) else function
    return eval(annotation, inspect.unwrap(called).__globals__)


def _members(annotation: Any) -> list[str]:
    """The members of a union as texts; ``Variable`` for ``Loss`` and other annotated types."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _members(arguments[0])
    if origin in (Union, UnionType):
        return [text for member in arguments for text in _members(member)]
    if annotation in (None, NoneType):
        return ["None"]
    name = getattr(origin or annotation, "__name__", str(annotation))
    return [f"{name}[{', '.join(' | '.join(_members(a)) for a in arguments)}]" if arguments else name]


def _kind(name: str, parts: list[str]) -> str:
    if name == "dtype":
        return "dtype"
    if name == "act":
        return "string"
    if any(_LISTS.match(part) for part in parts):
        return "variables"
    rest = [part for part in parts if part not in ("None", "Variable") and not part.startswith("ndarray[")]
    if not rest and len(parts) > parts.count("None"):
        return "variable"
    if set(rest) == {"int", "Sequence[int]"}:
        return "sizes"
    return _KINDS.get(rest[0], "value") if len(rest) == 1 else "value"


def _slot_or_attr(definition: OpDef | None, name: str) -> Slot | Attr | None:
    """The slot or the attribute of an operator that an argument is called after."""
    if definition is None:
        return None
    slots = {slot.lower().replace("_", ""): slot for slot in definition.inputs}
    slot = slots.get(name.lower().replace("_", "")) or (slots.get("x") if name == "input" else None)
    return definition.inputs[slot] if slot else definition.attrs.get(name)


def _declaration(text: str | tuple[str, ...]) -> Slot | Attr | tuple[InputSpec, ...] | None:
    """The slot, the attribute or the specifications that `takes` declares; None for the choices of a string."""
    if isinstance(text, tuple):
        return None
    type, dot, name = text.partition(".")
    if not dot:
        return InputSpec.parse(text)
    definition = get_op(type)
    return definition.inputs[name] if name in definition.inputs else definition.attrs[name]


def _choices(name: str, kind: str, rule: Attr | None) -> tuple[str, ...]:
    if name == "act":
        return _ACTIVATIONS
    if kind == "dtype":
        return _DTYPES
    if kind == "string" and rule is not None and rule.enum is not None:
        return tuple(map(str, rule.enum))
    return ()


def _calls_in(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _computes(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript) for node in ast.walk(tree))
