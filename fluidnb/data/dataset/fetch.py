"""Files over the network into the cache: a checksum before the name, so that what has the name is whole."""

import hashlib
import os
import sys
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.files.atomic_write import atomic_write

_CHUNK = 1 << 20
_TIMEOUT = 30.0  # seconds without a byte
#: Length of a checksum in hexadecimal digits -> its algorithm.
_ALGORITHMS = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}


def algorithm(checksum: str) -> str:
    """The algorithm of a checksum, by its length."""
    if len(checksum) not in _ALGORITHMS:
        raise OpValueError(
            f'"{checksum}" is not a checksum.', expected="the hexadecimal digits of an md5, sha1, sha256 or sha512"
        )
    return _ALGORITHMS[len(checksum)]


def digest(path: str | os.PathLike[str], name: str = "md5") -> str:
    """The checksum of a file, read a piece at a time."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(name, usedforsecurity=False)).hexdigest()


def mirrored(url: str, folder: str, name: str | None = None) -> str:
    """The address of a file: its own, or below FLUIDNB_DATA_URL when that is set."""
    base = os.environ.get("FLUIDNB_DATA_URL")
    if not base:
        return url
    return "/".join((base.rstrip("/"), folder, name or unquote(urlsplit(url).path).rpartition("/")[2]))


def fetch(url: str, path: str, checksum: str) -> None:
    """Fetch a file; `path` appears, whole and checked, only at the end."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise OpValueError("Data sets come over http or https.", received=url)
    print(f"fluidnb: fetching {url} into {path}", file=sys.stderr)
    with atomic_write(path, parents=True) as file:
        total = hashlib.new(algorithm(checksum), usedforsecurity=False)
        for piece in _pieces(url):
            total.update(piece)
            file.write(piece)
        received = total.hexdigest()
        if received != checksum.lower():
            raise EnforceNotMet(
                f"{os.path.basename(path)} arrived damaged, or is another file now.", attrs={"url": url, "file": path},
                expected=f"{algorithm(checksum)} {checksum}", received=f"{algorithm(checksum)} {received}",
                hint="try again, or set FLUIDNB_DATA_URL to a mirror; what arrived was thrown away.",
            )  # fmt: skip


def _pieces(url: str) -> Iterator[bytes]:
    """Yields the response of a URL in chunks."""
    from http.client import HTTPException
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    count = 0
    try:
        with urlopen(Request(url, headers={"User-Agent": "fluidnb"}), timeout=_TIMEOUT) as response:
            promised = response.headers.get("Content-Length")
            while piece := response.read(_CHUNK):
                yield piece
                count += len(piece)
    except (OSError, HTTPException) as e:
        reason = e.reason if type(e) is URLError else str(e)
        raise EnforceNotMet(
            f"{url} cannot be fetched: {reason or type(e).__name__}.",
            hint="try again later, set FLUIDNB_DATA_URL to a mirror, put the file into the cache by hand, "
            "or use synthetic data: fluid.dataset.download(False).",
        ) from None
    if promised is not None and count != int(promised):
        raise EnforceNotMet(
            f"{url} broke off.", expected=f"{promised} bytes", received=f"{count} bytes", hint="try again."
        )
