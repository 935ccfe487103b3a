"""Module names of Paddle as aliases of our modules: the same objects, never a second copy."""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import fluidnb as fluid
from fluidnb import arguments, layers
from fluidnb.absent import CONTRIB, EAGER, FILES, MACHINES, MODULES, PADDLE_2, AbsentModule, of_paddle_2
from fluidnb.arguments import checked
from fluidnb.compat import old_numpy
from fluidnb.errors import FluidError
from fluidnb.memory import get_flags, set_flags
from fluidnb.values import strict_feeds as declared

#: module of Fluid -> our module that has what it has
SAME = {
    "data_feeder": "fluidnb.data",
    "distribute_transpiler": "fluidnb.transpiler.distribute",
    "inferencer": "fluidnb.contrib.inferencer",
    "inference_transpiler": "fluidnb.transpiler.inference_transpiler",
    "learning_rate_decay": "fluidnb.layers",
    "lod_tensor": "fluidnb.values",
    "memory_optimization_transpiler": "fluidnb.transpiler.memory_optimization_transpiler",
    "trainer": "fluidnb.contrib.trainer",
    "transpiler.distribute_transpiler": "fluidnb.transpiler.distribute",
    "transpiler.ps_dispatcher": "fluidnb.transpiler.distribute.dispatchers",
}

_INSIDE = (
    "it serves Fluid's own source code",
    "what it makes is there: layers.fc and the like, operators of variables, context managers.",
)
_GROUPS = {
    _INSIDE: """annotations input layers.layer_function_generator layers.math_op_patch layers.utils
        log_helper wrapped_decorator""",
    (
        "it runs blocks in threads that talk by channels, and was given up in version 1.0",
        "Python's threads, each with an Executor and a scope.",
    ): "concurrency",
    EAGER: "imperative",
    MACHINES: """distribute_lookup_table distributed incubate layers.collective transpiler.collective transpiler.details
        transpiler.geo_sgd_transpiler""",
    FILES: """async_executor data_feed_desc data_generator device_worker proto.data_feed_pb2 trainer_desc
        trainer_factory""",
    (
        "profiles are JSON of chrome://tracing here",
        "fluid.profiler.stop_profiler gives and writes them.",
    ): "proto.profiler",
    (
        "it was added in version 1.5 and is not built",
        "layers.gaussian_random, uniform_random and the arithmetic of variables.",
    ): "layers.distributions",
}  # fmt: skip

#: module of Fluid that there is not -> (why, what to use instead)
ABSENT = {name: facts for facts, names in _GROUPS.items() for name in names.split()}
ABSENT.update((f"contrib.{name}", facts) for name, facts in CONTRIB.items())

_ROOTS = ("paddle.fluid.", "paddle.v2.fluid.", "paddle.v2.framework.")


def absent_module(fullname: str) -> ModuleType | None:
    """Placeholder for a module that fluidnb does not have; its names raise NotBuiltYet."""
    root = next((r for r in _ROOTS if fullname.startswith(r)), None)
    if root is None:
        return None
    name = fullname.removeprefix(root)
    if name in MODULES:
        module: ModuleType = getattr(fluid, name)
        return module
    for known, facts in {**MODULES, **ABSENT}.items():
        if name == known or name.startswith(f"{known}."):
            return AbsentModule(name, facts)
    return None


#: Paddle's name -> ours; what is inside follows (``paddle.fluid.layers`` is ``fluidnb.layers``).
ALIASES = {
    "paddle": "fluidnb.compat.pd",
    "paddle.v2": "fluidnb.compat.pd",
    "paddle.batch": "fluidnb.data.reader",
    "paddle.compat": "fluidnb.compat.texts",
    "paddle.dataset": "fluidnb.data.dataset",
    "paddle.fluid": "fluidnb",
    "paddle.reader": "fluidnb.data.reader",
    "paddle.reader.decorator": "fluidnb.data.reader",
    "paddle.v2.dataset": "fluidnb.data.dataset",
    "paddle.v2.fluid": "fluidnb",
    "paddle.utils": "fluidnb.compat",
    "paddle.utils.plot": "fluidnb.compat.plot",
    "paddle.v2.framework": "fluidnb",
    "paddle.v2.plot": "fluidnb.compat.plot",
    "paddle.v2.reader": "fluidnb.data.reader",
    "paddle.version": "fluidnb.compat.version",
}

# Fluid's modules of layers are one module here.
for _root in ("paddle.fluid", "paddle.v2.fluid", "paddle.v2.framework"):
    ALIASES.update((f"{_root}.layers.{_name}", "fluidnb.layers") for _name in layers._MODULES)
    ALIASES.update((f"{_root}.{_name}", _ours_is) for _name, _ours_is in SAME.items())


class _SameModule(Loader):
    """Gives the import system a module that exists, and leaves the module's own spec alone."""

    def __init__(self, target: str | ModuleType) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._target) if isinstance(self._target, str) else self._target
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class _Finder(MetaPathFinder):
    """Finds modules under Paddle's names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "paddle":
            return None
        absent = absent_module(fullname)
        if absent is not None:
            return ModuleSpec(fullname, _SameModule(absent), is_package=True)
        ours = _ours(fullname)
        if ours is None or importlib.util.find_spec(ours) is None:
            name = fullname.split(".")[1]
            why = f"{fullname} is not part of fluidnb (aliased to paddle)."
            raise ModuleNotFoundError(of_paddle_2(name) if name in PADDLE_2 else why, name=fullname)
        return ModuleSpec(fullname, _SameModule(ours))


def _ours(name: str) -> str | None:
    """The fluidnb module of a Paddle module name; None when there is none."""
    head, tail = name, ""
    while head not in ALIASES:
        head, dot, last = head.rpartition(".")
        tail = f".{last}{tail}"
        if not dot:
            return None
    return None if tail and ALIASES[head] == ALIASES["paddle"] else ALIASES[head] + tail


_finder = _Finder()
_hidden: dict[str, ModuleType] = {}
#: The flags that `install` changed, as they were.
_flags: dict[str, bool] = {}


def is_installed() -> bool:
    """Whether ``import paddle`` gives this package now."""
    return _finder in sys.meta_path


@checked
def install(force: bool = False) -> None:
    """Let ``import paddle`` and its like mean this package, in this process; variables get ``as_step_input()``.

    Old rules hold then: what is fed need not have the declared shape and dtype, what is declared float32 may hold
    integers, and a LoD need not fit the rows that a tensor has when it comes. A list of one Variable is accepted as the
    Variable. Fetched arrays of one element convert to
    numbers, also after ``np.array(x)``, and numpy has the names that it dropped, such as ``np.float``.

    Args:
        force: whether to do so even if PaddlePaddle is installed.

    Raises:
        FluidError: a real paddle is installed, and ``force`` is False.
    """
    if is_installed():
        return
    if not force and _real_paddle():
        raise FluidError(
            "A real paddle is installed here, and scripts would no longer find it.",
            received=f"paddle in {_real_paddle()}",
            hint="compat.install(force=True) puts fluidnb in its place in this process; import fluidnb as fluid needs "
            "nothing.",
        )
    _hidden.update({name: module for name, module in sys.modules.items() if _is_paddles(name)})
    for name in _hidden:
        del sys.modules[name]
    sys.meta_path.insert(0, _finder)
    declared.binding = False
    arguments.lists_of_one = True
    _flags.update(get_flags("strict_feeds"))
    set_flags({"strict_feeds": False})
    old_numpy.install()
    for name in ALIASES:
        importlib.import_module(name)
    pd = sys.modules["paddle"]
    # Importing a submodule binds it in its parent; paddle.batch is the function all the same.
    vars(pd)["batch"] = sys.modules["paddle.reader"].batch
    for owner, name, method in importlib.import_module("fluidnb.compat.methods").METHODS:
        setattr(owner, name, method)


def uninstall() -> None:
    """Take the names of Paddle back; a real paddle that was imported before is there again."""
    if not is_installed():
        return
    sys.meta_path.remove(_finder)
    declared.binding = True
    arguments.lists_of_one = False
    set_flags(_flags)
    old_numpy.uninstall()
    for owner, name, _ in importlib.import_module("fluidnb.compat.methods").METHODS:
        delattr(owner, name)
    for name in [n for n in sys.modules if _is_paddles(n)]:
        del sys.modules[name]
    sys.modules.update(_hidden)
    _hidden.clear()


def _is_paddles(name: str) -> bool:
    return name.partition(".")[0] == "paddle"


def _real_paddle() -> str:
    """The path of an installed PaddlePaddle, or an empty text."""
    module = sys.modules.get("paddle")
    spec = module.__spec__ if module is not None else importlib.util.find_spec("paddle")
    return "" if spec is None else str(spec.origin or spec.name)
