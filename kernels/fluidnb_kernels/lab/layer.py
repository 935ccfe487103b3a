"""A layer function for an operator: what ``layers`` has for ours, made for one's own."""

from collections.abc import Callable
from typing import Any

from fluidnb.errors import NotFound, OpTypeError, near
from fluidnb.layer_helper import LayerHelper
from fluidnb.op import get_op
from fluidnb.program import layer_calls as naming


def layer_of(type: str) -> Callable[..., Any]:
    """A function that appends an operator to the default program: inputs in the order of its slots, or by name.

    Example:
        >>> import fluidnb as fluid
        >>> with fluid.program_guard(fluid.Program()):
        ...     x = fluid.layers.data("x", shape=[3])
        ...     print(layer_of("leaky_relu")(x, alpha=0.1).shape)
        (-1, 3)
    """
    definition = get_op(type)

    def layer(*inputs: Any, **settings: Any) -> Any:
        if len(inputs) > len(definition.inputs):
            raise OpTypeError(
                f"{type} takes {len(definition.inputs)} inputs.", expected=", ".join(definition.inputs),
                received=f"{len(inputs)} inputs",
            )  # fmt: skip
        name = settings.pop("name", None)
        given = dict(zip(definition.inputs, inputs, strict=False))
        given |= {slot: settings.pop(slot) for slot in list(settings) if slot in definition.inputs}
        for word in settings:
            if word not in definition.attrs:
                known = [*definition.inputs, *definition.attrs]
                raise NotFound(
                    f"{type} has no input or attribute {word}.", expected=", ".join(known), received=word,
                    hint=near(word, known),
                )  # fmt: skip
        helper = LayerHelper(type, name=name)
        first = next((v[0] if isinstance(v, list | tuple) else v for v in given.values()), None)
        dtype = "float32" if first is None else first.dtype
        outs = {slot: helper.create_variable_for_type_inference(dtype) for slot in definition.outputs}
        helper.append_op(type=type, inputs=given, outputs=outs, attrs=settings)
        shown = [outs[slot] for slot, info in definition.outputs.items() if not info.intermediate]
        return shown[0] if len(shown) == 1 else tuple(shown)

    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = f"{definition.doc.strip() or type}\n\nAppends {type} to the default program."
    return naming.layer(layer)
