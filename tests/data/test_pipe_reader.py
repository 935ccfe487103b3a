"""PipeReader: lines of what a command writes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError

TEXT = "".join(f"line {i} ä\n" for i in range(1000)) + "the last one"


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A text file with a blank in its name."""
    file = tmp_path / "some text.txt"
    file.write_text(TEXT, encoding="utf-8")
    return file


@pytest.mark.parametrize("size", [7, 8192])
def test_lines_of_a_text(plain: Path, size: int) -> None:
    lines = fluid.reader.PipeReader(f"cat '{plain}'", bufsize=size).get_line()
    assert list(lines) == TEXT.split("\n")
    pieces = list(fluid.reader.PipeReader(f"cat '{plain}'", bufsize=size).get_line(cut_lines=False))
    assert "".join(pieces) == TEXT and (len(pieces) > 1)
    assert list(fluid.reader.PipeReader(f"cat '{plain}'").get_line(line_break=" ä\n"))[:2] == ["line 0", "line 1"]


def test_lines_of_a_zipped_text(tmp_path: Path) -> None:
    file = tmp_path / "text.gz"
    file.write_bytes(gzip.compress(TEXT.encode()))
    assert list(fluid.reader.PipeReader(f"cat {file}", bufsize=5, file_type="gzip").get_line()) == TEXT.split("\n")


def test_who_stops_early_leaves_no_process(plain: Path) -> None:
    source = fluid.reader.PipeReader(f"cat '{plain}'", bufsize=16)
    lines = source.get_line()
    assert next(lines) == "line 0 ä"
    lines.close()
    assert source._process.returncode is not None
    endless = fluid.reader.PipeReader("yes")
    lines = endless.get_line()
    assert next(lines) == "y"
    lines.close()
    assert endless._process.returncode is not None


def test_mistakes_are_said() -> None:
    with pytest.raises(OpTypeError, match="command of PipeReader must be a text"):
        fluid.reader.PipeReader(["cat"])
    with pytest.raises(OpValueError, match="does not read zip files"):
        fluid.reader.PipeReader("cat", file_type="zip")
    with pytest.raises(OpValueError, match="does not start"):
        fluid.reader.PipeReader("no-such-command-at-all")
    with pytest.raises(EnforceNotMet, match="failed with status 1"):
        list(fluid.reader.PipeReader("false").get_line())


def test_lines_of_a_zipped_text_of_several_members(tmp_path: Path) -> None:
    file = tmp_path / "text.gz"
    file.write_bytes(b"\0\0".join(gzip.compress(part) for part in (b"one\ntw", b"o\nthree")) + b"\0" * 9)
    for size in (3, 5, 8192):
        reader = fluid.reader.PipeReader(f"cat {file}", bufsize=size, file_type="gzip")
        assert list(reader.get_line()) == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("content", "file_type", "message"),
    [
        (gzip.compress(TEXT.encode())[:-20], "gzip", "cut off"),
        (b"no gzip", "gzip", "is not gzip data"),
        ("ä".encode("latin-1") + b"b", "plain", "is not text in UTF-8"),
        ("one ä".encode()[:-1], "plain", "is not text in UTF-8"),
    ],
)
def test_an_output_that_is_no_text(tmp_path: Path, content: bytes, file_type: str, message: str) -> None:
    file = tmp_path / "data"
    file.write_bytes(content)
    with pytest.raises(EnforceNotMet, match=message):
        list(fluid.reader.PipeReader(f"cat {file}", file_type=file_type).get_line())


def test_the_output_is_read_once() -> None:
    reader = fluid.reader.PipeReader("echo one")
    with pytest.raises(OpValueError, match="line_break is empty"):
        list(reader.get_line(line_break=""))
    assert list(reader.get_line()) == ["one"]
    with pytest.raises(EnforceNotMet, match="has been read"):
        list(reader.get_line())


def test_a_reader_that_is_never_read_leaves_no_process() -> None:
    reader = fluid.reader.PipeReader("yes")
    process = reader._process
    del reader
    assert process.returncode is not None
