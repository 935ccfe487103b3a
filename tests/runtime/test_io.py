"""Files: what is saved is loaded, and what does not fit is named and changes nothing."""

import os
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, FluidError, NotFound, OpTypeError, OpValueError
from tests.tools.refused import refused


@pytest.fixture
def trained(tmp_path):
    x = fluid.layers.data("x", [3])
    y = fluid.layers.data("y", [1])
    out = fluid.layers.fc(fluid.layers.fc(x, 4, act="relu"), 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    fluid.optimizer.Adam(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.default_rng(0)
    feed = {"x": rng.random((5, 3), "float32"), "y": rng.random((5, 1), "float32")}
    for _ in range(3):
        exe.run(feed=feed, fetch_list=[loss])
    return exe, feed, out, str(tmp_path / "model")


def values():
    return {n: np.array(v.get_tensor()) for n, v in fluid.global_scope().vars.items()}


@pytest.mark.parametrize("filename", [None, "all"])
@pytest.mark.parametrize("what", ["params", "persistables"])
def test_there_and_back(trained, filename, what):
    exe, feed, out, folder = trained
    before = values()
    getattr(fluid.io, f"save_{what}")(exe, folder, filename=filename)
    exe.run(fluid.default_startup_program())
    getattr(fluid.io, f"load_{what}")(exe, folder, filename=filename)
    after = values()
    names = [p.name for p in fluid.default_main_program().all_parameters()]
    names = names if what == "params" else list(before)
    assert names and all(np.array_equal(before[n], after[n]) for n in names)
    assert len(os.listdir(folder)) == (1 if filename else len(names))


def test_the_bytes_of_a_parameter(trained):
    exe, _, _, folder = trained
    fluid.io.save_params(exe, folder)
    data = (Path(folder) / "fc_0.w_0").read_bytes()
    head = bytes.fromhex("00000000 0000000000000000 00000000 06000000 0805 1003 1004")
    assert data == head + values()["fc_0.w_0"].tobytes()


@pytest.mark.parametrize("params", [None, "__params__"])
def test_an_inference_model_gives_the_same_in_a_new_scope(trained, params):
    exe, feed, out, folder = trained
    main = fluid.default_main_program().desc.serialize_to_string()
    kept = {p.name: values()[p.name] for p in fluid.default_main_program().all_parameters()}
    assert fluid.io.save_inference_model(folder, ["x"], [out], exe, params_filename=params) == [out.name]
    assert fluid.default_main_program().desc.serialize_to_string() == main
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(folder, exe, params_filename=params)
        types = [op.type for op in program.global_block().ops]
        assert types == ["feed", "mul", "elementwise_add", "relu", "mul", "elementwise_add", "fetch"]
        assert feeds == ["x"] and set(values()) == set(kept)
        got = exe.run(program, feed={"x": feed["x"]}, fetch_list=fetches)[0]
        by_its_own_fetches = exe.run(program, feed={"x": feed["x"]})[0]
    want = exe.run(feed=feed, fetch_list=[out])[0]  # computed before this step's update: with what was saved
    assert np.array_equal(got, by_its_own_fetches) and np.array_equal(got, want)


def test_a_variable_in_the_middle_can_be_fed(trained):
    exe, feed, out, folder = trained
    hidden = next(op for op in fluid.default_main_program().global_block().ops if op.type == "relu").output("Out")[0]
    fluid.io.save_inference_model(folder, [hidden], [out], exe)
    program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
    assert feeds == [hidden] and [op.type for op in program.global_block().ops][1:3] == ["mul", "elementwise_add"]
    assert exe.run(program, feed={hidden: np.ones((2, 4), "float32")}, fetch_list=fetches)[0].shape == (2, 1)


def spoil(folder, name, change):
    path = Path(folder) / name
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda data: data[:-3], "fc_1.w_0"),
        (lambda data: b"", "fc_1.w_0"),
        (lambda data: b"PNG" + data, "fc_1.w_0"),
        (lambda data: data + data, "does not hold one tensor"),
        (lambda data: data.replace(b"\x10\x04", b"\x10\x05", 1) + b"\0\0\0\0", "does not hold the variable"),
    ],
)
def test_a_file_that_does_not_fit_is_named_and_nothing_is_loaded(trained, change, text):
    exe, _, _, folder = trained
    fluid.io.save_params(exe, folder)
    exe.run(fluid.default_startup_program())
    before = values()
    spoil(folder, "fc_1.w_0", change)
    with refused(FluidError, text) as e:
        fluid.io.load_params(exe, folder)
    assert "fc_1.w_0" in str(e.value)
    assert all(np.array_equal(before[n], a) for n, a in values().items())


def test_swapped_files_are_found(trained):
    exe, _, _, folder = trained
    fluid.io.save_params(exe, folder)
    one, two = (os.path.join(folder, n) for n in ("fc_0.w_0", "fc_1.w_0"))
    os.rename(one, one + "x"), os.rename(two, one), os.rename(one + "x", two)
    with pytest.raises(EnforceNotMet, match="does not hold the variable") as e:
        fluid.io.load_params(exe, folder)
    assert "float32 [3, 4]" in str(e.value) and "float32 [4, 1]" in str(e.value)


def test_a_missing_file_is_named(trained):
    exe, _, _, folder = trained
    with pytest.raises(EnforceNotMet, match="Cannot open file .*fc_0.b_0"):
        fluid.io.load_params(exe, folder)
    with pytest.raises(EnforceNotMet, match="There is no model .*model"):
        fluid.io.load_inference_model(folder, exe)


@pytest.mark.parametrize("name", ["../w", "/etc/w", "a/../../w"])
def test_a_name_never_leads_out_of_the_folder(name, tmp_path):
    program = fluid.Program()
    program.global_block().create_var(name=name, shape=[1], dtype="float32", persistable=True)
    fluid.global_scope().var(name).get_tensor().set(np.ones(1, "float32"), fluid.CPUPlace())
    with pytest.raises(OpValueError, match="would be kept outside"):
        fluid.io.save_persistables(fluid.Executor(fluid.CPUPlace()), str(tmp_path / "m"), program)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda exe, out, d: fluid.io.save_inference_model(d, ["z"], [out], exe), NotFound, 'no variable "z" to feed'),
        (lambda exe, out, d: fluid.io.save_inference_model(d, ["y"], [out], exe), OpValueError, "it also needs x"),
        (lambda exe, out, d: fluid.io.save_inference_model(d, ["x"], ["out"], exe), OpTypeError, "Variables"),
        (lambda exe, out, d: fluid.io.save_inference_model(d, [out], [out], exe), OpTypeError, "list of texts"),
        (lambda exe, out, d: fluid.io.save_inference_model(d, ["x"], [], exe), OpValueError, "at least one target"),
        (lambda exe, out, d: fluid.io.save_params(exe, d, "main"), OpTypeError, "main_program of"),
        (lambda exe, out, d: fluid.io.save_params(exe, 3), OpTypeError, "dirname of save_params must be a text"),
    ],
)
def test_mistakes(trained, call, error, text):
    exe, _, out, folder = trained
    with refused(error, text):
        call(exe, out, folder)
    assert not os.path.exists(folder)


def test_a_parameter_by_its_name(trained):
    exe, _, _, _ = trained
    assert np.array_equal(fluid.io.get_parameter_value_by_name("fc_0.b_0", exe), values()["fc_0.b_0"])
    with pytest.raises(NotFound, match='"x" is not a parameter'):
        fluid.io.get_parameter_value_by_name("x", exe)


def test_a_null_byte_in_a_name_writes_no_file(trained):
    exe, _, out, folder = trained
    with pytest.raises(OpValueError, match="null byte"):
        fluid.io.save_inference_model(folder, ["x"], [out], exe, model_filename="a\0b")
    assert not os.path.exists(folder)


def test_parameters_in_a_scope_inside_another_one(tmp_path: Path) -> None:
    main, startup, exe = fluid.Program(), fluid.Program(), fluid.Executor()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        y = fluid.layers.fc(fluid.layers.data("x", [2]), 1, param_attr="w", bias_attr=False)
    root = fluid.Scope()
    inside, feed = root.new_scope(), {"x": np.ones((1, 2), "float32")}
    with fluid.scope_guard(inside):
        with pytest.raises(FluidError, match='Variable "w" holds no memory'):
            fluid.io.get_parameter_value(main.global_block().var("w"), exe)
        exe.run(startup)
        before = exe.run(main, feed=feed, fetch_list=[y])[0]
        assert fluid.io.get_parameter_value(main.global_block().var("w"), exe).shape == (2, 1)
        fluid.io.save_params(exe, str(tmp_path), main)
        root.find_var("w").get_tensor().set(np.zeros((2, 1), "float32"), fluid.CPUPlace())
        fluid.io.load_params(exe, str(tmp_path), main)
        assert exe.run(main, feed=feed, fetch_list=[y])[0] == before and "w" not in inside.vars
    assert np.array(root.find_var("w").get_tensor()).sum() == before
