"""fluid.open: where it finds models, what it says of them, and parameters that do not belong to them."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, FluidError, OpTypeError, OpValueError
from fluidnb.files.safetensors import read_safetensors

PIR = Path(__file__).parents[1] / "golden" / "pir" / "3.3" / "transformer_decoder"
X = np.random.default_rng(0).random((4, 3), "float32")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder with models in Fluid's and Paddle 2's files."""
    out = fluid.layers.fc(fluid.layers.fc(fluid.layers.data("x", [3]), 4, act="tanh"), 2)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for folder, names in {
        "separate": (None, None), "combined": ("__model__", "__params__"), "named": ("net", "all"),
        "two": ("inference.pdmodel", "inference.pdiparams"),
    }.items():  # fmt: skip
        fluid.io.save_inference_model(str(tmp_path / folder), ["x"], [out], exe, None, *names)
    np.save(tmp_path / "y.npy", exe.run(feed={"x": X}, fetch_list=[out])[0])
    return tmp_path


@pytest.mark.parametrize(
    "path",
    ["separate", "combined", "two", "two/inference", "two/inference.pdmodel", "two/inference.pdiparams",
     "separate/__model__", "combined/__model__"],
)  # fmt: skip
def test_paths_of_a_model(path: str, saved: Path) -> None:
    model = fluid.open(str(saved / path))
    assert [v.name for v in model.feeds] == ["x"] and model.fetches[0].shape == (-1, 2)
    np.testing.assert_array_equal(model.run(X)[0], np.load(saved / "y.npy"))
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        program, feeds, fetches = fluid.io.load_inference_model(str(saved / path), exe)
        out = exe.run(program, feed={feeds[0]: X}, fetch_list=fetches)[0]
    np.testing.assert_array_equal(out, np.load(saved / "y.npy"))


def test_files_with_other_names(saved: Path) -> None:
    model = fluid.open(str(saved / "named"), model_filename="net", params_filename="all")
    np.testing.assert_array_equal(model.run({"x": X})[0], np.load(saved / "y.npy"))


def test_paddle_3s_files_are_loaded_as_inference_model() -> None:
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()), np.load(PIR / "feeds.npz") as feeds, np.load(PIR / "outputs.npz") as outputs:
        program, names, fetches = fluid.io.load_inference_model(str(PIR), exe)
        out = exe.run(program, feed={n: feeds[n] for n in names}, fetch_list=fetches)
        np.testing.assert_allclose(out[0], outputs["0"], 1e-5)


def test_the_text_of_a_model() -> None:
    model = fluid.open(str(PIR))
    lines = str(model).replace(str(PIR), "FOLDER").splitlines()
    assert lines[:5] == [
        "model     FOLDER/inference.json",
        "program   36 operators in 1 block, 13 parameters of 2,440 numbers (0.01 MB)",
        "feed      ids: int64[-1, 1]",
        "feed      keys: float32[-1, 4, -1, 4]",
        "feed      values: float32[-1, 4, -1, 4]",
    ]
    assert "36 operators" in repr(model)


def test_several_feeds_need_names() -> None:
    with pytest.raises(OpTypeError, match="takes 3 arrays(.|\n)*ids, keys, values"):
        fluid.open(str(PIR)).run(np.zeros((1, 1), "int64"))


def test_two_models_do_not_share_parameters(saved: Path) -> None:
    one, other = (fluid.open(str(saved / "two")) for _ in range(2))
    name = one.parameters[0].name
    one.scope.find_var(name).get_tensor().set(np.zeros(one.parameters[0].shape, "float32"), fluid.CPUPlace())
    np.testing.assert_array_equal(other.run(X)[0], np.load(saved / "y.npy"))
    assert not np.array_equal(one.run(X)[0], np.load(saved / "y.npy"))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("inferenc", r"There is no model(.|\n)*Did you mean"),
        ("empty", r"is no saved model(.|\n)*an empty folder"),
        ("both", r"has several models(.|\n)*a.pdmodel, b.pdmodel(.|\n)*name the file: .*a.pdmodel"),
        ("other", r"is no saved model(.|\n)*received: +notes.txt"),
    ],
)
def test_where_no_model_is(path: str, message: str, tmp_path: Path) -> None:
    for name in ("empty", "both", "other", "inference"):
        (tmp_path / name).mkdir()
    for name in ("both/a.pdmodel", "both/b.pdmodel", "other/notes.txt"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(EnforceNotMet, match=message):
        fluid.open(str(tmp_path / path))


def copied(folder: Path) -> tuple[Path, bytearray]:
    shutil.copytree(PIR, folder)
    return folder / "inference.pdiparams", bytearray((folder / "inference.pdiparams").read_bytes())


@pytest.mark.parametrize("keep", [0, 1, 20, 500, -1])
def test_parameters_that_are_cut_off(keep: int, tmp_path: Path) -> None:
    file, data = copied(tmp_path / "m")
    file.write_bytes(data[:keep])
    with pytest.raises(EnforceNotMet, match="inference.pdiparams(.|\n)*expected(.|\n)*received"):
        fluid.open(str(tmp_path / "m"))


def test_parameters_that_are_missing_or_too_many(tmp_path: Path) -> None:
    file, data = copied(tmp_path / "m")
    file.write_bytes(data + data)
    with pytest.raises(EnforceNotMet, match="does not hold 13 tensors"):
        fluid.open(str(tmp_path / "m"))
    file.unlink()
    with pytest.raises(EnforceNotMet, match="no file of parameters is beside it"):
        fluid.open(str(tmp_path / "m"))


def test_parameters_of_another_model(tmp_path: Path) -> None:
    file, _ = copied(tmp_path / "m")
    shutil.copy(PIR.parent / "detector" / "inference.pdiparams", file)
    with pytest.raises(EnforceNotMet, match="inference.pdiparams"):
        fluid.open(str(tmp_path / "m"))


def test_a_parameter_of_another_shape(tmp_path: Path) -> None:
    copied(tmp_path / "m")
    program = tmp_path / "m" / "inference.json"
    data = json.loads(program.read_text())
    first = next(o for o in data["program"]["regions"][0]["blocks"][0]["ops"] if o["#"] == "p")
    first["O"]["TT"]["D"][1] = [7, 7]
    program.write_text(json.dumps(data))
    with pytest.raises(EnforceNotMet, match="does not hold the variable(.|\n)*expected: +float32 \\[7, 7\\]"):
        fluid.open(str(program))


def test_a_program_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.pdmodel").write_bytes(b"\xff" * 100)
    with pytest.raises(FluidError, match="a.pdmodel holds no program"):
        fluid.open(str(tmp_path))


def test_formats_of_saved_models(saved: Path, tmp_path: Path) -> None:
    model = fluid.open(str(saved / "two"))
    for to in ("pdmodel", "programdesc"):
        files = model.save(str(tmp_path / to), to)
        np.testing.assert_array_equal(fluid.open(str(tmp_path / to)).run(X)[0], np.load(saved / "y.npy"))
        assert [Path(f).exists() for f in files] == [True, True]
    (file,) = model.save(str(tmp_path), "safetensors", "weights")
    values = read_safetensors(file)
    assert values.keys() == {v.name for v in model.parameters}
    for name, value in values.items():
        np.testing.assert_array_equal(value, np.asarray(model.scope.find_var(name).get_tensor()))
    with pytest.raises(OpValueError, match="no format caffe"):
        model.save(str(tmp_path), "caffe")


def test_an_opened_model_is_trained_further(saved: Path) -> None:
    """The last layer learns; the others stay; what is saved has the new values and no loss."""
    model = fluid.open(str(saved / "two"))
    first, last = model.parameters[:2], [v.name for v in model.parameters[-2:]]
    kept = [np.array(model.scope.find_var(v.name).get_tensor()) for v in first]
    startup = fluid.Program()
    with fluid.program_guard(model.training_program(), startup), fluid.scope_guard(model.scope):
        out = fluid.default_main_program().global_block().var(model.fetches[0].name)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(out, fluid.layers.data("label", [2])))
        fluid.optimizer.SGD(0.1).minimize(loss, startup, last)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        feed = {"x": X, "label": np.zeros((4, 2), "float32")}
        losses = [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(20)]
    assert losses[-1] < losses[0] / 2
    for v, value in zip(first, kept, strict=True):
        np.testing.assert_array_equal(np.asarray(model.scope.find_var(v.name).get_tensor()), value)
    model.save(str(saved / "trained"))
    again = fluid.open(str(saved / "trained"))
    assert [op.type for op in again.program.global_block().ops] == [op.type for op in model.program.global_block().ops]
    np.testing.assert_array_equal(again.run(X)[0], model.run(X)[0])
    assert np.square(again.run(X)[0]).mean() < losses[0] / 2


def test_batch_norm_back_in_training_mode(tmp_path: Path) -> None:
    x = fluid.layers.data("x", [3, 4, 4])
    out = fluid.layers.reshape(fluid.layers.batch_norm(x), [-1, 48])
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [out], exe, None, "__model__", "__params__")
    model = fluid.open(str(tmp_path))
    images = np.random.default_rng(0).random((4, 3, 4, 4), "float32")
    for batch_norm in (False, True):
        program = model.training_program(batch_norm)
        assert {v.name for v in program.all_parameters()} == {"batch_norm_0.b_0", "batch_norm_0.w_0"}
        with fluid.scope_guard(model.scope):
            (value,) = exe.run(program, feed={"x": images}, fetch_list=[out.name])
        assert (abs(float(value.mean())) < 1e-5) == batch_norm, "the statistics of the batch"
    mean = np.asarray(model.scope.find_var("batch_norm_0.w_1").get_tensor())
    np.testing.assert_allclose(mean, images.mean((0, 2, 3)) * 0.1, 1e-5)


def test_results_that_an_inference_model_leaves_out(saved: Path) -> None:
    """Paddle 2 saves reshape2 without XShape, which its gradient reads."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.layers.data("x", [4])
        w = fluid.layers.create_parameter([4], "float32", name="w")
        out = fluid.layers.reshape(x * w, [-1, 2])
    program.global_block().ops[-1].desc.set_output("XShape", [])
    model = fluid.open(str(saved / "two"))
    model.program = program
    startup = fluid.Program()
    copy = model.training_program()
    with fluid.program_guard(copy, startup):
        loss = fluid.layers.mean(copy.global_block().var(out.name))
        (gradient,) = fluid.gradients([loss], [copy.global_block().var("w")])
    scope = fluid.Scope()
    scope.var("w").get_tensor().set(np.ones(4, "float32"), fluid.CPUPlace())
    with fluid.scope_guard(scope):
        (value,) = fluid.Executor(fluid.CPUPlace()).run(copy, feed={"x": X.repeat(4, 1)[:, :4]}, fetch_list=[gradient])
    np.testing.assert_allclose(value, X.repeat(4, 1)[:, :4].sum(0) / 16, 1e-5)


class Hostile:
    """A pickle that would run code."""

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path("it_ran"),))


@pytest.fixture
def named(saved: Path) -> Path:
    """A folder as paddle.static.save writes it: a program without ends, and parameters by name in a pickle."""
    model = fluid.open(str(saved / "two"))
    block = model.program.global_block()
    for index in (len(block.ops) - 1, 0):
        block._remove_op(index)
    folder = saved / "static"
    folder.mkdir()
    (folder / "net.pdmodel").write_bytes(model.program.desc.serialize_to_string())
    values = {v.name: np.asarray(model.scope.var(v.name).get_tensor()) for v in model.parameters}
    (folder / "net.pdparams").write_bytes(pickle.dumps(values, 4))
    return folder


def test_parameters_by_name(named: Path) -> None:
    model = fluid.open(str(named / "net"))
    assert [v.name for v in model.feeds] == ["x"]
    np.testing.assert_array_equal(model.run(X)[0], np.load(named.parent / "y.npy"))
    model.save(str(named), "safetensors", "net")
    (named / "net.pdparams").unlink()
    np.testing.assert_array_equal(fluid.open(str(named)).run(X)[0], np.load(named.parent / "y.npy"))


def test_parameters_by_name_that_do_not_fit(named: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(named)
    file = named / "net.pdparams"
    values = pickle.loads(file.read_bytes())
    name = next(iter(values))
    for changed, message in (
        ({n: v for n, v in values.items() if n != name}, f'has no "{name}"'),
        ({f"{n}x": v for n, v in values.items()}, "Did you mean"),
        (values | {name: np.zeros((9, 9), "float32")}, f'does not hold the variable "{name}"'),
        (values | {name: values[name].astype("float64")}, "float64"),
        ([1, 2], "holds no parameters"),
        (values | {name: Hostile()}, "net.pdparams"),
        (Hostile(), "net.pdparams"),
    ):
        file.write_bytes(pickle.dumps(changed, 4))
        with pytest.raises(EnforceNotMet, match=message):
            fluid.open(str(named))
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(EnforceNotMet, match="net.pdparams"):
        fluid.open(str(named))
    assert not (named / "it_ran").exists()


def test_names_of_a_layers_parameters(named: Path) -> None:
    file = named / "net.pdparams"
    values = pickle.loads(file.read_bytes())
    names = {f"layer.{i}": n for i, n in enumerate(values)}
    inside = {"StructuredToParameterName@@": names, **{n: values[names[n]] for n in names}}
    file.write_bytes(pickle.dumps(inside, 4))
    np.testing.assert_array_equal(fluid.open(str(named)).run(X)[0], np.load(named.parent / "y.npy"))


def test_a_mean_in_the_place_of_a_variance(tmp_path: Path) -> None:
    """Files of parameters by order have no names; numbers below 0 are no variance."""
    y = fluid.layers.batch_norm(fluid.layers.data("x", [3, 2, 2]), is_test=True)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    mean, variance = (op.input(slot)[0] for op in y.block.ops for slot in ("Mean", "Variance"))
    np.asarray(fluid.global_scope().var(mean).get_tensor())[...] = [0.5, -0.25, 0.5]
    fluid.io.save_inference_model(str(tmp_path), ["x"], [y], exe, None, "m.pdmodel", "m.pdiparams")
    fluid.open(str(tmp_path))
    path = tmp_path / "m.pdiparams"
    data = path.read_bytes()
    size = len(data) // 4
    parts = [data[i * size : (i + 1) * size] for i in range(4)]
    names = sorted(v.name for v in fluid.default_main_program().list_vars() if v.persistable)
    a, b = names.index(mean), names.index(variance)
    parts[a], parts[b] = parts[b], parts[a]
    path.write_bytes(b"".join(parts))
    with pytest.raises(EnforceNotMet, match="is a variance, and has -0.25: the parameters are in another order"):
        fluid.open(str(tmp_path))


def test_a_program_without_its_parameters(tmp_path: Path) -> None:
    two = tmp_path / "two"
    for folder in (PIR, two):
        if folder is two:
            fluid.open(str(PIR)).save(str(folder))
        alone = tmp_path / "alone"
        shutil.rmtree(alone, ignore_errors=True)
        alone.mkdir()
        program = next(p for p in folder.iterdir() if p.suffix in (".json", ".pdmodel"))
        shutil.copy(program, alone)
        with pytest.raises(EnforceNotMet, match="parameters, and no file of parameters is beside it") as caught:
            fluid.open(str(alone))
        assert "inference.pdiparams or" in str(caught.value.expected) and caught.value.received == "no other file"


@pytest.mark.parametrize("to", ["pdmodel", "onnx", "safetensors"])
def test_files_stay_in_their_folder(tmp_path: Path, to: str) -> None:
    x = fluid.layers.data("x", [2])
    y, exe = fluid.layers.fc(x, 1), fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path / "model"), ["x"], [y], exe)
    model, folder = fluid.open(str(tmp_path / "model")), tmp_path / "saved"
    with pytest.raises(FluidError, match="outside|folder"):
        model.save(str(folder), to, "../escaped")
    assert not list(tmp_path.glob("escaped*"))


def test_a_feed_that_the_model_lacks_is_refused_with_those_that_it_has(saved: Path) -> None:
    with pytest.raises(FluidError, match=r'no variable "zz" to feed(.|\n)*expected: x\n(.|\n)*given to layers.data: x'):
        fluid.open(str(saved / "two")).run({"x": X, "zz": X})
