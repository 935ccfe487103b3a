"""The cache: fetched once, whole or not at all, checked before use; and readers split into files."""

from __future__ import annotations

import hashlib
import os
import pickle
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb.data import dataset
from fluidnb.data.dataset import common, imikolov
from fluidnb.data.dataset import fetch as fetching
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from tests.tools.refused import refused

DATA = b"some data"
MD5 = hashlib.md5(DATA).hexdigest()


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "sha512"])
def test_a_file_is_fetched_once(mirror, cache: Path, algorithm: str) -> None:
    mirror.put("set/file.gz", DATA)
    checksum = hashlib.new(algorithm, DATA).hexdigest()
    path = common.download("http://example.invalid/x%2Ffile.gz", "set", checksum.upper())
    assert Path(path).read_bytes() == DATA and path == str(cache / "set" / "x%2Ffile.gz")  # Paddle's name in the cache
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644
    for _ in range(2):
        assert common.download("http://example.invalid/x%2Ffile.gz", "set", checksum) == path
    assert mirror.asked == ["/set/file.gz"] and os.listdir(cache / "set") == ["x%2Ffile.gz"]


def test_an_address_is_used_as_it_is_without_a_mirror(mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLUIDNB_DATA_URL")
    mirror.put("else/where", DATA)
    path = common.download(f"{mirror.url}/else/where?a=b", "set", MD5, "name")
    assert Path(path).name == "name" and mirror.asked == ["/else/where?a=b"]


def test_a_file_changed_in_the_cache_is_fetched_again(mirror) -> None:
    mirror.put("set/file", DATA)
    path = Path(common.download("http://example.invalid/file", "set", MD5))
    path.write_bytes(DATA[::-1] + b"!")
    common.download("http://example.invalid/file", "set", MD5)
    assert path.read_bytes() == DATA and len(mirror.asked) == 2


def test_a_wrong_checksum_leaves_nothing(mirror, cache: Path) -> None:
    mirror.put("set/file", DATA)
    with pytest.raises(EnforceNotMet, match="file arrived damaged") as e:
        common.download("http://example.invalid/file", "set", "0" * 32)
    text = str(e.value)
    assert f"{mirror.url}/set/file" in text and str(cache / "set" / "file") in text
    assert "expected: md5 " + "0" * 32 in text and f"received: md5 {MD5}" in text and "FLUIDNB_DATA_URL" in text
    assert os.listdir(cache / "set") == []


def test_what_was_there_survives_a_failed_download(mirror, cache: Path) -> None:
    (cache / "set").mkdir(parents=True)
    (cache / "set" / "file").write_bytes(b"old")
    mirror.put("set/file", DATA)
    with pytest.raises(EnforceNotMet):
        common.download("http://example.invalid/file", "set", "0" * 32)
    assert [(p.name, p.read_bytes()) for p in (cache / "set").iterdir()] == [("file", b"old")]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.0 200 OK\r\nContent-Length: 900\r\n\r\n" + DATA, "broke off|cannot be fetched"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nsome", "cannot be fetched"),
        (b"HTTP/1.0 503 busy\r\n\r\n", "cannot be fetched: HTTP Error 503: busy"),
        (b"nonsense\r\n\r\n", "cannot be fetched"),
        (b"", "cannot be fetched"),
    ],
    ids=["short", "chunk", "busy", "nonsense", "nothing"],
)
def test_a_bad_server(cache: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes, message: str) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/file"
        with refused(EnforceNotMet, message):
            common.download(url, "set", MD5)
        thread.join()
    assert os.listdir(cache / "set") == []


def test_no_server_at_all(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/file"
    with pytest.raises(EnforceNotMet, match=f"{url} cannot be fetched.*refused") as e:
        common.download(url, "set", MD5)
    assert "fluid.dataset.download(False)" in str(e.value)


def test_an_interrupt_leaves_nothing(mirror, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(url: str) -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    monkeypatch.setattr(fetching, "_pieces", interrupted)
    with pytest.raises(KeyboardInterrupt):
        common.download("http://example.invalid/file", "set", MD5)
    assert os.listdir(cache / "set") == []


def test_without_permission_nothing_is_fetched(mirror, cache: Path) -> None:
    dataset.download(False)
    mirror.put("set/file", DATA)
    assert common.cached("http://example.invalid/file", "set", MD5) is None
    assert mirror.asked == [] and not cache.exists()
    fluid.set_flags({"FLAGS_dataset_download": True})
    assert common.cached("http://example.invalid/file", "set", MD5)


def test_a_damaged_file_is_not_replaced_silently_by_a_stand_in(mirror, cache: Path) -> None:
    (cache / "set").mkdir(parents=True)
    (cache / "set" / "file").write_bytes(b"half of it")
    dataset.download(False)
    with pytest.raises(EnforceNotMet, match="set/file is damaged, or another one") as e:
        common.cached("http://example.invalid/file", "set", MD5)
    assert f"md5 {hashlib.md5(b'half of it').hexdigest()}" in str(e.value) and f"md5 {MD5}" in str(e.value)
    assert "fluid.dataset.download(True)" in str(e.value)


@pytest.mark.parametrize(
    ("url", "module", "name"),
    [
        ("http://x/file", "..", None),
        ("http://x/file", "a/b", None),
        ("http://x/file", "set", "../file"),
        ("http://x/..", "set", None),
        ("http://x/", "set", None),
        ("http://x/fi\0le", "set", None),
    ],
)
def test_names_stay_in_the_cache(url: str, module: str, name: str | None) -> None:
    with pytest.raises(OpValueError, match="cannot be a name in the cache"):
        common.download(url, module, MD5, name)


def test_other_addresses_and_checksums_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(DATA)
    with pytest.raises(OpValueError, match="http or https"):
        common.download((tmp_path / "file").as_uri(), "set", MD5)
    with pytest.raises(OpValueError, match="is not a checksum"):
        fetching.algorithm("abc")


def test_the_environment_moves_the_cache_and_allows_downloads() -> None:
    import subprocess
    import sys

    code = "import fluidnb.data.dataset as d; print(d.common.DATA_HOME, d.source.flags.values['dataset_download'])"
    env = {"PYTHONPATH": ":".join(sys.path), "FLUIDNB_DATA_HOME": "/there", "FLAGS_dataset_download": "1", "HOME": "/h"}
    run = {"capture_output": True, "text": True, "check": True}
    assert subprocess.run([sys.executable, "-c", code], env=env, **run).stdout.split() == ["/there", "True"]
    env = {"PYTHONPATH": ":".join(sys.path), "HOME": "/h"}
    out = subprocess.run([sys.executable, "-c", code], env=env, **run).stdout.split()
    assert out == ["/h/.cache/paddle/dataset", "False"]


def test_md5file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(DATA)
    assert common.md5file(tmp_path / "file") == common.md5file(str(tmp_path / "file")) == MD5


def test_split_and_cluster_files_reader(tmp_path: Path) -> None:
    common.split(lambda: range(10), 3, str(tmp_path / "part-%05d.pickle"))
    assert sorted(os.listdir(tmp_path)) == [f"part-{i:05d}.pickle" for i in range(4)]
    assert pickle.loads((tmp_path / "part-00003.pickle").read_bytes()) == [9]
    read = [list(common.cluster_files_reader(str(tmp_path / "part-*"), 3, k)()) for k in range(3)]
    assert read == [[0, 1, 2, 9], [3, 4, 5], [6, 7, 8]]


def test_split_with_a_writer_of_ones_own(tmp_path: Path) -> None:
    common.split(lambda: "abc", 2, str(tmp_path / "%d"), lambda lines, file: file.write("".join(lines).encode()))
    assert (tmp_path / "0").read_bytes() == b"ab" and (tmp_path / "1").read_bytes() == b"c"
    read = common.cluster_files_reader(str(tmp_path / "*"), 1, 0, lambda file: file.read().decode())
    assert list(read()) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: common.split(lambda: "a", 0), OpValueError, "line_count should be a positive integer"),
        (lambda: common.split(lambda: "a", 1, "none"), OpValueError, "has no place for a file's number"),
        (lambda: common.split(lambda: "a", 1, "%s%s"), OpValueError, "has no place"),
        (lambda: common.split(lambda: "a", 1, dumper=3), OpTypeError, "dumper of split must be a function"),
        (lambda: common.split("a", 1), OpTypeError, "must be a reader, which is a function"),
        (lambda: common.cluster_files_reader("a", 2, 2), OpValueError, "There is no trainer 2 of 2"),
        (lambda: common.cluster_files_reader("a", 0, 0), OpValueError, "trainer_count should be"),
        (lambda: common.cluster_files_reader("a", 1, 0, loader=3), OpTypeError, "must be a function"),
    ],
)
def test_wrong_arguments(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in caught.value.text(without=["at"])  # the line of the call has the message too


def test_download_switches() -> None:
    fluid.dataset.download()
    assert fluid.get_flags("FLAGS_dataset_download") == {"FLAGS_dataset_download": True}
    fluid.dataset.download(False)
    with pytest.raises(OpValueError, match="FLAGS_dataset_download cannot be 'maybe'"):
        fluid.dataset.download("maybe")
    assert fluid.get_flags("FLAGS_dataset_download") == {"FLAGS_dataset_download": False}


def test_a_mirror_that_lacks_a_file_names_it(mirror) -> None:
    with pytest.raises(EnforceNotMet, match=r"imikolov/simple-examples.tgz cannot be fetched: HTTP Error 404"):
        imikolov.build_dict()


def test_convert_writes_files_that_are_whole(tmp_path: Path) -> None:
    samples = [(i, f"number {i}") for i in range(7)]
    common.convert(str(tmp_path / "new"), lambda: iter(samples), 3, "train")
    assert sorted(os.listdir(tmp_path / "new")) == [f"train-{i:05d}" for i in range(3)]
    read = fluid.reader.creator.recordio([f"{tmp_path}/new/train-*"], buf_size=2)
    assert list(read()) == list(read()) == samples

    def broken():
        yield from range(4)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        common.convert(str(tmp_path / "other"), broken, 3, "part")
    assert os.listdir(tmp_path / "other") == ["part-00000"]
    for wrong in ({"line_count": 0, "name_prefix": "a"}, {"line_count": 1, "name_prefix": "../a"}):
        with pytest.raises(OpValueError):
            common.convert(str(tmp_path), lambda: range(3), **wrong)
