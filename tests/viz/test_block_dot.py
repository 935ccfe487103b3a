"""A block as a graph of operators and variables, as Fluid's debugger draws it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb.viz.program.fluid_dot import block_dot
from tests.viz.test_exports import check_file

L = fluid.layers


def test_every_operator_and_variable_is_a_node(tmp_path: Path) -> None:
    x = L.data('x"y', [3])
    loss = L.mean(L.fc(x, 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    block = fluid.default_main_program().global_block()
    file = tmp_path / "temp.dot"
    fluid.debugger.draw_block_graphviz(block, highlights=["^fc_0.w_0$"], path=str(file))
    text = file.read_text()
    assert text == block_dot(block.desc, ["^fc_0.w_0$"]) + "\n"
    assert len(re.findall(r"^  op_\d+ \[", text, re.M)) == len(block.ops)
    assert len(re.findall(r"^  var_\d+ \[", text, re.M)) == len(block.vars)
    assert text.count("fillcolor") == 1 and 'label="fc_0.w_0"' in re.search(r".*fillcolor.*", text)[0]
    assert r'label="x\"y"' in text
    names = [n for op in block.ops for n in (*op.desc.input_arg_names(), *op.desc.output_arg_names())]
    assert text.count(" -> ") == len(names) - names.count("@EMPTY@")


def test_operators_are_marked_by_their_type() -> None:
    block = L.relu(L.tanh(L.data("x", [3]))).block
    marked = [line.split()[0] for line in block_dot(block, ["^relu$", "^x$"]).splitlines() if "fillcolor" in line]
    assert marked == ["var_0", "op_1"]


def test_variables_of_blocks_around_are_nodes_too() -> None:
    x = L.ones([1], "float32")
    with fluid.framework.BlockGuard(fluid.default_main_program()) as inner:
        L.relu(x)
    text = block_dot(inner)
    assert text.startswith("digraph block_1 {") and f'label="{x.name}"' in text and text.count("->") == 2


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_it() -> None:
    L.fc(L.data("x", [3]), 1)
    graph = block_dot(fluid.default_main_program().global_block(), ["x"])
    subprocess.run(["dot", "-Tsvg"], input=graph, text=True, check=True, capture_output=True)


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_files_that_graphviz_draws(kind: str, tmp_path: Path) -> None:
    check_file(kind, tmp_path)
