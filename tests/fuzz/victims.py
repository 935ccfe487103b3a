"""Programs that the fuzzers break: every operator's test cases, recorded programs, grids, programs with blocks."""

from __future__ import annotations

import importlib
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.backward import append_backward
from fluidnb.errors import FluidError
from fluidnb.op import EMPTY, has_op
from fluidnb.testing import OpTest
from fluidnb.testing.one_op import OneOp
from fluidnb.values import LoDTensor, SelectedRows, VarType
from tests.backward import test_second
from tests.fuzz.mutate import Victim
from tests.fuzz.nests import Nest, feed, weights
from tests.ops import goldens
from tests.paddle import grid, grid_dense, grid_sequence, grid_vision, test_live_lod, test_live_sequences
from tests.paddle import programs_control_flow as control
from tests.paddle.fluidnb_side import initial
from tests.paddle.test_sweep import build

_FLOATING = (VarType.FP16, VarType.FP32, VarType.FP64)

Maker = Callable[[], Victim]

#: Makers for each operator, or kind of program.
Makers = dict[str, list[tuple[str, Maker]]]


def op_tests() -> Iterator[type[OpTest]]:
    """The OpTests of ``tests/ops``."""
    for path in sorted(Path(goldens.__file__).parent.glob("test_*.py")):
        if path.stem != "test_complete":
            importlib.import_module(f"tests.ops.{path.stem}")
    left = list(OpTest.__subclasses__())
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        alone = kind.inputs or kind.attrs or kind.setUp is not OpTest.setUp  # others build what they run themselves
        if alone and kind.__module__.startswith("tests.ops.") and has_op(kind.op_type):
            yield kind


def of_op_test(kind: type[OpTest]) -> Victim:
    """An operator as its test calls it, with its gradient where it has one."""
    test = kind()
    test.setUp()
    one = OneOp(test.op_type, test.inputs, test.attrs, test._outputs())
    program = one.program()
    given = [pair for row in one.inputs.values() for pair in row]
    feeds = {n: v for n, v in given if isinstance(v, LoDTensor)}
    fetch = [n for names in one.outputs.values() for n in names if n != EMPTY]
    held = {n: v for n, v in given if not isinstance(v, LoDTensor)}
    try:
        results = one.run(program)
        backward, slopes = one.backward(None, set())
    except FluidError:  # no gradient
        return Victim(program, feeds, fetch, held)
    if slopes:
        feeds |= {n: LoDTensor(v, results[n.removesuffix("@GRAD")].lod_) for n, v in slopes.items()}
        written = [n for op in backward.desc.blocks[0].ops[1:] for n in op.output_arg_names() if n != EMPTY]
        program = backward
        if kind.op_type != "select_input":  # which gives one of its inputs a gradient
            fetch += sorted(set(written) - set(fetch))
    return Victim(program, feeds, fetch, held)


def of_kept_rows(op: str) -> Victim:
    """An operator over SelectedRows, whose values are in the scope."""
    program = fluid.Program()
    block = program.global_block()
    rows = block.create_var(name="rows", type=VarType.SELECTED_ROWS, shape=[5, 2], dtype="float32", persistable=True)
    out = block.create_var(name="out", dtype="float32")
    if op == "merge_selected_rows":
        merged = block.create_var(name="merged", type=VarType.SELECTED_ROWS, dtype="float32")
        block.append_op(type=op, inputs={"X": [rows]}, outputs={"Out": [merged]})
        rows = merged
    block.append_op(type="get_tensor_from_selected_rows", inputs={"X": [rows]}, outputs={"Out": [out]})
    value = SelectedRows([3, 1, 3], 5)
    value.get_tensor().set(np.arange(6, dtype="float32").reshape(3, 2))
    return Victim(program, {}, ["out"], {"rows": value})


def of_files(several: bool) -> Victim:
    """Variables go into a file and come back out of it, and one of them is dropped."""
    program = fluid.Program()
    block = program.global_block()
    for name in ("a", "b", "a_back", "b_back"):
        block.create_var(name=name, shape=[2, 3], dtype="float32")
    suffix, lists = ("_combine", [["a", "b"]]) if several else ("", [["a"], ["b"]])
    for names in lists:
        path = {"file_path": "_and_".join(names)}
        block.append_op(type="save" + suffix, inputs={"X": names}, attrs=path)
        block.append_op(type="load" + suffix, outputs={"Out": [n + "_back" for n in names]}, attrs=path)
    block.append_op(type="delete_var", inputs={"X": ["a"]})
    x = np.arange(6, dtype="float32").reshape(2, 3)
    return Victim(program, {"a": x, "b": -x}, ["a_back", "b_back"])


def of_inference() -> Victim:
    """A program that begins with feed and ends with fetch, as saved ones do."""
    program = fluid.Program()
    block = program.global_block()
    box = block.create_var(name="feed", type=VarType.FEED_MINIBATCH, persistable=True)
    shelf = block.create_var(name="fetch", type=VarType.FETCH_LIST, persistable=True)
    for name in ("x", "y"):
        block.create_var(name=name, shape=[-1, 3], dtype="float32")
    block.append_op(type="feed", inputs={"X": [box]}, outputs={"Out": ["x"]}, attrs={"col": 0})
    block.append_op(type="tanh", inputs={"X": ["x"]}, outputs={"Out": ["y"]})
    block.append_op(type="fetch", inputs={"X": ["y"]}, outputs={"Out": [shelf]}, attrs={"col": 0})
    return Victim(program, {"x": np.arange(6, dtype="float32").reshape(2, 3)}, ["y"])


def of_second(case: grid.Case) -> Victim:
    """A program of one operator, its gradient, and the gradient of that."""
    program, feeds, fetch = build(case)
    block = program.global_block()
    with fluid.program_guard(program):
        sources = [block.var(f"{case.grads[0]}_0"), block.var(fetch[0] + "_cot")]
        outputs = [block.var(n) for n in fetch[1:]]
        more = fluid.gradients([v for v in outputs if v.dtype in _FLOATING], sources)
    return Victim(program, feeds, [*fetch, *(g.name for g in more if g is not None)])


def of_function(build: Callable[..., Any], arrays: list[np.ndarray]) -> Victim:
    """A function of ``tests/backward``, its gradients, and the gradients of those."""
    with fluid.fresh():
        first, second = test_second.twice(build, arrays)
        feeds = {f"{letter}{i}": a for letter in "vc" for i, a in enumerate(arrays)}
        return Victim(fluid.default_main_program(), feeds, [g.name for g in (*first, *second)])


def of_golden(case: goldens.Case) -> Victim:
    """A recorded program."""
    return Victim(fluid.Program.parse_from_string(case.program), case.feed(), [row["var"] for row in case.fetches])


def of_grid(case: grid.Case) -> Victim:
    """A row of a grid."""
    return Victim(*build(case))


def of_training(make: Callable[[], Any]) -> Victim:
    """A program over sequences or with blocks, its backward and its optimizer."""
    main, startup, loss = control.trained(make)
    x = np.random.default_rng(3).standard_normal(control.SHAPE, np.float32)
    held = {n: LoDTensor(v) for n, v in initial(main, startup).items()}
    return Victim(main, {"x": x}, [loss], held)


def of_nest(seed: int) -> Victim:
    """A random program of loops, branches and recurrent networks."""
    dice, rng = random.Random(seed), np.random.default_rng(seed)
    with fluid.fresh():
        program, loss = Nest(dice.randrange).build()
        pairs = append_backward(loss) if dice.random() < 0.7 else []
    program.random_seed = 5
    held = {n: LoDTensor(v) for n, v in weights(rng).items()}
    return Victim(program, feed(rng), [loss.name, *(g.name for _, g in pairs)], held)


def makers() -> Makers:
    """All there are."""
    found: Makers = defaultdict(list)
    for kind in op_tests():
        found[kind.op_type].append((f"{kind.__module__}.{kind.__name__}", partial(of_op_test, kind)))
    for case in goldens.cases():
        found[case.id.split("/")[0]].append((case.id, partial(of_golden, case)))
    pairs = {"X": grid.values((2, 3, 4)), "Y": grid.values((2, 4, 2), salt=1)}
    more = [grid.Case("bmm", pairs, grads=("X", "Y"))]
    grids = (
        more, grid.cases(), grid_dense.dense_cases(), grid_sequence.sequence_cases(), grid_vision.vision_cases(),
    )  # fmt: skip
    for row in (c for cases in grids for c in cases if has_op(c.op)):
        found[row.op].append((row.id, partial(of_grid, row)))
        if row.grads and any(has_op(row.op + suffix) for suffix in ("_grad_grad", "_double_grad")):
            found[f"{row.op} twice"].append((f"{row.id} twice", partial(of_second, row)))
    tables = test_second.FUNCTIONS, test_second.PAIRS, test_second.POOLS, test_second.NORMS, test_second.CONVOLUTIONS
    for name, (function, *arrays) in (row for table in tables for row in table.items()):
        found[f"function {name}"].append((f"function {name}", partial(of_function, function, arrays)))
    for op in ("merge_selected_rows", "get_tensor_from_selected_rows"):
        found[op].append((op, partial(of_kept_rows, op)))
    found["feed"].append(("feed and fetch", of_inference))
    found["save"].append(("save and load", partial(of_files, False)))
    found["save_combine"].append(("save_combine and load_combine", partial(of_files, True)))
    for make in (*control.PROGRAMS, *test_live_lod.PROGRAMS, *test_live_sequences.PROGRAMS):
        found[make.__name__].append((make.__name__, partial(of_training, make)))
    for seed in range(40):
        found[f"nest {seed % 8}"].append((f"nest {seed}", partial(of_nest, seed)))
    return dict(found)
