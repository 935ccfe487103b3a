"""Odd arguments for every public call: the examples of the documentation, with some arguments replaced.

An example is a script that runs; a case is such a script with one to three changes, each to one argument of one call.
What is added to the public API takes part as soon as it has an example.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import doctest
import importlib
import inspect
import io
import linecache
import os
import pkgutil
import random
import tempfile
import types
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import fluidnb as fluid
from tests.fuzz.oracle import RESULT, Outcome, judge

#: Packages whose examples take part; the others belong to tools and to authors of kernels.
PACKAGES = (
    "layers", "nets", "optimizer", "initializer", "regularizer", "clip", "metrics", "evaluator", "average", "io",
    "data", "backward", "param_attr", "program", "runtime.executor", "runtime.scope", "values", "transpiler", "compat",
    "runtime.reproducibility", "compiler", "parallel_executor", "executor", "default_scope_funcs", "framework",
    "reader", "layer_helper", "layer_helper_base", "trainer", "inferencer", "unique_name",
)  # fmt: skip

#: Not called with odd arguments: they start processes or change the interpreter itself.
LEFT_OUT = ("install_check", "multiprocess_reader", "open_files", "seed")

#: Texts of values that no example has; they are evaluated where the argument is.
ODD = (
    "None", "True", "False", "-1", "0", "1", "2", "3", "7", "-5", "2**31", "2**40", "10**30", "0.5", "2.0", "-0.5",
    "float('nan')", "float('inf')", "1e38", "''", "'x'", "'no_such'", "'relu'", "'float32'", "'int64'", "'\\ud800'",
    "'a\\0b'", "b'x'", "'a' * 5000", "'/no/such/folder'", "[]", "[1]", "[1, 2]", "[-1]", "[0]", "[3, -1]", "[2**31]",
    "['a']", "[None]", "[0.5]", "[[1], [2]]", "[[]]", "()", "(2,)", "(1, 2, 3)", "{}", "{'a': 1}", "{'x': 1}",
    "{'type': 'relu'}", "object()", "int", "float", "str", "len", "lambda: None", "lambda *a: a", "lambda: iter([1])",
    "np.zeros(())", "np.array(3)", "np.ones(3, 'float32')", "np.ones((2, 2), 'int64')", "np.array(['a'])",
    "np.array([], 'float32')", "np.array([None])", "np.float32(1)", "np.int64(2)", "np.bool_(True)",
    "fluid.layers.data('odd', [3])", "fluid.layers.data('odd_ids', [1], dtype='int64', lod_level=1)",
    "[fluid.layers.data('odd', [3])]", "fluid.layers.data('odd_image', [3, 8, 8])",
    "fluid.layers.create_array('float32')", "fluid.layers.create_parameter([3, 3], 'float32')",
    "fluid.Program()", "fluid.default_main_program()", "fluid.CPUPlace()", "fluid.ParamAttr(name='w')",
    "fluid.initializer.Constant(1.0)", "fluid.regularizer.L2Decay(0.1)", "fluid.Scope()", "fluid.LoDTensor()",
    "fluid.Executor(fluid.CPUPlace())", "fluid.clip.GradientClipByNorm(1.0)", "fluid.core.VarDesc.VarType.FP32",
    "fluid.create_lod_tensor(np.ones((3, 1), 'float32'), [[1, 2]], fluid.CPUPlace())",
    "range(3)", "iter([1, 2])", "(i for i in ())", "set()", "{1, 2}", "1j", "...", "NotImplemented", "fluid",
    "np.dtype('float32')", "slice(1)", "[1] * 1000", "[10**9] * 3", "[1, 'a']", "[True]", "bytearray(b'a')",
    "type('Odd', (), {})()", "'nan'", "'3'", "['x']", "['x', 'x']", "float", "np.float64", "memoryview(b'ab')",
)  # fmt: skip


@cache
def examples() -> list[tuple[str, str]]:
    """(module, script) of every example, in order."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        try:
            module = importlib.import_module(f"fluidnb.{package}")
        except ModuleNotFoundError:
            continue
        names = [module.__name__]
        if hasattr(module, "__path__"):
            names += [m.name for m in pkgutil.walk_packages(module.__path__, module.__name__ + ".")]
        for name in names:
            if name.rpartition(".")[2] in LEFT_OUT or ".dataset" in name:
                continue
            for test in doctest.DocTestFinder().find(importlib.import_module(name)):
                if not _is_shown(test.name):
                    continue
                source = "".join(e.source for e in test.examples if not e.exc_msg)
                if source and test.name.rpartition(".")[2] not in LEFT_OUT:
                    found[test.name] = source
    return [(_module(name), source) for name, source in sorted(found.items()) if _calls(ast.parse(source))]


@cache
def _public_ids() -> frozenset[int]:
    """Names that users import: the values of the public modules, without those for authors of kernels and tools."""
    tools = ("core", "graphviz", "memory", "net", "op", "profiler", "data")
    homes = [fluid, *(getattr(fluid, n) for n in fluid.__all__ if n not in tools)]
    homes += [getattr(home, n, None) for home in homes for n in ("creator", "common") if home is not fluid]
    values = [getattr(h, n) for h in homes if isinstance(h, types.ModuleType) for n in getattr(h, "__all__", dir(h))]
    return frozenset(id(v) for v in values if callable(v))


def _is_shown(name: str) -> bool:
    """Whether an example is that of a public function, class, or method of one."""
    value: Any = None
    module = _module(name)
    value = importlib.import_module(module)
    for part in name.removeprefix(module).strip(".").split("."):
        if id(value) in _public_ids() or not part:
            break
        value = getattr(value, part, None)
    return isinstance(value, types.ModuleType) or id(value) in _public_ids()


def _module(name: str) -> str:
    """The module of an example."""
    while True:
        try:
            importlib.import_module(name)
            return name
        except ImportError:
            name = name.rpartition(".")[0]


@cache
def methods() -> frozenset[str]:
    """Names of methods of public classes, those of Python's own types excepted."""
    names: set[str] = set()
    for home in (fluid, fluid.layers, fluid.optimizer, fluid.io, fluid.metrics, fluid.evaluator, fluid.initializer):
        for name in home.__all__:
            value = getattr(home, name)
            if isinstance(value, type) and value.__module__.startswith("fluidnb"):
                names |= {n for n in dir(value) if not n.startswith("_") and callable(getattr(value, n))}
    common = set(dir(dict) + dir(list) + dir(str) + dir(np.ndarray))
    return frozenset(names - common | {"update", "set"})


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _is_public(n.func)]


def _is_public(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        # Python's own functions are not ours: odd arguments of range() only make readers that never end.
        return function.id not in vars(builtins) and (function.id in fluid.__all__ or function.id in _functions())
    if not isinstance(function, ast.Attribute) or function.attr in LEFT_OUT:
        return False
    root: ast.expr = function
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id == "fluid" or function.attr in methods()


@cache
def _functions() -> frozenset[str]:
    """Public names that an example may call without the module's name."""
    tools = ("core", "graphviz", "memory", "net", "op", "profiler")
    homes = [
        value for n in fluid.__all__ if n not in tools and isinstance(value := getattr(fluid, n), types.ModuleType)
    ]
    return frozenset(n for home in homes for n in getattr(home, "__all__", ()) if not n.startswith("_"))


def case(dice: random.Random) -> dict[str, Any]:
    """A script with odd arguments.

    Args:
        dice: where chance comes from.

    Returns:
        The module, the example and the changes: (call, argument, text) each.
    """
    module, source = dice.choice(examples())
    calls = _calls(ast.parse(source))
    changes = []
    for _ in range(dice.choice([1, 1, 1, 1, 2, 3])):
        at = dice.randrange(len(calls))
        changes.append([at, _argument(calls[at], module, dice), dice.choice(ODD)])
    return {"module": module, "source": source, "changes": changes}


def _argument(call: ast.Call, module: str, dice: random.Random) -> str:
    """The argument that is changed: its place, its name, or one that the example leaves out."""
    given = [str(i) for i in range(len(call.args))] + [k.arg for k in call.keywords if k.arg]
    more = [n for n in _parameters(ast.unparse(call.func), module) if n not in given]
    if more and (not given or dice.random() < 0.4):
        return dice.choice(more)
    return dice.choice(given) if given else "0"


@cache
def _parameters(function: str, module: str) -> tuple[str, ...]:
    try:
        value = eval(function, {**vars(importlib.import_module(module)), "fluid": fluid})
        return tuple(inspect.signature(value).parameters)[1 if inspect.ismethod(value) else 0 :]
    except Exception:  # a method of what the example makes
        name = function.rpartition(".")[2]
        for home in (fluid, fluid.metrics, fluid.optimizer, fluid.io):
            for other in vars(home).values():
                if isinstance(other, type) and callable(getattr(other, name, None)):
                    with contextlib.suppress(ValueError, TypeError):
                        return tuple(inspect.signature(getattr(other, name)).parameters)[1:]
        return ()


def script(one: dict[str, Any]) -> str:
    """The script of a case."""
    tree = ast.parse(one["source"])
    calls = _calls(tree)
    for at, name, text in one["changes"]:
        call, value = calls[at], ast.parse(text, mode="eval").body
        if name.isdigit():
            if int(name) < len(call.args):
                call.args[int(name)] = value
            else:
                call.args.append(value)
        else:
            call.keywords = [k for k in call.keywords if k.arg != name] + [ast.keyword(name, value)]
    return ast.unparse(ast.fix_missing_locations(tree))


def run(one: dict[str, Any]) -> Outcome:
    """Run a case, statement by statement, in new programs and a new folder."""
    try:
        text = script(one)
    except (SyntaxError, UnicodeError):
        return Outcome("python")
    linecache.cache["<case>"] = (len(text), None, text.splitlines(True), "<case>")
    names = dict(vars(importlib.import_module(one["module"])))
    names.update(fluid=fluid, np=np, __name__="fuzz_case")
    here = os.getcwd()
    flags = fluid.get_flags()
    with tempfile.TemporaryDirectory() as folder, fluid.fresh() as (main, startup), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                return _statements(text, names, main, startup)
        finally:
            os.chdir(here)
            fluid.set_flags(flags)


def _statements(text: str, names: dict[str, Any], main: Any, startup: Any) -> Outcome:
    for node in ast.parse(text).body:
        one = _calls(node)
        watched = len(one) == 1 and isinstance(node, ast.Assign | ast.Expr) and one[0] is node.value
        before = _bytes(main, startup) if watched else None
        code = compile(ast.Module([node], []), "<case>", "exec")
        try:
            exec(code, names)
            if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
                repr(names.get("_"))
        except BaseException as error:
            outcome = judge(error)
            if before is not None and outcome.kind == "refused" and _bytes(main, startup) != before:
                return Outcome("left", f"left by {ast.unparse(one[0].func)}", outcome.text)
            return outcome
    return Outcome(RESULT)


def _bytes(main: Any, startup: Any) -> tuple[bytes, bytes]:
    return main.desc.serialize_to_string(), startup.desc.serialize_to_string()


def smaller(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Smaller cases."""
    for i in range(len(one["changes"])):
        if len(one["changes"]) > 1:
            yield one | {"changes": one["changes"][:i] + one["changes"][i + 1 :]}
    statements = ast.parse(one["source"]).body
    first = 0
    for i, node in enumerate(statements):
        count = len(_calls(node))
        inside = [c for c in one["changes"] if first <= c[0] < first + count]
        if not inside and isinstance(node, ast.Expr | ast.Assign):
            rest = ast.unparse(ast.Module(statements[:i] + statements[i + 1 :], []))
            moved = [[c[0] - count if c[0] >= first + count else c[0], *c[1:]] for c in one["changes"]]
            yield one | {"source": rest, "changes": moved}
        first += count


def show(one: dict[str, Any]) -> str:
    """The case as a script to paste."""
    return f"# {one['module']}\n{script(one)}"
