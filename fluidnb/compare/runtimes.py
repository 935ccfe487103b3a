"""The runtimes that a model can be run by, with every value kept: ours, onnxruntime, real Paddle; or stored values."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from fluidnb.compare.difference import Difference, Tolerance, first_difference
from fluidnb.compare.recording import Array, Recording, Write, record, tensors
from fluidnb.errors import EnforceNotMet, OpValueError, near
from fluidnb.extras import require
from fluidnb.files.numpy_arrays import load_arrays
from fluidnb.memory import flags
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.opened_model import OpenedModel, open_model
from fluidnb.values import CPUPlace, CUDAPlace

#: The variable of the environment that names a Python with PaddlePaddle.
PYTHON = "FLUIDNB_PADDLE_PYTHON"
Feeds = Mapping[str, Array]


def run_side(side: str, feeds: Feeds) -> Recording:
    """Runs one side of a comparison.

    Args:
        side: the path of a model, after which ``@RUNTIME`` may follow; or a ``.npz`` of recorded values.
        feeds: array for each feed, by its name; by order where the names are others.

    Raises:
        OpValueError: there is no such runtime.
        EnforceNotMet: the model, the values or the runtime cannot be used.
    """
    path, at, runtime = side.rpartition("@")
    if not at or os.path.exists(side):
        path, runtime = side, "cpu"
    if path.endswith(".npz"):
        return recorded(path, feeds)
    if runtime not in RUNTIMES:
        raise OpValueError(
            f"There is no runtime {runtime}.", expected=", ".join(RUNTIMES), received=runtime,
            hint=near(runtime, RUNTIMES) or f"{path}@cpu.",
        )  # fmt: skip
    model = open_model(path)
    return RUNTIMES[runtime](side, model, fed(model, feeds))


def compare_sides(first: str, second: str, feeds: Feeds, tolerance: Tolerance | None = None) -> Difference:
    """Runs two sides on the same arrays and finds the first operator whose output differs.

    Args:
        first, second: as `run_side` takes them; one of them is a program.
        feeds: array for each feed, by name.
        tolerance: how far numbers may be apart.

    Raises:
        OpValueError: neither side has a program, or there is no such runtime.
        EnforceNotMet: a model, values or a runtime cannot be used.
    """
    sides = [run_side(side, feeds) for side in (first, second)]
    if sides[0].program is None:
        sides.reverse()
    if sides[0].program is None:
        raise OpValueError(
            "Neither side has a program that fluidnb runs.", expected="a model that fluidnb runs on one side",
            received=f"{first} and {second}", hint=f"{first.rpartition('@')[0] or 'MODEL'}@cpu on one side.",
        )  # fmt: skip
    if not sides[1].fetches:
        sides[1].fetches = sides[0].fetches
    return first_difference(sides[0], sides[1], tolerance)


def fed(model: OpenedModel, feeds: Feeds) -> dict[str, Array]:
    """The arrays for the feeds of a model: by name, or in order where a name is not there."""
    names = [v.name for v in model.feeds]
    if all(name in feeds for name in names):
        return {name: feeds[name] for name in names}
    if len(feeds) != len(names):
        raise EnforceNotMet(
            f"{model.path} takes {len(names)} arrays, and {len(feeds)} are fed.", expected=", ".join(names),
            received=", ".join(feeds), hint=f"np.savez('x.npz', {', '.join(f'{n}=…' for n in names[:4])})",
        )  # fmt: skip
    return dict(zip(names, feeds.values(), strict=True))


def recorded(path: str, feeds: Feeds) -> Recording:
    """Values that were stored, by the names of variables."""
    try:
        values = load_arrays(path)
    except (OSError, ValueError) as error:
        raise EnforceNotMet(
            f"Cannot read values from {path}.", expected="a .npz of numpy, without objects", received=str(error)[:120],
            hint="fluidnb run MODEL --feed x.npz --all --out values.npz writes one.",
        ) from None  # fmt: skip
    return without_program(path, feeds, values)


def without_program(title: str, feeds: Feeds, values: dict[str, Array]) -> Recording:
    """A recording of values that come without a program."""
    writes = [Write(None, 0, i, (), {name: value}) for i, (name, value) in enumerate(values.items())]
    return Recording(title, None, dict(feeds), [], {}, writes)


def _stepped(place: object) -> Callable[[str, OpenedModel, dict[str, Array]], Recording]:
    """A runtime that runs operator by operator on a place."""

    def run(title: str, model: OpenedModel, feeds: dict[str, Array]) -> Recording:
        return record(title, model.program, feeds, [v.name for v in model.fetches], model.scope, place)

    return run


def _compiled(native: str) -> Callable[[str, OpenedModel, dict[str, Array]], Recording]:
    """A runtime that runs the compiled program, with or without native code."""

    def run(title: str, model: OpenedModel, feeds: dict[str, Array]) -> Recording:
        fetches = [v.name for v in model.fetches]
        names = list(dict.fromkeys((*model.computed(), *fetches)))
        before = flags.values["native"]
        flags.values["native"] = native
        try:
            found = Executor(CPUPlace()).run(model.program, dict(feeds), names, scope=model.scope)
        finally:
            flags.values["native"] = before
        values = dict(zip(names, map(np.asarray, found), strict=True))
        block = model.program.desc.blocks[0]
        writes = [
            Write(op, 0, i, (), {name: values[name] for name in op.output_arg_names() if name in values})
            for i, op in enumerate(block.ops)
            if op.optype not in ("feed", "fetch")
        ]
        parameters = tensors((v.name for v in model.parameters), model.scope)
        return Recording(title, model.program, feeds, fetches, parameters, writes)

    return run


def _onnxruntime(title: str, model: OpenedModel, feeds: dict[str, Array]) -> Recording:
    """onnxruntime, with every tensor of the main graph as a result."""
    onnx, runtime = (require(name, "The runtime onnxruntime") for name in ("onnx", "onnxruntime"))
    if not model.path.endswith(".onnx"):
        raise EnforceNotMet(
            f"onnxruntime runs ONNX models, and {model.path} is none.", expected="a file that ends with .onnx",
            received=model.path, hint=f"fluidnb convert {model.path} -o model.onnx",
        )  # fmt: skip
    proto = onnx.load(model.path)
    results = [out.name for out in proto.graph.output]
    names = [n for node in proto.graph.node for n in node.output if n and n not in results]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.onnx")
        onnx.save(proto, file, save_as_external_data=True, location="weights")
        try:
            session = runtime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
            found = session.run([*results, *names], feeds)
        except Exception as error:  # its classes derive from Exception alone
            raise EnforceNotMet(
                f"onnxruntime cannot run {model.path}.", expected="a model and feeds that it takes",
                received=(str(error).splitlines() or [type(error).__name__])[0][:200],
                hint=f"fluidnb run {model.path} --feed … says more about feeds.",
            ) from None  # fmt: skip
    done = without_program(title, feeds, dict(zip([*results, *names], map(np.asarray, found), strict=True)))
    done.fetches = results
    return done


def _paddle(title: str, model: OpenedModel, feeds: dict[str, Array]) -> Recording:
    """Real Paddle in a separate process, with every variable of the main block as a result."""
    python = os.environ.get(PYTHON, sys.executable)
    script = Path(__file__).parent / "paddle_values.py"
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("feeds.npz", "names.npy", "values.npz")]
        model.save(folder)
        np.savez(files[0], **feeds)  # type: ignore[arg-type]  # numpy's stub takes no mapping
        names = list(dict.fromkeys((*model.computed(), *(v.name for v in model.fetches))))
        np.save(files[1], np.array(names))
        command = [python, "-P", str(script), os.path.join(folder, "inference"), *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EnforceNotMet(
                "Real Paddle cannot run the model.", expected=f"a Python with paddlepaddle in {PYTHON}",
                received=(done.stderr.strip().splitlines() or ["no message"])[-1][:160],
                hint=f"export {PYTHON}=/path/to/python",
            )  # fmt: skip
        with np.load(files[2]) as file:
            values = {names[int(key)]: file[key] for key in file.files}
    found = without_program(title, feeds, values)
    found.fetches = [v.name for v in model.fetches]
    return found


#: Name -> what runs a model.
RUNTIMES: dict[str, Callable[[str, OpenedModel, dict[str, Array]], Recording]] = {
    "cpu": _stepped(CPUPlace()),
    "cuda": _stepped(CUDAPlace(0)),
    "compiled": _compiled("off"),
    "native": _compiled("require"),
    "onnxruntime": _onnxruntime,
    "paddle": _paddle,
}
