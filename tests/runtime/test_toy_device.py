"""A device is added in the developer guide's three steps, from this file alone, and trains a linear regression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import memory, op
from fluidnb.memory import pools
from fluidnb.op.define import registry
from fluidnb.runtime.program_state import program_state
from fluidnb.values import DeviceContext, LoDTensor, Place, copies, device_context, register_place

# ---- step 1: a place, its context and its memory


class ToyPlace(Place):
    """A device whose memory the host cannot compute on."""

    __slots__ = ()
    kind = "toy"


class ToyArray:
    """Memory of the device: numpy knows nothing of it, so that a kernel of the CPU cannot touch it unnoticed."""

    __array_ufunc__ = None

    def __init__(self, data: np.ndarray[Any, Any]) -> None:
        self.data = data
        self.shape, self.dtype = data.shape, data.dtype
        self.ndim, self.size, self.nbytes = data.ndim, data.size, data.nbytes

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("the host reached into the device's memory")

    def copy(self) -> ToyArray:
        """A copy on the device, for the machine's journal."""
        return ToyArray(self.data.copy())


class ToyContext(DeviceContext):
    """Makes arrays of the device."""

    def empty(self, shape: Any, dtype: Any, order: Any = None) -> Any:
        """A new array in the device's pool."""
        return ToyArray(memory.empty(self.place, shape, np.dtype(dtype)))


# ---- step 2: kernels

ran: list[str] = []


def toy_product(x: ToyArray, y: ToyArray, out: ToyArray) -> None:
    """The device's matrix product."""
    ran.append("mul")
    np.matmul(x.data, y.data, out=out.data)


def toy_descent(param: ToyArray, grad: ToyArray, rate: ToyArray, out: ToyArray) -> None:
    """The device's step of gradient descent."""
    ran.append("sgd")
    out.data[...] = param.data - rate.data * grad.data


def mul(b: op.Binder) -> None:
    """mul on the device, for matrices."""
    b(toy_product, b["X"], b["Y"], b["Out"])


def sgd(b: op.Binder) -> None:
    """sgd on the device."""
    b(toy_descent, b["Param"], b["Grad"], b["LearningRate"], b["ParamOut"])


# ---- step 3: transforms


def into(source: np.ndarray[Any, Any], target: ToyArray) -> None:
    """From the host to the device."""
    np.copyto(target.data, source)


def out_of(source: ToyArray, target: np.ndarray[Any, Any]) -> None:
    """From the device to the host."""
    np.copyto(target, source.data)


def within(source: ToyArray, target: ToyArray) -> None:
    """On the device."""
    np.copyto(target.data, source.data)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[ToyPlace]:
    """The device, for one test."""
    monkeypatch.setattr(pools, "_kinds", dict(pools._kinds))
    monkeypatch.setattr(device_context, "_factories", dict(device_context._factories))
    monkeypatch.setattr(copies, "_copies", dict(copies._copies))
    ran.clear()
    register_place(ToyPlace, ToyContext)
    memory.register_allocator("toy", lambda device: memory.CPUAllocator())
    op.kernel("mul", place="toy", dtypes=["float32"])(mul)
    op.kernel("sgd", place="toy", dtypes=["float32"])(sgd)
    op.register_copy("cpu", "toy", into)
    op.register_copy("toy", "cpu", out_of)
    op.register_copy("toy", "toy", within)
    yield ToyPlace(0)
    op.remove_kernel("mul", mul)
    op.remove_kernel("sgd", sgd)


def fit_a_line() -> tuple[Any, Any]:
    """The book's first chapter: prediction and mean squared error on 13 features, with SGD."""
    x, y = fluid.layers.data("x", shape=[13]), fluid.layers.data("y", shape=[1])
    prediction = fluid.layers.fc(x, size=1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(prediction, y))
    fluid.optimizer.SGD(0.05).minimize(loss)
    return prediction, loss


def batch(seed: int) -> dict[str, Any]:
    """A batch of a line with a little noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(20, 13)).astype("float32")
    return {"x": x, "y": (x @ np.linspace(-1, 1, 13).reshape(13, 1) + 0.5).astype("float32")}


def train(place: Any, loss: Any, **how: Any) -> tuple[list[bytes], dict[str, bytes]]:
    """50 steps from the same start: the losses, and the parameters in the end."""
    fluid.default_startup_program().random_seed = 7
    exe, scope = fluid.Executor(place), fluid.Scope()
    exe.run(fluid.default_startup_program(), scope=scope)
    losses = [exe.run(feed=batch(i), fetch_list=[loss], scope=scope, **how)[0] for i in range(50)]
    assert float(losses[-1][0]) < 0.05 * float(losses[0][0])
    tensors = {n: scope.find_var(n).get_tensor() for n in ("fc_0.w_0", "fc_0.b_0")}
    assert all(t._place() is place for t in tensors.values())
    return [x.tobytes() for x in losses], {n: np.array(t).tobytes() for n, t in tensors.items()}


def test_it_trains_like_the_cpu(toy: ToyPlace) -> None:
    _, loss = fit_a_line()
    host = train(fluid.CPUPlace(), loss)
    assert ran == []
    assert train(toy, loss) == host
    assert ran.count("mul") == 50 and ran.count("sgd") == 100


def test_the_machine_walks_it_too(toy: ToyPlace) -> None:
    _, loss = fit_a_line()
    replay = train(toy, loss)
    assert train(toy, loss, keep_scopes=True) == replay


def test_transforms_are_visible_in_the_plan(toy: ToyPlace) -> None:
    prediction, _ = fit_a_line()
    exe = fluid.Executor(toy)
    exe.run(fluid.default_startup_program())
    exe.run(feed=batch(0), fetch_list=[prediction])
    (plan,) = (p for p in _plans(fluid.default_main_program()) if p.place is toy)
    lines = [line.strip() for line in plan.describe().splitlines()]
    assert "0 mul" in lines and "1 elementwise_add  [place toy -> cpu]" in lines


def _plans(program: fluid.Program) -> list[Any]:

    return list(program_state(program.desc).lowered_programs.values())


def test_memory_is_the_devices_own(toy: ToyPlace) -> None:
    prediction, _ = fit_a_line()
    exe, scope = fluid.Executor(toy), fluid.Scope()
    exe.run(fluid.default_startup_program(), scope=scope)
    exe.run(feed=batch(0), fetch_list=[prediction], scope=scope, keep_scopes=True)
    found = 0
    for inside in (scope, *scope.kids):
        for variable in inside.vars.values():
            if isinstance(variable.value, LoDTensor):
                assert type(variable.value.array) is ToyArray
                assert memory.contains(toy, variable.value.array.data.ctypes.data)
                found += 1
    assert found > 10 and memory.used(toy) > 0


def test_a_scope_moves_between_devices(toy: ToyPlace) -> None:
    prediction, _ = fit_a_line()
    host, device = fluid.Executor(fluid.CPUPlace()), fluid.Executor(toy)
    host.run(fluid.default_startup_program())
    weight = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    test = fluid.default_main_program().prune([prediction])
    values = [e.run(test, feed={"x": batch(0)["x"]}, fetch_list=[prediction])[0] for e in (host, device, host, device)]
    assert len({v.tobytes() for v in values}) == 1 and weight._place() is toy
    weight.set(np.zeros((13, 1), "float32"), fluid.CPUPlace())
    assert not device.run(test, feed={"x": batch(0)["x"]}, fetch_list=[prediction])[0].any()
    assert weight._place() is toy and not np.array(weight).any()


def test_tensors_of_the_device_are_read_through_the_transform(toy: ToyPlace) -> None:
    tensor = LoDTensor()
    tensor.set(np.arange(6, dtype="float32").reshape(3, 2), toy)
    assert np.asarray(tensor).tolist() == [[0, 1], [2, 3], [4, 5]] and tensor.shape() == [3, 2]
    assert np.array(tensor[1]).tolist() == [2, 3] and "4." in str(tensor)
    held = tensor.array
    tensor.set(np.zeros((3, 2), "float32"), toy)
    assert tensor.array is held and not np.asarray(tensor).any()


def test_without_the_transform_it_is_refused(toy: ToyPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(copies._copies, ("cpu", "toy"))
    with pytest.raises(fluid.core.EnforceNotMet, match="No transform is applied, please check!.*from cpu to toy"):
        fluid.Executor(toy)


def test_one_kernel_of_the_device_under_the_cpu(toy: ToyPlace) -> None:
    _, loss = fit_a_line()
    host = train(fluid.CPUPlace(), loss)
    with op.prefer("mul", place="toy"):
        assert train(fluid.CPUPlace(), loss) == host
    assert ran.count("mul") == 50 and ran.count("sgd") == 0
    assert registry.preferences == {}


def test_a_block_runs_there_in_a_scope_of_the_users(toy: ToyPlace) -> None:
    prediction, loss = fit_a_line()
    startup, main = fluid.default_startup_program(), fluid.default_main_program()
    startup.random_seed = 7
    found = []
    for place in (fluid.CPUPlace(), toy):
        scope = fluid.Scope()
        fluid.Executor(fluid.CPUPlace()).run(startup, scope=scope)
        for name, array in batch(0).items():
            scope.var(name).get_tensor().set(array, fluid.CPUPlace())
        first = main.global_block().eval([prediction, loss], scope, place)
        main.global_block().infer_shape(scope)
        main.global_block().run(scope, place)
        found.append([a.tobytes() for a in (*first, np.array(scope.find_var("fc_0.w_0").get_tensor()))])
        assert scope.find_var("fc_0.w_0").get_tensor()._place() is place
    assert found[0] == found[1] and ran.count("mul") == 2 and ran.count("sgd") == 2
