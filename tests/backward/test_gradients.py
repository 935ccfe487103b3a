"""gradients: of any targets with respect to any inputs, with or without given output gradients."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import NotBuiltYet, OpTypeError, OpValueError
from tests.tools.refused import refused

L = fluid.layers
A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "float32")


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def run(fetch, **feed):
    return fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=fetch)


def data(name, shape=(2, 3)):
    return L.data(name, shape, append_batch_size=False)


def test_of_one_with_respect_to_one():
    x = data("x")
    [dx] = fluid.gradients(L.square(x), x)
    assert dx.name == "x@GRAD"
    np.testing.assert_allclose(run([dx], x=A)[0], 2 * A)


def test_stop_gradient_of_an_input_does_not_count_but_that_of_others_does():
    x, y = data("x"), data("y")
    assert x.stop_gradient and y.stop_gradient
    z = L.elementwise_mul(x, y)
    [dx] = fluid.gradients(z, x)
    op = fluid.default_main_program().global_block().ops[-1]
    assert (op.output("X@GRAD"), op.output("Y@GRAD")) == (["x@GRAD"], ["@EMPTY@"])
    np.testing.assert_allclose(run([dx], x=A, y=A)[0], A)


def test_given_output_gradients_are_used_and_keep_their_names():
    x, seed = data("x"), data("seed")
    y = L.square(x)
    [dx] = fluid.gradients([y], [x], target_gradients=[seed])
    assert not fluid.default_main_program().global_block().has_var(y.name + "@GRAD")
    np.testing.assert_allclose(run([dx], x=A, seed=A)[0], 2 * A * A)


def test_several_targets_are_summed_also_when_one_depends_on_another():
    x, seed = data("x"), data("seed")
    y = L.scale(x, 3.0)
    z = L.square(y)
    [dx] = fluid.gradients([y, z], x, [seed, None])
    np.testing.assert_allclose(run([dx], x=A, seed=A)[0], 3 * A + 3 * 2 * 3 * A)


def test_a_batch_of_unknown_size_needs_no_given_gradient():
    x = L.data("x", [3])
    [dx] = fluid.gradients(L.square(x), x)
    np.testing.assert_allclose(run([dx], x=A)[0], 2 * A)


def test_with_respect_to_something_in_the_middle():
    x = data("x")
    h = L.square(x)
    dh, dx = fluid.gradients(L.square(h), [h, x])
    got = run([dh, dx], x=A)
    np.testing.assert_allclose(got[0], 2 * A**2)
    np.testing.assert_allclose(got[1], 4 * A**3, rtol=1e-6)


def test_only_what_the_inputs_reach_is_differentiated():
    x = data("x")
    weight = L.create_parameter([3, 3], "float32", name="w")
    y = L.matmul(L.square(x), weight)
    h = L.scale(y, 2.0)
    [dy] = fluid.gradients(h, y)
    made = [op.type for op in fluid.default_main_program().global_block().ops][3:]
    assert made == ["fill_constant", "scale"] and dy is not None


def test_no_way_gives_none():
    x, y = data("x"), data("y")
    y.stop_gradient = False
    dx, dy = fluid.gradients(L.square(x), [x, y])
    assert dx is not None and dy is None
    h = L.square(x)
    assert fluid.gradients(L.square(h), x, no_grad_set=[h]) == [None]


def test_the_target_itself():
    x, seed = data("x"), data("seed")
    y = L.square(x)
    [dy] = fluid.gradients(y, y, seed)
    assert dy is seed


def test_the_gradient_of_a_parameter():
    h = L.fc(L.data("x", [3]), 2, bias_attr=False)
    [dw] = fluid.gradients(L.mean(h), h.param)
    assert dw.shape == (3, 2)


def test_a_second_call_gives_new_names():
    x = data("x")
    y = L.square(x)
    [first], [second] = fluid.gradients(y, x), fluid.gradients(L.square(y), x)
    assert first.name == "x@GRAD" and second.name == "x@GRAD_0"
    got = run([first, second], x=A)
    np.testing.assert_allclose(got[0], 2 * A)
    np.testing.assert_allclose(got[1], 4 * A**3, rtol=1e-6)


def test_calc_gradient_of_one_input_is_no_list():
    x, w = data("x"), data("w")
    y = L.elementwise_mul(x, w)
    one, several = fluid.backward.calc_gradient(y, x), fluid.backward.calc_gradient(y, [x, w])
    assert one.name == "x@GRAD" and [g.name for g in several] == ["x@GRAD_0", "w@GRAD"]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda x, y, i: fluid.gradients(3, x), (OpTypeError, TypeError), "targets|iterable"),
        (lambda x, y, i: fluid.gradients(["y"], x), OpTypeError, "targets of gradients must be a Variable"),
        (lambda x, y, i: fluid.gradients(y, []), OpValueError, "inputs is empty"),
        (lambda x, y, i: fluid.gradients(y, i), OpValueError, "i cannot have a gradient"),
        (lambda x, y, i: fluid.gradients(y, x, [None, None]), OpValueError, "same number of target_gradients"),
        (lambda x, y, i: fluid.gradients(y, x, L.zeros([2], "float32")), OpValueError, "the shapes differ"),
        (lambda x, y, i: fluid.gradients(y, x, no_grad_set=[3]), OpTypeError, "no_grad_set of gradients must be"),
    ],
)
def test_mistakes(call, kind, words):
    x, i = data("x"), L.data("i", [3], dtype="int64")
    y = L.square(x)
    ops = len(fluid.default_main_program().global_block().ops)
    with refused(kind, words):
        call(x, y, i)
    made = [op.type for op in fluid.default_main_program().global_block().ops][ops:]
    assert "square_grad" not in made


def test_targets_of_different_blocks():
    x = data("x")
    y = L.square(x)
    with fluid.framework.BlockGuard(fluid.default_main_program()):
        z = L.square(y)
        with pytest.raises(OpValueError, match="all targets must be in the same block"):
            fluid.gradients([y, z], x)
        with pytest.raises(NotBuiltYet, match="in block 1"):
            fluid.gradients(z, x)


def test_variables_of_another_program():
    x = data("x")
    y = L.square(x)
    before = fluid.default_main_program().desc.serialize_to_string()
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        stranger = data("x")
    with pytest.raises(OpValueError, match="input must be in the same program as targets"):
        fluid.gradients(y, stranger)
    with pytest.raises(OpValueError, match="target_gradient must be in the same program as targets"):
        fluid.gradients(y, x, target_gradients=stranger)
    assert fluid.default_main_program().desc.serialize_to_string() == before
