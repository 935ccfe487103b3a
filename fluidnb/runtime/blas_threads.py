"""FLAGS_num_threads: the threads of BLAS, of products of matrices in C, which are as many, and of oneDNN.

All else computes in the thread that calls. Threads that share the work of native code were tried: beside two threads of
BLAS, a training step of three layers took 0.99 to 1.11 times as long with them on two cores, for a worker of OpenBLAS
waits for its next product without sleeping.
"""

import threading
from functools import cache
from typing import Any

from fluidnb.extras import command
from fluidnb.memory import flags

#: What restores the number that BLAS had before the flag was set.
_before: list[Any] = []


def follow_flag() -> None:
    """Let BLAS follow FLAGS_num_threads from now on."""
    if "num_threads" not in flags.when_set:
        flags.when_set["num_threads"] = _limit
        if flags.values["num_threads"]:
            _limit()


def _limit() -> None:
    """Let BLAS and oneDNN use as many threads as the flag says; where it is 0, as many as before."""
    number = flags.values["num_threads"]
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        if number:
            import logging  # 6 ms of start-up

            logging.getLogger("fluidnb").warning(
                "FLAGS_num_threads=%s has no effect: %s installs threadpoolctl, which sets the threads of BLAS.",
                number, command("native"),
            )  # fmt: skip
        return
    if _before:
        _before.pop().restore_original_limits()
    if number:
        _before.append(threadpool_limits(number))


class _OneThread:
    """BLAS in the calling thread alone while a program runs whose convolutions oneDNN computes.

    oneDNN has other threads, and those of BLAS take the processors from them: they wait without sleeping. With
    OpenBLAS threadpoolctl follows the first thread of a process that sets the number, usually the main one.
    """

    def __init__(self) -> None:
        self._lock, self._runs = threading.Lock(), 0
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            self._runs += 1
            if self._runs == 1:
                self._before = [(library, library.get_num_threads()) for library in _libraries()]
                for library, number in self._before:
                    if number != 1:
                        library.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._runs -= 1
            if self._runs == 0:
                for library, number in self._before:
                    if number != 1:
                        library.set_num_threads(number)


#: A context in which BLAS has one thread; several runs may be in it.
one_thread = _OneThread()


@cache
def _libraries() -> list[Any]:
    """The BLAS libraries of this process, for threadpoolctl; empty without that."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return []
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
