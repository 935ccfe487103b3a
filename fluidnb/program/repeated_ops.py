"""Operators that were appended before in the same form: what their checks and shape rules found is taken from there."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from fluidnb.op.define import OpDef, registry
from fluidnb.program.constants import EMPTY_VAR_NAME
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc
from fluidnb.proto.op_desc import Attributes
from fluidnb.values import kernel_packages
from fluidnb.values import strict_feeds as declarations

#: How many forms are remembered.
_MOST = 4096


class Found(NamedTuple):
    """Results of the checks and the shape rule of an operator."""

    attributes: Attributes  # those given, and the defaults of the others
    types: tuple[bytes, ...]  # of the variables that it writes

    def give(self, desc: OpDesc, outputs: Sequence[VarDesc]) -> None:
        """Write them to an operator of the same form, and to its outputs."""
        desc._share(self.attributes)
        for var, data in zip(outputs, self.types, strict=True):
            if var._type_bytes() != data:
                var._set_type_bytes(data)


#: Form of an operator -> what was found.
_found: dict[Hashable, Found] = {}


def form(definition: OpDef, desc: OpDesc, home: BlockDesc, checked: bool) -> Hashable:
    """The form of an operator, which decides what its checks and its shape rule find; None where more may decide."""
    attributes = desc.shared
    if attributes is None or definition.control or definition.is_grad or not kernel_packages.is_own(definition.module):
        return None  # names and blocks matter, or a rule that somebody else has written
    version = home.program.pb.version.version
    parts: list[object] = [
        definition.type, registry.version, declarations.binding, version, checked, attributes.data,
    ]  # fmt: skip
    declared = home.vars
    seen: dict[str, int] = {}  # which variables are one matters, their names do not
    for slots in (desc.ins, desc.outs):
        for slot, names in slots.items():
            parts += (slot, len(names))
            for name in names:
                if name in seen:
                    parts.append(seen[name])  # a number, which no other mark may be equal to
                    continue
                seen[name] = len(seen)
                var = declared.get(name) or home.find_var_recursive(name)
                if var is not None:
                    parts.append(var._type_bytes())
                elif slots is desc.outs:
                    parts.append("left out" if name == EMPTY_VAR_NAME else "not declared yet")
                else:
                    return None
        parts.append(None)
    return tuple(parts)


def find(form: Hashable) -> Found | None:
    """The results of an operator of this form; None where there was none."""
    return _found.get(form)


def remember(form: Hashable, desc: OpDesc, outputs: Sequence[VarDesc]) -> None:
    """Keep what was just found of an operator and of the variables that it writes."""
    if len(_found) >= _MOST:
        _found.clear()
    _found[form] = Found(Attributes.of(desc), tuple([var._type_bytes() for var in outputs]))
