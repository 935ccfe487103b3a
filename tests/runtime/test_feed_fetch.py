"""Values that may be fed and fetched; neither shares memory with the user."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import NotFound, OpTypeError, OpValueError
from fluidnb.values import LoDTensor, LoDTensorArray
from tests.tools.refused import refused

EXE = fluid.Executor(fluid.CPUPlace())
CPU = fluid.CPUPlace()


def doubled(**kwargs: Any) -> Any:
    """2 x for a fed x."""
    return fluid.layers.scale(fluid.layers.data("x", **{"shape": [2], **kwargs}), scale=2.0)


def tensor(array: Any, lod: Any = ()) -> LoDTensor:
    """A LoDTensor of an array and offsets."""
    made = LoDTensor()
    made.set(np.asarray(array), CPU)
    if lod:
        made.set_lod(lod)
    return made


ROWS = np.array([[1, 2], [3, 4]], "float32")


@pytest.mark.parametrize(
    "value",
    [ROWS, tensor(ROWS), ROWS.tolist(), [[1, 2], [3, 4]], ((1, 2), (3, 4)), np.asfortranarray(ROWS), ROWS[::-1][::-1],
     ROWS.astype("float16"), ROWS.astype("int16"), ROWS.astype(">f4"), np.broadcast_to(ROWS, (2, 2))],
)  # fmt: skip
@pytest.mark.parametrize("machine", [False, True])
def test_forms_of_a_feed(value: Any, machine: bool) -> None:
    y = doubled()
    for _ in range(2):
        assert EXE.run(feed={"x": value}, fetch_list=[y], keep_scopes=machine)[0].tolist() == [[2, 4], [6, 8]]


def test_a_number_feeds_a_scalar() -> None:
    y = doubled(shape=[1], append_batch_size=False)
    assert EXE.run(feed={"x": [3]}, fetch_list=[y])[0].tolist() == [6]
    free = fluid.default_main_program().global_block().create_var(name="free", shape=[1], dtype="float32")
    assert EXE.run(feed={"x": [3], "free": 4.0}, fetch_list=[free])[0].tolist() == 4.0


def test_a_pair_feeds_sequences_by_length() -> None:
    y = doubled(shape=[1], lod_level=1)
    got = EXE.run(feed={"x": (np.ones((3, 1), "float32"), [[1, 2]])}, fetch_list=[y], return_numpy=False)[0]
    assert got.lod() == [[0, 1, 3]] and np.array(got).tolist() == [[2]] * 3


@pytest.mark.parametrize(
    ("lengths", "error"),
    [([[1, 5]], "the last level ends at 6, but the tensor has 3 rows"), ([[2], [1, 2, 3]], "level 0 ends at 2"),
     ([[1, 2.5]], "list of lists"), ([[4, -1]], "a sequence of -1 rows")],
)  # fmt: skip
def test_lengths_that_do_not_fit_are_refused(lengths: Any, error: str) -> None:
    y = doubled(shape=[1], lod_level=1)
    with refused((OpValueError, OpTypeError), error):
        EXE.run(feed={"x": (np.ones((3, 1), "float32"), lengths)}, fetch_list=[y], return_numpy=False)


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex64"])
def test_a_dtype_that_would_lose_is_refused(dtype: str) -> None:
    y = doubled()
    with pytest.raises(OpValueError, match=f"should have dtype float32, but received {dtype}"):
        EXE.run(feed={"x": ROWS.astype(dtype)}, fetch_list=[y])


def test_what_is_no_data_takes_what_is_fed() -> None:
    y = doubled()
    h = fluid.layers.scale(y, scale=10.0)
    wide = np.ones((5, 7), "float32")
    assert EXE.run(feed={y.name: wide, "x": ROWS}, fetch_list=[h])[0].tolist() != (10 * wide).tolist()
    only = fluid.default_main_program().prune([h])
    only.global_block().desc.remove_op(0, 1)
    assert EXE.run(only, feed={y.name: wide}, fetch_list=[h.name])[0].tolist() == (10 * wide).tolist()


def test_batches_of_changing_size() -> None:
    y = doubled()
    for rows in (1, 5, 0, 3, 1, 5, 0):
        x = np.arange(2 * rows, dtype="float32").reshape(rows, 2)
        assert EXE.run(feed={"x": x}, fetch_list=[y])[0].tobytes() == (2 * x).tobytes()


def test_the_feed_is_copied() -> None:
    x, own = ROWS.copy(), tensor(ROWS)
    y = fluid.layers.data("x", shape=[2])
    fluid.layers.scale(y, scale=0.0)
    fluid.default_main_program().global_block().append_op("scale", {"X": y}, {"Out": y}, {"scale": 3.0})
    for value in (x, own, x):
        assert EXE.run(feed={"x": value}, fetch_list=[y])[0].tolist() == (3 * ROWS).tolist()
    assert x.tolist() == np.array(own).tolist() == ROWS.tolist()


def test_what_is_fetched_is_the_users_own() -> None:
    y = doubled()
    first = EXE.run(feed={"x": ROWS}, fetch_list=[y])[0]
    first[...] = -1
    second = EXE.run(feed={"x": ROWS}, fetch_list=[y])[0]
    assert second.tolist() == [[2, 4], [6, 8]] and first.max() == -1
    held = EXE.run(feed={"x": ROWS}, fetch_list=[y], return_numpy=False)[0]
    EXE.run(feed={"x": 10 * ROWS}, fetch_list=[y])
    assert np.array(held).tolist() == [[2, 4], [6, 8]]


@pytest.mark.parametrize("machine", [False, True])
def test_forms_of_a_fetch_list(machine: bool) -> None:
    y = doubled()
    for fetch in ([y], [y.name], y, y.name, (y,)):
        (got,) = EXE.run(feed={"x": ROWS}, fetch_list=fetch, keep_scopes=machine)
        assert got.tolist() == [[2, 4], [6, 8]]
    both = EXE.run(feed={"x": ROWS}, fetch_list=[y, "x", y], keep_scopes=machine)
    assert [b[0, 0] for b in both] == [2, 1, 2] and not np.shares_memory(both[0], both[2])
    assert EXE.run(feed={"x": ROWS}, fetch_list=None, keep_scopes=machine) == []


@pytest.mark.parametrize("form", [tuple, iter, lambda vs: (v for v in vs), lambda vs: dict(enumerate(vs)).values()])
def test_any_iterable_is_a_fetch_list(form: Any) -> None:
    y = doubled()
    z = fluid.layers.scale(y, scale=2.0)
    for _ in range(2):
        out = EXE.run(feed={"x": ROWS}, fetch_list=form([y, z.name]))
        np.testing.assert_array_equal(out, [2 * ROWS, 4 * ROWS])
    by_size = sorted(EXE.run(feed={"x": ROWS}, fetch_list={y, z}), key=np.sum)
    np.testing.assert_array_equal(by_size, [2 * ROWS, 4 * ROWS])
    assert EXE.run(feed={"x": ROWS}, fetch_list=set()) == []


@pytest.mark.parametrize("machine", [False, True])
def test_parameters_and_arrays_are_fetched(machine: bool) -> None:
    y = fluid.layers.fc(fluid.layers.data("x", shape=[2]), size=1)
    array = fluid.layers.array_write(y, fluid.layers.fill_constant([1], "int64", 1))
    EXE.run(fluid.default_startup_program())
    weight, tensors = EXE.run(feed={"x": ROWS}, fetch_list=[y.param, array], keep_scopes=machine)
    assert weight.tobytes() == np.array(fluid.global_scope().find_var(y.param.name).get_tensor()).tobytes()
    assert isinstance(tensors, LoDTensorArray) and tensors[0].array is None
    kept = np.array(tensors[1])
    EXE.run(feed={"x": 0 * ROWS}, fetch_list=[array], keep_scopes=machine)
    assert np.array_equal(np.array(tensors[1]), kept)


def test_a_programs_own_fetch_operators_are_heard() -> None:
    y = doubled()
    block = fluid.default_main_program().global_block()
    for name, kind in (("feed", "FEED_MINIBATCH"), ("fetch", "FETCH_LIST")):
        block.create_var(name=name, type=getattr(fluid.core.VarDesc.VarType, kind), persistable=True)
    block.prepend_op("feed", {"X": "feed"}, {"Out": "x"}, {"col": 0})
    block.append_op("fetch", {"X": "x"}, {"Out": "fetch"}, {"col": 1})
    block.append_op("fetch", {"X": y}, {"Out": "fetch"}, {"col": 0})
    got = EXE.run(feed={"x": ROWS})
    assert [g.tolist() for g in got] == [[[2, 4], [6, 8]], ROWS.tolist()]
    assert [g.tolist() for g in EXE.run(feed={"x": ROWS}, fetch_list=["x"])] == [ROWS.tolist()]


def test_two_programs_share_parameters_by_name_in_one_scope() -> None:
    x = fluid.layers.data("x", shape=[2])
    y = fluid.layers.fc(x, size=1, param_attr="w", bias_attr=False)
    loss = fluid.layers.mean(y)
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.5).minimize(loss)
    EXE.run(fluid.default_startup_program())
    for _ in range(3):
        before = EXE.run(test, feed={"x": ROWS}, fetch_list=[y.name])[0]
        trained = EXE.run(feed={"x": ROWS}, fetch_list=[y])[0]
        assert before.tobytes() == trained.tobytes()
    EXE.run(fluid.default_startup_program())
    assert EXE.run(test, feed={"x": ROWS}, fetch_list=[y.name])[0].tobytes() != before.tobytes()


def test_one_program_in_two_scopes_has_two_lives() -> None:
    y = fluid.layers.fc(fluid.layers.data("x", shape=[2]), size=1)
    fluid.optimizer.SGD(0.5).minimize(fluid.layers.mean(y))
    scopes = [fluid.Scope(), fluid.Scope()]
    for scope in scopes:
        EXE.run(fluid.default_startup_program(), scope=scope)
    one, other = ([EXE.run(feed={"x": ROWS}, fetch_list=[y], scope=s)[0].tobytes() for _ in range(3)] for s in scopes)
    assert len(set(one)) == 3 and one != other
    together = [EXE.run(feed={"x": ROWS}, fetch_list=[y], scope=s)[0].tobytes() for _ in range(3) for s in scopes]
    assert len(set(together)) == 6


def test_lists_lose_nothing_unseen() -> None:
    y = doubled(dtype="int64")
    with pytest.raises(OpValueError, match="dtype int64, but received float64"):
        EXE.run(feed={"x": [[1.5, 2.0]]}, fetch_list=[y])
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in ([[None, 2]], [["1", "2"]], None, [[2**70, 1]], deep):
        with pytest.raises(OpTypeError, match="cannot be made an array"):
            EXE.run(feed={"x": value}, fetch_list=[y])
    assert EXE.run(feed={"x": [[True, 2]]}, fetch_list=[y])[0].tolist() == [[2, 4]]


def test_the_bytes_of_a_program_do_not_say_that_feeds_are_compared() -> None:
    y = doubled()
    main = fluid.default_main_program()
    assert main.global_block().var("x").is_data
    again = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    assert not any(v.need_check_feed() for b in again.desc.blocks for v in b.vars.values())
    for program in (again, main.clone(), main._prune([y])):
        assert program.global_block().var("x").is_data and not program.global_block().var(y.name).is_data
        with pytest.raises(NotFound, match="was not fed: x"):
            EXE.run(program, fetch_list=[y.name])
        other = {"x": np.ones((2, 3), "float32")}
        if program is again:  # Paddle's own programs are fed other sizes than they declare
            assert EXE.run(program, feed=other, fetch_list=[y.name])[0].shape == (2, 3)
            continue
        with pytest.raises(OpValueError, match="should have dimensions"):
            EXE.run(program, feed=other, fetch_list=[y.name])
