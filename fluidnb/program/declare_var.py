"""Declaring a variable: a new description, or the one that exists when both agree."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.program import layer_calls as naming
from fluidnb.program import origin
from fluidnb.program import pseudo_code as codes
from fluidnb.program import unique_name as names
from fluidnb.program.constants import EMPTY_VAR_NAME
from fluidnb.proto.desc import BlockDesc, VarDesc
from fluidnb.utils.source_location import capture
from fluidnb.values import dtypes
from fluidnb.values.dtypes import VAR_TYPES, VarType

if TYPE_CHECKING:
    from fluidnb.program.program import Program

_WITH_ELEMENTS = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS, VarType.LOD_TENSOR_ARRAY)
_WITH_LOD = (VarType.LOD_TENSOR, VarType.LOD_TENSOR_ARRAY)

#: Kind, dtype, sizes and LoD levels -> their bytes in a message, and how many are remembered.
_types: dict[tuple[Any, ...], bytes] = {}
_MOST = 4096


def variable(
    block: BlockDesc, type: int, name: str | None, shape: Sequence[int] | None, dtype: Any, lod_level: int | None,
    persistable: bool | None, stop_gradient: bool, is_data: bool,
) -> VarDesc:  # fmt: skip
    """The description of a variable that a user declares, or an existing one that agrees; None is not said."""
    if name is None:
        name = names.fresh("_generated_var")
    elif not isinstance(name, str) or not name:
        raise OpTypeError("a variable's name is a text.", expected="str", received=repr(name), where=capture())
    elif name == EMPTY_VAR_NAME:
        raise OpValueError(
            f"{name} is no name of a variable: in an operator it stands for one that is left out.", where=capture(),
            expected="another name", received=name,
        )  # fmt: skip
    sizes = None if shape is None else _sizes(name, shape)
    number = dtype if dtype is None or dtype.__class__ is VarType else dtypes.var_type(dtype)
    kind = VAR_TYPES.get(type)
    if not 0 <= (lod_level or 0) < 2**31 or kind is None:
        raise OpValueError(
            f"The variable {name} cannot be declared so.", where=capture(),
            expected="a type of core.VarDesc.VarType, and a lod_level from 0 on",
            received=f"type={type!r}, lod_level={lod_level!r}",
        )  # fmt: skip
    existing = block.vars.get(name)
    if origin.recorder is not None:
        origin.writing(cast("Program", block.program.view))
        origin.recorder.looked_up(block, name, existing)
    if existing is not None:
        _agree(existing, kind, sizes, number, lod_level, persistable)
        return existing
    key = kind, number, None if sizes is None else tuple(sizes), lod_level
    known = _types.get(key)
    if known is not None:
        desc = VarDesc._like(name, known, bool(persistable))
    else:
        desc = VarDesc(name, kind)
        if kind in _WITH_ELEMENTS:
            desc.set_dtype(VarType.FP32 if number is None else number)
            if sizes is not None:
                desc.set_shape(sizes)
            if kind in _WITH_LOD:
                desc.set_lod_level(lod_level or 0)
        if len(_types) >= _MOST:
            _types.clear()
        _types[key] = desc._type_bytes()
        desc.set_persistable(bool(persistable))
    if stop_gradient:
        desc.set_stop_gradient(True)
    if is_data:
        desc.set_is_data(True)
    block.add_var(desc)
    return desc


def temporary(block: BlockDesc, name: str, dtype: Any, stop_gradient: bool) -> VarDesc:
    """The description of a tensor that an operator of a layer writes, under a name that is free."""
    if origin.recorder is not None:
        origin.writing(cast("Program", block.program.view))
        origin.recorder.looked_up(block, name, None)
    number = dtype if dtype.__class__ is VarType else dtypes.var_type(dtype)
    known = _types.get((VarType.LOD_TENSOR, number, None, None))
    if known is None:
        desc = variable(block, VarType.LOD_TENSOR, name, None, number, None, None, stop_gradient, False)
        naming.note_made(desc)
        return desc
    desc = VarDesc._like(name, known, False)
    if stop_gradient:
        desc.set_stop_gradient(True)
    naming.note_made(block.add_var(desc))
    return desc


def like(block: BlockDesc, name: str, other: VarDesc, persistable: bool) -> VarDesc:
    """The description of a variable of the type, dtype, sizes and LoD level of another one, under a free name."""
    if origin.recorder is not None:
        origin.writing(cast("Program", block.program.view))
        origin.recorder.looked_up(block, name, None)
    desc = block.add_var(VarDesc._like(name, other._type_bytes(), persistable))
    naming.note_made(desc)
    return desc


def _sizes(name: str, shape: Sequence[int]) -> list[int]:
    try:
        return [s if s.__class__ is int else int(s.__index__()) for s in shape]
    except (TypeError, AttributeError):
        raise OpTypeError(
            f"the shape of variable {name} is not a list of sizes.", where=capture(2),
            expected="ints, -1 for a size that the run decides", received=repr(shape),
            hint="for example shape=[-1, 13].",
        ) from None  # fmt: skip


def _agree(
    old: VarDesc, kind: VarType, shape: list[int] | None, dtype: int | None, lod: int | None, persistable: bool | None
) -> None:
    """Raise unless a second declaration agrees with the first."""
    pairs: list[tuple[str, object, object]] = [("type", VarType(old.type()).name, kind.name)]
    if old.type() in _WITH_ELEMENTS and kind in _WITH_ELEMENTS:
        if shape is not None:
            pairs.append(("shape", tuple(old.shape()), tuple(shape)))
        if dtype is not None:
            pairs.append(("data type", dtypes.dtype_name(old.dtype()), dtypes.dtype_name(dtype)))
    if old.type() in _WITH_LOD and kind in _WITH_LOD and lod is not None:
        pairs.append(("lod_level", old.lod_level(), lod))
    if persistable is not None:
        pairs.append(("persistable", old.persistable(), bool(persistable)))
    for what, before, now in pairs:
        if before != now:
            raise OpValueError(
                f"Variable {old.name()} has been created before. The previous {what} is {before}, the new {what} is "
                f"{now}. They are not matched.",
                slots=[("variable", old.name(), *codes.elements(old))],
                where=capture(2), expected=f"{what} {before}", received=f"{what} {now}",
                hint="give the new variable another name, or none to get a unique one.",
            )  # fmt: skip


def check_parameter(name: str | None, shape: Sequence[int] | None, dtype: Any) -> None:
    """Raise unless a parameter has a dtype and a known shape."""
    who = f"Parameter {name}" if name else "Parameter"
    if shape is None or dtype is None:
        wrong, received = "must set shape and dtype", f"shape {shape}, dtype {dtype}"
    elif len(shape) == 0:
        wrong, received = "shape cannot be empty", "shape []"
    else:
        for size in shape:  # a loop: any() of a generator takes three times as long
            if not hasattr(size, "__index__"):  # isinstance of a protocol takes 5 µs
                wrong, received = "shape should be a list of sizes", f"shape {shape!r}"
                break
            if size <= 0:
                wrong, received = "shape should not be related with batch-size", f"shape {list(shape)}"
                break
        else:
            return
    raise OpValueError(
        f"{who} {wrong}.", where=capture(), expected="sizes that are all positive, and a dtype", received=received,
        hint="a parameter's size cannot depend on the batch; give every size as a number.",
    )  # fmt: skip
