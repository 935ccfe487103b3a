"""OpDesc: one operation, variables by name in slots and attributes by name."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fluidnb.errors import FluidError, NotBuiltYet, OpTypeError, OpValueError, near, typed
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto import hooks
from fluidnb.proto.attr_values import decode, encode, guess_type
from fluidnb.proto.wire import parse, text_of, uninitialized

if TYPE_CHECKING:
    from fluidnb.proto.block_desc import BlockDesc

#: Attributes with names of variables, which are renamed too.
NAMES_IN_ATTRS = ("op_role_var", "states", "ex_states", "skip_eager_deletion_vars")

#: How many sets of attributes are remembered, and how many bytes of one.
_SETS, _BYTES = 4096, 1024


class Attributes(NamedTuple):
    """The attributes of an operation as they were written once, for the next operation that gets the same.

    Most operations of a program share theirs, and writing them was a fifth of the time that building one takes.
    """

    data: bytes  # a message that has nothing else
    values: dict[str, Any]
    kinds: dict[str, int]
    lists: list[str]  # the attributes that are lists

    @classmethod
    def of(cls, desc: OpDesc) -> Attributes:
        """Those of an operation."""
        data = pb2.OpDesc(attrs=desc.pb.attrs).SerializePartialToString()
        lists = [name for name, value in desc.attrs.items() if isinstance(value, list)]
        return cls(data, _own_lists(dict(desc.attrs), lists), dict(desc.attr_types), lists)


#: What was asked for, as bytes -> what was written.
_remembered: dict[bytes, Attributes] = {}
#: The bytes of attributes, and of those that were added -> all of them.
_extended: dict[tuple[bytes, bytes], Attributes] = {}


class OpDesc:
    """The description of one operation.

    Reading is from plain dicts, decoded from the message at the first use; every edit goes to the message and to the
    dicts, and raises the program's version. Slots and attributes are written sorted by name; what was parsed keeps its
    bytes until it is edited.

    Args:
        optype: the operator's type.
        ins: slot -> names of the variables read.
        outs: slot -> names of the variables written.
        attrs: name -> value.
        types: name -> AttrType number, where the type that the value suggests is not the right one.

    Example:
        >>> op = OpDesc("scale", {"X": ["x"]}, {"Out": ["y"]}, {"scale": 2.0})
        >>> op.input("X"), op.attr("scale")
        (['x'], 2.0)
        >>> op
        OpDesc(scale: X=[x] -> Out=[y])
    """

    __slots__ = (
        "__weakref__", "_attrs", "_ins", "_kinds", "_outs", "_pb", "_type", "block", "saved", "shared", "view",
    )  # fmt: skip

    _pb: pb2.OpDesc | None
    _type: str
    #: The block that has the operation, None while it is in none.
    block: BlockDesc | None
    _ins: dict[str, list[str]] | None
    _outs: dict[str, list[str]] | None
    _attrs: dict[str, Any] | None
    _kinds: dict[str, int]

    #: The `Operator` over it, created at the first request.
    view: Any
    #: What a snapshot stored of it; None since the last edit.
    saved: Any
    #: Its attributes, where others may have the same; None since the last edit of one.
    shared: Attributes | None

    def __init__(
        self, optype: str = "", ins: Mapping[str, Sequence[str]] | None = None,
        outs: Mapping[str, Sequence[str]] | None = None, attrs: Mapping[str, Any] | None = None,
        types: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        self._pb = self.block = self.view = self.saved = self.shared = None
        self._type = type_name(optype) if optype else ""
        self._ins = _sorted_slots(ins) if ins else {}
        self._outs = _sorted_slots(outs) if outs else {}
        self._attrs, self._kinds = {}, {}
        if attrs:
            self._write_attrs(attrs, types or {})

    @classmethod
    def _made(
        cls, optype: str, ins: dict[str, list[str]], outs: dict[str, list[str]], attributes: Attributes | None
    ) -> OpDesc:
        """A new operation of names that other operations have, and of attributes that another one has."""
        self = cls.__new__(cls)
        self._pb = self.block = self.view = self.saved = self.shared = None
        self._type = optype
        self._ins = ins if len(ins) < 2 else dict(sorted(ins.items()))
        self._outs = outs if len(outs) < 2 else dict(sorted(outs.items()))
        self._attrs, self._kinds = {}, {}
        if attributes is not None:
            self._share(attributes)
        return self

    @classmethod
    def over(cls, pb: pb2.OpDesc, block: BlockDesc | None = None) -> OpDesc:
        """An OpDesc over a message, which it owns from now on."""
        self = cls.__new__(cls)
        self._pb, self._type, self.block = pb, pb.type, block
        self.view = self.saved = self.shared = None
        self._ins = self._outs = self._attrs = None
        return self

    @property
    def pb(self) -> pb2.OpDesc:
        """The message, made at the first use: building and running a program does not need it."""
        if self._pb is None:
            pb = pb2.OpDesc()
            if self._type:
                pb.type = self._type
            for container, slots in ((pb.inputs, self._ins), (pb.outputs, self._outs)):
                for slot, names in (slots or {}).items():
                    container.add(parameter=slot, arguments=names)
            if self.shared is not None:
                pb.MergeFromString(self.shared.data)
            else:
                for name, value in (self._attrs or {}).items():
                    encode(pb.attrs.add(), name, self._kinds[name], value)
            self._pb = pb  # whole: another thread may ask at the same time
        return self._pb

    @property
    def optype(self) -> str:
        """The operator's type."""
        return self._type

    def type(self) -> str:
        """The operator's type (Fluid's spelling of `optype`)."""
        return self._type

    def set_type(self, optype: str) -> None:
        """Changes the type; slots and attributes stay."""
        self.pb.type = self._type = type_name(optype)
        self._edited()

    def label(self) -> str:
        """The operation's name in errors: ``op 3 (clip) in block 0``, or ``op clip`` while it is in no block."""
        name = self._type or "without a type"
        if self.block is None:
            return f"op {name}"
        at = next((i for i, op in enumerate(self.block.ops) if op is self), "?")
        return f"op {at} ({name}) in block {self.block.idx}"

    def _edited(self) -> None:
        self.saved = None
        if self.block is not None:
            self.block.program.version += 1

    # Slots.

    @property
    def ins(self) -> dict[str, list[str]]:
        """Slot -> names of the variables read. To read only."""
        if self._ins is None:
            self._ins = {var.parameter: var.arguments[:] for var in self.pb.inputs}
        return self._ins

    @property
    def outs(self) -> dict[str, list[str]]:
        """Slot -> names of the variables written. To read only."""
        if self._outs is None:
            self._outs = {var.parameter: var.arguments[:] for var in self.pb.outputs}
        return self._outs

    def input(self, slot: str) -> list[str]:
        """The names of the variables in an input slot, empty for a slot that was left out on purpose.

        Example:
            >>> OpDesc("mul", {"X": ["x"], "Y": ["w"]}).input("Y")
            ['w']
        """
        return list(self._slot(self.ins, slot, "input"))

    def output(self, slot: str) -> list[str]:
        """The names of the variables in an output slot; as `input`."""
        return list(self._slot(self.outs, slot, "output"))

    def _slot(self, slots: dict[str, list[str]], slot: str, side: str) -> list[str]:
        try:
            return slots[slot]
        except KeyError:
            raise OpValueError(
                f'There is no {side} slot "{slot}".', op=self.label(), expected=f"one of {', '.join(slots) or 'none'}",
                hint=near(slot, slots),
            ) from None  # fmt: skip

    def set_input(self, slot: str, names: Sequence[str]) -> None:
        """Replaces the variables of an input slot; a single name may be a str.

        Example:
            >>> op = OpDesc("sum"); op.set_input("X", ["a", "b"]); op.input_arg_names()
            ['a', 'b']
        """
        _put_slot(self._pb and self._pb.inputs, self.ins, slot, _names(slot, names))
        self._edited()

    def set_output(self, slot: str, names: Sequence[str]) -> None:
        """Replaces the variables of an output slot; as `set_input`."""
        _put_slot(self._pb and self._pb.outputs, self.outs, slot, _names(slot, names))
        self._edited()

    def remove_input(self, slot: str) -> None:
        """Removes an input slot; an unknown one is ignored."""
        if self.ins.pop(slot, None) is not None:
            if self._pb is not None:
                drop_entry(self._pb.inputs, "parameter", slot)
            self._edited()

    def remove_output(self, slot: str) -> None:
        """Removes an output slot; an unknown one is ignored."""
        if self.outs.pop(slot, None) is not None:
            if self._pb is not None:
                drop_entry(self._pb.outputs, "parameter", slot)
            self._edited()

    def input_names(self) -> list[str]:
        """The input slots."""
        return list(self.ins)

    def output_names(self) -> list[str]:
        """The output slots."""
        return list(self.outs)

    def input_arg_names(self) -> list[str]:
        """The variables read, slot after slot."""
        return [name for names in self.ins.values() for name in names]

    def output_arg_names(self) -> list[str]:
        """The variables written, slot after slot."""
        return [name for names in self.outs.values() for name in names]

    def rename_input(self, old: str, new: str) -> None:
        """Replaces ``old`` by ``new`` in all input slots."""
        if _rename(self._pb and self._pb.inputs, self.ins, old, new):
            self._edited()

    _rename_input = rename_input

    def rename_output(self, old: str, new: str) -> None:
        """Replaces ``old`` by ``new`` in all output slots."""
        if _rename(self._pb and self._pb.outputs, self.outs, old, new):
            self._edited()

    _rename_output = rename_output

    # Attributes.

    @property
    def attrs(self) -> dict[str, Any]:
        """Attribute -> value: blocks are their index, floats are rounded to 32 bits. To read only."""
        if self._attrs is not None:
            return self._attrs
        if self.shared is not None and not self.shared.lists:
            return self.shared.values
        return self._own_attrs()

    @property
    def read_attrs(self) -> dict[str, Any]:
        """The same for those who hand on no value: a list may be that of other operations too."""
        return self.shared.values if self._attrs is None and self.shared is not None else self.attrs

    def _own_attrs(self) -> dict[str, Any]:
        """The attributes in a dict that no other operation has."""
        if self._attrs is None and self.shared is not None:
            self._attrs, self._kinds = _own_lists(dict(self.shared.values), self.shared.lists), dict(self.shared.kinds)
        elif self._attrs is None:
            self._kinds = {entry.name: entry.type for entry in self.pb.attrs}
            self._attrs = {entry.name: decode(entry) for entry in self.pb.attrs}
        return self._attrs

    @property
    def attr_types(self) -> dict[str, int]:
        """Attribute -> AttrType number. To read only."""
        if self._attrs is not None:
            return self._kinds
        return {entry.name: entry.type for entry in self.pb.attrs} if self.shared is None else self.shared.kinds

    def has_attr(self, name: str) -> bool:
        """Whether the attribute is written down."""
        return name in self.read_attrs

    def attr_names(self) -> list[str]:
        """The attributes that are written down."""
        return list(self.read_attrs)

    def attr(self, name: str) -> Any:
        """The value of an attribute: a bool, int, float, str, complex, or a list of these; the index of a block.

        Example:
            >>> OpDesc("clip", attrs={"min": -1.0}).attr("min")
            -1.0
        """
        if name not in self.attrs:
            raise self._no_attr(name)
        return self.attrs[name]

    def attr_type(self, name: str) -> int:
        """The AttrType number of an attribute."""
        if name not in self.read_attrs:
            raise self._no_attr(name)
        return self.attr_types[name]

    def set_attr(self, name: str, value: Any, type: int | None = None) -> None:
        """Writes an attribute.

        Args:
            type: its AttrType number; by default the type it has, when the value fits, or the one the value suggests.

        Example:
            >>> op = OpDesc("scale", attrs={"scale": 2.0}); op.set_attr("scale", 3); op.attr("scale")
            3.0
        """
        entry = pb2.OpDesc.Attr()
        attrs = self._own_attrs()
        try:
            kind, kept = self._encode(entry, name, value, type)
        except FluidError as error:
            raise error.with_context(op=self.label()) from None
        if name in attrs:
            next(e for e in self.pb.attrs if e.name == name).CopyFrom(entry)
            attrs[name] = kept
        else:
            at = entry_place(self.pb.attrs, "name", name)
            self.pb.attrs.insert(at, entry)
            put_in_dict(attrs, at, name, kept)
        self._kinds[name], self.shared = kind, None
        self._edited()

    _set_attr = set_attr

    def _set_texts(self, texts: Mapping[str, str | list[str]]) -> None:
        """Writes attributes that hold names or a path, which are texts for sure.

        Hardly two operations have the same, so that the message is left for its first use.
        """
        kinds = {name: pb2.STRINGS if isinstance(value, list) else pb2.STRING for name, value in texts.items()}
        if self._pb is not None:
            for name, value in texts.items():
                self.set_attr(name, value, kinds[name])
            return
        self._attrs = dict(sorted({**self._own_attrs(), **texts}.items()))
        self._kinds.update(kinds)
        self.shared = None
        self._edited()

    def _encode(self, entry: pb2.OpDesc.Attr, name: str, value: Any, kind: int | None) -> tuple[int, Any]:
        if kind is None and name in self._kinds:
            try:
                return self._kinds[name], encode(entry, name, self._kinds[name], value)
            except FluidError:
                entry.Clear()
        if kind is None:
            kind = guess_type(value, name)
        return kind, encode(entry, name, kind, value)

    def remove_attr(self, name: str) -> None:
        """Removes an attribute; an unknown one is ignored."""
        attrs = self._own_attrs()
        if name in attrs:
            drop_entry(self.pb.attrs, "name", name)
            del attrs[name], self._kinds[name]
            self.shared = None
            self._edited()

    def set_block_attr(self, name: str, block: BlockDesc | int) -> None:
        """Writes a block or its index, for example a loop's body as ``sub_block``."""
        self.set_attr(name, block, pb2.BLOCK)

    def set_blocks_attr(self, name: str, blocks: Iterable[BlockDesc | int]) -> None:
        """Writes the indices of several blocks."""
        self.set_attr(name, list(blocks), pb2.BLOCKS)

    def block_attr(self, name: str) -> int:
        """The index of the block in an attribute.

        Example:
            >>> op = OpDesc("while"); op.set_block_attr("sub_block", 1); op.block_attr("sub_block")
            1
        """
        index: int = self._blocks(name, pb2.BLOCK)
        return index

    _block_attr_id = block_attr

    def blocks_attr(self, name: str) -> list[int]:
        """The indices of the blocks in an attribute."""
        return list(self._blocks(name, pb2.BLOCKS))

    _blocks_attr_ids = blocks_attr

    def _blocks(self, name: str, wanted: int) -> Any:
        kind = self.attr_type(name)
        if kind != wanted:
            raise OpValueError(
                f'Attribute "{name}" holds no {"block" if wanted == pb2.BLOCK else "blocks"}.', op=self.label(),
                expected=pb2.AttrType.Name(wanted), received=pb2.AttrType.Name(kind),
            )  # fmt: skip
        return self.attrs[name]

    def rename(self, old: str, new: str) -> None:
        """Renames a variable in inputs, outputs and the attributes that have names of variables.

        Example:
            >>> op = OpDesc("sgd", {"Param": ["w"]}, {"ParamOut": ["w"]}, {"op_role_var": ["w", "w@GRAD"]})
            >>> op.rename("w", "v"); op.ins, op.outs, op.attr("op_role_var")
            ({'Param': ['v']}, {'ParamOut': ['v']}, ['v', 'w@GRAD'])
        """
        self.rename_input(old, new)
        self.rename_output(old, new)
        for name in NAMES_IN_ATTRS:
            names = self.attrs.get(name)
            if isinstance(names, list) and old in names:
                self.set_attr(name, [new if n == old else n for n in names])

    def _no_attr(self, name: str) -> OpValueError:
        return OpValueError(f'There is no attribute "{name}".', op=self.label(), hint=near(name, self.attrs))

    def _add_attrs(self, attrs: Mapping[str, Any], types: Mapping[str, int] | None = None) -> None:
        """Writes attributes that it does not have, all at once; ``types`` as for the class."""
        types = types or {}
        if not attrs:
            return
        if self.shared is not None or self._attrs == {}:  # as it was made, so sorted by name
            key = _key(attrs, types)
            place = None if key is None or self.shared is None else (self.shared.data, key)
            known = None if place is None else _extended.get(place)
            if known is not None:
                self._share(known)
            else:
                if self._pb is not None:
                    self._pb.ClearField("attrs")
                attrs, types = {**self.attrs, **attrs}, {**self.attr_types, **types}
                self.shared, self._attrs = None, {}
                written = self._write_attrs(attrs, types)
                if place is not None and written is not None:
                    if len(_extended) >= _SETS:
                        _extended.clear()
                    _extended[place] = written
            self._edited()
        else:
            for name, value in attrs.items():
                self.set_attr(name, value, types.get(name))

    def _share(self, attributes: Attributes) -> None:
        """Takes the attributes of another operation in place of those that it has."""
        if self._pb is not None and (self.shared is None or self.shared.data != attributes.data):
            self._pb.ClearField("attrs")
            self._pb.MergeFromString(attributes.data)
        self._attrs, self._kinds, self.shared = None, {}, attributes

    def _write_attrs(self, attrs: Mapping[str, Any], types: Mapping[str, int]) -> Attributes | None:
        """Writes the attributes of a new operation, sorted by name; gives them where others may have the same."""
        key = _key(attrs, types)
        known = None if key is None else _remembered.get(key)
        if known is not None:
            self._share(known)
            return known
        self._encode_all(attrs, types)
        if key is not None and len(key) <= _BYTES:
            if len(_remembered) >= _SETS:
                _remembered.clear()
            self.shared = _remembered[key] = Attributes.of(self)
        return self.shared

    def _encode_all(self, attrs: Mapping[str, Any], types: Mapping[str, int]) -> None:
        values, kinds, add = {}, {}, self.pb.attrs.add
        try:
            for name in sorted(attrs):
                value = attrs[name]
                kind = types.get(name)
                if kind is None:
                    kind = guess_type(value, name)
                values[name] = encode(add(), name, kind, value)
                kinds[name] = kind
        except FluidError as error:
            raise error.with_context(op=self.label()) from None
        self._attrs, self._kinds = values, kinds

    def __repr__(self) -> str:
        sides = (", ".join(f"{s}=[{', '.join(n)}]" for s, n in side.items()) for side in (self.ins, self.outs))
        return f"OpDesc({self._type}: {' -> '.join(sides)})"

    def is_target(self) -> bool:
        """Whether pruning has to keep the operation."""
        return self._pb is not None and self._pb.is_target

    def set_is_target(self, is_target: bool) -> None:
        """Sets whether pruning has to keep the operation."""
        self.pb.is_target = is_target
        self._edited()

    # Checks and inference.

    def check_attrs(self) -> None:
        """Checks the attributes against the operator, and writes the defaults of those that were left out.

        Example:
            >>> op = OpDesc("mul"); op.check_attrs(); op.attr("x_num_col_dims")
            1
        """
        if hooks.check_attrs is None:
            raise _no_operators("attributes are checked")
        hooks.check_attrs(self)

    def infer_shape(self, block: BlockDesc) -> None:
        """Writes shapes, dtypes and LoD levels of the variables that the operation writes."""
        if hooks.infer_shape is None:
            raise _no_operators("shapes are inferred")
        hooks.infer_shape(self, block)

    def infer_var_type(self, block: BlockDesc) -> None:
        """Writes the types (tensor or rows) of the variables that the operation writes."""
        if hooks.infer_var_type is None:
            raise _no_operators("types are inferred")
        hooks.infer_var_type(self, block)

    # Copies and bytes.

    def copy_from(self, other: OpDesc) -> None:
        """Copies type, slots and attributes of another operation into this one."""
        self.pb.CopyFrom(other.pb)
        self._type = other._type
        self._ins = self._outs = self._attrs = self.shared = None
        self._edited()

    def clone(self) -> OpDesc:
        """An equal operation that is in no block."""
        pb = pb2.OpDesc()
        pb.CopyFrom(self.pb)
        return OpDesc.over(pb)

    def serialize_to_string(self) -> bytes:
        """The bytes of the message.

        Example:
            >>> OpDesc("relu").serialize_to_string()
            b'\\x1a\\x04relu'
        """
        if not self.pb.IsInitialized():
            raise uninitialized(self.pb, self.label())
        return self.pb.SerializeToString()

    @classmethod
    def parse_from_string(cls, data: bytes) -> OpDesc:
        """An operation from the bytes of its message."""
        return cls.over(parse(pb2.OpDesc, data, "op_desc"))


def _key(attrs: Mapping[str, Any], types: Mapping[str, int]) -> bytes | None:
    """Attributes as bytes, which distinguish True, 1 and 1.0, and -0.0 from 0.0; None for other than plain values."""
    try:
        return marshal.dumps((attrs, types), 2)  # type: ignore[arg-type]
    except ValueError:  # blocks and arrays
        return None


def _own_lists(attrs: dict[str, Any], lists: Iterable[str]) -> dict[str, Any]:
    """Attributes in which those that are lists are copies."""
    for name in lists:
        attrs[name] = attrs[name][:]
    return attrs


def _no_operators(what: str) -> NotBuiltYet:
    return NotBuiltYet(f"{what} once fluidnb.op is imported.", hint="import fluidnb.core imports it.")


def type_name(optype: Any, what: str = "type of an operation") -> str:
    """Checks the type of an operation, or the name of a slot."""
    if not isinstance(optype, str):
        raise OpTypeError(f"The {what} is a text.", received=f"{optype!r}, a {type(optype).__name__}")
    if not optype.isascii():
        optype.encode()  # raises where no file can hold it
    return str(optype)


def _sorted_slots(slots: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The slots of a new operation, sorted by name."""
    return {slot: _names(slot, slots[slot]) for slot in sorted(slots)}


def entry_place(container: Any, field: str, name: str) -> int:
    """The position of a new entry among sorted ones: before the first with a greater name."""
    return next((i for i, entry in enumerate(container) if getattr(entry, field) > name), len(container))


def put_in_dict(cache: dict[str, Any], at: int, name: str, value: Any) -> None:
    """Inserts a new key at a position of an ordered dict."""
    tail = list(cache.items())[at:]
    for key, _ in tail:
        del cache[key]
    cache[name] = value
    cache.update(tail)


def drop_entry(container: Any, field: str, name: str) -> None:
    """Delete the entries of a repeated field that have this name."""
    for i in reversed(range(len(container))):
        if getattr(container[i], field) == name:
            del container[i]


def _names(slot: Any, names: Any) -> list[str]:
    if type(slot) is not str or not slot.isascii():
        type_name(slot, "name of a slot")
    try:
        listed: list[Any] = [names] if isinstance(names, (str, bytes)) else list(names)
    except TypeError:
        raise OpTypeError(f'Slot "{slot}" holds names of variables.', received=typed(names)) from None
    for at, name in enumerate(listed):
        if type(name) is str and name.isascii():  # nearly every name
            continue
        listed[at] = name = text_of(name)
        if not isinstance(name, str):
            raise OpTypeError(f'Slot "{slot}" holds names of variables.', received=f"{name!r}, a {type(name).__name__}")
        name.encode()  # raises where no file can hold it
    return listed


def _put_slot(container: Any, cache: dict[str, list[str]], slot: str, names: list[str]) -> None:
    """Writes a slot to the dict, and to the message where there is one; alike below."""
    if slot in cache:
        for var in container or ():
            if var.parameter == slot:
                var.arguments[:] = names
        cache[slot] = names
        return
    at = next((i for i, known in enumerate(cache) if known > slot), len(cache))
    if container is not None:
        at = entry_place(container, "parameter", slot)
        container.insert(at, pb2.OpDesc.Var(parameter=slot, arguments=names))
    put_in_dict(cache, at, slot, names)


def _rename(container: Any, cache: dict[str, list[str]], old: str, new: str) -> bool:
    changed = {slot: [new if n == old else n for n in names] for slot, names in cache.items() if old in names}
    cache.update(changed)
    for var in (container or ()) if changed else ():
        if var.parameter in changed:
            var.arguments[:] = changed[var.parameter]
    return bool(changed)
