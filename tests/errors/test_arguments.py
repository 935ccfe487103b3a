"""Arguments are checked where they enter, by the annotations of the function that takes them."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.arguments import LIMIT, NO, Rule, checked, kind_of
from fluidnb.compat.evaluation import evaluate
from fluidnb.errors import ArgumentError
from fluidnb.program.index_view import index_view
from fluidnb.program.printing import repr_attr
from fluidnb.values.dtypes import VarType

L = fluid.layers


@pytest.mark.parametrize(
    ("annotation", "value", "taken"),
    [
        (int, np.int64(3), 3), (int, True, True), (int, np.array([7]), 7), (int, 4.0, 4), (int, 4.5, NO),
        (int, float("nan"), NO), (int, "3", NO), (int, None, NO), (int, 10**30, NO), (int, VarType.FP32, 5),
        (float, 3, 3), (float, np.float32(0.5), 0.5), (float, np.array(2.0), 2.0), (float, "2", NO), (float, [2], NO),
        (float, 10**400, NO), (float, 1j, NO), (bool, 1, 1), (bool, None, None), (bool, "no", NO),
        (str, "x", "x"), (str, "\ud800", NO), (str, b"x", NO), (str, "é", "é"),
        (Sequence[int], np.array([2, 3]), [2, 3]), (Sequence[int], (2, np.int32(3)), (2, 3)),
        (Sequence[int], range(3), [0, 1, 2]), (Sequence[int], 3, NO), (Sequence[int], "12", NO),
        (Sequence[int], [1, "2"], NO), (Sequence[int], iter([1, 2]), [1, 2]), (Sequence[int], {1: 2}, NO),
        (int | Sequence[int] | None, None, None), (int | Sequence[int] | None, [[1]], NO),
        (tuple[int, str], [1, "a"], (1, "a")), (tuple[int, str], [1], NO),
        (Mapping[str, int], {"a": 1}, {"a": 1}), (Mapping[str, int], {"a": "b"}, NO), (Mapping[str, int], [], NO),
        (Callable[[], int], len, len), (Callable[[], int], 3, NO), (Literal["a", "b"], "b", "b"),
        (Literal["a", "b"], "c", NO), (Annotated[int, Rule("an even int", lambda n: n % 2 == 0)], 3, NO),
    ],
)  # fmt: skip
def test_what_a_kind_takes(annotation: Any, value: Any, taken: Any) -> None:
    kind = kind_of(annotation)
    assert kind is not None
    found = value if type(value) in kind.exact else kind.convert(value)
    assert found is taken if taken is NO else found == taken and type(found) is type(taken) or found == value


def test_a_list_that_fits_stays_the_same_object() -> None:
    kind, given = kind_of(Sequence[int]), [1, 2]
    assert kind is not None and kind.convert(given) is given


def test_what_never_ends_is_refused() -> None:
    def forever() -> Iterator[int]:
        while True:
            yield 1

    kind = kind_of(Sequence[int])
    assert kind is not None and kind.convert(forever()) is NO and LIMIT == 1_000_000


@pytest.mark.parametrize(
    ("call", "headline", "hint"),
    [
        (lambda x: L.reshape(x, shape=1), "shape of reshape must be a list of ints.", "write shape=[1]."),
        (lambda x: L.reduce_min(x, dim=float("nan")), "dim of reduce_min must be an int, a list of ints or None.",
         "left out, it is None."),
        (lambda x: L.create_parameter(-5, "float32"), "shape of create_parameter must be a list of ints.",
         "write shape=[-5]."),
        (lambda x: L.piecewise_decay(3, [0.1]), "boundaries of piecewise_decay must be a list of ints.",
         "write boundaries=[3]."),
        (lambda x: L.scale(x, [2.0]), "scale of scale must be a number.", "write scale=2.0, without brackets."),
        (lambda x: L.data("\ud800", [3]), "name of data must be a text.", "the text has a character that no file"),
        (lambda x: L.fc(x), "fc: missing a required argument: 'size'.", "call it as fc(input, size,"),
        (lambda x: L.fc(x, sise=3), "fc: got an unexpected keyword argument 'sise'.", 'Did you mean "size"?'),
        (lambda x: L.fc(x, 3, 1, None, None, None, False, None, 9), "fc: too many positional", "call it as fc("),
        (lambda x: fluid.optimizer.Adam(beta1="0.5"), "beta1 of Adam must be a number.", "write beta1=0.5, without"),
        (lambda x: fluid.optimizer.SGD(0.1).minimize("x"), "loss of SGD.minimize must be a Variable.",
         "for example layers.mean"),
        (lambda x: fluid.initializer.Normal(scale=[1]), "scale of Normal must be a number.", "write scale=1, without"),
        (lambda x: fluid.regularizer.L2Decay({}), "regularization_coeff of L2Decay must be a number.", "left out"),
        (lambda x: fluid.clip.GradientClipByNorm(None), "clip_norm of GradientClipByNorm must be a number.", "call it"),
        (lambda x: fluid.reader.shuffle([1], 3), "reader of shuffle must be a reader", "pass the function itself"),
        (lambda x: fluid.io.save_params(x, "x"), "executor of save_params must be an Executor.", "fluid.Executor("),
        (lambda x: L.concat([x, 3]), "input of concat must be a Variable or a list of Variables.", "layers."),
        (lambda x: fluid.metrics.Accuracy().update(0.5, "1"), "weight of Accuracy.update must be a number.",
         "write weight=1, without quotes."),
    ],
)  # fmt: skip
def test_a_refusal_names_argument_expectation_and_hint_and_leaves_nothing(
    call: Callable[[Any], Any], headline: str, hint: str
) -> None:
    x = L.data("x", [4])
    programs = fluid.default_main_program(), fluid.default_startup_program()
    before = [p.desc.serialize_to_string() for p in programs]
    with pytest.raises(ArgumentError) as caught:
        call(x)
    error = caught.value
    assert error.summary.startswith(headline) and isinstance(error, TypeError) and isinstance(error, ValueError)
    assert error.expected and error.received and error.hint is not None and error.hint.startswith(hint)
    assert error.where is not None and error.where.file == __file__
    assert [p.desc.serialize_to_string() for p in programs] == before


def test_other_spellings_of_the_same_value_stay_accepted() -> None:
    x = L.data("x", [4])
    assert L.reshape(x, np.array([-1, 2, 2])).shape == (-1, 2, 2)
    assert L.fc(x, size=np.int64(3), name=str(np.str_("a"))).shape == L.fc(x, size=6 / 2).shape == (-1, 3)
    assert L.reduce_sum(x, dim=np.array(1)).shape == L.reduce_sum(x, dim=(1,)).shape
    assert L.fill_constant((2, 3), np.dtype("int64"), np.float32(2)).shape == (2, 3)
    assert L.fill_constant(range(1, 3), fluid.core.VarDesc.VarType.FP32, True).shape == (1, 2)
    assert L.concat((x, x), axis=np.int8(1)).shape == (-1, 8)
    assert isinstance(fluid.optimizer.SGD(np.float64(0.1)), fluid.optimizer.SGDOptimizer)


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions, and methods of classes, that take arguments from users."""
    for home in (L, fluid.nets, fluid.optimizer, fluid.initializer, fluid.regularizer, fluid.clip, fluid.metrics,
                 fluid.evaluator, fluid.average, fluid.io, fluid.reader, fluid.backward, fluid.transpiler):  # fmt: skip
        for name in home.__all__:
            value = getattr(home, name)
            rows = vars(value).items() if isinstance(value, type) else [(name, value)]
            for part, member in rows:
                inner = getattr(member, "__func__", member)
                if isinstance(inner, types.FunctionType) and (not part.startswith("_") or part == "__init__"):
                    if (inner.__module__ or "").startswith("fluidnb."):
                        yield f"{home.__name__}.{name}.{part}", inner


#: What backward shares with optimizers, which is no user's.
UNCHECKED = re.compile(r"\.all_or_nothing$")


def test_every_public_function_has_its_arguments_declared_and_every_annotation_is_known() -> None:
    without, unknown = [], {}
    for name, function in public():
        if not inspect.signature(function).parameters.keys() - {"self", "cls", "args", "kwargs"}:
            continue
        kinds = getattr(function, "argument_kinds", None)
        if kinds is None:
            without.append(name)
        elif found := kinds.compile():
            unknown[name] = found
    assert unknown == {}
    assert [name for name in without if not UNCHECKED.search(name)] == []


def test_a_users_own_optimizer_is_not_checked_behind_their_back() -> None:
    class Mine(fluid.optimizer.Optimizer):
        def __init__(self, rate: int) -> None:
            super().__init__(0.1)
            self.rate = rate

    assert Mine("any").rate == "any"  # type: ignore[comparison-overlap,arg-type]


def test_a_wrapped_function_keeps_its_signature() -> None:
    @checked
    def f(x: int, *rest: float, flag: bool = False) -> tuple[Any, ...]:
        return x, *rest, flag

    assert list(inspect.signature(f).parameters) == ["x", "rest", "flag"]
    assert f(np.int64(1), 2, np.float64(3.0), flag=1) == (1, 2, 3.0, 1)
    with pytest.raises(ArgumentError, match="rest of f must be a number"):
        f(1, "2")


def filled() -> fluid.LoDTensor:
    tensor = fluid.LoDTensor()
    tensor.set(np.ones((5, 1), "float32"), fluid.CPUPlace())
    return tensor


@pytest.mark.parametrize(
    ("call", "headline"),
    [
        (lambda: fluid.LoDTensor("x"), "array of LoDTensor must be an array"),  # type: ignore[arg-type]
        (lambda: fluid.LoDTensor(np.ones(2), (), 3), "place of LoDTensor must be a Place."),  # type: ignore[arg-type]
        (lambda: fluid.LoDTensor(name=3), "name of LoDTensor must be a text."),  # type: ignore[arg-type]
        (lambda: fluid.LoDTensor(np.ones(2), 3), "A LoD is a list of lists of integers."),  # type: ignore[arg-type]
        (lambda: filled().set_dims("x"), "dims of LoDTensor.set_dims must be a list of ints from 0."),
        (lambda: filled().set_dims([-1]), "dims of LoDTensor.set_dims must be a list of ints from 0."),
        (lambda: filled().alloc_float("cpu"), "place of LoDTensor.alloc_float must be a Place."),
        (lambda: filled()._set_float_element("0", 1.0), "i of LoDTensor._set_float_element must be an int."),
        (lambda: filled()._set_float_element(0, "x"), "value of LoDTensor._set_float_element must be a number."),
        (lambda: filled()._get_float_element(5), "The tensor has no element 5."),
        (lambda: filled().set_dims(), "LoDTensor.set_dims: missing a required argument: 'dims'."),
    ],
)  # fmt: skip
def test_a_tensor_refuses_what_it_cannot_use_and_keeps_its_value(call: Callable[[], Any], headline: str) -> None:
    with pytest.raises(fluid.errors.FluidError) as caught:
        call()
    assert caught.value.summary.startswith(headline)


def test_a_number_of_numpy_is_a_tensor_without_axes() -> None:
    assert fluid.executor.as_numpy(fluid.LoDTensor(np.float32(1))) == 1.0  # type: ignore[arg-type]


def test_a_short_run_refuses_a_switch_as_a_first_one_does() -> None:
    x = L.data("x", [2])
    exe, feed, fetch = fluid.Executor(), {"x": np.ones((1, 2), "float32")}, [L.relu(x)]
    for _ in range(2):
        exe.run(feed=feed, fetch_list=fetch)
    for name in ("keep_scopes", "return_numpy"):
        with pytest.raises(ArgumentError, match=f"{name} of Executor.run must be True or False"):
            exe.run(feed=feed, fetch_list=fetch, **{name: np.ones(2)})


def test_a_tensor_takes_a_tuple_of_offsets_as_a_list() -> None:
    assert fluid.LoDTensor(()).lod() == [] and fluid.LoDTensor(((0, 2),)).lod() == [[0, 2]]


def ids() -> Any:
    """Labels to feed."""
    return L.data("ids", [1], dtype="int64")


def clipped(clip: Any) -> None:
    """Train a layer whose weight has a gradient clip."""
    y = L.fc(L.data("x", [3]), 1, param_attr=fluid.ParamAttr(gradient_clip=clip), bias_attr=False)
    fluid.optimizer.SGD(0.1).minimize(L.mean(y))


@pytest.mark.parametrize(
    ("call", "headline"),
    [
        (lambda: fluid.core.LoDTensorArray.unstack("x"), "A single value has no rows."),
        (lambda: fluid.core.LoDTensorArray(np.array(3)), "tensors of LoDTensorArray must be a list of values."),
        (lambda: fluid.core.LoDTensorArray().write(2**40, np.ones(1)), "i of LoDTensorArray.write must be an int up"),
        (lambda: fluid.Scope("x"), "parent of Scope must be a Scope or None."),
        (lambda: fluid.Scope().find_var(bytearray(b"a")), "A variable's name is a str, but bytearray was given."),
        (lambda: fluid.Scope().var([1]), "A variable's name is a str, but list was given."),
        (lambda: fluid.Scope().erase(3), "A variable's name is a str, but int was given."),
        (lambda: fluid.Scope().erase([3]), "A variable's name is a str, but int was given."),
        (lambda: fluid.layer_helper.LayerHelper(False), "layer_type of LayerHelper must be a text, or the function's"),
        (lambda: fluid.Program().desc.block("x"), "A block is named by its index."),
        (lambda: fluid.Program().restore(3), "A program can be restored from its own snapshots only."),
        (lambda: fluid.Program().restore(fluid.Program().snapshot()), "A program can be restored from its own"),
        (lambda: fluid.Program().global_block().create_parameter([2], "float32", no=1), "Variable: got an unexpected"),
        (lambda: fluid.Program().global_block().create_parameter(len, "float32"), "Parameter shape should be a list"),
        (lambda: fluid.Program().global_block().create_var("x", lod_level="1"), "lod_level of Variable must be an int"),
        (lambda: index_view(3), "program of index_view must be a Program or a ProgramDesc."),
        (lambda: repr_attr(3), "desc of repr_attr must be an Attr."),
        (lambda: fluid.metrics.Auc().update(np.array("x"), np.ones(1)), "The 'predictions' must be numbers."),
        (lambda: fluid.metrics.Auc().update(np.array(0.5), np.ones(2)), "There must be a label for each prediction."),
        (lambda: fluid.metrics.EditDistance().update(np.array(["x"]), 1), "The 'distances' must be numbers."),
        (lambda: fluid.reader.chain(len), "readers of chain must be a reader"),
        (lambda: list(fluid.reader.cache(float)()), "A reader must return the samples of one pass."),
        (lambda: list(fluid.reader.firstn(lambda: 3, 2)()), "A reader must return the samples of one pass."),
        (lambda: fluid.reader.PipeReader(""), "The command of PipeReader does not start: it is empty."),
        (lambda: fluid.reader.PipeReader("a\0b"), "The command of PipeReader does not start: embedded null byte."),
        (lambda: fluid.compat.install(force=np.ones(3)), "force of install must be True or False."),
        (lambda: fluid.layer_helper.LayerHelper("x", main_program=3), "main_program of x must be a Program or None."),
        (lambda: fluid.layer_helper.LayerHelper("x").append_activation(3), "input_var of LayerHelper"),
        (lambda: fluid.layer_helper.LayerHelper("x").set_variable_initializer(3, 4), "var of LayerHelper"),
        (lambda: fluid.layer_helper.LayerHelper("x").input_dtype({}), "input_param_name of LayerHelper.input_dtype"),
        (lambda: fluid.layer_helper.LayerHelper("x", name=object()), "name of x must be a text or None."),
        (lambda: L.fc([], 3), "input of fc must have at least one Variable."),
        (lambda: L.data_norm(L.data("x", [3]), param_attr={"batch_size": "x"}), "value of Constant must be a number."),
        (lambda: L.data_norm(L.fill_constant([], "float32", 1.0)), "The input of data_norm must be rows."),
        (lambda: fluid.ParamAttr.to_attrs(None, 2**40), "length of ParamAttr.to_attrs must be an int up to 100,000."),
        (lambda: L.data("x", [3]).to_string(np.ones(2)), "throw_on_error of Variable.to_string must be True or False."),
        (lambda: fluid.Executor().run(keep_scopes=np.ones(2)), "keep_scopes of Executor.run must be True or False."),
        (lambda: fluid.Executor().run(return_numpy="no"), "return_numpy of Executor.run must be True or False."),
        (lambda: fluid.metrics.Accuracy().update(np.array(["a"]), 2), "The 'value' must be a number(int, float) or a"),
        (lambda: fluid.initializer.MSRA(uniform=False).operator([-1]), "MSRAInitializer has no spread for these"),
        (lambda: fluid.initializer.Xavier(fan_in=-4).operator([4, 4]), "XavierInitializer has no spread for these"),
        (lambda: fluid.LoDTensor(np.float64), "array of LoDTensor must be an array"),
        (lambda: fluid.LoDTensor(L.data("x", [3])), "array of LoDTensor must be an array"),
        (lambda: filled().set_dims([1] * 65), "A tensor cannot have so many axes."),
        (lambda: list(fluid.reader.xmap_readers(lambda x: x, np.float64, 2, 4)()), "A reader must return the samples"),
        (lambda: fluid.reader.PipeReader("echo", bufsize=2**31), "The command of PipeReader does not start"),
        (lambda: clipped(np.ones(3)), "clip attribute of fc_0.w_0 should be an instance of BaseGradientClipAttr"),
        (lambda: clipped(0), "clip attribute of fc_0.w_0 should be an instance of BaseGradientClipAttr"),
        (lambda: L.conv2d(L.data("x", [3, 8, 8]), 4, 0), "The conv2d's filter_size must be positive."),
        (lambda: filled().set_lod([[0, 5]], np.ones(2)), "absolute of LoDTensor.set_lod must be True or False."),
        (lambda: evaluate(L.data("x", [3]), np.array([], "float32")), "feed must be a dict"),
        (lambda: L.hsigmoid(L.data("x", [None]), ids(), 9), "hsigmoid needs rows of a known width."),
        (lambda: L.nce(L.data("x", [2, 3]), ids(), 9), "nce needs rows of a known width."),
        (lambda: fluid.framework.Block.var("x"), "Block.var is a method of a Block object."),
        (lambda: fluid.framework.Block.append_op("x", "relu"), "Block.append_op is a method of a Block object."),
        (lambda: fluid.framework.Block.append_op(), "Block.append_op: missing a required argument: 'self'."),
        (lambda: L.im2sequence(L.data("x", [1, 8, 8]), []), "filter_size must be a list or tuple of 2 integers."),
        (lambda: L.im2sequence(L.data("x", [1, 8, 8]), 2, 1, [1]), "padding must be a list or tuple of 2 integers."),
        (lambda: fluid.Executor().run(fetch_list=np.array(3)), "Wrong type for fetch_list[0]: ndarray."),
        (lambda: L.one_hot(L.data("id", [1], dtype="int64"), L.data("n", [4], dtype="int32", append_batch_size=False)),
         "Input(depth_tensor) of one_hot must hold one number."),
    ],
)  # fmt: skip
def test_what_builders_and_readers_cannot_use_is_refused(call: Callable[[], Any], headline: str) -> None:
    with pytest.raises(fluid.errors.FluidError) as caught:
        call()
    assert headline in str(caught.value)


def test_a_clip_takes_a_number_in_any_spelling() -> None:
    clip = fluid.clip.ErrorClipByValue(np.bool_(True))
    assert (clip.min, clip.max) == (-1.0, 1.0)


def test_averages_refuse_what_is_no_executor() -> None:
    loss = L.mean(L.fc(L.data("x", [2]), 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    with pytest.raises(ArgumentError, match="executor of ExponentialMovingAverage.apply must be an Executor"):
        fluid.optimizer.ExponentialMovingAverage(0.9).apply(np.ones(1))
