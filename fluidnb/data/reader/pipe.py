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
            EnforceNotMet: the command failed, its output has been read, or is no text.
        """
        if not line_break:
            raise OpValueError("line_break is empty.", expected="where a line ends", received=repr(line_break))
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
        try:
            for data in self._unzipped() if self._zipped else self._chunks():
                text = decoder.decode(data)
                if text:
                    yield text
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise self._unreadable("text in UTF-8", error.reason) from None
        except zlib.error as error:
            raise self._unreadable("gzip data", str(error)) from None

    def _unzipped(self) -> Iterator[bytes]:
        """Unzipped chunks of the output, which may have several members with zeros between."""
        unzip = None
        for data in self._chunks():
            while data := data if unzip is not None else data.lstrip(b"\0"):
                unzip = unzip or zlib.decompressobj(32 + zlib.MAX_WBITS)
                yield unzip.decompress(data)
                data = unzip.unused_data
                if unzip.eof:
                    unzip = None
        if unzip is not None:
            raise self._unreadable("gzip data", "data that is cut off")

    def _chunks(self) -> Iterator[bytes]:
        """Chunks of the output."""
        assert self._process.stdout is not None
        while True:
            if self._process.stdout.closed:
                raise EnforceNotMet(
                    "The output of this PipeReader has been read.", expected="one get_line() for each PipeReader",
                    received="another one", hint="make a new PipeReader, which runs the command again.",
                )  # fmt: skip
            data = self._process.stdout.read(self._size)
            if not data:
                return
            yield data

    def _unreadable(self, expected: str, received: str) -> EnforceNotMet:
        return EnforceNotMet(
            f"The output of the command {self._command} is not {expected}.", expected=expected, received=received,
        )  # fmt: skip

    def __del__(self) -> None:
        process = getattr(self, "_process", None)  # None: the command did not start
        if process is not None and process.returncode is None:
            process.kill()
            self._end()

    def _end(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.wait()
