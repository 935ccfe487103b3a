"""Whole models as C: inference and training steps, compared with the executor."""

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.code_generator import CodeGenerator
from tests.code_generator import blas
from tests.code_generator.batch import WARNINGS, CProgram, close

L = fluid.layers
_rng = np.random.default_rng(5)


def mlp() -> Any:
    """Two hidden layers."""
    h = L.fc(L.data("x", [12]), 16, act="relu")
    return L.fc(L.fc(h, 16, act="tanh"), 4, act="softmax")


def lenet() -> Any:
    """Two convolutions with pooling."""
    x = L.data("x", [1, 20, 20])
    h = fluid.nets.simple_img_conv_pool(x, 6, 5, 2, 2, act="relu")
    h = fluid.nets.simple_img_conv_pool(h, 8, 5, 2, 2, act="relu")
    return L.fc(h, 4, act="softmax")


def _conv_bn(x: Any, filters: int, size: int, stride: int = 1, groups: int = 1, act: str | None = "relu") -> Any:
    h = L.conv2d(x, filters, size, stride, (size - 1) // 2, groups=groups, bias_attr=False)
    return L.batch_norm(h, act=act)


def resnet() -> Any:
    """A residual block with a shortcut."""
    h = _conv_bn(L.data("x", [3, 16, 16]), 8, 3)
    h = L.pool2d(h, 3, "max", 2, 1)
    short = _conv_bn(h, 16, 1, 2, act=None)
    h = _conv_bn(_conv_bn(h, 16, 3, 2), 16, 3, act=None)
    h = L.relu(L.elementwise_add(short, h))
    return L.fc(L.pool2d(h, pool_type="avg", global_pooling=True), 4, act="softmax")


def mobilenet() -> Any:
    """An inverted residual block with depthwise convolutions."""
    h = _conv_bn(L.data("x", [3, 16, 16]), 8, 3, 2, act="relu6")
    t = _conv_bn(h, 16, 1, act="relu6")
    t = _conv_bn(_conv_bn(t, 16, 3, groups=16, act="relu6"), 8, 1, act=None)
    h = L.elementwise_add(h, t)
    return L.fc(L.pool2d(h, pool_type="avg", global_pooling=True), 4, act="softmax")


def transformer() -> Any:
    """An encoder layer: attention of two heads, then two dense layers."""
    x = L.data("x", [6, 8])

    def heads(v: Any) -> Any:
        return L.transpose(L.reshape(L.fc(v, 8, num_flatten_dims=2), [0, 0, 2, 4]), [0, 2, 1, 3])

    q, k, v = heads(x), heads(x), heads(x)
    weights = L.softmax(L.matmul(q, k, transpose_y=True, alpha=0.5))
    context = L.reshape(L.transpose(L.matmul(weights, v), [0, 2, 1, 3]), [0, 0, 8])
    h = L.layer_norm(L.elementwise_add(x, L.fc(context, 8, num_flatten_dims=2)), begin_norm_axis=2)
    f = L.fc(L.fc(h, 16, num_flatten_dims=2, act="gelu"), 8, num_flatten_dims=2)
    h = L.dropout(f, 0.1, is_test=True)
    h = L.layer_norm(L.elementwise_add(h, f), begin_norm_axis=2)
    return L.fc(L.reduce_mean(h, dim=1), 4, act="softmax")


#: The command of clang: itself, or zig's.
CLANG = shutil.which("clang") or (f"{sys.executable} -m ziglang cc" if importlib.util.find_spec("ziglang") else "")
MODELS: list[Callable[[], Any]] = [mlp, lenet, resnet, mobilenet, transformer]
BATCH = 3


def _trained(model: Callable[[], Any], optimizer: Any) -> tuple[fluid.Program, Any, Any]:
    """The main program of a model with its loss, initialized."""
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = main.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        probabilities = model()
        loss = L.mean(L.cross_entropy(probabilities, L.data("label", [1], dtype="int64")))
        accuracy = L.accuracy(probabilities, main.global_block().var("label"))
        if optimizer is not None:
            optimizer().minimize(loss)
    fluid.Executor(fluid.CPUPlace()).run(startup)
    return main, (probabilities if optimizer is None else loss), accuracy


def _feed(program: fluid.Program) -> dict[str, np.ndarray]:
    shape = (BATCH, *program.global_block().var("x").shape[1:])
    return {
        "x": _rng.uniform(-1, 1, shape).astype(np.float32),
        "label": _rng.integers(0, 4, (BATCH, 1)),
    }  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_inference_in_c(model: Callable[[], Any], tmp_path: Path) -> None:
    """Probabilities of a network, with the running moments of its normalizations."""
    with fluid.scope_guard(fluid.Scope()):
        main, probabilities, _ = _trained(model, None)
        test = main.clone(for_test=True)
        feed = {"x": _feed(main)["x"]}
        [want] = fluid.Executor(fluid.CPUPlace()).run(test, feed=feed | _feed(main) | feed, fetch_list=[probabilities])
        code = CodeGenerator(test, {"x": feed["x"].shape}, [probabilities])
        [got] = CProgram(code, tmp_path).run(feed)
    close(got, want, model.__name__)


@pytest.mark.skipif(not CLANG, reason="neither clang nor ziglang")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_clang_warns_of_nothing(model: Callable[[], Any], tmp_path: Path) -> None:
    with fluid.scope_guard(fluid.Scope()):
        main, loss, _ = _trained(model, lambda: fluid.optimizer.Adam(0.1))
        code = CodeGenerator(main, {name: array.shape for name, array in _feed(main).items()}, [loss])
        code.save(tmp_path / "code")
    words = [*CLANG.split(), "-std=c11", "-Wshadow", *WARNINGS, "-c", "model.c", "main.c"]
    done = subprocess.run(words, cwd=tmp_path / "code", capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.skipif(bool(blas.missing()), reason=blas.missing() or "there is a CBLAS")
@pytest.mark.parametrize("model", [mlp, lenet, transformer], ids=lambda model: model.__name__)
def test_training_with_products_by_cblas(model: Callable[[], Any], tmp_path: Path) -> None:
    """A step of training whose products CBLAS computes; gcc warns of nothing."""
    with fluid.scope_guard(fluid.Scope()):
        main, loss, _ = _trained(model, lambda: fluid.optimizer.SGD(0.1))
        feed = _feed(main)
        code = CodeGenerator(main, {name: array.shape for name, array in feed.items()}, [loss])
        program = code.build(blas.compiler_with_blas(tmp_path), tmp_path / "built", WARNINGS)
        symbols = subprocess.run(["nm", "-u", program], capture_output=True, text=True, check=True).stdout
        assert "scipy_cblas_sgemm64_" in symbols
        [got] = code.run(feed, blas.compiler_with_blas(tmp_path))
        [want] = fluid.Executor(fluid.CPUPlace()).run(main, feed=feed, fetch_list=[loss])
    close(got, want, model.__name__)


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "mlp": lambda: fluid.optimizer.SGD(0.1),
    "lenet": lambda: fluid.optimizer.Adam(0.01, regularization=fluid.regularizer.L2Decay(1e-3)),
    "resnet": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "mobilenet": lambda: fluid.optimizer.RMSProp(0.01),
    "transformer": lambda: fluid.optimizer.Adagrad(0.1),
}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_five_training_steps_in_c(model: Callable[[], Any], tmp_path: Path) -> None:
    """Losses of five steps, each with the parameters that the step before has written."""
    with fluid.scope_guard(fluid.Scope()):
        main, loss, accuracy = _trained(model, OPTIMIZERS[model.__name__])
        feeds = [_feed(main) for _ in range(5)]
        shapes = {name: array.shape for name, array in feeds[0].items()}
        code = CodeGenerator(main, shapes, [loss, accuracy])
        program = CProgram(code, tmp_path)
        losses = [program.run(feed) for feed in feeds]
        exe = fluid.Executor(fluid.CPUPlace())
        want = [exe.run(main, feed=feed, fetch_list=[loss, accuracy]) for feed in feeds]
        for i, (one, other) in enumerate(zip(losses, want, strict=True)):
            for got, expected in zip(one, other, strict=True):
                close(got, expected, f"{model.__name__}, step {i}", 1e-4)


RECORDED = Path(__file__).parents[1] / "golden" / "models"
#: Runs whose feeds have no sequences.
NAMES = [
    "digits_lenet", "digits_mlp", "fit_a_line", "opt_adagrad", "opt_adam", "opt_clip_gnorm", "opt_lamb", "opt_momentum",
    "opt_rmsprop", "opt_sgd", "opt_sgd_l2", "word2vec",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_training_runs_of_paddle_in_c(name: str, tmp_path: Path) -> None:
    """The losses of recorded runs of PaddlePaddle 2.6.2."""
    folder = RECORDED / name
    meta = json.loads((folder / "meta.json").read_text())
    program = fluid.Program.parse_from_string((folder / "main.pb").read_bytes())
    with np.load(folder / "feeds.npz") as file, np.load(folder / "init_params.npz") as start:
        feeds = [{key: file[f"{step}/{key}"] for key in meta["feeds"]} for step in range(meta["steps"])]
        scope = fluid.Scope()
        for key, array in start.items():
            scope.var(key).get_tensor().set(array, fluid.CPUPlace())
    code = CodeGenerator(program, {n: a.shape for n, a in feeds[0].items()}, meta["fetches"], scope=scope)
    program_in_c = CProgram(code, tmp_path)
    got = [[float(value.ravel()[0]) for value in program_in_c.run(feed)] for feed in feeds]
    np.testing.assert_allclose(got, meta["values"], 2e-3, 2e-3)
