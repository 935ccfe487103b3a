"""Samples from what a command writes."""

import codecs
import shlex
import subprocess
import zlib
from collections.abc import Iterator

from fluidnb.arguments import checked
from fluidnb.errors import EnforceNotMet, OpValueError


@checked
class PipeReader:
    """Reads what a command writes to its standard output, without a file between.

    Args:
        command: the command with its arguments, for example ``cat data.txt`` or ``hadoop fs -cat data.gz``.
        bufsize: how many bytes are read at once.
        file_type: ``plain`` or ``gzip``.

    Example:
        >>> list(PipeReader("echo one line").get_line())
        ['one line']
    """

    def __init__(self, command: str, bufsize: int = 8192, file_type: str = "plain") -> None:
        if file_type not in ("plain", "gzip"):
            raise OpValueError(
                f"PipeReader does not read {file_type} files.", expected="plain or gzip", received=repr(file_type)
            )
        if bufsize < 1:
            raise OpValueError("PipeReader reads at least one byte at once.", expected="1 or more", received=bufsize)
        self._command, self._size, self._zipped = command, bufsize, file_type == "gzip"
        try:
            words = shlex.split(command)
            if not words:
                raise ValueError("it is empty")
            self._process = subprocess.Popen(words, bufsize=bufsize, stdout=subprocess.PIPE)
        except (OSError, ValueError, OverflowError) as error:  # ValueError: an open quotation, or a NUL
            raise OpValueError(f"The command of PipeReader does not start: {error}.", received=command) from error

    def get_line(self, cut_lines: bool = True, line_break: str = "\n") -> Iterator[str]:
        """Yields the unread output of the command.

        Args:
            cut_lines: whether to give lines, without their ends; else pieces as they come.
            line_break: where a line ends.

        Raises:
            EnforceNotMet: the command failed.
        """
        rest = ""
        try:
            for text in self._texts():
                if not cut_lines:
                    yield text
                    continue
                *lines, rest = (rest + text).split(line_break)
                yield from lines
            if rest:
                yield rest
        except BaseException:  # whoever reads stops early: the command might never end
            self._process.terminate()
            raise
        finally:
            self._end()
        if self._process.returncode:
            raise EnforceNotMet(
                f"The command of PipeReader failed with status {self._process.returncode}.", received=self._command
            )

    def _texts(self) -> Iterator[str]:
        """Decoded chunks of the output; a character split across two chunks is decoded whole."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        unzip = zlib.decompressobj(32 + zlib.MAX_WBITS) if self._zipped else None
        assert self._process.stdout is not None
        while data := self._process.stdout.read(self._size):
            text = decoder.decode(data if unzip is None else unzip.decompress(data))
            if text:
                yield text

    def _end(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.wait()
