"""Programs of Paddle 3 with random changes, and parameters that were swapped: clear errors, little memory, no code."""

from __future__ import annotations

import json
import random
import shutil
import struct
import time
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import pir
from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.testing import run_op
from tests.fuzz.mutate_json import changed
from tests.pir.test_convert import X, data, fetch, op, tensor, written

GOLDEN = Path(__file__).parents[1] / "golden" / "pir" / "3.3"
NAMES = ("branches", "detector", "simple_rnn", "tensor_functions", "zero_d", "transformer_decoder")


@pytest.mark.parametrize("name", NAMES)
def test_changed_programs_open_or_are_refused(name: str, tmp_path: Path) -> None:
    """A program that opens is drawn and summarized too; it is not run, since a changed limit of a loop is no damage."""
    program = json.loads((GOLDEN / name / "inference.json").read_text())
    if (GOLDEN / name / "inference.pdiparams").exists():
        shutil.copy(GOLDEN / name / "inference.pdiparams", tmp_path)
    refused = 0
    for seed in range(25):
        dice = random.Random(f"{name} {seed}")
        broken = changed(program, dice, dice.choice([1, 1, 2, 5]))
        (tmp_path / "inference.json").write_text(json.dumps(broken))
        try:
            model = fluid.open(str(tmp_path))
            assert str(model) and model.program._repr_html_() and model.program.summary()
        except FluidError as error:
            assert str(error).count(".") and not str(error).startswith("op 0 failed")
            refused += 1
    assert 0 < refused < 25


def tensors(path: Path, count: int) -> list[bytes]:
    """The tensors of a file of parameters, as bytes."""
    found, content, at = [], path.read_bytes(), 0
    for _ in range(count):
        start = at
        (levels,) = struct.unpack_from("<Q", content, at + 4)
        assert levels == 0
        (size,) = struct.unpack_from("<i", content, at + 16)
        desc = content[at + 20 : at + 20 + size]
        at += 20 + size + 4 * int(np.prod(_dims(desc)))
        found.append(content[start:at])
    return found


def _dims(desc: bytes) -> list[int]:
    """Sizes of a TensorDesc: field 2, varints."""
    at, dims = 0, []
    while at < len(desc):
        tag, value, at = desc[at], 0, at + 1
        shift = 0
        while True:
            byte = desc[at]
            value |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        if tag == 0x10:
            dims.append(value)
    return dims


def test_swapped_tensors_of_different_shapes(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "transformer_decoder", tmp_path / "m")
    file = tmp_path / "m" / "inference.pdiparams"
    parts = tensors(file, 13)
    assert b"".join(parts) == file.read_bytes()
    file.write_bytes(b"".join([parts[1], parts[0], *parts[2:]]))
    with pytest.raises(EnforceNotMet, match='does not hold the variable "embedding_0.w_0"(.|\n)*expected'):
        fluid.open(str(tmp_path / "m"))
    for wrong in (parts[:-1], [*parts, parts[0]], parts[1:]):
        file.write_bytes(b"".join(wrong))
        with pytest.raises(EnforceNotMet, match="inference.pdiparams"):
            fluid.open(str(tmp_path / "m"))


def test_a_wrong_prefix_names_close_ones(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "branches", tmp_path / "model")
    for path in ("model/inferense", "model/inferenc", "modell"):
        with pytest.raises(EnforceNotMet, match=r"There is no model(.|\n)*Did you mean"):
            fluid.open(str(tmp_path / path))


def test_unknown_operators_are_counted_with_close_names(tmp_path: Path) -> None:
    folds = [op("1.fold_paper", [1], [(n, X)]) for n in (2, 3)]
    path = written(tmp_path, data(1, "x", X), *folds, op("1.soft_max", [2], [(4, X)]), fetch(4))
    model = fluid.open(path)
    assert model.unknown == {"fold_paper": 2, "soft_max": 1}
    assert 'unknown   2 fold_paper, 1 soft_max (Did you mean "softmax"' in str(model)
    assert "fold_paper" in (model.program._repr_html_() or "")


@pytest.mark.parametrize(
    "text", ['{"base_code": ' + "[" * 10**6, "[" + "0," * 10**6 + "0]", '"' + "a" * 10**7 + '"', "1" * 10**6]
)
def test_bombs_of_json(text: str, tmp_path: Path) -> None:
    (tmp_path / "inference.json").write_text(text)
    began = time.process_time()
    with pytest.raises(EnforceNotMet, match="is no program of Paddle 3"):
        fluid.open(str(tmp_path / "inference.json"))
    assert time.process_time() - began < 2


def test_a_constant_of_enormous_size_is_no_memory(tmp_path: Path) -> None:
    """Opening and drawing allocate nothing for what a program would compute."""
    big = tensor("f32", 1 << 30, 1 << 30)
    path = written(tmp_path, op("1.full", [], [(1, big)], shape=[1 << 30, 1 << 30], value=1.0), fetch(1))
    model = fluid.open(path)
    assert model.program._repr_html_() and model.program.summary().total.activations == 4 << 60


def quantized(path: Path, kind: str, largest: int) -> str:
    """A program with one operation of quantization."""
    one = tensor("f32", 1)
    attrs = {"quant_axis": -1, "bit_length": 8, "qmin": -largest - 1, "qmax": largest, "round_type": 0,
             "is_test": True, "only_observer": False}  # fmt: skip
    results = [(9 + i, X if i == 0 else one) for i in range(4)]
    operation = op(f"1.{kind}", [1, 2, 0, 0, 0], results, **attrs)
    return written(path, data(1, "x", X), data(2, "s", one), operation, fetch(9))


@pytest.mark.parametrize(("largest", "bits"), [(127, 8), (7, 4), (32767, 16)])
def test_the_largest_number_of_a_quantization(largest: int, bits: int, tmp_path: Path) -> None:
    """Paddle 3.3.1 gives round(x / s * qmax) within [-qmax - 1, qmax], whatever qmin and bit_length are."""
    x, s = np.array([[0.5, -3, 1.99]], "float32"), np.array([2], "float32")
    model = fluid.open(quantized(tmp_path, "quantize_linear", largest))
    wanted = np.clip(np.rint(x / s * np.float32(largest)), -largest - 1, largest)
    np.testing.assert_array_equal(model.run({"x": x, "s": s})[0], wanted)
    assert model.program.global_block().ops[2].attr("bit_length") == bits and not model.unconverted
    back = fluid.open(quantized(tmp_path, "dequantize_linear", largest)).run({"x": wanted, "s": s})[0]
    np.testing.assert_allclose(back, wanted * 2 / largest, 1e-6)
    assert run_op("quantize_linear", {"X": x, "Scale": s}, {"bit_length": bits})["Y"].tolist() == wanted.tolist()


def test_a_largest_number_that_is_no_number_of_bits(tmp_path: Path) -> None:
    done = pir.convert(pir.read(quantized(tmp_path, "quantize_linear", 100)))
    assert dict(done.unknown) == {"pd_op.quantize_linear with qmax 100": 1}
