"""`CodeGenerator`: the source code of a program, saved, built and run."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidnb.arguments import checked
from fluidnb.code_generator.cuda_functions import CudaFunctions
from fluidnb.code_generator.cuda_text import CudaText
from fluidnb.code_generator.functions import Functions
from fluidnb.code_generator.listing import INDEX, index_of
from fluidnb.code_generator.model_text import ModelText
from fluidnb.code_generator.names import comment
from fluidnb.code_generator.plan import Plan, planned
from fluidnb.code_generator.project import CUDA_MAKEFILE, MAKEFILE, NODE, build_flags, main_file, readme, tensor_bytes
from fluidnb.errors import EnforceNotMet, NotFound, OpValueError, near
from fluidnb.extras import command as install_command
from fluidnb.files.atomic_write import atomic_write
from fluidnb.passes.shape_folding import fold_shapes
from fluidnb.program import Program, Variable, default_main_program, program_guard
from fluidnb.program.constants import role_of
from fluidnb.program.prune import prune
from fluidnb.runtime import Executor, Scope
from fluidnb.runtime.native.compiler import compiler
from fluidnb.runtime.save_load import save_vars
from fluidnb.runtime.scope import global_scope, scope_guard
from fluidnb.values.place import CPUPlace
from fluidnb.values.tensor import LoDTensor

#: Names of fed variables, the variables, or name -> sizes.
Feeds = str | Variable | Sequence[str | Variable] | Mapping[str, Sequence[int]]
#: Variables to compute, or their names.
Fetches = str | Variable | Sequence[Variable | str]
#: Seconds that a compiler may take.
PATIENCE = 600
#: Languages of generated source.
TARGETS = ("c", "cuda")


@checked
class CodeGenerator:
    """Writes a program as C source code that needs neither Python nor fluidnb.

    Args:
        program: the program; default the main program. Programs that train become a training step.
        feeds: names of the fed variables, or name -> sizes where a declaration leaves sizes open.
        fetches: the variables to compute, or their names.
        target: ``c``; ``cuda`` launches the executor's kernels by the driver API.
        scope: has the parameters; default the global scope.
        batch: the size of a declared -1; the number of sequences in feeds that have any. Such a feed needs sizes, its
            most rows first: ``feeds={"words": [40, 1]}``.
        embed_weights: whether the parameters are written into the source; else they are in ``weights.bin``.
        max_steps: elements that an array of tensors has at most, and iterations of a loop with a gradient; needed by
            programs with such arrays or loops.

    Raises:
        OpValueError: operators without C code, all listed; a variable whose size is not known.
        EnforceNotMet: a parameter has no value.

    Example:
        >>> x = fluid.layers.data("x", [4]); y = fluid.layers.fc(x, 3, act="relu")
        >>> exe = fluid.Executor(fluid.CPUPlace()); out = exe.run(fluid.default_startup_program())
        >>> code = fluid.transpiler.CodeGenerator(feeds=["x"], fetches=[y])
        >>> [line for line in code.source("model.h").splitlines() if line.startswith("void")]
        ['void model_run(const float *x, float *fc_0_tmp_2_out);']

    Source: the design documents' compiler; announced in Fluid 0.11, never published.
    """

    def __init__(
        self, program: Program | None = None, feeds: Feeds = (), fetches: Fetches = (), target: str = "c",
        scope: Scope | None = None, batch: int = 1, embed_weights: bool = False, max_steps: int = 0,
    ) -> None:  # fmt: skip
        if target not in TARGETS:
            raise OpValueError(
                f"There is no target {target}.", expected="target='c' or target='cuda'", received=target,
                hint=near(target, TARGETS),
            )  # fmt: skip
        self._target = target
        self._batch, self._embeds, self._steps = batch, embed_weights, max_steps
        self._scope = scope
        self._ready: ModelText | None = None
        self._folder: str | None = None
        if fetches:
            self.transpile(program, feeds, fetches, scope)

    def transpile(
        self, program: Program | None = None, feed: Feeds = (), fetch: Fetches = (), scope: Scope | None = None
    ) -> str:
        """Generates the source of a program.

        Args:
            program: the program; default the main program.
            feed: names of the fed variables, or name -> sizes.
            fetch: the variables to compute, or their names.
            scope: has the parameters; default the global scope.

        Returns:
            The text of ``model.c``.
        """
        program = default_main_program() if program is None else program
        names = _names([fetch] if isinstance(fetch, str | Variable) else fetch)
        if not names:
            raise OpValueError("A generated program needs at least one fetch.", expected="fetches=[a variable]")
        trains = any(role_of(op.desc) == "optimizer" for op in program.global_block().ops)
        whole = program if trains else prune(program, names)
        shapes = _feed_shapes(whole, feed, self._batch)
        whole = fold_shapes(whole, shapes)
        whole = whole if trains else prune(whole, names)
        self._scope = global_scope() if scope is None else scope
        on_cuda = self._target == "cuda"
        functions = CudaFunctions(seed=program.random_seed or 1) if on_cuda else Functions()
        plan = planned(whole, shapes, names, self._batch, functions, self._steps)
        values = self._values(plan) if self._embeds else None
        title = f"{comment(', '.join(names))} of {comment(', '.join(shapes)) or 'nothing'}"
        self._ready = (CudaText if on_cuda else ModelText)(plan, title, values)
        return self._ready.source()

    @property
    def _text(self) -> ModelText:
        """The texts of the program."""
        if self._ready is None:
            raise OpValueError(
                "No program has been given.", expected="fetches=[a variable]", received="none",
                hint="transpile(program, feed, fetch) generates the source of a program.",
            )  # fmt: skip
        return self._ready

    def _values(self, plan: Plan) -> dict[str, np.ndarray]:
        """The values of the parameters."""
        found = {}
        for v in plan.parameters:
            var = None if self._scope is None else self._scope.find_var(v.name)
            if var is None or getattr(var.value, "array", None) is None:
                raise EnforceNotMet(
                    f"Parameter {v.name} has no value.", expected="an initialized scope", received="no value",
                    hint="run the startup program first: exe.run(fluid.default_startup_program()).",
                )  # fmt: skip
            found[v.name] = np.asarray(var.get_tensor())
        return found

    @property
    def files(self) -> dict[str, str]:
        """The text of each file by name, without ``weights.bin``."""
        text = self._text
        files = {"model.h": text.header(), "model.c": text.source(), "main.c": main_file(text)}
        if isinstance(text, CudaText):
            files |= {"model.cu": text.kernels(), "Makefile": CUDA_MAKEFILE}
        else:
            files |= {"model.mjs": NODE, "Makefile": MAKEFILE}
        return files | {"README.md": readme(text), INDEX: index_of(text)}

    def source(self, file: str = "model.c") -> str:
        """The text of one of the files.

        Args:
            file: ``model.c``, ``model.h``, ``main.c``, ``Makefile``, ``README.md``, ``operators.json``, ``model.mjs``,
                or ``model.cu`` of CUDA.
        """
        files = self.files
        if file not in files:
            known = ", ".join(files)
            raise NotFound(f"There is no file {file}.", expected=known, received=file, hint=near(file, files))
        return files[file]

    def save(self, path: str | os.PathLike[str]) -> list[str]:
        """Writes all files into a folder.

        Args:
            path: a new or empty folder.

        Returns:
            The paths.

        Raises:
            OpValueError: the folder has files.
        """
        folder = os.fspath(path)
        if os.path.isdir(folder) and os.listdir(folder):
            raise OpValueError(
                f"The folder {folder} is not empty.", expected="a new or empty folder", received=folder,
                hint="remove it, or choose another name.",
            )  # fmt: skip
        self._values(self._text.plan)  # before anything is written
        texts = self.files
        for name, text in texts.items():
            with atomic_write(os.path.join(folder, name), text=True, parents=True) as file:
                file.write(text)
        if self._text.plan.parameters and self._text.embedded is None:
            self._save_weights(folder)
        self._folder = folder
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def _save_weights(self, folder: str) -> None:
        """Write the parameters in the order of their names."""
        program = Program()
        with program_guard(program):
            block = program.global_block()
            variables = [
                block.create_var(name=v.name, shape=list(v.shape), dtype=v.dtype.name, persistable=True)
                for v in self._text.plan.parameters
            ]
        with scope_guard(global_scope() if self._scope is None else self._scope):
            save_vars(Executor(CPUPlace()), folder, program, variables, filename="weights.bin")

    def build(
        self, cc: str | None = None, dirname: str | os.PathLike[str] | None = None, flags: Sequence[str] = ("-O3",)
    ) -> str:
        """Compiles the program; for CUDA with the headers and libraries in ``$CUDA_HOME``, or /usr/local/cuda.

        Args:
            cc: the compiler, with flags; default ``$CC``, gcc, clang or the package ziglang.
            dirname: a new or empty folder, to which everything is saved; default the folder of the last `save`, or a
                temporary one.
            flags: flags of the compiler.

        Returns:
            The path of the program.

        Raises:
            EnforceNotMet: there is no compiler, or it fails.
        """
        command = compiler_of(cc)
        if dirname is not None:
            self.save(dirname)
        elif self._folder is None:
            self.save(tempfile.mkdtemp(prefix="fluidnb-"))
        folder = os.path.abspath(str(self._folder))
        command += ["-std=c11", *flags, "main.c", "model.c", "-o", "model", *build_flags(self._text, folder)]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
            status, said = done.returncode, done.stderr.strip()[-2000:]
        except subprocess.TimeoutExpired:
            status, said = 1, f"it took longer than {PATIENCE} s"
        if status:
            raise EnforceNotMet(
                f"{command[0]} fails.", expected="exit status 0", received=said or "no message",
                hint=f"the command was {' '.join(command)}, in {folder}",
            )  # fmt: skip
        return os.path.join(folder, "model")

    def run(self, feed: Mapping[str, Any], cc: str | None = None) -> list[np.ndarray]:
        """Builds the program in a temporary folder and runs it as a separate process.

        Args:
            feed: name -> array.
            cc: the compiler, as for `build`.

        Returns:
            The fetched arrays; of one with sequences all rows, those behind the last sequence too.
        """
        with tempfile.TemporaryDirectory() as folder:
            again, self._folder = self._folder, None
            try:
                program = self.build(cc, os.path.join(folder, "code"))
            finally:
                self._folder = again
            inside, outside = os.path.join(folder, "in"), os.path.join(folder, "out")
            os.makedirs(inside)
            os.makedirs(outside)
            write_feeds(self._text, feed, inside)
            weights = os.path.join(folder, "code", "weights.bin")
            done = subprocess.run(
                [program, weights, inside, outside], capture_output=True, text=True, timeout=PATIENCE, check=False
            )
            if done.returncode:
                raise EnforceNotMet("The program fails.", expected="exit status 0", received=done.stderr.strip())
            return read_fetches(self._text, outside)


def compiler_of(cc: str | None) -> list[str]:
    """The command of the C compiler to use."""
    words = shlex.split(cc) if cc else []
    path = shutil.which(words[0]) if words else None
    found = [path, *words[1:]] if path else None if cc else compiler()
    if found is None:
        raise EnforceNotMet(
            "There is no C compiler.", expected="gcc, clang or the package ziglang", received=cc or "none of them",
            hint=f"{install_command('native')} installs one; the saved source builds elsewhere too.",
        )  # fmt: skip
    return [str(word) for word in found]


def _names(variables: Sequence[str | Variable]) -> list[str]:
    return [v.name if isinstance(v, Variable) else v for v in variables]


def _feed_shapes(
    program: Program, feeds: Feeds, batch: int
) -> dict[str, tuple[int, ...]]:
    """The sizes of each feed."""
    given: Mapping[str, Sequence[int] | None]
    if isinstance(feeds, Mapping):
        given = feeds
    else:
        given = dict.fromkeys(_names([feeds] if isinstance(feeds, str | Variable) else feeds))
    shapes = {}
    for name, sizes in given.items():
        var = program.desc.blocks[0].vars.get(name)
        if var is None:
            known = [n for n, v in program.desc.blocks[0].vars.items() if v.need_check_feed() or v.view is not None]
            raise NotFound(
                f"The program has no variable {name}.", expected="a variable that is fed", received=name,
                hint=near(name, known),
            )  # fmt: skip
        if var.lod_level() and sizes is None:
            raise OpValueError(
                f"The feed {name} has sequences, and needs its most rows.", expected=f"feeds={{'{name}': [rows, ...]}}",
                received="no sizes", hint=f"feeds={{'{name}': [100, ...]}} takes up to 100 rows in {batch} sequences.",
            )  # fmt: skip
        shape = tuple(var.shape()) if sizes is None else tuple(sizes)
        if any(n < 1 and n != -1 for n in shape):
            raise OpValueError(
                f"The feed {name} has no rows or columns in C.", expected="sizes from 1 on, or -1 for the batch size",
                received=list(shape), hint=f"feeds={{'{name}': {[n if n > 0 else -1 for n in shape]}}} has others.",
            )  # fmt: skip
        shapes[name] = tuple(batch if n < 0 else n for n in shape)
    return shapes


def write_feeds(text: ModelText, feed: Mapping[str, Any], folder: str) -> None:
    """Write feeds as the files that the generated program reads."""
    for name in text.plan.feeds:
        var = text.plan.variables.get(name)
        if var is None:
            continue
        if name not in feed:
            raise NotFound(f"{name} is not fed.", expected=", ".join(text.plan.feeds), received=", ".join(feed))
        value = feed[name]
        array = np.asarray(value, var.dtype, order="C")
        offsets = value.lod()[0] if var.lod and isinstance(value, LoDTensor) and value.lod() else []
        fits = array.shape == var.shape
        if var.lod:
            fits = array.shape[1:] == var.shape[1:] and len(array) <= var.shape[0]
            fits = fits and len(offsets) == text.plan.sequences + 1
        if not fits:
            wanted = f", {text.plan.sequences} sequences" if var.lod else ""
            raise OpValueError(
                f"The feed {name} has another shape.", expected=f"{list(var.shape)}{wanted}",
                received=f"{list(array.shape)}" + (f", {max(len(offsets) - 1, 0)} sequences" if var.lod else ""),
                hint="sizes are fixed in generated code; generate it for this batch size.",
            )  # fmt: skip
        with atomic_write(os.path.join(folder, f"{text.names[name]}.tensor")) as file:
            file.write(tensor_bytes(var, array, offsets))


def read_fetches(text: ModelText, folder: str) -> list[np.ndarray]:
    """Read the fetches that the generated program wrote."""
    found = []
    for name in text.plan.fetches:
        var = text.plan.variables[name]
        with open(os.path.join(folder, f"{text.names[name]}.tensor"), "rb") as file:
            data = file.read()
        found.append(np.frombuffer(data[len(data) - var.size :], var.dtype).reshape(var.shape).copy())
    return found
