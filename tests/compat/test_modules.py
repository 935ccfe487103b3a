"""The table of public names, and Fluid's thin modules over our rooms."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import core, executor, framework
from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError
from fluidnb.proto.framework_pb2 import OpProto

THIN = [
    "core", "framework", "executor", "unique_name", "debugger", "debuger", "reader", "dataset", "default_scope_funcs",
    "net_drawer", "compiler", "parallel_executor",
]  # fmt: skip


def declared_for_editors() -> set[str]:
    """The names that the package declares under TYPE_CHECKING."""
    tree = ast.parse(Path(fluid.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    names: set[str] = set()
    for node in block.body:
        if isinstance(node, ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names


def by_kind(name: str) -> tuple[int, str]:
    """The order of exports: constants, classes, the rest."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2, name)


def test_every_public_name_is_there() -> None:
    assert [name for name in fluid.__all__ if getattr(fluid, name, None) is None] == []


def test_editors_see_the_same_names_as_the_program() -> None:
    # `open` is no name that `from fluidnb import *` may bring.
    assert declared_for_editors() == {*fluid._MODULES, *fluid._NAMES, "open"}


def test_the_tables_are_sorted() -> None:
    assert list(fluid._MODULES) == sorted(fluid._MODULES)
    assert list(fluid._NAMES) == sorted(fluid._NAMES)


@pytest.mark.parametrize("module", THIN)
def test_a_thin_module_lists_all_it_has_in_order(module: str) -> None:
    thin = importlib.import_module(f"fluidnb.{module}")
    assert list(thin.__all__) == sorted(thin.__all__, key=by_kind)
    assert [name for name in thin.__all__ if getattr(thin, name, None) is None] == []


def test_a_mistyped_name_offers_the_right_one() -> None:
    with pytest.raises(AttributeError, match='Did you mean "Executor"'):
        getattr(fluid, "Executer")  # noqa: B009


def test_import_brings_numpy_and_protobuf_alone() -> None:
    heavy = "rich", "graphviz", "IPython", "ml_dtypes", "sklearn", "ipywidgets", "anywidget", "fluidnb_kernels"
    code = f"import sys, fluidnb; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_g_scope_is_the_global_scope_of_the_moment() -> None:
    inner = fluid.Scope()
    with fluid.scope_guard(inner):
        assert fluid.g_scope is inner
    assert fluid.g_scope is fluid.global_scope() is not inner


# ---- core


def test_core_has_fluids_names_for_our_classes() -> None:
    assert core.Tensor is core.LoDTensor is fluid.LoDTensor
    assert core.Scope is fluid.Scope and core._Scope is fluid.Scope
    assert core.GPUPlace is fluid.CUDAPlace
    assert issubclass(core.EnforceNotMet, RuntimeError)
    assert core.VarDesc.VarType.LOD_TENSOR == 7 and core.DataType.FP32 == 5
    assert {t.name: int(t) for t in core.AttrType}["BOOL"] == 6


def test_core_gives_protos_as_bytes_and_framework_as_messages() -> None:
    ours = {OpProto.FromString(data).type for data in core.get_all_op_protos()}
    assert ours == {proto.type for proto in framework.get_all_op_protos()}
    assert {"mul", "clip", "uniform_random"} <= ours
    holder = framework.OpProtoHolder.instance()
    assert holder is framework.OpProtoHolder.instance()
    assert [a.name for a in holder.get_op_proto("clip").attrs if not a.generated] == ["min", "max"]


def test_core_executor_runs_feed_and_fetch_operators() -> None:
    with fluid.fresh() as (main, _):
        x = fluid.layers.data("x", shape=[2])
        y = fluid.layers.scale(x, scale=3.0)
        block = main.global_block()
        feed = block.create_var(name="feed", type=core.VarDesc.VarType.FEED_MINIBATCH, persistable=True)
        fetch = block.create_var(name="fetch", type=core.VarDesc.VarType.FETCH_LIST, persistable=True)
        block.prepend_op("feed", {"X": feed}, {"Out": x}, {"col": 0})
        block.append_op("fetch", {"X": y}, {"Out": fetch}, {"col": 0})
    scope, tensor = core.Scope(), core.LoDTensor()
    tensor.set(np.array([[1, 2]], "float32"), core.CPUPlace())
    core.set_feed_variable(scope, tensor, "feed", 0)
    core.Executor(core.CPUPlace()).run(main.desc, scope, 0, True, True)
    assert np.array(core.get_fetch_variable(scope, "fetch", 0)).tolist() == [[3, 6]]
    assert scope.local_var_names() == ["feed", "fetch"]


@pytest.mark.parametrize("local", [True, False])
def test_core_executor_runs_one_block(local: bool) -> None:
    program = framework.Program()
    inner = program.create_block()
    for home, name in ((program.global_block(), "outside"), (inner, "inside")):
        home.create_var(name=name, shape=[1], dtype="float32")
        home.append_op("fill_constant", {}, {"Out": name}, {"shape": [1], "dtype": "float32", "value": 2.0})
    scope = core.Scope()
    core.Executor(core.CPUPlace()).run(program.desc, scope, 1, create_local_scope=local)
    assert scope.local_var_names() == ([] if local else ["inside"]) and scope.kids == []


def test_core_gradients_and_pruning() -> None:
    with fluid.fresh() as (main, _):
        x = fluid.layers.data("x", shape=[2])
        fluid.layers.relu(x)
        fluid.layers.scale(x, scale=2.0)
    before = main.desc.serialize_to_string()
    grads, names = core.get_grad_op_desc(main.desc.block(0).op(0), {"other@GRAD"}, [])
    assert [g.type() for g in grads] == ["relu_grad"] and list(names.values()) == ["x"]
    assert [op.type() for op in core.prune(main.desc, [(0, 1)]).block(0).ops] == ["scale"]
    assert core.inference_optimize(main.desc).num_blocks() == 1
    assert main.desc.serialize_to_string() == before


def test_core_flags_come_from_words() -> None:
    try:
        core.init_gflags(["train.py", "--benchmark", "--fraction_of_gpu_memory_to_use=0.5", "--tryfromenv=unknown"])
        assert fluid.get_flags(["benchmark", "fraction_of_gpu_memory_to_use"]) == {
            "benchmark": True, "fraction_of_gpu_memory_to_use": 0.5,
        }  # fmt: skip
    finally:
        core.init_gflags(["--benchmark=0", "--fraction_of_gpu_memory_to_use=0.92"])


# ---- executor


def test_fetch_var_reads_a_scope() -> None:
    scope = fluid.Scope()
    tensor = scope.var("w").get_tensor()
    tensor.set(np.ones((3, 1), "float32"), fluid.CPUPlace())
    assert executor.fetch_var("w", scope, return_numpy=False) is tensor
    with fluid.scope_guard(scope):
        copy = executor.fetch_var("w")
    copy[...] = 7
    assert np.asarray(tensor).max() == 1
    tensor.set_lod([[0, 1, 3]])
    with pytest.raises(EnforceNotMet, match="LoD information"):
        executor.fetch_var("w", scope)
    with pytest.raises(NotFound, match="persistable"):
        executor.fetch_var("v", scope)
    with pytest.raises(OpTypeError):
        executor.fetch_var(3, scope)


# ---- default_scope_funcs


def test_local_scopes_come_and_go() -> None:
    scopes = fluid.default_scope_funcs
    root = scopes.get_cur_scope()
    outside = scopes.var("outside")

    def inside() -> str:
        scopes.var("inside")
        assert scopes.find_var("outside") is outside and scopes.get_cur_scope().parent is root
        return "done"

    assert scopes.scoped_function(inside) == "done"
    with pytest.raises(ZeroDivisionError):
        scopes.scoped_function(lambda: 1 // 0)
    assert scopes.get_cur_scope() is root and root.kids == [] and scopes.find_var("inside") is None
    root.erase(["outside"])
    with pytest.raises(ValueError, match="no local scope to leave"):
        scopes.leave_local_scope()


def test_every_thread_has_scopes_of_its_own() -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(fluid.default_scope_funcs.get_cur_scope()))
    thread.start()
    thread.join()
    assert len(found) == 1 and found[0] is not fluid.default_scope_funcs.get_cur_scope()


# ---- net_drawer


def test_two_programs_are_one_graph(tmp_path: Path) -> None:
    y = fluid.layers.fc(fluid.layers.data("x", [3]), 1)
    with fluid.framework.BlockGuard(fluid.default_main_program()):
        fluid.layers.relu(y)
    file = tmp_path / "net.dot"
    startup, main = fluid.default_startup_program(), fluid.default_main_program()
    text = fluid.net_drawer.draw_graph(startup, main, filename=str(file), graph="net")
    assert file.read_text() == text + "\n"
    labels = [line.strip() for line in text.splitlines() if line.strip().startswith("label=")]
    assert labels == ['label="startup, block 0"', 'label="net, block 0"', 'label="net, block 1"']
    nodes = [line.split()[0] for line in text.splitlines() if "_op_" in line and "->" not in line]
    ops = sum(len(block.ops) for program in (startup, main) for block in program.blocks)
    assert len(nodes) == len(set(nodes)) == ops
    styles = {"graph_attr": {"rankdir": "LR"}, "node_attr": {"fontsize": 9}, "edge_attr": {}}
    head, *rest = fluid.net_drawer.draw_graph(startup, main, graph="net", **styles).splitlines()
    assert rest[:2] == ['  graph [rankdir="LR"]', '  node [fontsize="9"]'] and [head, *rest[2:]] == text.splitlines()


def test_scripts_set_when_dead_tensors_are_freed() -> None:
    before = fluid.get_flags("eager_delete_tensor_gb")
    try:
        core._set_eager_deletion_mode(0.5, 1.0, True)
        assert fluid.get_flags("eager_delete_tensor_gb") != before
    finally:
        core._set_eager_deletion_mode(-1.0, 1.0, True)
    assert fluid.get_flags("eager_delete_tensor_gb") == before
