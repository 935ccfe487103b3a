"""Arguments are checked where they enter: a function's type annotations are the declaration.

`checked` compiles the annotations of a function, or of a class's public methods, into kinds at the first call. A kind
accepts a value, converts another spelling of it (a numpy number, an array of sizes), or refuses it; a refusal is an
`ArgumentError` with the argument, what is expected, what came, the user's line and a hint. A type that Python cannot
spell is ``Annotated[type, Rule(...)]``, for example ``values.dtypes.DTypeLike``.
"""

from __future__ import annotations

import inspect
import operator
import reprlib
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import islice
from typing import Annotated, Any, Never, NoReturn, TypeVar, cast

import numpy as np

from fluidnb.errors import ArgumentError, FluidError, near

F = TypeVar("F")

#: An argument that is checked: its name, its place, the types that need no look, the conversion.
_Row = tuple[str, int, frozenset[type], "Convert"]
#: Forms of calls (how many by position, which by name) that one function remembers.
FORMS = 100
#: Elements that an iterator without a length may give where a list is expected.
LIMIT = 1_000_000
#: Whether a list of one Variable is accepted as the Variable, as Fluid's operators did: set by `compat.install`.
lists_of_one = False
#: What a conversion gives for a value that it refuses.
NO: Any = type("_No", (), {"__repr__": lambda self: "NO"})()
Convert = Callable[[Any], Any]


class Kind:
    """Declares the kinds of value that an argument accepts."""

    __slots__ = ("convert", "exact", "hint", "many", "one")

    def __init__(self, one: str, many: str, convert: Convert, exact: Collection[type] = (), hint: str = "") -> None:
        self.one, self.many, self.convert, self.exact, self.hint = one, many, convert, frozenset(exact), hint


class Rule:
    """A named kind that Python's types cannot spell; ``accepts`` None leaves it to the type in ``Annotated``."""

    __slots__ = ("accepts", "hint", "many", "one")

    def __init__(self, one: str, accepts: Callable[[Any], bool] | None = None, many: str = "", hint: str = "") -> None:
        self.one, self.accepts, self.many, self.hint = one, accepts, many or f"{one.partition(' ')[2]}s", hint


def _item(value: Any) -> Any:
    """The number inside an array of one element; the value itself otherwise."""
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "biuf":
        return value.item()
    return value


#: Types of which no value is a number: known at once, because most arguments that may be numbers may be lists too.
_NO_NUMBERS = frozenset((str, bytes, list, tuple, dict, types.NoneType))


def _int(value: Any) -> Any:
    if type(value) is int:
        return value if -(2**63) <= value < 2**64 else NO
    if type(value) in _NO_NUMBERS:
        return NO
    value = _item(value)
    if isinstance(value, float | np.floating):  # a quotient of old Python
        value = float(value)
        value = int(value) if value == value and abs(value) < 2**63 and value == int(value) else NO
    elif isinstance(value, np.bool_):
        value = bool(value)
    elif not isinstance(value, int):
        try:
            value = operator.index(value)
        except TypeError:
            return NO
    return value if value is NO or -(2**63) <= value < 2**64 else NO


def _float(value: Any) -> Any:
    if type(value) in _NO_NUMBERS:
        return NO
    value = _item(value)
    if isinstance(value, int):
        return value if abs(value) < 2**1023 else NO
    if isinstance(value, float | np.number | np.bool_):
        return NO if isinstance(value, np.complexfloating) else value
    if isinstance(value, str | bytes | np.ndarray) or not hasattr(type(value), "__float__"):
        return NO
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return NO


def _bool(value: Any) -> Any:
    value = _item(value)
    return value if value is None or isinstance(value, bool | int | np.bool_ | np.integer) else NO


def _str(value: Any) -> Any:
    if type(value) is str and value.isascii():
        return value
    if not isinstance(value, str):
        return NO
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:  # half of a surrogate pair: no file can hold it
            return NO
    return value


def _is(cls: type | tuple[type, ...]) -> Convert:
    return lambda value: value if isinstance(value, cls) else NO


_NONE = Kind("None", "None", _is(types.NoneType), {types.NoneType})
_SIMPLE: dict[Any, Kind | None] = {
    int: Kind("an int", "ints", _int, {bool}),
    float: Kind("a number", "numbers", _float, {float, bool}),
    bool: Kind("True or False", "True or False", _bool, {bool}),
    str: Kind("a text", "texts", _str),
    bytes: Kind("bytes", "bytes", _is((bytes, bytearray, memoryview))),
    None: _NONE, types.NoneType: _NONE, Any: None, object: None,
}  # fmt: skip
_ORDERED: tuple[Any, ...] = (Sequence, list, tuple)
_UNORDERED: tuple[Any, ...] = (Iterable, Collection, Iterator, set, frozenset)


def kind_of(annotation: Any) -> Kind | None:
    """The kind that an annotation declares; None for anything at all."""
    try:
        if annotation in _SIMPLE:
            return _SIMPLE[annotation]
    except TypeError:  # not hashable
        return None
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _ruled(kind_of(args[0]), [a for a in args[1:] if isinstance(a, Rule)])
    if origin in (types.UnionType, typing.Union):
        return _union([kind_of(a) for a in args])
    if origin is typing.Literal:
        shown = _either([repr(a) for a in args])
        return Kind(shown, shown, lambda value: value if type(value) is not np.ndarray and value in args else NO)
    base = origin or annotation
    if base in _ORDERED or base in _UNORDERED:
        items = [a for a in args if a is not ...]
        if base is tuple and len(items) > 1 and ... not in args:
            return _row([kind_of(a) for a in items])
        return _list(kind_of(items[0]) if items else None, base in _UNORDERED)
    if base is Mapping or base is dict:
        return _mapping([kind_of(a) for a in args] or [None, None])
    if base is Callable or annotation is Callable:
        return Kind("a function", "functions", lambda value: value if callable(value) else NO)
    if base is np.ndarray:
        return Kind("an array", "arrays", _is(np.ndarray), {np.ndarray})
    if isinstance(base, type):
        article = "an" if base.__name__[0] in "AEIOU" else "a"
        protocol = getattr(base, "_is_protocol", False)
        if protocol:
            return None
        hint = getattr(base, "argument_hint", "")
        return Kind(f"{article} {base.__name__}", f"{base.__name__}s", _is(base), {base}, hint)
    return None


def _either(texts: Sequence[str]) -> str:
    texts = list(dict.fromkeys(texts))
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"


def _ruled(kind: Kind | None, rules: Sequence[Rule]) -> Kind | None:
    if not rules:
        return kind

    def convert(value: Any) -> Any:
        if kind is not None and type(value) not in kind.exact:
            value = kind.convert(value)
        if value is NO or any(rule.accepts is not None and not rule.accepts(value) for rule in rules):
            return NO
        return value

    exact = kind.exact if kind is not None and all(rule.accepts is None for rule in rules) else ()
    return Kind(rules[0].one, rules[0].many, convert, exact, rules[0].hint)


def _union(kinds: Sequence[Kind | None]) -> Kind | None:
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None
    known.sort(key=lambda kind: kind is _NONE)

    def convert(value: Any) -> Any:
        for kind in known:
            taken = kind.convert(value)
            if taken is not NO:
                return taken
        return NO

    exact = frozenset().union(*(kind.exact for kind in known))
    hint = known[0].hint
    return Kind(_either([k.one for k in known]), _either([k.many for k in known]), convert, exact, hint)


def _elements(value: Any, unordered: bool) -> Any:
    """The elements of a list, an array, a range, what gives elements; `NO` for a text or a thing."""
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, str | bytes | bytearray | memoryview | Mapping | type):
        return NO
    if isinstance(value, np.ndarray):
        return value.tolist() if value.ndim else NO
    if not hasattr(type(value), "__iter__") or not unordered and isinstance(value, set | frozenset):
        return NO
    if hasattr(type(value), "__len__"):
        return value
    try:
        taken = list(islice(value, LIMIT + 1))
    except FluidError:  # a Variable, which has no value yet
        return NO
    return taken if len(taken) <= LIMIT else NO


def _list(kind: Kind | None, unordered: bool) -> Kind:
    sizes = kind is _SIMPLE[int]

    def convert(value: Any) -> Any:
        if sizes and (type(value) is list or type(value) is tuple):  # shapes, which come most often
            for row in value:
                if type(row) is not int or not -(2**63) <= row < 2**64:
                    break
            else:
                return value
        if unordered and kind is None and not isinstance(value, str | bytes | type):
            return value if hasattr(type(value), "__iter__") and getattr(value, "ndim", True) else NO
        rows = value if type(value) is list or type(value) is tuple else _elements(value, unordered)
        if rows is NO or kind is None:
            return rows
        taken, same, exact, convert_one = [], isinstance(rows, list | tuple), kind.exact, kind.convert
        for row in rows:
            one = row if type(row) in exact else convert_one(row)
            if one is NO:
                return NO
            same = same and one is row
            taken.append(one)
        return rows if same else tuple(taken) if isinstance(rows, tuple) else taken

    plural = "values" if kind is None else kind.many
    return Kind(f"a list of {plural}", f"lists of {plural}", convert, hint="" if kind is None else kind.hint)


def _row(kinds: Sequence[Kind | None]) -> Kind:
    def convert(value: Any) -> Any:
        if not isinstance(value, list | tuple) or len(value) != len(kinds):
            return NO
        taken = tuple(v if k is None else k.convert(v) for k, v in zip(kinds, value, strict=True))
        return NO if any(v is NO for v in taken) else taken

    parts = ", ".join("a value" if kind is None else kind.one for kind in kinds)
    return Kind(f"a tuple ({parts})", f"tuples ({parts})", convert)


def _mapping(kinds: Sequence[Kind | None]) -> Kind:
    keys, values = kinds

    def convert(value: Any) -> Any:
        if type(value) is not dict and not isinstance(value, Mapping):
            return NO
        for kind, row in ((keys, value.keys()), (values, value.values())):
            if kind is not None:
                for one in row:
                    if kind.convert(one) is NO:
                        return NO
        return value

    parts = "" if keys is None else f" from {keys.many}" + ("" if values is None else f" to {values.many}")
    return Kind(f"a dict{parts}", f"dicts{parts}", convert)


def shown(value: Any) -> str:
    """A value as a short text with its type, for messages."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = 60
    try:
        text = " ".join(short.repr(value).split())
    except Exception:  # a broken repr of the user's own
        text = f"<{type(value).__name__}>"
    if not text.isprintable():
        text = text.encode("ascii", "backslashreplace").decode()
    return f"{text} ({type(value).__name__})"


class Signature:
    """The kinds of a function's arguments, compiled when it is called first."""

    __slots__ = ("_both", "_function", "_kinds", "_method", "_plans")

    def __init__(self, function: Callable[..., Any], method: bool = False) -> None:
        self._function, self._method = function, method
        self._kinds: dict[str, Kind] | None = None
        #: (how many by position, names of the others) -> what is checked: calls of one form fit the signature alike
        self._plans: dict[Any, tuple[list[_Row], list[_Row]]] = {}
        self._both = self.caller(lambda *args, **kwargs: (args, kwargs))

    def compile(self) -> list[str]:
        """Read the annotations; those that nothing in the module explains, whose arguments are taken as they are."""
        parameters = list(inspect.signature(self._function).parameters.values())
        owner = self._owner()
        names = _Names(vars(sys.modules[inspect.unwrap(self._function).__module__]))
        unknown: list[str] = []
        kinds: dict[str, Kind] = {}
        for p in parameters:
            if p.name == "self" and owner is not None and not self._function.__name__.startswith("_"):
                kinds[p.name] = cast(Kind, kind_of(owner))
            if p.annotation is p.empty or p.kind is p.VAR_KEYWORD:
                continue
            try:
                annotation = eval(p.annotation, {}, names) if isinstance(p.annotation, str) else p.annotation
            except NameError:
                unknown.append(f"{p.name}: {p.annotation}")
                continue
            kind = kind_of(annotation)
            if kind is not None and p.default is None and kind.convert(None) is NO:
                kind = _union([kind, _NONE])
            if kind is not None:
                kinds[p.name] = kind
        self._kinds = kinds
        return unknown

    def checked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, as the function uses them."""
        return self._both(*args, **kwargs)  # type: ignore[no-any-return]

    def caller(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that checks arguments, then calls another: one Python call for both, because all layers do it."""
        plans = self._plans

        def call(*args: Any, **kwargs: Any) -> Any:
            form = (len(args), *kwargs) if kwargs else len(args)
            try:
                by_position, by_name = plans[form]
            except KeyError:
                by_position, by_name = self._plan(form, args, kwargs)
            for name, at, exact, convert in by_position:
                value = args[at]
                if type(value) not in exact:
                    taken = convert(value)
                    if taken is not value:
                        if taken is NO:
                            taken = self._inner(name, value, args)
                        args = (*args[:at], taken, *args[at + 1 :])
            for name, _, exact, convert in by_name:
                value = kwargs[name]
                if type(value) not in exact:
                    taken = convert(value)
                    if taken is not value:
                        kwargs[name] = self._inner(name, value, args) if taken is NO else taken
            return function(*args, **kwargs)

        return call

    def _plan(self, form: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[_Row], list[_Row]]:
        """Compiles the checks for calls of this form; raises if it does not fit the signature."""
        if self._kinds is None:
            self.compile()
        kinds = cast("dict[str, Kind]", self._kinds)
        signature = inspect.signature(self._function)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            self.misfit(args, kwargs, error)
        parameters = signature.parameters.values()
        placed = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        rest = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
        rows = [*placed, *rest * (len(args) - len(placed))][: len(args)], [n for n in kwargs if n not in rest]
        by_position, by_name = (
            [(n, at, kinds[n].exact, kinds[n].convert) for at, n in enumerate(row) if n in kinds] for row in rows
        )
        plan = by_position, by_name
        if len(self._plans) < FORMS:
            self._plans[form] = plan
        return plan

    def name(self, args: tuple[Any, ...] = ()) -> str:
        """The function as users call it: ``fc``, ``Adam``, ``Executor.run``."""
        *outer, last = self._function.__qualname__.split(".<locals>.")[-1].split(".")
        if last in ("__init__", "__call__"):
            return _public(type(args[0])) if args and self._method else outer[-1]
        owner = self._owner()
        if owner is not None:  # a base class's method is called on the class that users know
            receiver = args[0] if args and isinstance(args[0], type) else type(args[0] if args else None)
            outer = [_public(receiver if issubclass(receiver, owner) else _derived(owner))]
        return ".".join([*outer, last])

    def _owner(self) -> type | None:
        """The class that defines a method, once its module has it."""
        outer = self._function.__qualname__.rpartition(".")[0]
        owner = getattr(sys.modules.get(self._function.__module__), outer, None) if self._method else None
        return owner if isinstance(owner, type) else None

    def _inner(self, name: str, value: Any, args: tuple[Any, ...]) -> Any:
        """The Variable in a list of one, where old rules hold; anything else is refused."""
        kind = cast("dict[str, Kind]", self._kinds)[name]
        if lists_of_one and type(value) is list and len(value) == 1 and type(value[0]).__name__ == "Variable":
            taken = kind.convert(value[0])
            if taken is not NO:
                return taken
        if name == "self":  # called on the class
            outer, _, last = self.name(args).rpartition(".")
            raise ArgumentError(
                f"{self.name(args)} is a method of a {outer} object.", expected=f"a {outer}", received=shown(value),
                hint=f"call {last} on an object of the class.",
            )  # fmt: skip
        raise ArgumentError(
            f"{name} of {self.name(args)} must be {kind.one}.", expected=kind.one, received=shown(value),
            hint=self._hint(name, kind, value, args), argument=name,
        )  # fmt: skip

    def _hint(self, name: str, kind: Kind, value: Any, args: tuple[Any, ...]) -> str:
        """A hint with a call that works."""
        if isinstance(value, str) and not value.isprintable() and not value.isascii():
            return "the text has a character that no file can hold (half of a surrogate pair): write it anew."
        if isinstance(value, str):
            for read in (int, float):
                try:
                    number: Any = read(value)
                except ValueError:
                    continue
                if kind.convert(number) is not NO:
                    return f"write {name}={value.strip()}, without quotes."
        if isinstance(value, int | float | str) or type(value).__name__ in ("Variable", "Parameter"):
            if kind.convert([value]) is not NO:
                text = getattr(value, "name", None) or repr(value)
                return f"write {name}=[{text}]."
        if isinstance(value, list | tuple):
            names = [getattr(v, "name", v) for v in value]
            if names != list(value) and kind.convert(names) is not NO:
                return f"write {name}={names!r}."
        if isinstance(value, list | tuple) and len(value) == 1 and kind.convert(value[0]) is not NO:
            return f"write {name}={getattr(value[0], 'name', None) or repr(value[0])}, without brackets."
        if kind.hint:
            return kind.hint
        default = inspect.signature(self._function).parameters[name].default
        if default is not inspect.Parameter.empty:
            return f"left out, it is {default!r}."
        return f"call it as {self._call(args)}."

    def _call(self, args: tuple[Any, ...]) -> str:
        parameters = [p for p in self._parameters()[self._method :] if p.annotation not in (Never, "Never")]
        return f"{self.name(args)}({', '.join(str(p.replace(annotation=p.empty)) for p in parameters)})"

    def _parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self._function).parameters.values())

    def misfit(self, args: Any, kwargs: Mapping[str, Any], error: TypeError | None = None) -> NoReturn:
        """Raise what Python says of a call that does not fit the signature."""
        names = [p.name for p in self._parameters() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        takes_all = error is not None and any(p.kind is p.VAR_KEYWORD for p in self._parameters())
        unknown = [n for n in kwargs if n not in names] if not takes_all else []
        guess = near(unknown[0], names) if unknown else ""
        text = f"got an unexpected keyword argument {unknown[0]!r}" if unknown else str(error)
        raise ArgumentError(
            f"{self.name(args)}: {text}.", expected=self._call(args),
            received=_listed(args[self._method :], kwargs), hint=guess or f"call it as {self._call(args)}.",
        ) from None  # fmt: skip


def refuse_unknown(function: Callable[..., Any], receiver: object, unknown: Mapping[str, Any]) -> NoReturn:
    """Refuse the keywords that a method without other checks does not have, for one that is called very often.

    Such a method ends in ``**unknown: Never``: 15 ns a call, where `checked` takes 500.
    """
    Signature(function, method=True).misfit((receiver,), unknown)


def _derived(cls: type) -> type:
    """The class that users know of one that only serves as a part of it: Block of BlockOps."""
    while cls.__name__ not in getattr(sys.modules[cls.__module__], "__all__", ()) and len(cls.__subclasses__()) == 1:
        (cls,) = cls.__subclasses__()
    return cls


def _public(cls: type) -> str:
    """The ``argument_name`` of a class, or the shortest name in its package: ``Adam`` of ``AdamOptimizer``."""
    homes = [sys.modules.get(name) for name in (cls.__module__, cls.__module__.rpartition(".")[0])]
    names = [name for home in homes if home is not None for name, value in vars(home).items() if value is cls]
    return getattr(cls, "argument_name", "") or min([cls.__name__, *names], key=len)


def _listed(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    return ", ".join([*(shown(a) for a in args), *(f"{n}={shown(v)}" for n, v in kwargs.items())]) or "no arguments"


class _Names(dict[str, Any]):
    """The names of a module, and the public ones of the project, which a module may know for type checkers only."""

    def __missing__(self, name: str) -> Any:
        for module in ("fluidnb.program", "fluidnb.values", "fluidnb.proto.desc"):
            value = getattr(sys.modules.get(module), name, None)
            if value is not None:
                return value
        root = sys.modules["fluidnb"]
        if name not in root.__all__:  # where it is not, it would look for a close one
            raise KeyError(name)
        return getattr(root, name)


#: How many variables, places or levels one call may make.
MOST = 100_000
Count = Annotated[int, Rule(f"an int up to {MOST:,}", lambda n: n <= MOST)]


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters, without the cost of a signature: an import needs those of hundreds.

    Example:
        >>> def f(a, *args, b=1, **kwargs): ...
        >>> parameter_names(f)
        ['a', 'args', 'b', 'kwargs']
    """
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return list(inspect.signature(function).parameters)
    names, first = list(code.co_varnames), code.co_argcount
    last = first + code.co_kwonlyargcount
    starred = bool(code.co_flags & inspect.CO_VARARGS)
    double = bool(code.co_flags & inspect.CO_VARKEYWORDS)
    args, kwargs = names[last : last + starred], names[last + starred : last + starred + double]
    return [*names[:first], *args, *names[first:last], *kwargs]


def checked(target: F) -> F:
    """Check the arguments of a function, or of a class's public methods, by their annotations."""
    if isinstance(target, type):
        spelled: dict[Any, Any] = {}  # public methods, which Fluid spells with an underscore too
        for name, member in list(vars(target).items()):
            if name.startswith("_") and name not in ("__init__", "__call__"):
                if not name.startswith("__") and isinstance(member, types.FunctionType) and member in spelled:
                    setattr(target, name, spelled[member])
                continue
            if isinstance(member, types.FunctionType):
                spelled[member] = call = _checked(member, method=True)
                setattr(target, name, call)
            elif isinstance(member, staticmethod | classmethod):
                inner = _checked(member.__func__, method=isinstance(member, classmethod))
                setattr(target, name, type(member)(inner))
        return target
    inside = getattr(target, "__qualname__", "").rpartition(".<locals>.")[2]
    return cast(F, _checked(cast(Callable[..., Any], target), method="." in inside))


def _checked(function: Callable[..., Any], method: bool = False) -> Callable[..., Any]:
    if hasattr(function, "argument_kinds") or parameter_names(function) in (["self"], ["cls"]):
        return function
    signature = Signature(function, method)
    call = wraps(function)(signature.caller(function))
    call.argument_kinds = signature  # type: ignore[attr-defined]
    return call


class Checked:
    """The base of classes of which each has its arguments checked, with all that are derived in this project.

    Example:
        >>> fluid.optimizer.Adam(beta1="0.5")
        Traceback (most recent call last):
        fluidnb.errors.ArgumentError: beta1 of Adam must be a number.
          expected: a number
          received: '0.5' (str)
          hint:     write beta1=0.5, without quotes.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.partition(".")[0] == "fluidnb":
            checked(cls)
