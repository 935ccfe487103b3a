"""g++ for translated kernels, with a cache on disk."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from fluidnb.errors import EnforceNotMet, NotFound
from fluidnb.files.cache_folder import cache_folder

_HERE = Path(__file__).parent
_FLAGS = ("-std=c++17", "-O1", "-g1", "-w", "-fPIC", "-shared", "-fno-strict-aliasing", "-ffp-contract=off")
_SANITIZE = ("-fsanitize=address", "-fno-omit-frame-pointer")


class CompileError(EnforceNotMet):
    """A kernel's text that is no CUDA C++."""


def missing() -> str:
    """The missing part of the emulator, as a sentence; empty when it can run."""
    return "" if _compiler() else "The CUDA emulator needs g++; on Debian: apt-get install g++"


def build(source: str, options: Sequence[str] = (), sanitize: bool = False) -> Path:
    """Compile translated text, unless that was done before; sanitized libraries need libasan loaded first."""
    compiler = _compiler()
    if compiler is None:
        raise NotFound("Kernels cannot be emulated here.", expected="g++", hint=missing())
    flags = [*_FLAGS, *(_SANITIZE if sanitize else ()), *options]
    headers = [(_HERE / name).read_text("utf-8") for name in ("machine.h", "cuda.h", "launch.h")]
    key = hashlib.sha256("\0".join([source, *headers, compiler, *flags]).encode()).hexdigest()[:32]
    library = cache_folder("emulator") / f"{key}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=library.parent) as work:
            text, made = Path(work) / "kernel.cpp", Path(work) / "kernel.so"
            text.write_text(source, "utf-8")
            command = [compiler, *flags, f"-I{_HERE}", str(text), "-o", str(made)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise CompileError("The kernel cannot be compiled.", received=_errors_in(done.stderr))
            os.replace(made, library)
    return library


def sanitized() -> dict[str, str]:
    """The environment of a process that runs sanitized kernels: libasan has to be loaded before Python."""
    compiler = _compiler() or ""
    library = (
        compiler and subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True).stdout
    )
    if not os.path.isabs(library):
        raise NotFound("Memory errors cannot be looked for here.", expected="libasan", hint="it comes with g++")
    options = "detect_leaks=0:detect_stack_use_after_return=0"
    return {**os.environ, "LD_PRELOAD": library.strip(), "ASAN_OPTIONS": options, "PYTHONMALLOC": "malloc"}


@cache
def _compiler() -> str | None:
    return shutil.which(os.environ.get("CXX") or "g++")


def _errors_in(text: str) -> str:
    """The compiler's errors, without what it says about templates and our headers."""
    lines = [line for line in text.splitlines() if ": error:" in line or ": fatal error:" in line]
    return "\n".join(lines[:12]) or text[:2000]
