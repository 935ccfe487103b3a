"""An empty cache and a mirror on this machine that serves tiny files in the true formats."""

from __future__ import annotations

import functools
import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from fluidnb.data import dataset
from fluidnb.data.dataset import common, source
from fluidnb.memory import flags


class Mirror:
    """A local server of files; `asked` has the paths of every request."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, []
        asked = self.asked

        class Handler(SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                asked.append(self.path)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def put(self, path: str, data: bytes) -> str:
        """Serve a file; its MD5."""
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_bytes(data)
        return hashlib.md5(data).hexdigest()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; no downloads, and no synthetic data mentioned yet."""
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FLUIDNB_DATA_URL", raising=False)
    monkeypatch.setitem(flags.values, "dataset_download", False)
    source.announce.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A running mirror that downloads go to; downloads are on."""
    made = Mirror(tmp_path / "mirror")
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("FLUIDNB_DATA_URL", made.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    dataset.download(True)
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def serve(mirror: Mirror, monkeypatch: pytest.MonkeyPatch):
    """Put a file on the mirror and its checksum into a data set's module."""

    def put(module: ModuleType, constant: str, path: str, data: bytes) -> None:
        old, new = getattr(module, constant), mirror.put(path, data)
        monkeypatch.setattr(module, constant, new)
        files = module._FILES
        monkeypatch.setattr(files, "rows", [[new if part == old else part for part in row] for row in files.rows])

    return put


@pytest.fixture
def tar():
    """Make a gzipped tar archive."""

    def make(files: dict[str, bytes]) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            for name, data in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return out.getvalue()

    return make
