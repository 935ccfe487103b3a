"""An ONNX file, checked: what is wrong with it is one sentence, and nothing outside its folder is read."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from fluidnb.errors import EnforceNotMet
from fluidnb.extras import require

if TYPE_CHECKING:
    import onnx

#: Domains of the operators that ONNX itself defines; ``ai.onnx`` is another name of the first.
DOMAINS = ("", "ai.onnx")
#: Bytes of tensors that a message has at most: protobuf has less than 2 GB, nodes included. More have a second file.
LIMIT = 2_000_000_000


def read(path: str) -> onnx.ModelProto:
    """Reads a model with its external data, unless that is large; functions of the model itself become nodes.

    Args:
        path: the file.

    Returns:
        The model, in which each name is written once and nodes are in the order in which they can run.

    Raises:
        MissingPackage: the package onnx is not installed.
        EnforceNotMet: the file cannot be read, is damaged, or is not a valid model.
    """
    package = require("onnx", "Opening an ONNX model")
    inliner = require("onnx.inliner", "Opening an ONNX model")
    errors = (OSError, ValueError, TypeError, RuntimeError, package.checker.ValidationError, _decode_error())
    try:
        model: onnx.ModelProto = package.load(path, load_external_data=False)
        if not model.HasField("graph"):
            raise ValueError("it has no graph")
        if _has_broken_text(model):
            raise ValueError("it has names that are not UTF-8")
        elsewhere = _external_bytes(model)
        large = elsewhere > 0 and elsewhere + os.path.getsize(path) >= LIMIT  # its tensors are read one by one
        if not large:
            package.load_external_data_for_model(model, os.path.dirname(path))
        for out in model.graph.output:
            out.type.tensor_type.shape.SetInParent()  # the checker requires a shape, which runtimes do not
        package.checker.check_model(path if large else model)
        if model.functions:
            model = inliner.inline_local_functions(model)
    except errors as error:
        raise EnforceNotMet(
            f"{path} is no valid ONNX model.", expected="a file that onnx.checker accepts, with its external data",
            received=_first_line(error), hint="export it again, with its external data in the same folder.",
        ) from None  # fmt: skip
    return model


def _has_broken_text(message: Any) -> bool:
    """Whether a string of a message is not UTF-8: protobuf gives it as bytes then."""
    for field, value in message.ListFields():
        if field.message_type is None and field.type != field.TYPE_STRING:
            continue  # a list of numbers may have millions
        for one in value if field.is_repeated else (value,):
            if isinstance(one, bytes) or (field.message_type is not None and _has_broken_text(one)):
                return True
    return False


def _external_bytes(model: onnx.ModelProto) -> int:
    """The size of the tensors that are in other files, by their shapes."""
    helper = require("onnx.helper", "Opening an ONNX model")
    external = require("onnx.external_data_helper", "Opening an ONNX model").uses_external_data
    return sum(
        math.prod(tensor.dims) * int(helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
        for tensor in model.graph.initializer if external(tensor)
    )  # fmt: skip


def _first_line(error: BaseException) -> str:
    """The first line of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def _decode_error() -> Any:
    """The class of protobuf's error of damaged bytes."""
    return require("google.protobuf.message", "Opening an ONNX model").DecodeError
