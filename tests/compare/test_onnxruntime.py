"""Models that onnxruntime runs, compared with the same models here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluidnb.cli import main


def test_the_first_difference_to_onnxruntime(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "good.onnx@onnxruntime", "good", "--feed", "x.npz"]) == 0
    assert "The results agree." in capsys.readouterr().out
    assert main(["diff", "good.onnx@onnxruntime", "bad", "--feed", "x.npz"]) == 1
    assert "(leaky_relu) in block 0" in capsys.readouterr().out


def test_a_model_that_onnxruntime_cannot_run(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "good@onnxruntime", "good", "--feed", "x.npz"]) == 1
    assert "fluidnb convert good" in capsys.readouterr().err
    np.savez("wide.npz", x=np.ones((2, 3, 12, 12)))
    assert main(["diff", "good.onnx@onnxruntime", "good", "--feed", "wide.npz"]) == 1
    assert "onnxruntime cannot run good.onnx" in capsys.readouterr().err
