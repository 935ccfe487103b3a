"""Readers in separate processes, merged into one."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fluidnb.arguments import checked
from fluidnb.data.reader.decorators import Reader, check_count
from fluidnb.errors import EnforceNotMet, OpTypeError, typed

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

_SAMPLE, _END, _ERROR = range(3)


@checked
def multiprocess_reader(readers: Sequence[Reader], use_pipe: bool = True, queue_size: int = 1000) -> Reader:
    """Runs each reader in a separate process; samples are yielded in order of completion.

    It pays where a reader computes much on each sample. The processes are copies of this one, made when a pass
    begins, so that readers may be functions of any kind; a pass that is left early ends them.

    Args:
        readers: the sources, for example one for each file. Their samples are pickled on the way.
        use_pipe: ignored (compatibility): pipes join the processes in any case.
        queue_size: ignored (compatibility): a reader is ahead as far as its pipe holds samples.

    Raises:
        EnforceNotMet: while reading: a reader raised an error, its process ended, or a sample cannot be pickled.

    Example:
        >>> both = multiprocess_reader([lambda: range(3), lambda: range(10, 12)])
        >>> sorted(both())
        [0, 1, 2, 10, 11]
    """
    if not readers:
        raise OpTypeError(
            "multiprocess_reader takes readers.", expected="a list of one reader or more", received=typed(readers)
        )
    sources = list(readers)
    check_count("queue_size", queue_size)

    def joined() -> Iterator[Any]:
        running = _start(sources)
        from multiprocessing.connection import Connection, wait

        try:
            while running:
                for pipe in wait(list(running)):
                    assert isinstance(pipe, Connection)
                    kind, value = _receive(pipe, *running[pipe])
                    if kind == _SAMPLE:
                        yield value
                    else:
                        running.pop(pipe)[1].join()
                        pipe.close()
        finally:
            for pipe, (_, process) in running.items():
                process.terminate()
                process.join()
                pipe.close()

    return joined


def _start(sources: Sequence[Reader]) -> dict[Connection, tuple[int, BaseProcess]]:
    """Start the processes: the end of the pipe of each -> its number and itself."""
    try:
        import multiprocessing.connection
    except ImportError as error:  # Python in a browser has no such module
        raise EnforceNotMet(
            "This Python starts no processes, which multiprocess_reader needs.", received=str(error),
            hint="fluid.reader.chain(...) reads the same samples, one reader after the other.",
        ) from None  # fmt: skip
    context = multiprocessing.get_context("fork")
    running: dict[Connection, tuple[int, BaseProcess]] = {}
    for i, source in enumerate(sources):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_send_all, args=(source, there), name=f"fluidnb reader {i}", daemon=True)
        with warnings.catch_warnings():  # of Python 3.12: threads do not go along; the copy needs none of them
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        there.close()
        running[here] = i, process
    return running


def _receive(pipe: Connection, number: int, process: BaseProcess) -> tuple[int, Any]:
    """The next message of a process; what went wrong there is raised here."""
    try:
        kind, value = pipe.recv()
    except EOFError:
        process.join()
        raise EnforceNotMet(
            f"The process of reader {number} ended before its pass did.", received=f"exit status {process.exitcode}"
        ) from None
    if kind == _ERROR:
        raise EnforceNotMet(f"Reader {number} of multiprocess_reader failed: {value}.")
    return kind, value


def _send_all(source: Reader, pipe: Connection) -> None:
    """Body of a process: sends its samples and its result; the consumer may be gone meanwhile."""
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            for sample in source():
                pipe.send((_SAMPLE, sample))
            pipe.send((_END, None))
        except BrokenPipeError:
            raise
        except Exception as error:
            pipe.send((_ERROR, f"{type(error).__name__}: {error}"))
