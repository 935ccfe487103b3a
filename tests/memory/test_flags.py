"""FLAGS_*: defaults, environment, changes, refusals."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.memory import flags, get_flags, set_flags


@pytest.fixture(autouse=True)
def as_before():
    """Flags as they were, after the test."""
    before = dict(flags.values)
    yield
    flags.values.update(before)


def test_defaults() -> None:
    found = get_flags(
        ["FLAGS_use_pinned_memory", "fraction_of_cpu_memory_to_use", "FLAGS_fraction_of_gpu_memory_to_use"]
    )
    assert found == {
        "FLAGS_use_pinned_memory": False,
        "fraction_of_cpu_memory_to_use": 1.0,
        "FLAGS_fraction_of_gpu_memory_to_use": 0.92,
    }


def test_all_flags_are_listed_with_their_prefix() -> None:
    assert {"FLAGS_check_nan_inf", "FLAGS_benchmark", "FLAGS_eager_delete_tensor_gb"} <= set(get_flags())


@pytest.mark.parametrize(("text", "value"), [("1", True), ("true", True), ("OFF", False), ("0", False), (1, True)])
def test_switches_are_read_from_texts(text: object, value: bool) -> None:
    set_flags({"check_nan_inf": text})
    assert get_flags("check_nan_inf")["check_nan_inf"] is value


def test_a_near_miss_is_offered() -> None:
    with pytest.raises(OpValueError, match='Did you mean "check_nan_inf"') as e:
        get_flags("FLAGS_check_nan_if")
    assert '"FLAGS_check_nan_if" is not a flag.' in str(e.value)


def test_one_wrong_value_changes_nothing() -> None:
    with pytest.raises(OpValueError, match="FLAGS_fraction_of_gpu_memory_to_use cannot be 1.5"):
        set_flags({"benchmark": True, "FLAGS_fraction_of_gpu_memory_to_use": 1.5})
    assert get_flags("benchmark") == {"benchmark": False}
    with pytest.raises(OpValueError, match="cannot be 'maybe'"):
        set_flags({"benchmark": "maybe"})
    with pytest.raises(OpValueError, match="naive_best_fit"):
        set_flags({"allocator_strategy": "auto_growth"})
    with pytest.raises(OpTypeError, match="should be a dict"):
        set_flags(["benchmark"])  # type: ignore[arg-type]


def run(**env: str) -> subprocess.CompletedProcess[str]:
    """`import` and print two flags under an environment."""
    code = "from fluidnb.memory import get_flags as g; print(g('use_pinned_memory'), g('eager_delete_tensor_gb'))"
    env = {"PYTHONPATH": ":".join(sys.path), **env}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)


def test_the_environment_overrides_defaults() -> None:
    done = run(FLAGS_use_pinned_memory="true", FLAGS_eager_delete_tensor_gb="2.5", FLAGS_of_another_program="x")
    assert done.stdout == "{'use_pinned_memory': True} {'eager_delete_tensor_gb': 2.5}\n"


def test_flags_of_devices_are_known_before_a_device_is_used() -> None:
    code = "import fluidnb as f; f.set_flags({'FLAGS_cuda_backend': 'emulator', 'FLAGS_cuda_graphs': False})"
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, check=True)


def test_a_wrong_environment_is_named() -> None:
    assert "FLAGS_eager_delete_tensor_gb cannot be 'lots'" in run(FLAGS_eager_delete_tensor_gb="lots").stderr
