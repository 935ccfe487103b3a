"""Clones, pruned programs and blocks of programs with loops, branches and recurrent networks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.passes.lint import lint
from fluidnb.program import Parameter, Program, prune_block
from fluidnb.program.sub_blocks import inner_blocks, own_blocks

L = fluid.layers
EXE = fluid.Executor(fluid.CPUPlace())


@contextmanager
def loop(count: int) -> Iterator[None]:
    """A while that runs so often."""
    i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", count)
    more = L.less_than(i, n)
    with L.While(more).block():
        yield
        L.increment(i)
        L.less_than(i, n, cond=more)


@contextmanager
def branch(flag: Any) -> Iterator[None]:
    """A block that runs if a bool holds."""
    with L.control_flow.ConditionalBlock([flag], is_scalar_condition=True).block():
        yield


def whole() -> tuple[Program, dict[str, str]]:
    """A while around a branch, a branch alone, an RNN; the names of what each of them computes."""
    x, flag = L.data("x", [4]), L.data("flag", [1], dtype="bool", append_batch_size=False)
    total, other = L.scale(x, scale=0.0), L.scale(x, scale=0.0)
    with branch(flag):
        L.assign(L.scale(x, scale=2.0), other)
    with loop(3):
        inside = L.dropout(L.fc(x, 4, param_attr="loop.w"), 0.5)
        with branch(flag):
            L.sums([total, inside], out=total)
    rnn, start = L.StaticRNN(), L.data("start", [1, 4], append_batch_size=False)
    with rnn.step():
        word, before = rnn.step_input(L.data("words", [5, 1, 4], append_batch_size=False)), rnn.memory(init=start)
        now = L.fc([word, before], 4, param_attr=["rnn.w", "rnn.u"], act="tanh")
        rnn.update_memory(before, now)
        rnn.output(now)
    names = {"branch": other.name, "loop": total.name, "rnn": rnn().name}
    return fluid.default_main_program(), names


FEED = {
    "x": np.arange(8, dtype="float32").reshape(2, 4), "flag": np.array([True]),
    "start": np.ones((1, 4), "float32"), "words": np.ones((5, 1, 4), "float32"),
}  # fmt: skip


def run(program: Program, name: str) -> list[Any]:
    """The value that a program computes for a name, fed with what it needs."""
    feed = {n: v for n, v in FEED.items() if program.global_block().has_var(n)}
    return EXE.run(program, feed=feed, fetch_list=[name])[0].tolist()


def runs(program: Program) -> list[list[int]]:
    """For each block, which blocks its operators run."""
    return [[i for op in block.ops for i in own_blocks(op)] for block in program.desc.blocks]


@pytest.mark.parametrize(
    ("what", "blocks"),
    [("branch", [[1], []]), ("loop", [[1], [2], []]), ("rnn", [[1], []])],
)
def test_a_pruned_program_keeps_the_blocks_of_its_operators(what: str, blocks: list[list[int]]) -> None:
    program, names = whole()
    EXE.run(fluid.default_startup_program())
    before = program.desc.serialize_to_string()
    test = program.clone(for_test=True)
    pruned = test.prune(names[what])
    assert program.desc.serialize_to_string() == before
    assert runs(pruned) == blocks
    assert [b.parent_idx for b in pruned.blocks] == [-1, 0, 1][: len(blocks)]
    assert lint(pruned) == []
    assert run(pruned, names[what]) == run(test, names[what])


def test_what_only_a_block_reads_is_kept_outside() -> None:
    program, names = whole()
    pruned = program.prune(names["loop"])
    assert {"x", "flag"} <= set(pruned.global_block().vars)
    assert "words" not in pruned.global_block().vars and names["rnn"] not in pruned.global_block().vars
    assert [p.name for p in pruned.all_parameters()] == ["loop.w", "fc_0.b_0"]
    assert sorted(p.name for p in program.prune(names["rnn"]).all_parameters()) == ["fc_1.b_0", "rnn.u", "rnn.w"]
    # an operator that does not list what its block reads, as in programs written by hand
    op = next(op for op in program.desc.block(0).ops if op.optype == "while")
    op.set_input("X", [n for n in op.input("X") if n != "x"])
    assert "x" in program.prune(names["loop"]).global_block().vars


def test_what_a_block_writes_counts_as_written_by_its_operator() -> None:
    program, names = whole()
    op = next(op for op in program.desc.block(0).ops if op.optype == "conditional_block")
    op.set_output("Out", [])
    assert runs(program.prune(names["branch"])) == [[1], []]


def test_names_inside_a_block_are_not_those_outside() -> None:
    x = L.data("x", [4])
    hidden = L.relu(x)
    out = L.scale(x, scale=0.0)
    with loop(2):
        block = fluid.default_main_program().current_block()
        block.create_var(name=hidden.name, shape=[-1, 4], dtype="float32")
        block.append_op("scale", {"X": x}, {"Out": block.var(hidden.name)}, {"scale": 2.0})
        L.sums([out, block.var(hidden.name)], out=out)
    pruned = fluid.default_main_program().prune(out)
    assert "relu" not in [op.type for op in pruned.global_block().ops]
    assert run(pruned, out.name) == run(fluid.default_main_program(), out.name)


def test_facts_of_parameters_and_lines_follow_renumbered_blocks() -> None:
    program, names = whole()
    program.random_seed = 11
    program.global_block().var("loop.w").optimize_attr = {"learning_rate": 0.5}
    lines = {op.where.line for block in program.blocks for op in block.ops if op.where}
    pruned = program.prune(names["loop"])
    twin = pruned.global_block().var("loop.w")
    assert isinstance(twin, Parameter) and twin.optimize_attr == {"learning_rate": 0.5}
    assert pruned.random_seed == 11
    kept = [op.where for block in pruned.blocks for op in block.ops]
    assert all(kept) and {w.line for w in kept if w} <= lines
    drawn = next(op for op in pruned.block(1).ops if op.type == "dropout")
    assert drawn.where == next(op for op in program.block(2).ops if op.type == "dropout").where


def test_a_target_inside_a_block_is_refused() -> None:
    program, _ = whole()
    with pytest.raises(ValueError, match=r"prune\(\) cannot start from op 0 .* in block 1"):
        program.prune(program.block(1).ops[0])
    with pytest.raises(ValueError, match="this very program"):
        program.clone().prune(program.global_block().ops[0])
    inner = next(n for n in program.block(2).vars)
    with pytest.raises(ValueError, match=rf"prune\(\) cannot reach {inner}"):
        program.prune(inner)
    kept = program.prune(next(op for op in program.global_block().ops if op.type == "while"))
    assert runs(kept) == [[1], [2], []]


def test_a_clone_for_test_reaches_every_block() -> None:
    program, names = whole()
    test = program.clone(for_test=True)

    def marked(p: Program) -> list[str]:
        ops = [op for block in p.blocks for op in block.ops if op.desc.has_attr("is_test")]
        return [op.type for op in ops if op.attr("is_test")]

    assert marked(test) == ["while", "dropout"] and marked(program) == []
    assert runs(test) == runs(program) and len(test.blocks) == len(program.blocks)
    EXE.run(fluid.default_startup_program())
    assert run(test, names["loop"]) == run(test, names["loop"]) != run(program, names["loop"])


def test_a_pruned_block_has_the_blocks_inside_it() -> None:
    program, _ = whole()
    body = program.block(2)
    inside = next(op for op in body.ops if op.type == "dropout").output("Out")[0]
    pruned = prune_block(body.desc, [inside])
    assert [op.optype for op in pruned.ops] == ["mul", "elementwise_add", "dropout"]
    total = next(op for op in body.ops if op.type == "conditional_block").output("Out")[0]
    pruned = prune_block(body.desc, [total])
    assert pruned.ops[-1].optype == "conditional_block"
    inner = inner_blocks(pruned.program, pruned.ops[-1])
    assert [pruned.program.blocks[i].parent_idx for i in inner] == [pruned.idx]
    assert "sum" in [op.optype for op in pruned.program.blocks[inner[0]].ops]


def test_gradients_of_loops_can_be_pruned_to() -> None:
    x = L.data("x", [4], stop_gradient=False)
    total, unused = L.scale(x, scale=1.0), L.scale(x, scale=1.0)
    flag = L.data("flag", [1], dtype="bool", append_batch_size=False)
    with branch(flag):
        L.assign(L.scale(x, scale=2.0), unused)
    with loop(3):
        L.sums([total, L.square(x)], out=total)
    fluid.append_backward(L.mean(total))
    program = fluid.default_main_program()
    pruned = program.prune(x.grad)
    assert len(pruned.blocks) == len(program.blocks) - 1
    (gradient,) = [b for b in pruned.blocks if b.desc.forward_block_idx >= 0]
    forward = next(op for op in pruned.global_block().ops if op.type == "while")
    assert gradient.desc.forward_block_idx == own_blocks(forward.desc)[0]
    batch = np.array([[1, 2, 3, 4]], "float32")
    want = EXE.run(program, feed={"x": batch, "flag": FEED["flag"]}, fetch_list=[x.grad])[0]
    assert EXE.run(pruned, feed={"x": batch}, fetch_list=[x.grad.name])[0].tolist() == want.tolist()
    np.testing.assert_allclose(want, (1 + 6 * batch) / 4)


def test_blocks_with_blocks_inside_are_evaluated_and_run() -> None:
    program, names = whole()
    program = program.clone(for_test=True)
    scope, place = fluid.Scope(), fluid.CPUPlace()
    EXE.run(fluid.default_startup_program(), scope=scope)
    for name, array in FEED.items():
        scope.var(name).get_tensor().set(array, place)
    wanted = {name: EXE.run(program, feed=FEED, fetch_list=[name], scope=scope)[0] for name in names.values()}
    block = program.global_block()
    for name in names.values():
        assert block.eval([name], scope, place)[0].tobytes() == wanted[name].tobytes()
    for rewritten in (False, True):
        if rewritten:
            fluid.memory_optimize(program, skip_opt_set=list(names.values()))
        block.infer_shape(scope)
        for _ in range(2):
            block.run(scope, place)
            for name in names.values():
                held = scope.find_var(name)
                assert held is not None and np.array(held.get_tensor()).tobytes() == wanted[name].tobytes()
            assert scope.kids == []
