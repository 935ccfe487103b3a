"""Evaluators: counts inside the program, over batches and passes, in training and in tests."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError

L = fluid.layers


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def build(k=1):
    p, label = L.data("p", [4]), L.data("label", [1], dtype="int64")
    return fluid.evaluator.Accuracy(input=p, label=label, k=k)


def batch(right, rows, k=1):
    """Rows of which some are right: for the others the label is the least probable class."""
    scores = np.tile(np.array([0.4, 0.3, 0.2, 0.1], "float32"), (rows, 1))
    return {"p": scores, "label": np.where(np.arange(rows) < right, k - 1, 3)[:, None]}


def test_over_batches_of_different_sizes():
    accuracy, exe = build(), fluid.Executor(fluid.CPUPlace())
    accuracy.reset(exe)
    for (right, rows), total in (((3, 4), 0.75), ((1, 4), 0.5), ((0, 8), 0.25)):
        [of_batch] = exe.run(feed=batch(right, rows), fetch_list=accuracy.metrics)
        assert of_batch == pytest.approx([right / rows])
        assert accuracy.eval(exe) == pytest.approx([total]) and accuracy.eval(exe).dtype == np.float32
    accuracy.reset(exe)
    exe.run(feed=batch(1, 1))
    assert accuracy.eval(exe) == [1.0]


def test_the_startup_program_is_a_reset_too():
    accuracy, exe = build(), fluid.Executor(fluid.CPUPlace())
    for _ in range(2):
        exe.run(fluid.default_startup_program())
        exe.run(feed=batch(1, 2))
        assert accuracy.eval(exe) == [0.5]


def test_top_k():
    accuracy, exe = build(k=2), fluid.Executor(fluid.CPUPlace())
    accuracy.reset()
    [of_batch] = exe.run(feed=batch(2, 4, k=2), fetch_list=accuracy.metrics)
    assert of_batch == [0.5] == accuracy.eval()


def test_counts_are_exact_and_saved():
    accuracy = build()
    assert [(s.name, s.dtype.name, s.persistable) for s in accuracy.states] == [
        ("accuracy_0_0_total", "INT64", True),
        ("accuracy_0_1_correct", "INT64", True),
    ]
    exe = fluid.Executor(fluid.CPUPlace())
    accuracy.reset()
    for _ in range(100):
        exe.run(feed=batch(1, 3))
    assert [v.item() for v in accuracy.values(exe, accuracy.states)] == [300, 100]


def test_two_evaluators_count_apart():
    a, b = build(), fluid.evaluator.Accuracy(L.data("q", [4]), L.data("other", [1], dtype="int64"))
    exe = fluid.Executor(fluid.CPUPlace())
    a.reset(), b.reset()
    feed = batch(1, 4) | {"q": batch(3, 4)["p"], "other": batch(3, 4)["label"]}
    exe.run(feed=feed)
    assert (a.eval(exe), b.eval(exe)) == ([0.25], [0.75])


def test_it_does_not_touch_gradients():
    x, label = L.data("x", [4]), L.data("label", [1], dtype="int64")
    p = L.fc(x, 3, act="softmax")
    accuracy = fluid.evaluator.Accuracy(p, label)
    ops, pairs = fluid.optimizer.SGD(0.1).minimize(L.mean(L.cross_entropy(p, label)))
    assert [p.name for p, _ in pairs] == ["fc_0.w_0", "fc_0.b_0"]
    names = fluid.default_main_program().global_block().vars
    assert not [n for n in names if n.startswith("accuracy") and "@GRAD" in n]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": np.ones((5, 4), "float32"), "label": np.zeros((5, 1), "int64")})
    assert accuracy.eval(exe) in (0.0, 1.0)


def test_in_another_program():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        p, label = L.data("p", [4]), L.data("label", [1], dtype="int64")
    accuracy = fluid.evaluator.Accuracy(p, label, main_program=main, startup_program=startup)
    assert not fluid.default_main_program().global_block().ops
    exe, reset, evaluate = fluid.Executor(fluid.CPUPlace()), fluid.Program(), fluid.Program()
    accuracy.reset(exe, reset_program=reset)
    exe.run(main, feed=batch(1, 2))
    assert accuracy.eval(exe, eval_program=evaluate) == [0.5]
    assert [op.type for op in reset.global_block().ops] == ["fill_constant"] * 2
    assert set(evaluate.global_block().vars) == {s.name for s in accuracy.states}


def test_mistakes():
    accuracy = build()
    accuracy.reset()
    with pytest.raises(OpValueError, match="accuracy of no rows is unknown"):
        accuracy.eval()
    before = fluid.default_main_program().desc.serialize_to_string()
    with fluid.framework.BlockGuard(fluid.default_main_program()):
        with pytest.raises(OpValueError, match="You can only invoke Evaluator in root block"):
            build()
    with pytest.raises(OpTypeError, match="label of Accuracy must be a Variable"):
        fluid.evaluator.Accuracy(accuracy.metrics[0], 3)
    program = fluid.default_main_program()
    program.desc.remove_blocks(1)
    assert program.desc.serialize_to_string() == before
    with pytest.raises(NotImplementedError, match="Evaluator must define eval"):
        fluid.evaluator.Evaluator("mine").eval()


def test_an_evaluator_may_be_a_target_of_an_inference_program() -> None:
    """Version 0.11's way to test: the evaluator itself, or its variables, among the targets."""
    p, label = fluid.layers.data("p", [3]), fluid.layers.data("label", [1], dtype="int64")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(p, label))
    accuracy = fluid.evaluator.Accuracy(input=p, label=label)
    program = fluid.io.get_inference_program([loss, accuracy])
    by_hand = fluid.io.get_inference_program([loss, *accuracy.states, *accuracy.metrics])
    assert program.desc.serialize_to_string() == by_hand.desc.serialize_to_string()
    assert [op.type for op in program.global_block().ops][:4] == ["cross_entropy", "mean", "top_k", "accuracy"]
    assert "sum" not in [op.type for op in fluid.io.get_inference_program(accuracy.metrics).global_block().ops]


def test_an_evaluator_of_ones_own_with_the_names_of_1_x() -> None:
    class Rows(fluid.evaluator.Evaluator):
        def __init__(self, input: fluid.Variable) -> None:
            super().__init__("rows")
            self.rows = self._create_state(dtype="int64", shape=[1], suffix="rows")
            of_batch = fluid.layers.cast(fluid.layers.slice(fluid.layers.shape(input), [0], [0], [1]), "int64")
            fluid.layers.sums(input=[self.rows, of_batch], out=self.rows)
            self.metrics.append(of_batch)

        def eval(self, executor: fluid.Executor, eval_program: fluid.Program | None = None) -> np.ndarray:
            with fluid.program_guard(eval_program or fluid.Program()):
                block = fluid.default_main_program().current_block()
                rows = block.create_var(name=self.rows.name, dtype="int64", shape=[1], persistable=True)
                return executor.run(fluid.default_main_program(), fetch_list=[rows])[0]

    rows, exe = Rows(fluid.layers.data("x", [2])), fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rows.reset(exe)
    for n in (3, 4):
        (of_batch,) = exe.run(feed={"x": np.ones((n, 2), "float32")}, fetch_list=rows.metrics)
        assert of_batch.tolist() == [n]
    assert rows.eval(exe).tolist() == [7]
