"""SelectedRows that are not gradients: tables, parameters, outputs that fill them, and files."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet
from fluidnb.op import Operator, RuleError
from fluidnb.runtime import Executor, Scope
from fluidnb.testing import run_op
from fluidnb.values import LoDTensor, SelectedRows, VarType

L = fluid.layers
VALUES = np.arange(8.0, dtype="float32").reshape(4, 2)


def table(rows=(7, 2, 5, 0), height=9, values=VALUES):
    return SelectedRows(rows, height, LoDTensor(values.copy()))


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def rows_var(name, **more):
    block = fluid.default_main_program().global_block()
    return block.create_var(name=name, shape=[9, 2], dtype="float32", type=VarType.SELECTED_ROWS, **more)


def test_a_table_of_rows_is_looked_up():
    out = run_op("lookup_table", {"W": table(), "Ids": np.array([[5], [7], [5]])})["Out"]
    np.testing.assert_array_equal(out, VALUES[[2, 0, 2]])
    out = run_op("lookup_table", {"W": table(), "Ids": np.array([[1], [2]])}, {"padding_idx": 1})["Out"]
    np.testing.assert_array_equal(out, [[0, 0], VALUES[1]])
    many = np.array([[[0], [2]], [[5], [7]]])
    assert run_op("lookup_table", {"W": table(), "Ids": many})["Out"].shape == (2, 2, 2)


def test_a_row_that_the_table_does_not_hold():
    with pytest.raises(EnforceNotMet, match="does not hold row 3"):
        run_op("lookup_table", {"W": table(), "Ids": np.array([[3]])})
    with pytest.raises(EnforceNotMet, match="does not hold row 0"):
        run_op("lookup_table", {"W": table((), 9, VALUES[:0]), "Ids": np.array([[0]])})


def test_the_gradient_of_a_table_of_rows_has_the_rows_that_were_looked_up():
    given = {"W": table(), "Ids": np.array([[5], [7]]), "Out@GRAD": VALUES[:2]}
    found = run_op("lookup_table_grad", given, {"is_sparse": True, "padding_idx": -1}, ["W@GRAD"])["W@GRAD"]
    assert found.rows() == [5, 7] and found.height() == 9


def test_a_parameter_of_rows_takes_a_step_where_it_is():
    param = table()
    grad = SelectedRows([2, 0, 2], 9, LoDTensor(np.ones((3, 2), "float32")))
    scope, rate = Scope(), np.array([0.5], "float32")
    scope.var("w").value, scope.var("g").value, scope.var("r").value = param, grad, LoDTensor(rate)
    Operator("sgd", Param="w", Grad="g", LearningRate="r", ParamOut="w").run(scope, fluid.CPUPlace())
    assert scope.find_var("w").value is param and param.rows() == [7, 2, 5, 0]
    np.testing.assert_array_equal(np.asarray(param.get_tensor()), VALUES - [[0], [1], [0], [0.5]])


def test_what_a_parameter_of_rows_refuses():
    rate = {"LearningRate": np.array([0.5], "float32")}
    with pytest.raises(RuleError, match="needs such a Grad"):
        run_op("sgd", {"Param": table(), "Grad": np.ones((9, 2), "float32"), **rate})
    with pytest.raises(RuleError, match="must have the same shape"):
        run_op("sgd", {"Param": table(), "Grad": table(values=np.ones((4, 3), "float32")), **rate})
    with pytest.raises(EnforceNotMet, match="does not hold row 8"):
        run_op("sgd", {"Param": table(), "Grad": table((8, 2, 5, 0)), **rate})


@pytest.mark.parametrize(("type", "attrs"), [
    ("fill_constant", {"value": 3.5}), ("uniform_random", {"min": 2.0, "max": 4.0, "seed": 3}),
])  # fmt: skip
def test_values_of_rows_are_filled(type, attrs):
    scope = Scope()
    rows = scope.var("out").get_selected_rows()
    Operator(type, Out="out", shape=[4, 784], **attrs).run(scope, fluid.CPUPlace())
    values = np.asarray(rows.get_tensor())
    assert values.shape == (4, 784) and rows.rows() == [0, 1, 2, 3] and rows.height() == 4
    assert ((values >= 2) & (values <= 4)).all()
    other = run_op(type, attrs={"shape": [4, 784], **attrs})["Out"]
    assert type != "fill_constant" or (values == other).all()


def test_rows_that_are_there_keep_their_numbers():
    scope = Scope()
    scope.var("out").value = rows = table()
    Operator("fill_constant", Out="out", shape=[4, 2], value=1.0).run(scope, fluid.CPUPlace())
    assert rows.rows() == [7, 2, 5, 0] and rows.height() == 9 and np.asarray(rows.get_tensor()).tolist() == [[1, 1]] * 4


def test_a_program_fills_looks_up_and_trains_a_table_of_rows():
    ids = L.data("ids", [1], dtype="int64")
    block = fluid.default_main_program().global_block()
    weight = rows_var("w", persistable=True)
    start = fluid.default_startup_program().global_block()
    made = start.create_var(name="w", shape=[9, 2], dtype="float32", type=VarType.SELECTED_ROWS, persistable=True)
    start.append_op(type="fill_constant", outputs={"Out": [made]}, attrs={"shape": [9, 2], "value": 1.0, "dtype": 5})
    out = block.create_var(name="out", dtype="float32")
    block.append_op(type="lookup_table", inputs={"W": [weight], "Ids": [ids]}, outputs={"Out": [out]},
                    attrs={"is_sparse": True})  # fmt: skip
    exe, scope = Executor(), Scope()
    exe.run(fluid.default_startup_program(), scope=scope)
    for chosen in ([[3], [8]], [[0]]):
        [value] = exe.run(feed={"ids": np.array(chosen)}, fetch_list=[out], scope=scope)
        np.testing.assert_array_equal(value, np.ones((len(chosen), 2)))
    [fetched] = exe.run(feed={"ids": np.array([[1]])}, fetch_list=[weight], scope=scope, return_numpy=False)
    assert isinstance(fetched, SelectedRows) and fetched.rows() == list(range(9))


@pytest.mark.parametrize("combined", [None, "all"])
def test_rows_are_saved_and_loaded(tmp_path, combined):
    rows_var("rows", persistable=True)
    block = fluid.default_main_program().global_block()
    block.create_var(name="dense", shape=[2], dtype="float32", persistable=True)
    exe, first, second = Executor(), Scope(), Scope()
    first.var("rows").value, first.var("dense").value = table(), LoDTensor(np.ones(2, "float32"))
    with fluid.scope_guard(first):
        fluid.io.save_persistables(exe, str(tmp_path), filename=combined)
    with fluid.scope_guard(second):
        for _ in range(2):
            fluid.io.load_persistables(exe, str(tmp_path), filename=combined)
            found = second.find_var("rows").value
            assert isinstance(found, SelectedRows) and (found.rows(), found.height()) == ([7, 2, 5, 0], 9)
            np.testing.assert_array_equal(np.asarray(found.get_tensor()), VALUES)
            found.get_tensor().set(VALUES[:1] * 9, fluid.CPUPlace())
            found.set_rows([1])
    np.testing.assert_array_equal(np.asarray(second.find_var("dense").value), np.ones(2))


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = str(tmp_path / "w")
    run_op("save", {"X": VALUES}, {"file_path": path})
    scope = Scope()
    scope.var("out").get_selected_rows()
    with pytest.raises(EnforceNotMet, match="no tensor file|no SelectedRows"):
        Operator("load", Out="out", file_path=path).run(scope, fluid.CPUPlace())


def sampled(weight, sparse=False, classes=((2,), (7,), (5,))):
    """Cost of nce, and the gradients of Input, Weight and Bias."""
    attrs = {"num_total_classes": 9, "num_neg_samples": 3, "custom_neg_classes": [0, 5, 7], "is_sparse": sparse}
    given = {
        "Input": np.float32([[0.5, -1], [1, 0.25], [2, 2]]), "Label": np.array(classes), "Weight": weight,
        "Bias": np.linspace(-1, 1, 9, dtype="float32"),
    }  # fmt: skip
    forward = run_op("nce", given, attrs, ["Cost", "SampleLogits", "SampleLabels"])
    cost = forward.pop("Cost")
    slopes = [f"{name}@GRAD" for name in ("Input", "Weight", "Bias")]
    found = run_op("nce_grad", {**given, **forward, "Cost@GRAD": np.float32([[1], [2], [-1]])}, attrs, slopes)
    return [cost, *(found[name] for name in slopes)]


@pytest.mark.parametrize("sparse", [False, True])
def test_nce_finds_the_weights_of_classes_among_rows(sparse):
    whole = np.zeros((9, 2), "float32")
    whole[[7, 2, 5, 0]] = VALUES
    found, expected = sampled(table(), sparse), sampled(whole)
    if sparse:
        assert found[2].rows() == [0, 2, 5, 7] and found[2].height() == 9
        found[2] = found[2].to_dense()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.abs(found[2]).sum() > 0


def test_nce_with_a_class_that_no_row_has():
    with pytest.raises(EnforceNotMet, match="does not hold row 3"):
        sampled(table(), classes=[[2], [3], [5]])
    with pytest.raises(RuleError, match="Input and Weight of nce do not fit"):
        sampled(table(height=8))


def test_a_program_trains_classes_whose_weights_are_rows():
    start = fluid.default_startup_program().global_block()
    made = start.create_var(name="w", shape=[9, 2], dtype="float32", type=VarType.SELECTED_ROWS, persistable=True)
    start.append_op(type="fill_constant", outputs={"Out": [made]}, attrs={"shape": [9, 2], "value": 0.5, "dtype": 5})
    x, label = L.data("x", [2]), L.data("label", [1], dtype="int64")
    block, weight = fluid.default_main_program().global_block(), rows_var("w", persistable=True)
    outputs = {n: [block.create_var(name=n, dtype=d)] for n, d in
               (("Cost", "float32"), ("SampleLogits", "float32"), ("SampleLabels", "int64"))}  # fmt: skip
    block.append_op(
        type="nce", inputs={"Input": [x], "Label": [label], "Weight": [weight]}, outputs=outputs,
        attrs={"num_total_classes": 9, "num_neg_samples": 3, "is_sparse": True},
    )  # fmt: skip
    loss = L.mean(outputs["Cost"][0])
    [slope] = fluid.gradients(loss, weight)
    rate = L.fill_constant([1], "float32", 0.5)
    block.append_op(type="sgd", inputs={"Param": [weight], "Grad": [slope], "LearningRate": [rate]},
                    outputs={"ParamOut": [weight]})  # fmt: skip
    exe, feed = Executor(), {"x": np.ones((8, 2), "float32"), "label": np.full((8, 1), 3)}
    exe.run(fluid.default_startup_program())
    costs = [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(60)]
    assert np.mean(costs[-10:]) < 0.5 * np.mean(costs[:10])
