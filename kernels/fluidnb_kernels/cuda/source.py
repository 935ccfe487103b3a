"""A file of kernels, and one kernel of it: compiled at its first launch by whatever backend is chosen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from fluidnb.errors import NotFound, near
from fluidnb.memory import flags
from fluidnb.op.launches import Launch, register_launches
from fluidnb_kernels.cuda import backend

_SHARED = Path(__file__).parent
_INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')

#: backend -> ``compile(text, file name, name expression)``, which gives something with cupy's call shape.
backends: dict[str, Callable[[str, str, str], Any]] = {}


#: What cupy takes for a pointer to nothing.
_NULL = np.uint64(0)

#: Every file of kernels there is.
sources: list[Source] = []


class Source:
    """The kernels of one file; ``kernels`` lists all names, so that whoever compiles these compiles everything."""

    def __init__(self, beside: str, name: str, kernels: Callable[[], Iterable[str]]) -> None:
        self.path, self._kernels = Path(beside).with_name(name), kernels
        self._functions: dict[str, Function] = {}
        sources.append(self)

    def __getitem__(self, name: str) -> Function:
        """A kernel."""
        found = self._functions.get(name)
        if found is None:
            if name not in self.kernels:
                del self.kernels  # the operators of modules that were imported since may have kernels here
            if name not in self.kernels:
                raise NotFound(f"{self.path.name} has no kernel {name}.", received=name, hint=near(name, self.kernels))
            found = self._functions[name] = Function(self, name)
        return found

    @cached_property
    def kernels(self) -> dict[str, None]:
        """The names of all its kernels, in order."""
        return dict.fromkeys(self._kernels())

    def defined(self, *macros: str) -> list[str]:
        """The names that lines such as ``STEP(sgd, 0)`` of the file define with a macro."""
        return re.findall(rf"^(?:{'|'.join(macros)})\((\w+)", self.path.read_text("utf-8"), re.MULTILINE)

    @cached_property
    def text(self) -> str:
        """The file with what it includes in place, so that compilers and their caches see all of it."""
        return "\n".join(included(self.path.read_text("utf-8"), self.path, set()))

    def pieces(self) -> list[tuple[Path, str]]:
        """The files that it includes, in order, then itself, each without its lines of includes."""
        return list(_pieces(self.path, set()))


class Function:
    """One kernel; called, it is launched: ``function(grid, block, shared bytes, *arguments)``."""

    __slots__ = ("_compiled", "name", "source")

    def __init__(self, source: Source, name: str) -> None:
        self.source, self.name = source, name
        self._compiled: dict[str, Any] = {}

    def on(self, backend: str) -> Any:
        """It, compiled by a backend; called as a ``cupy.RawKernel``."""
        found = self._compiled.get(backend)
        if found is None:
            if backend not in backends:
                raise NotFound(f"There is no backend {backend} for CUDA kernels.", expected=" or ".join(backends))
            found = self._compiled[backend] = backends[backend](self.source.text, self.source.path.name, self.name)
        return found

    def near(self, array: Any) -> Any:
        """It, compiled for where an array is; called as a ``cupy.RawKernel``."""
        on_host = isinstance(array, np.ndarray | np.generic | None)
        return self.on("emulator" if on_host else f"{flags.values['cuda_backend']} device")

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], shared: int, *args: Any) -> None:
        function, given = self.launch(grid, block, shared, *args)
        function(*given)

    def launches(self, grid: tuple[int, ...], block: tuple[int, ...], shared: int, *args: Any) -> tuple[Launch, ...]:
        """A call as data."""
        return (Launch(self, grid, block, shared, args),)

    def launch(self, grid: tuple[int, ...], block: tuple[int, ...], shared: int, *args: Any) -> tuple[Any, Any]:
        """A reusable launch: the kernel is looked up and arguments (None: a null pointer) are converted once."""
        there = next((a for a in args if not isinstance(a, np.ndarray | np.generic | None)), None)
        if there is not None:
            args = tuple(_NULL if a is None else a for a in args)
        kernel = self.near(there)
        return partial(kernel, shared_mem=shared) if shared else kernel, (grid, block, args)

    def __repr__(self) -> str:
        return f"<kernel {self.name} of {self.source.path.name}>"


def included(text: str, path: Path, seen: set[str], first: int = 1) -> list[str]:
    """The lines of a text with each included file expanded once, and ``#line`` marks."""
    out = [f'#line {first} "{path.name}"']
    for number, line in enumerate(text.splitlines(), first):
        match = _INCLUDE.match(line)
        if match is None:
            out.append(line)
        elif match[1] in seen:
            out.append("")
        else:
            seen.add(match[1])
            header = _header(path, match[1])
            out += [*included(header.read_text("utf-8"), header, seen), f'#line {number + 1} "{path.name}"']
    return out


def _pieces(path: Path, seen: set[Path]) -> Iterator[tuple[Path, str]]:
    """A file after those that it includes, each once."""
    own = []
    for line in path.read_text("utf-8").splitlines(keepends=True):
        match = _INCLUDE.match(line)
        if match is None:
            own.append(line)
        elif (header := _header(path, match[1])) not in seen:
            seen.add(header)
            yield from _pieces(header, seen)
    yield path, "".join(own)


def _header(path: Path, name: str) -> Path:
    """The file that an include means: beside the file, or of those that all files share."""
    beside = path.with_name(name)
    return beside if beside.exists() else _SHARED / name


def _emulated(text: str, file: str, name: str) -> Any:
    from fluidnb_kernels.emulator import RawModule
    from fluidnb_kernels.emulator.translate import kernels_in

    plain = kernels_in(text)
    return RawModule(text, name_expressions=() if name in plain else (name,), name=file).get_function(name)


def _on_device(text: str, file: str, name: str) -> Any:
    """Compiled by NVRTC through cupy, which keeps what it compiled on disk, by text, options and architecture."""
    from fluidnb_kernels.emulator.translate import kernels_in

    expressions = None if name in kernels_in(text) else (name,)
    module = backend.cupy().RawModule(code=text, options=("--std=c++17",), name_expressions=expressions)
    return module.get_function(name)


backends.update({"emulator": _emulated, "cupy device": _on_device, "emulator device": _on_device})
register_launches(Function, Function.launches)
