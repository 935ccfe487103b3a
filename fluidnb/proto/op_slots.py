"""The slots of an operation: which variables it reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fluidnb.errors import OpTypeError, OpValueError, near
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto.wire import text_of

if TYPE_CHECKING:
    from fluidnb.proto.block_desc import BlockDesc


class OpSlots:
    """What an operation is, what it reads and writes; the first third of OpDesc."""

    __slots__ = ("_ins", "_outs", "block", "pb")

    pb: pb2.OpDesc
    #: The block that has the operation, None while it is in none.
    block: BlockDesc | None
    _ins: dict[str, list[str]] | None
    _outs: dict[str, list[str]] | None

    @property
    def optype(self) -> str:
        """The operator's type."""
        return self.pb.type

    def type(self) -> str:
        """The operator's type (Fluid's spelling of `optype`)."""
        return self.pb.type

    def set_type(self, optype: str) -> None:
        """Make it an operation of another type; slots and attributes stay.

        Raises:
            OpTypeError: the type is not a text.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> op = OpDesc("relu"); op.set_type("tanh"); op.type()
            'tanh'
        """
        self.pb.type = type_name(optype)
        self._edited()

    def label(self) -> str:
        """How errors call it.

        Returns:
            For example ``op 3 (clip) in block 0``, or ``op clip`` while it is in no block.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> OpDesc("clip").label()
            'op clip'
        """
        name = self.pb.type or "without a type"
        if self.block is None:
            return f"op {name}"
        at = next((i for i, op in enumerate(self.block.ops) if op is self), "?")
        return f"op {at} ({name}) in block {self.block.idx}"

    def _edited(self) -> None:
        if self.block is not None:
            self.block.program.version += 1

    @property
    def ins(self) -> dict[str, list[str]]:
        """Slot -> names of the variables read. To read only."""
        if self._ins is None:
            self._ins = {var.parameter: list(var.arguments) for var in self.pb.inputs}
        return self._ins

    @property
    def outs(self) -> dict[str, list[str]]:
        """Slot -> names of the variables written. To read only."""
        if self._outs is None:
            self._outs = {var.parameter: list(var.arguments) for var in self.pb.outputs}
        return self._outs

    def input(self, slot: str) -> list[str]:
        """The names of the variables in an input slot.

        Args:
            slot: the slot's name, for example ``X``.

        Returns:
            A new list, empty for a slot that was left out on purpose.

        Raises:
            OpValueError: the operation has no such slot.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> OpDesc("mul", {"X": ["x"], "Y": ["w"]}).input("Y")
            ['w']
        """
        return list(self._slot(self.ins, slot, "input"))

    def output(self, slot: str) -> list[str]:
        """The names of the variables in an output slot; as `input`.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> OpDesc("mul", {}, {"Out": ["y"]}).output("Out")
            ['y']
        """
        return list(self._slot(self.outs, slot, "output"))

    def _slot(self, slots: dict[str, list[str]], slot: str, side: str) -> list[str]:
        try:
            return slots[slot]
        except KeyError:
            raise OpValueError(
                f'There is no {side} slot "{slot}".',
                op=self.label(),
                expected=f"one of {', '.join(slots) or 'none'}",
                hint=near(slot, slots),
            ) from None

    def set_input(self, slot: str, names: Sequence[str]) -> None:
        """Put variables into an input slot, in place of those that were there.

        Args:
            slot: the slot's name.
            names: the variables' names; one name may stand alone.

        Raises:
            OpTypeError: a name is not a text.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> op = OpDesc("sum"); op.set_input("X", ["a", "b"]); op.input_arg_names()
            ['a', 'b']
        """
        _put_slot(self.pb.inputs, self.ins, slot, _names(slot, names))
        self._edited()

    def set_output(self, slot: str, names: Sequence[str]) -> None:
        """Put variables into an output slot; as `set_input`.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> op = OpDesc("sum"); op.set_output("Out", ["c"]); op.outs
            {'Out': ['c']}
        """
        _put_slot(self.pb.outputs, self.outs, slot, _names(slot, names))
        self._edited()

    def remove_input(self, slot: str) -> None:
        """Take an input slot away; nothing happens when there is none."""
        if self.ins.pop(slot, None) is not None:
            drop_entry(self.pb.inputs, "parameter", slot)
            self._edited()

    def remove_output(self, slot: str) -> None:
        """Take an output slot away; nothing happens when there is none."""
        if self.outs.pop(slot, None) is not None:
            drop_entry(self.pb.outputs, "parameter", slot)
            self._edited()

    def input_names(self) -> list[str]:
        """The input slots."""
        return list(self.ins)

    def output_names(self) -> list[str]:
        """The output slots."""
        return list(self.outs)

    def input_arg_names(self) -> list[str]:
        """The variables read, slot after slot.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> OpDesc("mul", {"Y": ["w"], "X": ["x"]}).input_arg_names()
            ['x', 'w']
        """
        return [name for names in self.ins.values() for name in names]

    def output_arg_names(self) -> list[str]:
        """The variables written, slot after slot."""
        return [name for names in self.outs.values() for name in names]

    def rename_input(self, old: str, new: str) -> None:
        """Read ``new`` wherever ``old`` was read.

        Example:
            >>> from fluidnb.proto.desc import OpDesc
            >>> op = OpDesc("sum", {"X": ["a", "b", "a"]}); op.rename_input("a", "c"); op.input("X")
            ['c', 'b', 'c']
        """
        if _rename(self.pb.inputs, self.ins, old, new):
            self._edited()

    _rename_input = rename_input

    def rename_output(self, old: str, new: str) -> None:
        """Write ``new`` wherever ``old`` was written."""
        if _rename(self.pb.outputs, self.outs, old, new):
            self._edited()

    _rename_output = rename_output


def type_name(optype: Any) -> str:
    """Check the type of an operation.

    Raises:
        OpTypeError: it is not a text.
    """
    if not isinstance(optype, str):
        raise OpTypeError("The type of an operation is a text.", received=f"{optype!r}, a {type(optype).__name__}")
    return str(optype)


def add_slots(container: Any, slots: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Write the slots of a new operation, sorted by name.

    Args:
        container: ``inputs`` or ``outputs`` of the message, empty so far.
        slots: slot -> names of variables.

    Returns:
        The same as plain lists, in the order written.

    Raises:
        OpTypeError: a name is not a text.
    """
    written = {}
    for slot in sorted(slots):
        names = written[slot] = _names(slot, slots[slot])
        var = container.add()
        var.parameter = slot
        var.arguments.extend(names)
    return written


def entry_place(container: Any, field: str, name: str) -> int:
    """Where a new entry goes among sorted ones: before the first with a greater name.

    Args:
        container: a repeated field of messages.
        field: the field of these messages that holds their name.
        name: the name of the entry to come.
    """
    return next((i for i, entry in enumerate(container) if getattr(entry, field) > name), len(container))


def put_in_dict(cache: dict[str, Any], at: int, name: str, value: Any) -> None:
    """Put a new key at a position of an ordered dict."""
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


def _names(slot: str, names: Any) -> list[str]:
    listed = [text_of(name) for name in ([names] if isinstance(names, str | bytes) else names)]
    for name in listed:
        if type(name) is not str and not isinstance(name, str):
            raise OpTypeError(f'Slot "{slot}" holds names of variables.', received=f"{name!r}, a {type(name).__name__}")
    return listed


def _put_slot(container: Any, cache: dict[str, list[str]], slot: str, names: list[str]) -> None:
    if slot in cache:
        for var in container:
            if var.parameter == slot:
                var.arguments[:] = names
        cache[slot] = names
    else:
        at = entry_place(container, "parameter", slot)
        container.insert(at, pb2.OpDesc.Var(parameter=slot, arguments=names))
        put_in_dict(cache, at, slot, names)


def _rename(container: Any, cache: dict[str, list[str]], old: str, new: str) -> bool:
    changed = {slot: [new if n == old else n for n in names] for slot, names in cache.items() if old in names}
    cache.update(changed)
    for var in container if changed else ():
        if var.parameter in changed:
            var.arguments[:] = changed[var.parameter]
    return bool(changed)
