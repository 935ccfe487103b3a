"""Ray for a training: on this machine by loopback alone and with a token, or a cluster that runs already."""

import contextlib
import gc
import importlib.util
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fluidnb.errors import EnforceNotMet
from fluidnb.extras import require

#: Ray's switch between this machine's address and loopback; its name says where Ray itself uses loopback.
_CLUSTER = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
#: Folder of modules that import a package of their name when it is used: import and start take 7 s in place of 18.
_LATER = str(Path(__file__).parent / "import_later")
#: Parts of a node that one machine has no use for: its autoscaler, printed logs, the dashboard's server. They import
#: beside the parts that Ray waits 15 s for: without them, import and start take 4.6 s in place of 7.
_UNUSED = ("start_monitor", "start_log_monitor", "start_api_server")
#: The first starts on a busy machine exceed Ray's limits all the same.
_ATTEMPTS = 4
#: Environment variable that marks the processes of one start.
_MARK = "FLUIDNB_RAY"
#: Seconds in which processes end by themselves.
_GRACE = 10.0
_MODE, _TOKEN, _PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"


@contextlib.contextmanager
def running_ray(address: str | None) -> Iterator[Any]:
    """Ray for a ``with``; it ends with it, unless it was running before.

    Without an address Ray starts on this machine. All its ports are bound to loopback, and every call needs a token:
    a random one for each start, in a file that this user alone may read (0600), unless ``RAY_AUTH_TOKEN`` or
    ``RAY_AUTH_TOKEN_PATH`` has one. ``RAY_AUTH_MODE`` is respected where it is set. A cluster listens where it was
    started to listen, and asks for its own token.

    Args:
        address: of a cluster, ``HOST:PORT`` or ``ray://HOST:PORT``; None for this machine.

    Raises:
        EnforceNotMet: nothing answers at the address, or it refuses this process.
        MissingPackage: Ray is not installed.
    """
    with contextlib.ExitStack() as stack:
        loaded = sys.modules.get("ray")
        if loaded is None or not loaded.is_initialized():
            with _quick_imports():
                if address is None:
                    settings = _private_settings(stack)
                    ray = require("ray", "RayEngine")
                    stack.enter_context(_loopback(ray))
                    _read_settings(settings)
                    here: dict[str, Any] = {"include_dashboard": False}
                else:
                    ray = require("ray", "RayEngine")
                    check_reachable(address)  # Ray itself tries for minutes
                    here = {"address": address}
                mark = stack.enter_context(_marked(ray))
                with _without_unused(ray):
                    _init(ray, here, mark)
        yield require("ray", "RayEngine")


@contextlib.contextmanager
def _marked(ray: Any) -> Iterator[str]:
    """A mark in the environment of all processes that start meanwhile; they end with the ``with``."""
    mark = os.environ[_MARK] = secrets.token_hex(8)
    try:
        yield mark
    finally:
        _end(ray, mark)
        os.environ.pop(_MARK, None)


def _end(ray: Any, mark: str) -> None:
    """End Ray, with what a failed start or a stopped process leaves behind."""
    ray.shutdown()
    end = time.monotonic() + _GRACE
    left = marked(mark)
    while left and time.monotonic() < end:
        time.sleep(0.1)
        left = marked(mark)
    for process in left:
        with contextlib.suppress(Exception):  # it has ended meanwhile
            process.kill()
    _reap()


def marked(mark: str) -> list[Any]:
    """Other processes of this user, as `psutil` has them, that a start of Ray has brought about.

    Args:
        mark: of the start, in the environment variable ``FLUIDNB_RAY``.
    """
    import ray  # it brings psutil
    import psutil  # isort: skip

    assert ray is not None
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if (
                process.pid != os.getpid() and process.environ().get(_MARK) == mark
                and process.status() != psutil.STATUS_ZOMBIE
            ):  # fmt: skip
                found.append(process)
    return found


def _init(ray: Any, where: dict[str, Any], mark: str) -> None:
    """Start or join; errors of Ray in one sentence."""
    try:
        for attempt in range(_ATTEMPTS):
            try:
                ray.init(log_to_driver=False, logging_level="ERROR", **where)
                break
            except Exception as e:
                _end(ray, mark)
                if not _is_late(e) or attempt == _ATTEMPTS - 1:
                    raise
    except Exception as e:  # of many classes: of Ray, its client, its transport
        # A cluster that answers and does not take the token: of this class only in its log, where the driver joins.
        refused = type(e).__name__ in ("AuthenticationError", "ConnectionError") and "address" in where
        if refused:
            text, expected = f"The Ray cluster at {where['address']} refuses this process.", "the cluster's token"
            hint = "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH=FILE, with the file of the cluster's token."
        elif "address" in where:
            text, expected = f"Ray does not start at {where['address']}.", "a running Ray of the same version"
            hint = "`ray status` there shows its state; all need the same versions of Ray and Python."
        else:
            text, expected = "Ray does not start on this machine.", "processes that start within 30 seconds"
            hint = "end other work that keeps the machine busy, and run this again." if _is_late(e) else (
                "`ray start --head` in a shell shows more of the reason.")  # fmt: skip
        raise EnforceNotMet(text, expected=expected, received=str(e).splitlines()[0][:200], hint=hint) from e


def _is_late(error: Exception) -> bool:
    """Whether Ray has not started in its time; its texts differ in the case of the first letter."""
    return "timed out" in str(error).lower()


def _reap() -> None:
    """Take the exit status of processes that have ended: Ray drops their handles without, which is a warning later."""
    from ray._private.services import ConsolePopen

    for handle in [each for each in gc.get_objects() if type(each) is ConsolePopen]:
        with contextlib.suppress(subprocess.TimeoutExpired):
            handle.wait(1.0)


def check_reachable(address: str) -> None:
    """Raise unless something listens at the address of a cluster, ``HOST:PORT`` or ``ray://HOST:PORT``.

    Raises:
        EnforceNotMet: with the address.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as e:
        raise EnforceNotMet(
            f"No Ray cluster answers at {address}.", expected="HOST:PORT of a running cluster", received=str(e)[:100],
            hint="`ray status --address HOST:PORT` checks one; without address= Ray starts on this machine.",
        ) from None  # fmt: skip


def _private_settings(stack: contextlib.ExitStack) -> dict[str, str]:
    """Environment variables of a private Ray, set until the stack ends."""
    settings = {_CLUSTER: "0"}
    if _MODE not in os.environ:
        settings[_MODE] = "token"
    if os.environ.get(_MODE, "token") == "token" and not os.environ.get(_TOKEN) and not os.environ.get(_PATH):
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fluidnb-token-"))  # 0700
        path = Path(folder) / "token"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(secrets.token_hex(32))
        settings[_PATH] = str(path)
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    stack.callback(_restore, before)
    return settings


def _restore(before: dict[str, str | None]) -> None:
    """Give environment variables their earlier values."""
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextlib.contextmanager
def _loopback(ray: Any) -> Iterator[None]:
    """Loopback as the address of this machine; Ray reads its switch at import, which may be long ago."""
    constants = ray._private.ray_constants
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


@contextlib.contextmanager
def _quick_imports() -> Iterator[None]:
    """The folder of later imports on the search path, here and in the environment of processes that start."""
    if importlib.util.find_spec("rfc3987_syntax") is None:
        yield
        return
    path = os.environ.get("PYTHONPATH")
    sys.path.insert(0, _LATER)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_LATER, path)))
    try:
        yield
    finally:
        sys.path.remove(_LATER)
        _restore({"PYTHONPATH": path})


@contextlib.contextmanager
def _without_unused(ray: Any) -> Iterator[None]:
    """No processes for parts of a node that nothing here uses."""
    node = ray._private.node.Node
    before = {name: vars(node)[name] for name in _UNUSED if name in vars(node)}
    try:
        for name in before:
            setattr(node, name, lambda *args, **kwargs: None)
        yield
    finally:
        for name, part in before.items():
            setattr(node, name, part)


def _read_settings(settings: dict[str, str]) -> None:
    """Let the loaded libraries of Ray read the mode and the token again."""
    raylet = sys.modules["ray._raylet"]
    if _MODE in settings:
        raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()
