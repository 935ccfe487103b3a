"""`CodeGenerator`: the source code of a program, saved, built and run."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidnb.arguments import checked
from fluidnb.code_generator.model_text import ModelText
from fluidnb.code_generator.names import comment
from fluidnb.code_generator.plan import planned
from fluidnb.code_generator.project import MAKEFILE, main_file, readme, tensor_bytes
from fluidnb.errors import EnforceNotMet, NotFound, OpValueError, near
from fluidnb.files.atomic_write import atomic_write
from fluidnb.program import Program, Variable, default_main_program, program_guard
from fluidnb.program.constants import role_of
from fluidnb.program.prune import prune
from fluidnb.runtime import Executor, Scope
from fluidnb.runtime.save_load import save_vars
from fluidnb.runtime.scope import global_scope, scope_guard
from fluidnb.values.place import CPUPlace

#: Seconds that a compiler may take.
PATIENCE = 600


@checked
class CodeGenerator:
    """Writes a program as C source code that needs neither Python nor fluidnb.

    Args:
        program: the program; default the main program. Programs that train become a training step.
        feeds: names of the fed variables, or name -> sizes where a declaration leaves sizes open.
        fetches: the variables to compute, or their names.
        target: ``c``.
        scope: has the parameters; default the global scope.
        batch: the size of a declared -1.
        embed_weights: whether the parameters are written into the source; else they are in ``weights.bin``.

    Raises:
        OpValueError: operators without C code, all listed; a variable whose size is not known.
        EnforceNotMet: a parameter has no value.

    Example:
        >>> x = fluid.layers.data("x", [4]); y = fluid.layers.fc(x, 3, act="relu")
        >>> exe = fluid.Executor(fluid.CPUPlace()); out = exe.run(fluid.default_startup_program())
        >>> code = fluid.transpiler.CodeGenerator(feeds=["x"], fetches=[y])
        >>> print(code.source("model.h").splitlines()[-11])
        void model_run(const float *x, float *fc_0_tmp_2_out);

    Source: the design documents' compiler; announced in Fluid 0.11, never published.
    """

    def __init__(
        self, program: Program | None = None, feeds: Sequence[str | Variable] | Mapping[str, Sequence[int]] = (),
        fetches: Sequence[Variable | str] = (), target: str = "c", scope: Scope | None = None, batch: int = 1,
        embed_weights: bool = False,
    ) -> None:  # fmt: skip
        if target != "c":
            raise OpValueError(
                f"There is no target {target}.", expected="target='c'", received=target, hint=near(target, ["c"])
            )
        program = default_main_program() if program is None else program
        self._scope = global_scope() if scope is None else scope
        names = [getattr(v, "name", v) for v in fetches]
        if not names:
            raise OpValueError("A generated program needs at least one fetch.", expected="fetches=[a variable]")
        trains = any(role_of(op.desc) == "optimizer" for op in program.global_block().ops)
        whole = program if trains else prune(program, names)
        shapes = _feed_shapes(whole, feeds, batch)
        self._plan = planned(whole, shapes, names)
        values = self._values() if embed_weights else None
        title = f"{comment(', '.join(names))} of {comment(', '.join(shapes)) or 'nothing'}"
        self._text = ModelText(self._plan, title, values)

    def _values(self) -> dict[str, np.ndarray]:
        """The values of the parameters."""
        found = {}
        for v in self._plan.parameters:
            var = self._scope.find_var(v.name)
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
        return {
            "model.h": self._text.header(), "model.c": self._text.source(), "main.c": main_file(self._text),
            "Makefile": MAKEFILE, "README.md": readme(self._text),
        }  # fmt: skip

    def source(self, file: str = "model.c") -> str:
        """The text of one of the files.

        Args:
            file: ``model.c``, ``model.h``, ``main.c``, ``Makefile`` or ``README.md``.
        """
        files = self.files
        if file not in files:
            raise NotFound(f"There is no file {file}.", expected=", ".join(files), received=file, hint=near(file, files))
        return files[file]

    def save(self, dirname: str | os.PathLike[str]) -> list[str]:
        """Writes all files into a new or empty folder.

        Returns:
            The paths.

        Raises:
            OpValueError: the folder has files.
        """
        folder = os.fspath(dirname)
        if os.path.isdir(folder) and os.listdir(folder):
            raise OpValueError(
                f"The folder {folder} is not empty.", expected="a new or empty folder", received=folder,
                hint="remove it, or choose another name.",
            )  # fmt: skip
        self._values()  # before anything is written
        texts = self.files
        os.makedirs(folder, exist_ok=True)
        for name, text in texts.items():
            with atomic_write(os.path.join(folder, name), text=True) as file:
                file.write(text)
        if self._plan.parameters and self._text.embedded is None:
            self._save_weights(folder)
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def _save_weights(self, folder: str) -> None:
        """Write the parameters in the order of their names."""
        program = Program()
        with program_guard(program):
            block = program.global_block()
            variables = [
                block.create_var(name=v.name, shape=list(v.shape), dtype=v.dtype.name, persistable=True)
                for v in self._plan.parameters
            ]
        with scope_guard(self._scope):
            save_vars(Executor(CPUPlace()), folder, program, variables, filename="weights.bin")

    def build(self, dirname: str | os.PathLike[str], cc: str | None = None, flags: Sequence[str] = ()) -> str:
        """Saves all files and compiles them.

        Args:
            dirname: a new or empty folder.
            cc: the compiler; default ``$CC``, ``cc``, ``gcc`` or ``clang``.
            flags: further flags.

        Returns:
            The path of the program.

        Raises:
            EnforceNotMet: there is no compiler, or it fails.
        """
        compiler = compiler_of(cc)
        self.save(dirname)
        program = os.path.join(os.fspath(dirname), "model")
        command = [compiler, "-std=c11", "-O2", *flags, "main.c", "model.c", "-o", "model", "-lm"]
        done = subprocess.run(command, cwd=dirname, capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode:
            raise EnforceNotMet(
                f"{compiler} fails.", expected="exit status 0", received=done.stderr.strip()[-2000:] or "no message",
                hint=f"the command was {' '.join(command)}",
            )  # fmt: skip
        return program

    def run(self, feed: Mapping[str, Any], cc: str | None = None) -> list[np.ndarray]:
        """Builds the program in a temporary folder, runs it as a process of its own, and reads what it wrote.

        Args:
            feed: name -> array.
            cc: the compiler, as for `build`.

        Returns:
            The fetched arrays.
        """
        with tempfile.TemporaryDirectory() as folder:
            program = self.build(os.path.join(folder, "code"), cc)
            inside, outside = os.path.join(folder, "in"), os.path.join(folder, "out")
            os.makedirs(inside), os.makedirs(outside)
            write_feeds(self._text, feed, inside)
            weights = os.path.join(folder, "code", "weights.bin")
            done = subprocess.run(
                [program, weights, inside, outside], capture_output=True, text=True, timeout=PATIENCE, check=False
            )
            if done.returncode:
                raise EnforceNotMet("The program fails.", expected="exit status 0", received=done.stderr.strip())
            return read_fetches(self._text, outside)


def compiler_of(cc: str | None) -> str:
    """The C compiler to use."""
    wanted = [cc] if cc else [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    found = next((path for name in wanted if name and (path := shutil.which(name))), None)
    if found is None:
        raise EnforceNotMet(
            "There is no C compiler.", expected="cc, gcc or clang", received=cc or "none of them",
            hint="install one, or save the source and build it elsewhere.",
        )  # fmt: skip
    return found


def _names(variables: Sequence[str | Variable]) -> list[str]:
    return [v.name if isinstance(v, Variable) else v for v in variables]


def _feed_shapes(
    program: Program, feeds: Sequence[str | Variable] | Mapping[str, Sequence[int]], batch: int
) -> dict[str, tuple[int, ...]]:
    """The sizes of each feed."""
    given = feeds if isinstance(feeds, Mapping) else {getattr(v, "name", v): None for v in feeds}
    shapes = {}
    for name, sizes in given.items():
        var = program.desc.blocks[0].vars.get(name)
        if var is None:
            known = [n for n, v in program.desc.blocks[0].vars.items() if v.pb.need_check_feed or v.view is not None]
            raise NotFound(
                f"The program has no variable {name}.", expected="a variable that is fed", received=name,
                hint=near(name, known),
            )  # fmt: skip
        shape = tuple(var.shape()) if sizes is None else tuple(sizes)
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
        array = np.ascontiguousarray(feed[name], var.dtype)
        if array.shape != var.shape:
            raise OpValueError(
                f"The feed {name} has another shape.", expected=str(list(var.shape)), received=str(list(array.shape)),
                hint="sizes are fixed in generated code; generate it for this batch size.",
            )  # fmt: skip
        with open(os.path.join(folder, f"{text.names[name]}.tensor"), "wb") as file:
            file.write(tensor_bytes(var, array))


def read_fetches(text: ModelText, folder: str) -> list[np.ndarray]:
    """Read the fetches that the generated program wrote."""
    found = []
    for name in text.plan.fetches:
        var = text.plan.variables[name]
        with open(os.path.join(folder, f"{text.names[name]}.tensor"), "rb") as file:
            data = file.read()
        found.append(np.frombuffer(data[len(data) - var.size :], var.dtype).reshape(var.shape).copy())
    return found
