"""``python -m tests.gpu.compiled [FILE ...]``: every CUDA kernel compiled for the device that is here, in threads.

cupy keeps what it compiled on disk, so that tests that run afterwards, in whatever process, need not wait for it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from fluidnb.memory import flags
from fluidnb.op import all_ops
from fluidnb_kernels.cuda import Source, backend, sources

#: Seconds between two lines that say how far it is.
_PAUSE = 10.0


def compile_all(files: Sequence[Source], threads: int) -> list[str]:
    """Compile kernels, and say how far it is.

    Args:
        files: with the kernels.
        threads: how many are compiled at a time; NVRTC leaves the interpreter to others.

    Returns:
        What could not be compiled, and why.
    """
    device, how = backend.cupy().cuda.Device(0), f"{flags.values['cuda_backend']} device"
    start = told = time.monotonic()
    failed = []
    with ThreadPoolExecutor(threads, initializer=device.use) as pool:
        kernels = [(file, name) for file in files for name in file.kernels]
        work = {pool.submit(file[name].on, how): f"{name} of {file.path.name}" for file, name in kernels}
        for number, done in enumerate(as_completed(work), 1):
            if done.exception() is not None:
                failed.append(f"{work[done]}: {done.exception()}")
            if time.monotonic() - told > _PAUSE or number == len(work):
                told = time.monotonic()
                print(f"compiled {number} of {len(work)} kernels in {told - start:.0f} s", flush=True)
    return failed


def main(argv: Sequence[str]) -> int:
    """Compile the kernels of some files, or of all.

    Args:
        argv: names of files without their ending.

    Returns:
        The exit status: 1 when something could not be compiled.
    """
    missing = backend.missing()
    if missing:
        sys.exit(f"make test-gpu: {missing}")
    all_ops()  # so that all files are known
    unknown = set(argv) - {source.path.stem for source in sources}
    if unknown:
        sys.exit(f"There is no file of kernels called {' or '.join(sorted(unknown))}.")
    failed = compile_all([s for s in sources if not argv or s.path.stem in argv], os.cpu_count() or 1)
    print("".join(f"cannot be compiled: {line}\n" for line in failed), end="", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
