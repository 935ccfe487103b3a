"""Broken files: programs, tensors, combined parameters, checkpoints, RecordIO and the archives of data sets.

A case is a kind of file, a seed that makes a valid one, and edits of its bytes. What reads the file gives a result or
an error with a sentence, and takes at most twice the memory that the valid file takes.
"""

from __future__ import annotations

import io
import os
import pickle
import random
import struct
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.data.reader import recordio
from tests.fuzz.oracle import RESULT, Outcome, judge

#: Bytes that reading a broken file may take: the valid ones take less than half of it.
CASE_BYTES = 64 << 20

NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)


def case(dice: random.Random) -> dict[str, Any]:
    """A kind of file, and edits: (how, where from 0 to 1, a number) each."""
    kind = dice.choice(sorted(KINDS))
    count = dice.choice([1, 1, 1, 2, 3, 8])
    hows = ("flip", "set", "number32", "number64", "cut", "insert", "drop", "double", "zero", "swap", "varint")
    edits = [[dice.choice(hows), dice.choice([dice.random(), dice.random() ** 4]), dice.choice(
        [dice.getrandbits(8), dice.choice(NUMBERS)])] for _ in range(count)]  # fmt: skip
    return {"kind": kind, "edits": edits}


def broken(data: bytes, edits: list[list[Any]]) -> bytes:
    """Bytes with edits."""
    b = bytearray(data)
    for how, at, number in edits:
        i = min(int(at * len(b)), max(len(b) - 1, 0))
        if not b:
            break
        if how == "flip":
            b[i] ^= 1 << number % 8
        elif how == "set":
            b[i] = number % 256
        elif how == "number32":
            b[i : i + 4] = struct.pack("<I", number % 2**32)
        elif how == "number64":
            b[i : i + 8] = struct.pack("<Q", number % 2**64)
        elif how == "varint":
            b[i : i + 1] = _varint(number)
        elif how == "cut":
            del b[i:]
        elif how == "insert":
            b[i:i] = bytes([number % 256]) * (1 + number % 9)
        elif how == "drop":
            del b[i : i + 1 + number % 9]
        elif how == "double":
            b[i:i] = b[i : i + 32]
        elif how == "zero":
            b[i : i + 16] = bytes(len(b[i : i + 16]))
        else:
            j = (i * 7 + number) % len(b)
            b[i], b[j] = b[j], b[i]
    return bytes(b)


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


# ---- valid files, and what reads them


@cache
def model() -> dict[str, bytes]:
    """Files of a small trained model."""
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder, fluid.fresh():
        x, y = fluid.layers.data("x", [4]), fluid.layers.data("y", [1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1, name="out"), y))
        fluid.optimizer.Adam(0.1).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_inference_model(f"{folder}/separate", ["x"], [loss.block.var("out.tmp_1")], exe)
        fluid.io.save_inference_model(f"{folder}/one", ["x"], [loss.block.var("out.tmp_1")], exe, None, "m", "p")
        fluid.io.save_persistables(exe, f"{folder}/state")
        fluid.io.save_persistables(exe, f"{folder}/all", filename="all")
        found["program"] = fluid.default_main_program().desc.serialize_to_string()
        for path in Path(folder).rglob("*"):
            if path.is_file():
                found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def _model_with(folder: str, part: str, name: str, data: bytes) -> None:
    for key, value in model().items():
        if key.startswith(part + "/"):
            path = Path(folder) / key
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data if key == f"{part}/{name}" else value)


def _read_program(data: bytes) -> None:
    program = fluid.Program.parse_from_string(data)
    str(program)
    program.clone(for_test=True)


def _load_model(name: str) -> Callable[[bytes], None]:
    def load(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder, fluid.scope_guard(fluid.Scope()):
            _model_with(folder, "separate", name, data)
            exe = fluid.Executor(fluid.CPUPlace())
            program, feeds, fetches = fluid.io.load_inference_model(f"{folder}/separate", exe)
            exe.run(program, feed={n: np.ones((2, 4), "float32") for n in feeds}, fetch_list=fetches)

    return load


def _load_one(name: str) -> Callable[[bytes], None]:
    def load(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder, fluid.scope_guard(fluid.Scope()):
            _model_with(folder, "one", name, data)
            exe = fluid.Executor(fluid.CPUPlace())
            fluid.io.load_inference_model(f"{folder}/one", exe, "m", "p")

    return load


def _load_state(part: str, name: str) -> Callable[[bytes], None]:
    def load(data: bytes) -> None:
        program = fluid.Program.parse_from_string(model()["program"])
        with tempfile.TemporaryDirectory() as folder, fluid.scope_guard(fluid.Scope()):
            _model_with(folder, part, name, data)
            exe = fluid.Executor(fluid.CPUPlace())
            filename = name if part == "all" else None
            fluid.io.load_persistables(exe, f"{folder}/{part}", program, filename)

    return load


def _records() -> bytes:
    file = io.BytesIO()
    recordio.write_records(file, [pickle.dumps((np.arange(4), 3)), b"", b"abc" * 50])
    return file.getvalue()


def _read_records(data: bytes) -> None:
    for _ in recordio.read_records(io.BytesIO(data), "records"):
        pass


def _recordio_reader(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r"
        path.write_bytes(data)
        for _ in fluid.reader.creator.recordio(str(path))():
            pass


def _snappy() -> bytes:
    """A chunk of RecordIO in snappy's framing."""
    import zlib

    record = b"hello hello hello hello"
    body = struct.pack("<I", len(record)) + record
    block = _varint(len(body)) + bytes([(len(body) - 1) << 2]) + body
    frame = b"\xff\x06\x00\x00sNaPpY" + b"\x00" + (len(block) + 4).to_bytes(3, "little") + b"\0\0\0\0" + block
    return struct.pack("<IIIII", 0x01020304, zlib.crc32(frame), 1, len(frame), 1) + frame


def _with_checksum(read: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Read with the checksum set right, so that what is behind it is reached."""
    import zlib

    def fixed(data: bytes) -> None:
        if len(data) > 20:
            data = data[:4] + struct.pack("<I", zlib.crc32(data[20:])) + data[8:12] + struct.pack(
                "<I", len(data) - 20) + data[16:]  # fmt: skip
        read(data)

    return fixed


KINDS: dict[str, tuple[Callable[[], bytes], Callable[[bytes], None]]] = {
    "program": (lambda: model()["program"], _read_program),
    "model": (lambda: model()["separate/__model__"], _load_model("__model__")),
    "model of one file": (lambda: model()["one/m"], _load_one("m")),
    "tensor": (lambda: model()["separate/out.w_0"], _load_model("out.w_0")),
    "combined": (lambda: model()["one/p"], _load_one("p")),
    "state": (lambda: model()["state/out.w_0_moment1_0"], _load_state("state", "out.w_0_moment1_0")),
    "combined state": (lambda: model()["all/all"], _load_state("all", "all")),
    "RecordIO": (_records, _read_records),
    "RecordIO reader": (_records, _recordio_reader),
    "RecordIO checked": (_records, _with_checksum(_read_records)),
    "RecordIO snappy": (_snappy, _with_checksum(_read_records)),
}


@cache
def valid(kind: str) -> bytes:
    """The valid file of a kind."""
    return KINDS[kind][0]()


def run(one: dict[str, Any]) -> Outcome:
    """Read a broken file."""
    data = broken(valid(one["kind"]), one["edits"])
    here = os.getcwd()
    try:
        with fluid.fresh():
            KINDS[one["kind"]][1](data)
    except BaseException as error:
        return judge(error, own=(__file__,))
    finally:
        os.chdir(here)
    return Outcome(RESULT)


def smaller(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Cases with fewer edits."""
    edits = one["edits"]
    for i in range(len(edits)):
        if len(edits) > 1:
            yield one | {"edits": edits[:i] + edits[i + 1 :]}


def show(one: dict[str, Any]) -> str:
    """Python code that runs the case again."""
    return f"from tests.fuzz import files\nprint(files.run({one!r}))"
