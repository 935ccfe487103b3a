"""memory_optimize and release_memory: what they write, what they leave alone, what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.absent import TRANSPILERS
from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError, OpValueError
from fluidnb.passes.diff import diff
from fluidnb.passes.lint import lint
from tests.transpiler.models import CPU, L, build, lenet

X = np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4)


def chain(length: int = 5) -> list[Any]:
    """x and what a chain of operators makes of it."""
    made = [L.data("x", [4])]
    for _ in range(length):
        made.append(L.scale(made[-1], scale=2.0, bias=1.0))
    return made


def code(program: fluid.Program | None = None) -> list[str]:
    """The operators as text."""
    ops = (program or fluid.default_main_program()).global_block().ops
    return [f"{op.type} {' '.join(op.input_arg_names)} -> {' '.join(op.output_arg_names)}".rstrip(" >-") for op in ops]


def test_a_chain_needs_two_tensors() -> None:
    x, a, b, c, d, e = (v.name for v in chain())
    before = fluid.default_main_program().clone()
    fluid.memory_optimize(fluid.default_main_program())
    assert code() == [
        f"scale {x} -> {a}", f"scale {a} -> {b}", f"scale {b} -> {a}",
        f"scale {a} -> {b}", f"delete_var {a} {c}", f"scale {b} -> {e}", f"delete_var {b} {d}",
    ]  # fmt: skip
    text = str(diff(before, fluid.default_main_program()))
    assert f"+ delete_var(X=[{a}, {c}])" in text and f"- {c} = scale(X={b})" in text and f"+ {a} = scale(X={b})" in text
    assert lint(fluid.default_main_program()) == []


def test_release_memory_renames_nothing() -> None:
    x, a, b, c = (v.name for v in chain(3))
    fluid.release_memory(fluid.default_main_program())
    assert code() == [
        f"scale {x} -> {a}", f"scale {a} -> {b}", f"delete_var {a}", f"scale {b} -> {c}", f"delete_var {b}"
    ]  # fmt: skip


@pytest.mark.parametrize("machine", [False, True])
def test_what_is_fetched_is_the_same_bits(machine: bool) -> None:
    *_, last = chain()
    exe = fluid.Executor(CPU)
    (before,) = exe.run(feed={"x": X}, fetch_list=[last], keep_scopes=machine)
    fluid.memory_optimize(fluid.default_main_program())
    for _ in range(3):
        (after,) = exe.run(feed={"x": X}, fetch_list=[last], keep_scopes=machine)
        assert after.tobytes() == before.tobytes()


@pytest.mark.parametrize("transpile", [fluid.memory_optimize, fluid.release_memory])
@pytest.mark.parametrize("machine", [False, True])
def test_fetching_what_is_gone_says_so_and_never_gives_another_value(transpile: Any, machine: bool) -> None:
    _, *between, last = chain()
    values = fluid.Executor(CPU).run(feed={"x": X}, fetch_list=between)
    transpile(fluid.default_main_program())
    exe = fluid.Executor(CPU)
    for _ in range(2):
        for variable in between:
            with pytest.raises(EnforceNotMet, match=f'"{variable.name}" is fetched, but op .* drops it') as error:
                exe.run(feed={"x": X}, fetch_list=[last, variable], keep_scopes=machine)
            assert f'fluid.memory_optimize(program, skip_opt_set=["{variable.name}"])' in str(error.value)
    assert all(np.isfinite(v).all() for v in values)


def test_what_skip_opt_set_names_stays() -> None:
    _, *between, last = chain()
    expected = fluid.Executor(CPU).run(feed={"x": X}, fetch_list=[*between, last])
    fluid.memory_optimize(fluid.default_main_program(), skip_opt_set={between[0], between[2].name})
    got = fluid.Executor(CPU).run(feed={"x": X}, fetch_list=[between[0], between[2], last])
    assert [g.tobytes() for g in got] == [expected[i].tobytes() for i in (0, 2, 4)]
    with pytest.raises(EnforceNotMet, match="skip_opt_set"):
        fluid.Executor(CPU).run(feed={"x": X}, fetch_list=[between[1]])


def test_level_1_takes_what_fits() -> None:
    x = L.data("x", [8])
    wide = L.scale(x, scale=2.0)
    narrow = L.reduce_sum(wide, dim=1, keep_dim=True)
    again = L.scale(narrow, scale=2.0)
    out = L.scale(again, scale=2.0)
    programs = []
    for level in (0, 1):
        programs.append(fluid.default_main_program().clone())
        fluid.memory_optimize(programs[-1], level=level)
    names = [[n for op in p.global_block().ops for n in op.output_arg_names] for p in programs]
    assert names[0] == [wide.name, narrow.name, again.name, out.name]
    assert names[1] == [wide.name, narrow.name, wide.name, out.name]
    batch = np.arange(16, dtype="float32").reshape(2, 8)
    for program in programs:
        for machine in (False, True):
            (got,) = fluid.Executor(CPU).run(program, feed={"x": batch}, fetch_list=[out.name], keep_scopes=machine)
            assert got.tolist() == (8 * batch.sum(1, keepdims=True)).tolist()


def test_what_must_not_go_stays() -> None:
    x, y = L.data("x", [4]), L.data("y", [4])
    y.is_data = False  # as in programs of old versions
    step = L.autoincreased_step_counter()
    held = L.array_write(x, L.zeros([1], "int64"))
    read = L.array_read(held, L.zeros([1], "int64"))
    out = L.elementwise_add(L.elementwise_add(read, y), L.fc(x, 4))
    fluid.memory_optimize(fluid.default_main_program())
    drops = [op for op in fluid.default_main_program().global_block().ops if op.type == "delete_var"]
    gone = {name for op in drops for name in op.input("X")}
    kept = {x.name, y.name, step.name, held.name, out.name}
    persistable = {v.name for v in fluid.default_main_program().list_vars() if v.persistable}
    assert read.name in gone and not gone & (kept | persistable)
    exe = fluid.Executor(CPU)
    exe.run(fluid.default_startup_program())
    for machine in (False, True, False):
        exe.run(feed={"x": X, "y": X}, fetch_list=[out, step], keep_scopes=machine)


def test_random_numbers_stay_what_they_were() -> None:
    def make() -> tuple[list[Any], dict[str, np.ndarray]]:
        h = x = L.data("x", [4])
        for _ in range(6):
            h = L.scale(L.dropout(L.scale(h, scale=1.5), 0.5), scale=0.5)
        return [L.elementwise_add(h, x)], {"x": X}

    plain, optimized = build(make), build(make)
    fluid.memory_optimize(optimized.main, level=1)
    assert any("delete_var" in line for line in code(optimized.main))
    assert plain.train() == optimized.train() == optimized.train(machine=True)


def test_gradients_of_parameters_stay_unless_told() -> None:
    fetch: list[Any] = []
    for skip_grads in (True, False):
        model = build(lambda: lenet(4), fluid.optimizer.SGD(0.1))
        fluid.memory_optimize(model.main, skip_grads=skip_grads)
        model.fetch = fetch = [*model.fetch, "fc_0.w_0@GRAD"]
        if skip_grads:
            model.train(1)
        else:
            with pytest.raises(EnforceNotMet, match="fc_0.w_0@GRAD"):
                model.train(1)
    assert len(fetch) == 3


def test_doing_it_twice_changes_nothing_more() -> None:
    model = build(lambda: lenet(4), fluid.optimizer.SGD(0.1))
    fluid.memory_optimize(model.main)
    once = model.main.desc.serialize_to_string()
    fluid.memory_optimize(model.main)
    assert model.main.desc.serialize_to_string() == once


def test_backward_comes_before() -> None:
    programs = [fluid.Program(), fluid.Program()]
    for program, transpile in zip(programs, (fluid.memory_optimize, fluid.release_memory), strict=True):
        with fluid.program_guard(program, fluid.default_startup_program()):
            loss = L.mean(L.square(L.square(L.scale(L.data("x", [4], stop_gradient=False), scale=2.0))))
            transpile(program)
            if transpile is fluid.memory_optimize:
                with pytest.raises(OpValueError, match="but square overwrites it"):
                    fluid.append_backward(loss)
            else:
                fluid.append_backward(loss)
                with pytest.raises(EnforceNotMet, match="release_memory come last, after minimize"):
                    fluid.Executor(CPU).run(feed={"x": X}, fetch_list=[loss])


def test_the_log_tells_what_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    _, a, b, c, *_ = chain()
    fluid.memory_optimize(fluid.default_main_program(), print_log=True)
    text = capsys.readouterr().out
    assert text.startswith("block 0, variables that do not outlive a run, 64 rows to a batch: at most 6.0 KB before, 3")
    assert f"{c.name} takes the memory of {a.name}" in text and f"{a.name}, {c.name} are dropped" in text
    assert len(text.splitlines()) == 6
    fluid.memory_optimize(fluid.Program())
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda p: fluid.memory_optimize(p, level=2), OpValueError, "only support opt_level 0 or 1."),
        (lambda p: fluid.memory_optimize("p"), OpTypeError, "must be a Program"),
        (lambda p: fluid.release_memory(None), OpTypeError, "must be a Program"),
        (lambda p: fluid.memory_optimize(p, [3]), OpTypeError, "skip_opt_set has variables and names"),
        (lambda p: fluid.release_memory(p, "scale_0.tmp"), NotFound, 'Did you mean "scale_0.tmp_0"'),
    ],
)
def test_what_is_refused_changes_nothing(call: Any, kind: type[Exception], message: str) -> None:
    chain()
    program = fluid.default_main_program()
    before, version = program.desc.serialize_to_string(), program.version
    with pytest.raises(kind) as error:
        call(program)
    assert message in error.value.text(without=["at"])  # the line of the call has the message too
    assert "test_memory_optimize.py" in str(error.value)
    assert (program.desc.serialize_to_string(), program.version) == (before, version)


def test_fluids_names() -> None:
    assert fluid.memory_optimize is fluid.transpiler.memory_optimize
    assert fluid.memory_optimization_transpiler.release_memory is fluid.release_memory
    for name in TRANSPILERS:
        with pytest.raises(NotImplementedError, match=rf"^fluid\.transpiler\.{name} is not .*: .*to come") as e:
            getattr(fluid.transpiler, name)("anything")
        assert e.value.hint
    with pytest.raises(AttributeError, match='no memory_optimise.*"memory_optimize"'):
        _ = fluid.transpiler.memory_optimise


@pytest.mark.parametrize(("level", "options"), [(0, {}), (1, {}), (1, {"level": 1})])
def test_version_0_12_puts_the_log_second(level: int, options: Any, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for arguments in ((True, *(() if options else (level,))), ()):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            chain()
            program = fluid.default_main_program()
            old = {**options} if arguments else {"print_log": True, "level": level}
            fluid.memory_optimization_transpiler.memory_optimize(program, *arguments, **old)
            texts.append((capsys.readouterr().out, [op.type for op in program.global_block().ops]))
    assert texts[0] == texts[1] and texts[0][0].startswith("block 0")


def test_outputs_of_one_operator_that_end_together() -> None:
    x = L.data("x", [8])
    for _ in range(3):
        x = L.concat([L.scale(part, scale=2.0) for part in L.split(x, 2, dim=1)], axis=1)
    (before,) = fluid.Executor(CPU).run(feed={"x": np.ones((2, 8), "float32")}, fetch_list=[x])
    fluid.memory_optimize(fluid.default_main_program())
    written = [n for op in fluid.default_main_program().global_block().ops for n in op.output_arg_names]
    assert len(set(written)) < len(written)
    (after,) = fluid.Executor(CPU).run(feed={"x": np.ones((2, 8), "float32")}, fetch_list=[x])
    assert after.tobytes() == before.tobytes()


def test_a_program_of_its_bytes_runs() -> None:
    """Names that sharing has replaced are no data, though no operator writes them."""
    x = L.data("x", [4])
    y = L.mean(L.exp(L.relu(L.tanh(x))))
    program = fluid.default_main_program()
    fluid.memory_optimize(program, skip_opt_set=[y])
    read = fluid.Program.parse_from_string(program.desc.serialize_to_string())
    runs = [fluid.Executor(CPU).run(p, feed={"x": X}, fetch_list=[y.name])[0] for p in (program, read)]
    assert runs[0].tobytes() == runs[1].tobytes()
