"""`fluidnb new` and `fluidnb check-op`: what is written works after its gaps are filled, and not before."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fluidnb.cli import check_op, main, new
from fluidnb.cli.entry import COMMANDS
from fluidnb.op import get_op, has_op, op, remove_op, same

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "fluidnb/layers", "fluidnb/optimizer", "fluidnb/passes", "kernels/fluidnb_kernels/math",
    "kernels/fluidnb_kernels/activation", "kernels/fluidnb_kernels/optimizer", "kernels/fluidnb_kernels/loss",
    "magics/fluidnb_magics/commands", "magics/fluidnb_magics/widgets",
)  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folders to which it writes."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("ops", "layers", "optimizer", "magics", "passes"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
    monkeypatch.setattr(new, "root", lambda needed: tmp_path)
    return tmp_path


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"new_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # annotations are looked up there
    spec.loader.exec_module(module)
    return module


def fill(path: Path, *pairs: tuple[str, str]) -> None:
    text = path.read_text()
    for old, filled in pairs:
        assert old in text, (old, text)
        text = text.replace(old, filled, 1)
    path.write_text(text)


CUBE = (
    ("""raise NotImplementedError("emit the calls, for example b(np.square, b['X'], out=b['Out'])")""",
     'b(np.power, b["X"], b.const(3, b["X"].dtype), out=b["Out"])'),
    ("""raise NotImplementedError("emit the calls, for example """
     """b(np.multiply, b['X'], b['Out@GRAD'], out=b['X@GRAD'])")""",
     't = b.like(b["X"])\n    b(np.square, b["X"], out=t)\n    b(np.multiply, t, b.const(3, t.dtype), out=t)\n'
     '    b(np.multiply, t, b["Out@GRAD"], out=b["X@GRAD"])'),
)  # fmt: skip


def test_an_operator_works_when_its_gaps_are_filled(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "op", "cube_of"]) == 0
    shown = capsys.readouterr().out
    file, test = checkout / "kernels/fluidnb_kernels/math/cube_of.py", checkout / "tests/ops/test_cube_of.py"
    assert "fluidnb check-op cube_of" in shown and file.exists()
    try:
        load(file)
        fill(test, ('{"Out": ...}', '{"Out": self.inputs["X"] ** 3}'))
        with pytest.raises(Exception, match="emit the calls"):
            case(test).check_output()
        assert list(check_op.undocumented(get_op("cube_of"))) == ["its docstring says FILL IN"]
        assert case(test).op_type == type(case(test)).op_type == "cube_of", "an attribute of the class"
        assert [k.place for k in get_op("cube_of").kernels] == ["cpu", "cuda"]
        remove_op("cube_of"), remove_op("cube_of_grad")
        fill(file, *CUBE)
        fill(
            file.with_suffix(".cu"), ("down<T>(value)", "down<T>(value * value * value)"),
            ("down<T>(slope * value)", "down<T>(slope * value * value * wide_t<T>(3))"),
        )  # fmt: skip
        load(file)
        case(test).test_check_output()
        case(test).test_check_grad()
    finally:
        remove_op("cube_of"), remove_op("cube_of_grad")


def case(path: Path) -> Any:
    made = next(v for n, v in vars(load(path)).items() if n.startswith("Test"))()
    made.setUp()
    return made


def test_an_operator_like_another(checkout: Path) -> None:
    assert main(["new", "op", "difference", "--like", "minus"]) == 0
    try:
        load(checkout / "kernels/fluidnb_kernels/math/difference.py")
        assert get_op("difference").infer is not None and list(get_op("difference").inputs) == ["X", "Y"]
        test = checkout / "tests/ops/test_difference.py"
        fill(test, ('{"Out": ...}', '{"Out": self.inputs["X"] - self.inputs["Y"]}'))
        case(test).test_check_output()
    finally:
        remove_op("difference")


def test_a_copy_keeps_functions_and_kernels_of_others(checkout: Path) -> None:
    """Of the same name as the operator: numpy's clip, a kernel of a CUDA file, an imported function."""
    assert main(["new", "op", "limited", "--like", "clip"]) == 0
    try:
        file, test = checkout / "kernels/fluidnb_kernels/math/limited.py", checkout / "tests/ops/test_limited.py"
        text = file.read_text()
        assert "import clip_values" in text and 'held_between(b, "clip"' in text and "FILL IN, a paper" in text
        assert not file.with_suffix(".cu").exists(), "it launches the kernels of the other"
        load(file)
        fill(
            test, ('{"min": ..., "max": ...}', '{"min": 0.75, "max": 1.5}'),
            ('{"Out": ...}', '{"Out": np.clip(self.inputs["X"], 0.75, 1.5)}'),
        )  # fmt: skip
        case(test).test_check_output()
    finally:
        remove_op("limited"), remove_op("limited_grad")


def test_the_test_of_a_copied_optimizer_has_inputs_that_fit(checkout: Path) -> None:
    assert main(["new", "op", "my_step", "--like", "sgd"]) == 0
    try:
        load(checkout / "kernels/fluidnb_kernels/optimizer/my_step.py")
        test = checkout / "tests/ops/test_my_step.py"
        assert "numeric gradient" not in test.read_text() and max(map(len, test.read_text().splitlines())) <= 120
        step = 'self.inputs["Param"] - self.inputs["LearningRate"] * self.inputs["Grad"]'
        fill(test, ('{"ParamOut": ...}', f'{{"ParamOut": {step}}}'))
        case(test).test_check_output()
    finally:
        remove_op("my_step")


def test_a_copied_test_checks_the_gradients_that_there_are(checkout: Path) -> None:
    """kldiv_loss has a gradient of X, and none of Target."""
    assert main(["new", "op", "distance", "--like", "kldiv_loss"]) == 0
    assert 'self.check_grad(["X"], "Loss")' in (checkout / "tests/ops/test_distance.py").read_text()


def test_a_layer_is_entered_in_its_list(checkout: Path) -> None:
    assert main(["new", "layer", "my_huber", "--like", "huber_loss"]) == main(["new", "layer", "plain"]) == 0
    layers = (checkout / "fluidnb/layers/__init__.py").read_text()
    assert "\n    from fluidnb.layers.my_huber import my_huber as my_huber\n" in layers, "for type checkers"
    assert layers.index("layers.my_huber") < layers.index("layers.plain")
    compile(layers, "layers", "exec")
    made = load(checkout / "fluidnb/layers/my_huber.py").my_huber
    import fluidnb as fluid

    x, y = fluid.layers.data("x", [1]), fluid.layers.data("y", [1])
    assert made(x, y, 1.0).op.type == "huber_loss", "the operator is that of the model"
    assert main(["new", "layer", "my_max", "--like", "elementwise_max"]) == 0
    row = load(checkout / "fluidnb/layers/my_max.py").my_max
    assert row(x, y).op.type == "elementwise_max" and "layers.my_max(x, y)" in row.__doc__


def in_place_of(source: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels come from a copy of a CUDA file."""
    assert source.kernels and source.text  # in the instance now, so that both are put back
    for cached in ("kernels", "text"):
        monkeypatch.delitem(vars(source), cached)
    monkeypatch.setattr(source, "path", path)
    monkeypatch.setattr(source, "_functions", {})


def test_an_optimizer_works_when_its_gaps_are_filled(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its class, operator and CUDA step, in four files; the name of the class may have capitals anywhere."""
    import fluidnb as fluid
    from fluidnb_kernels.optimizer.launch import CUDA

    assert main(["new", "optimizer", "lion"]) == main(["new", "optimizer", "HalfSGD"]) == 0
    classes = checkout / "fluidnb/optimizer/algorithms.py"
    step = checkout / "kernels/fluidnb_kernels/optimizer/update.cu"
    assert "\n\n\nclass LionOptimizer(Optimizer):" in classes.read_text()
    assert "\n\n\nLion = LionOptimizer\n\n\nclass HalfSGDOptimizer" in classes.read_text()
    fill(step, ("STEP(half_sgd, 0) { x.p -= x.g * k.rate;", "STEP(half_sgd, 0) { x.p -= x.g * k.rate * C(0.5);"))
    file, test = step.with_name("half_sgd.py"), checkout / "tests/ops/test_half_sgd.py"
    example = 'raise NotImplementedError("return a formula in plain numpy, for example p - g * rate")'
    fill(file, (example, "return p - g * rate * 0.5"))
    with monkeypatch.context() as patch:
        in_place_of(CUDA, step, patch)
        try:
            load(file)
            with pytest.raises(Exception, match="not an array of numbers"):
                case(test).check_output()
            fill(test, ('{"ParamOut": ...}', '{"ParamOut": param - grad / 8}'))
            case(test).test_check_output()
            module = load(classes)
            assert {"HalfSGD", "HalfSGDOptimizer", "Lion", "Adam"} < set(module.__all__)
            ops, _ = module.HalfSGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [1]), 1)))
            assert ops[0].type == "half_sgd"
        finally:
            remove_op("half_sgd")


def test_a_loss_works_when_its_gaps_are_filled(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its operator, CUDA functions and layer, in four files."""
    from fluidnb_kernels.loss.launch import TERMS

    assert main(["new", "loss", "gap_loss"]) == 0
    layers = (checkout / "fluidnb/layers/losses.py").read_text()
    assert '"fsp_matrix", "gap_loss", "hsigmoid"' in " ".join(layers.split()) and "\ndef gap_loss(x: " in layers
    assert max(map(len, layers.splitlines())) <= 120
    file, test = checkout / "kernels/fluidnb_kernels/loss/gap_loss.py", checkout / "tests/ops/test_gap_loss.py"
    in_place_of(TERMS, file.with_name("elementwise_losses.cu"), monkeypatch)
    fill(
        file, ('raise NotImplementedError("return a formula in plain numpy, for example ', "return "),
        ('(x - y) * (x - y)")', "(x - y) * (x - y)"),
        ('raise NotImplementedError("yield both gradients, for example t', "t"), ("; yield t; yield -t\")", "\n"
         "    yield t\n    yield -t"),
    )  # fmt: skip
    fill(test, ("return ...", "return (x - y) ** 2"))
    try:
        load(file)
        case(test).test_check_output()
        case(test).test_check_grad()
    finally:
        remove_op("gap_loss"), remove_op("gap_loss_grad")


def test_a_command_a_widget_and_a_pass(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["new", "command", "sizes"]) == main(["new", "widget", "dial"]) == main(["new", "pass", "listed"]) == 0
    assert main(["new", "command", "other_diff", "--like", "diff"]) == 0
    other = (checkout / "magics/fluidnb_magics/commands/other_diff.py").read_text()
    assert "def other_diff(bench" in other and "diff_lines(read_diff(" in other
    assert (checkout / "magics/fluidnb_magics/widgets/static/dial.js").exists()
    import fluidnb as fluid
    from fluidnb_magics import commands

    fluid.layers.relu(fluid.layers.data("x", [2]))
    found = load(checkout / "fluidnb/passes/listed.py").listed(fluid.default_main_program())
    assert found == ["block 0, op 0: relu"]
    command = load(checkout / "magics/fluidnb_magics/commands/sizes.py").sizes
    assert 'what it shows\\n"' in (checkout / "tests/magics/test_sizes.py").read_text(), "a line ends"
    assert "FILL IN: one sentence." in command.help and command.parser is not None
    del commands.defined[command.word]
    monkeypatch.setattr("fluidnb_magics.widgets.widget._STATIC", checkout / "magics/fluidnb_magics/widgets/static")
    dial = load(checkout / "magics/fluidnb_magics/widgets/dial.py").Dial()
    dial._handle_custom_msg({"do": "add", "count": 2}, [])
    assert dial.shown == {"count": 2}


@pytest.mark.parametrize("kind", new.KINDS)
def test_the_generated_test_fails(kind: str, checkout: Path) -> None:
    assert main(["new", kind, "something_new"]) == 0
    (test,) = checkout.glob("tests/*/test_something_new.py")
    assert "FILL IN" in test.read_text() and ("..." in test.read_text() or '"FILL IN' in test.read_text())
    compile(test.read_text(), str(test), "exec")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["op", "relu"], "The operator relu exists, in fluidnb_kernels.activation.table"),
        (["loss", "huber_loss"], "The operator huber_loss exists, in fluidnb_kernels.loss.regression"),
        (["optimizer", "SGD"], "The operator sgd exists"),
        (["op", "Cube"], "Cube cannot be the name of a new op"),
        (["op", "new_one", "--like", "tanh"], "operators, so it cannot be copied for one"),
        (["op", "new_one", "--like", "mish"], "kernels/fluidnb_kernels/activation/smooth.py, or choose"),
        (["op", "new_one", "--family", "mat"], 'There is no folder kernels/fluidnb_kernels/mat'),
        (["layer", "new_one", "--like", "huber_los"], 'Did you mean "huber_loss"'),
        (["optimizer", "new_one", "--like", "Adam"], "fluidnb new optimizer takes no --like"),
        (["command", "diff"], "magics/fluidnb_magics/commands/diff.py exists"),
    ],
)
def test_mistakes(words: list[str], said: str, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(checkout.rglob("*"))
    assert main(["new", *words]) == 1
    assert said in capsys.readouterr().err and sorted(checkout.rglob("*")) == before


def test_checks_of_one_operator(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    started: list[tuple[str, ...]] = []

    def start(module: str, *arguments: str, folder: Path | None = None) -> int:
        started.append((module, *arguments))
        return 0

    monkeypatch.setattr(check_op, "start", start)
    assert main(["check-op", "pow"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("passed") == 4 and "pow.cu" in shown
    assert "tests/ops/test_activation_shapes.py" in started[0] and started[1][-1] == "test_a_file_compiles and (pow)"

    @op("check_me", inputs={"X": ""}, outputs={"Out": "X"}, infer=same())
    def check_me(b: Any) -> None:
        """Out = X."""
        b(np.copyto, b["Out"], b["X"])

    assert main(["check-op", "check_me"]) == 1
    remove_op("check_me")
    shown = capsys.readouterr().out
    assert "FAILED  documents  (its docstring has no example; its docstring names no source" in shown
    assert "; slot X has no phrase)" in shown
    assert "no file in tests/ops" in shown and "no kernel and no host_only= reason" in shown
    assert not has_op("check_me") and main(["check-op", "rleu"]) == 1
    assert "new" in COMMANDS and sys.modules["fluidnb.cli.check_op"] is check_op


def test_a_copy_of_one_operator_of_several_in_a_file(checkout: Path) -> None:
    assert main(["new", "op", "my_squares", "--like", "squared_l2_norm"]) == 0
    try:
        file = checkout / "kernels/fluidnb_kernels/math/my_squares.py"
        text = file.read_text()
        assert 'launch("my_squares"' in text and "clip_by_norm" not in text
        load(file)
        assert get_op("my_squares").grad is not None
    finally:
        remove_op("my_squares"), remove_op("my_squares_grad")
