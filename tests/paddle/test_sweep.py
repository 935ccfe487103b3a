"""One-operator programs over grids of shapes and attributes, with our gradients, run by us and by real Paddle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError
from fluidnb.op import get_op, has_op
from fluidnb.testing.values import value_of
from tests.paddle import harness
from tests.paddle.grid import Case, cases
from tests.paddle.grid_dense import dense_cases
from tests.paddle.grid_proposals import proposal_cases
from tests.paddle.grid_sequence import sequence_cases
from tests.paddle.grid_tensor import tensor_cases
from tests.paddle.grid_vision import vision_cases
from tests.paddle.harness import require_paddle
from tests.tools.sampling import sample

pytestmark = pytest.mark.paddle


def build(case: Case) -> tuple[Any, dict[str, Any], list[str]]:
    """The program of a case with our gradients: program, feeds, names to fetch."""
    program = fluid.Program()
    block = program.global_block()
    feed: dict[str, Any] = {}
    slots: dict[str, list[str]] = {}
    for slot, value in case.inputs.items():
        slots[slot] = []
        for i, given in enumerate(value if isinstance(value, list) else [value]):
            name, tensor = f"{slot}_{i}", value_of(given)
            shape, dtype, level = tensor.shape(), str(np.asarray(tensor).dtype), len(tensor.lod())
            block.create_var(name=name, shape=shape, dtype=dtype, lod_level=level, stop_gradient=False)
            feed[name] = tensor if level else np.asarray(tensor)
            slots[slot].append(name)
    updates = get_op(case.op).alias  # batch_norm wants MeanOut to be the very variable Mean
    outs = {slot: slots[updates[slot]] if slot in updates else [f"out_{slot}"] for slot in (*case.outputs, *case.extra)}
    for name in (n for slot, row in outs.items() if slot not in updates for n in row):
        block.create_var(name=name, dtype="float32")
    block.append_op(type=case.op, inputs=slots, outputs=outs, attrs=case.attrs)
    fetch = [outs[slot][0] for slot in case.outputs]
    if case.grads:
        values = run(program, feed, fetch)
        floats = [(n, v) for n, v in zip(fetch, values, strict=True) if np.asarray(v).dtype.kind == "f"]
        name, out = floats[case.through]
        value, lod = np.asarray(out), out.lod()
        cotangent = block.create_var(name=f"{name}_cot", shape=value.shape, dtype=str(value.dtype), lod_level=len(lod))
        noise = np.random.default_rng(value.size).uniform(0.5, 1.5, value.shape).astype(value.dtype)
        feed[cotangent.name] = fluid.LoDTensor(noise, out.lod_) if lod else noise
        wanted = [block.var(n) for slot in case.grads for n in slots[slot]]
        with fluid.program_guard(program):
            fetch += [g.name for g in fluid.gradients([block.var(name)], wanted, [cotangent])]
    return program, feed, fetch


def run(program: Any, feed: dict[str, Any], fetch: list[str]) -> list[Any]:
    """The results of a program here: a LoDTensor for each fetch."""
    return list(fluid.Executor(fluid.CPUPlace()).run(program, feed=feed, fetch_list=fetch, return_numpy=False))


def in_paddle(folder: Path, built: list[tuple[Any, dict[str, Any], list[str]]]) -> list[list[Any] | str]:
    """Paddle's results of the programs: a LoDTensor for each fetch, or its error."""
    for n, (program, feed, _) in enumerate(built):
        (folder / f"{n}.pb").write_bytes(program.desc.serialize_to_string())
        np.savez(folder / f"{n}.npz", **feed)
    lods = [{n: v.lod() for n, v in feed.items() if isinstance(v, fluid.LoDTensor)} for _, feed, _ in built]
    jobs = [{"fetch": fetch, "lod": lod} for (_, _, fetch), lod in zip(built, lods, strict=True)]
    (folder / "cases.json").write_text(json.dumps(jobs))
    results: list[list[Any] | str] = []
    while len(results) < len(built):
        harness.in_paddle("paddle_sweep", folder, len(results), may_die=True)
        while len(results) < len(built):
            out, error = folder / f"{len(results)}.out.npz", folder / f"{len(results)}.error"
            if out.exists():
                found = json.loads((folder / f"{len(results)}.lod").read_text())
                with np.load(out) as file:
                    arrays = [file[str(i)] for i in range(len(file.files))]
                offsets = [tuple(map(tuple, lod)) for lod in found]
                results.append([fluid.LoDTensor(a, lod) for a, lod in zip(arrays, offsets, strict=True)])
            elif error.exists():
                results.append(error.read_text())
            else:
                results.append("Paddle lost its process")
                break
    return results


def difference(case: Case, mine: list[Any], theirs: list[Any], fetch: list[str]) -> str:
    """The difference of two results; an empty text when they agree. 2.6.2 has [] where Fluid has [1]."""
    wide = any(np.asarray(a).dtype == np.float32 for a in mine + theirs)
    for name, x, y in zip(fetch, mine, theirs, strict=True):
        if x.lod_ != y.lod_ and name.startswith("out_"):  # Paddle gives a gradient its LoD, or not, as it likes
            return f"{name}: LoD {x.lod_} for {y.lod_}"
        a, b = (v.reshape(()) if v.size == 1 and v.ndim < 2 else v for v in (np.asarray(x), np.asarray(y)))
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{name}: {a.dtype}{a.shape} for {b.dtype}{b.shape}"
        rtol = case.rtol or (2e-4 if wide else 1e-7)
        if not np.allclose(a.astype("f8"), b.astype("f8"), rtol, 2e-5 if wide else 1e-9, equal_nan=True):
            return f"{name}: off by {np.nanmax(np.abs(a.astype('f8') - b.astype('f8'))):.2e}"
    return ""


def test_our_operators_agree_with_paddles(tmp_path: Path) -> None:
    require_paddle()
    grids = (*cases(), *dense_cases(), *sequence_cases(), *tensor_cases(), *vision_cases(), *proposal_cases())
    chosen = sample([c for c in grids if has_op(c.op)], 250)
    ran, built, mine, wrong = [], [], [], []
    for case in chosen:
        try:
            program, feed, fetch = build(case)
            mine.append(run(program, feed, fetch))
        except FluidError as e:
            wrong.append(f"{case.id}: we refuse: {str(e).splitlines()[0]}")
        else:
            built.append((program, feed, fetch))
            ran.append(case)
    for case, (_, _, fetch), ours, theirs in zip(ran, built, mine, in_paddle(tmp_path, built), strict=True):
        if isinstance(theirs, str):
            lines = [t for t in theirs.splitlines() if "Error" in t or "rror:" in t] or theirs.splitlines()
            wrong.append(f"{case.id}: Paddle refuses: {lines[-1][:200]}")
        elif text := difference(case, ours, theirs, fetch):
            wrong.append(f"{case.id}: {text}")
    assert not wrong, f"{len(wrong)} of {len(chosen)} differ:\n" + "\n".join(wrong[:60])


def test_there_are_a_thousand_cases() -> None:
    assert len({c.id for c in cases()}) >= 1000
    with pytest.raises(FluidError):
        build(Case("no_such_operator", {}))
