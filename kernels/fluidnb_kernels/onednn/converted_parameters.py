"""Parameters in the order of memory that oneDNN wants, converted when they have changed."""

from weakref import WeakValueDictionary

import numpy as np

from fluidnb.memory import flags, root
from fluidnb.op import Array, Binder
from fluidnb_kernels.onednn.library import Conversion, Layout, address, clear_caches


class Converted:
    """A parameter in the order of oneDNN, converted when its digest differs from that of the last time.

    A digest takes a fifth of the time of a conversion; two values with one digest of 128 bits will not be met.

    Attributes:
        layout: that order.
        buffers: the value for oneDNN, and a workspace.
    """

    def __init__(self, b: Binder, conversion: Conversion, layout: Layout) -> None:
        from xxhash import xxh3_128_digest  # all modules are imported also where the extra is not installed

        self.layout, self._call, self._digest, self._digest_of = layout, conversion.call(), b"", xxh3_128_digest
        self.buffers = b.keep((layout.size,), np.uint8), b.keep((max(conversion.workspace, 1),), np.uint8)

    def once(self, w: Array, target: Array, workspace: Array) -> None:
        """Convert a parameter that its program does not write; with FLAGS_constant_filters only the first time."""
        if not (self._digest and flags.values["constant_filters"]):
            self(w, target, workspace)

    def forget(self) -> None:
        """Convert it at the next run: another program may have been given other values at the same address."""
        self._digest = b""

    def __call__(self, w: Array, target: Array, workspace: Array) -> None:
        digest = self._digest_of(w)
        if digest != self._digest:
            self._call(w, target, workspace)
            self._digest = digest


#: Address and form of a parameter -> what it was converted into, for runs with any batch size.
_converted: WeakValueDictionary[tuple[int, tuple[int, ...]], Converted] = WeakValueDictionary()
clear_caches.append(_converted.clear)


def converted(
    b: Binder, slot: str, value: Array, plain: Array, form: tuple[int, ...], conversion: Conversion, layout: Layout
) -> Array:
    """Emit the conversion of an operand.

    Args:
        value: the operand; its conversion is kept where it is the value of a parameter in the slot.
        plain: itself in C order, or a copy.
        form: shape (and strides) in which it is converted.
        layout: the order that it gets.
    """
    names = b.inputs.get(slot, [""])
    own = value is b[slot]
    shared = own and _is_parameter(b, names[0]) and root(plain) is root(value)  # a workspace has no address yet
    key = address(plain), form
    kept = _converted.get(key) if shared else None
    if kept is None or kept.layout != layout:
        kept = Converted(b, conversion, layout)
        if shared:
            _converted[key] = kept
    kept.forget()
    b(kept.once if own and b.memory.is_constant(names[0]) else kept, plain, *kept.buffers)
    return kept.buffers[0]


def _is_parameter(b: Binder, name: str) -> bool:
    """Whether a variable is persistable: its memory stays at its address."""
    block = b.op.desc.block
    var = None if block is None else block.find_var_recursive(name)
    return var is not None and var.persistable()
