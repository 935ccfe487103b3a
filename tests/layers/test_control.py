"""While, ConditionalBlock and arrays of tensors, forward."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from fluidnb.layers.control_flow import WhileGuard, reads_and_writes

L = fluid.layers


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def run(fetch, **feed):
    return fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=fetch)


def power(limit):
    """acc = 2 to the number of iterations; gives (i, acc)."""
    i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", limit)
    acc = L.ones([2], "float32")
    cond = L.less_than(i, n)
    with L.While(cond).block():
        L.assign(L.scale(acc, 2.0), output=acc)
        L.increment(i)
        L.less_than(i, n, cond=cond)
    return i, acc


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_while_runs_as_long_as_its_condition_holds(limit):
    i, acc = run(power(limit))
    assert i[0] == limit
    np.testing.assert_array_equal(acc, [2.0**limit] * 2)


def test_while_names_what_it_reads_and_writes_outside():
    i, acc = power(3)
    op = fluid.default_main_program().global_block().ops[-1]
    n, cond = "fill_constant_1.tmp_0", "less_than_0.tmp_0"
    assert op.input("Condition") == [cond]
    assert op.input("X") == [acc.name, i.name, n]
    assert op.output("Out") == [acc.name, i.name, cond]
    body = op.block_attr("sub_block")
    assert body.parent_idx == 0 and [o.type for o in body.ops] == ["scale", "assign", "increment", "less_than"]
    assert fluid.default_main_program().current_block().idx == 0


def test_while_in_while():
    i, n, total = L.zeros([1], "int64"), L.fill_constant([1], "int64", 3), L.zeros([1], "int64")
    outer = L.less_than(i, n)
    with L.While(outer).block():
        L.increment(i)
        j = L.zeros([1], "int64")
        inner = L.less_than(j, i)
        with L.While(inner).block():
            L.increment(j)
            L.increment(total)
            L.less_than(j, i, cond=inner)
        L.less_than(i, n, cond=outer)
    assert run([total])[0][0] == 1 + 2 + 3


@pytest.mark.parametrize(("x", "want"), [(1.0, 10.0), (-1.0, -1.0)])
def test_conditional_block(x, want):
    v = L.data("x", [1], append_batch_size=False)
    out = L.assign(v)
    with L.ConditionalBlock([L.greater_than(v, L.zeros([1], "float32"))], is_scalar_condition=True).block():
        L.assign(L.scale(v, 10.0), output=out)
    op = fluid.default_main_program().global_block().ops[-1]
    assert (op.input("Input"), op.output("Out"), op.attr("is_scalar_condition")) == (["x"], [out.name], True)
    assert run([out], x=np.array([x], "float32"))[0][0] == want


def test_a_body_that_raises_leaves_nothing():
    program = fluid.default_main_program()
    cond = L.less_than(L.zeros([1], "int64"), L.ones([1], "int64"))
    before = program.desc.serialize_to_string()
    for guard in (L.While(cond), L.ConditionalBlock([cond], is_scalar_condition=True)):
        with pytest.raises(ZeroDivisionError), guard.block():
            L.ones([1], "float32")
            raise ZeroDivisionError
        assert program.desc.serialize_to_string() == before and program.current_block().idx == 0


def test_a_body_that_raises_leaves_outer_variables_their_shapes_and_dtypes():
    program = fluid.default_main_program()
    cond = L.less_than(L.zeros([1], "int64"), L.ones([1], "int64"))
    x = L.ones([2], "float32")
    before = program.desc.serialize_to_string()
    for guard in (L.While(cond).block(), L.ConditionalBlock([cond]).block(), L.StaticRNN().step()):
        with pytest.raises(ZeroDivisionError), guard:
            L.assign(L.ones([5, 7], "int64"), output=x)
            L.assign(L.ones([6, 7], "float64"), output=x)
            raise ZeroDivisionError
        assert program.desc.serialize_to_string() == before and (x.shape, x.dtype) == ((2,), 5)


def test_a_loop_that_cannot_end_is_noticed():
    cond = L.less_than(L.zeros([1], "int64"), L.ones([1], "int64"))
    with pytest.warns(UserWarning, match="does not end"), L.While(cond).block():
        L.ones([1], "float32")


def test_conditions_are_checked():
    with pytest.raises(OpTypeError, match="cond of While must be a Variable"):
        L.While(True)
    with pytest.raises(OpTypeError, match="condition should be a bool variable"):
        L.While(L.ones([1], "int64"))
    with pytest.raises(OpTypeError, match="condition should be a bool scalar"):
        L.While(L.zeros([2], "bool"))
    with pytest.raises(OpTypeError, match="inputs of ConditionalBlock must be a list of Variables"):
        L.ConditionalBlock([1])


def test_arrays_grow_and_keep_their_elements():
    i, j = L.zeros([1], "int64"), L.fill_constant([1], "int64", 2)
    a = L.array_write(L.ones([2], "float32"), i)
    assert L.array_write(L.fill_constant([2], "float32", 3.0), j, array=a) is a
    first, third, n = run([L.array_read(a, i), L.array_read(a, j), L.array_length(a)])
    np.testing.assert_array_equal(first, [1, 1])
    np.testing.assert_array_equal(third, [3, 3])
    assert n[0] == 3


def test_while_of_the_developer_guide():
    d0, d1, d2 = [L.data(f"d{k}", [10], append_batch_size=False) for k in range(3)]
    i = L.zeros(shape=[1], dtype="int64")
    init = L.zeros(shape=[10], dtype="float32")
    mem, data_array = L.array_write(init, i=i), L.array_write(x=d0, i=i)
    for d in (d1, d2):
        i = L.increment(i)
        L.array_write(d, i, array=data_array)
    i = L.zeros(shape=[1], dtype="int64")
    array_len = L.fill_constant(shape=[1], dtype="int64", value=3)
    cond = L.less_than(x=i, y=array_len)
    with L.While(cond=cond).block():
        d = L.array_read(array=data_array, i=i)
        prev = L.array_read(array=mem, i=i)
        result = L.sums([d, prev])
        i = L.increment(x=i, in_place=True)
        L.array_write(result, i=i, array=mem)
        L.less_than(x=i, y=array_len, cond=cond)
    total = L.array_read(array=mem, i=i)
    feed = {f"d{k}": (k + 1) * np.arange(10, dtype="float32") for k in range(3)}
    np.testing.assert_allclose(run([total], **feed)[0], 6 * np.arange(10))


def test_what_is_no_array_is_refused():
    x, i = L.ones([2], "float32"), L.zeros([1], "int64")
    before = fluid.default_main_program().desc.serialize_to_string()
    for call in (lambda: L.array_write(x, i, array=x), lambda: L.array_read(x, i), lambda: L.array_length(x)):
        with pytest.raises((OpTypeError, OpValueError), match="must be an array of tensors") as caught:
            call()
        assert "LOD_TENSOR_ARRAY" in str(caught.value) and "create_array" in str(caught.value)
    with pytest.raises(OpValueError, match="must be one int64 number"):
        L.array_write(x, x)
    assert fluid.default_main_program().desc.serialize_to_string() == before


def test_what_a_block_changes_in_part_is_read_too():
    """An array of which it writes an element, a variable that a branch inside may leave as it was."""
    x, i, out = L.ones([2], "float32"), L.zeros([1], "int64"), L.zeros([2], "float32")
    array, yes = L.create_array("float32"), L.less_than(i, L.ones([1], "int64"))
    with fluid.framework.BlockGuard(fluid.default_main_program()) as body:
        L.array_write(x, i, array=array)
        with L.ConditionalBlock([yes], is_scalar_condition=True).block():
            L.assign(x, output=out)
        L.relu(out)
        reads, writes = reads_and_writes(body)
    assert reads == [i.name, x.name, array.name, yes.name, out.name] and writes == [array.name, out.name]


def test_a_loop_that_changes_a_variable_only_sometimes():
    """The branch is taken once; before and after, the old value counts."""
    i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", 4)
    last, seen = L.fill_constant([1], "int64", -1), L.zeros([1], "int64")
    cond = L.less_than(i, n)
    with L.While(cond).block():
        with L.ConditionalBlock([L.equal(i, L.fill_constant([1], "int64", 2))], is_scalar_condition=True).block():
            L.assign(i, output=last)
        L.assign(L.elementwise_add(seen, last), output=seen)
        L.less_than(L.increment(i), n, cond=cond)
    assert last.name in fluid.default_main_program().global_block().ops[-1].input("X")
    assert run([seen])[0][0] == -1 - 1 + 2 + 2


@pytest.mark.parametrize(("rows", "want"), [(0, 5.0), (3, 6.0)])
def test_a_conditional_block_runs_if_there_are_rows(rows, want):
    x, mask = L.data("x", [2]), L.data("mask", [1], dtype="bool")
    part, _ = L.split_lod_tensor(x, mask)
    out = L.fill_constant([1], "float32", 5.0)
    with L.ConditionalBlock([part]).block():
        L.assign(L.reshape(L.reduce_sum(part), [1]), output=out)
    op = fluid.default_main_program().global_block().ops[-1]
    assert (op.input("Cond"), op.input("Input")) == ([part.name], [part.name])
    assert op.attr("is_scalar_condition") is False
    assert run([out], x=np.ones((6, 2), "float32"), mask=np.arange(6).reshape(6, 1) < rows)[0][0] == want


def test_a_condition_that_nothing_has_written():
    never = fluid.default_main_program().global_block().create_var(name="never", shape=[1], dtype="bool")
    with L.ConditionalBlock([never], is_scalar_condition=True).block():
        L.ones([1], "float32")
    with pytest.raises(EnforceNotMet, match="should have one initialized input as condition"):
        run([])


def test_a_loop_for_tests_keeps_no_steps_and_has_no_gradient():
    x = L.data("x", [2], append_batch_size=False)
    x.stop_gradient = False
    i, n, acc = L.zeros([1], "int64"), L.fill_constant([1], "int64", 3), L.assign(x)
    cond = L.less_than(i, n)
    with L.While(cond, is_test=True).block():
        L.assign(L.scale(acc, 2.0), output=acc)
        L.less_than(L.increment(i), n, cond=cond)
    assert run([acc], x=np.ones(2, "float32"))[0].tolist() == [8, 8]
    fluid.backward.append_backward(L.mean(acc))
    with pytest.raises(EnforceNotMet, match="GradOp is only callable when is_test is false"):
        run(["x@GRAD"], x=np.ones(2, "float32"))


def test_a_body_that_raises_leaves_no_parameters_and_no_names():
    """Parameters, their initialisers in the startup program and the numbers in names are as before the body."""
    cond = L.less_than(L.zeros([1], "int64"), L.ones([1], "int64"))
    x = L.data("x", [3])
    startup = fluid.default_startup_program()
    before = startup.desc.serialize_to_string()
    with pytest.raises(ZeroDivisionError), WhileGuard(L.While(cond)):
        L.fc(x, 2, param_attr="w")
        raise ZeroDivisionError
    assert startup.desc.serialize_to_string() == before
    assert L.fc(x, 5, param_attr="w").name == "fc_0.tmp_1"
    with pytest.raises(OpTypeError, match="WhileGuard takes a while op"):
        WhileGuard(cond)


def test_fluids_module_has_its_names():
    for name in (
        "While Switch IfElse StaticRNN DynamicRNN ConditionalBlock BlockGuard BlockGuardWithCompletion WhileGuard "
        "StaticRNNMemoryLink lod_rank_table max_sequence_len lod_tensor_to_array array_to_lod_tensor shrink_memory "
        "split_lod_tensor merge_lod_tensor reorder_lod_tensor_by_rank array_write array_read array_length create_array "
        "increment less_than equal is_empty topk"
    ).split():
        assert hasattr(fluid.layers.control_flow, name), name
