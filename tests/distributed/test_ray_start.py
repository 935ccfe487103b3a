"""Ray as fluidnb starts it: loopback, a token, and nothing left after a failed start, an interrupt, a killed driver."""

from __future__ import annotations

import gc
import importlib
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fluidnb.distributed import ray_start
from fluidnb.distributed.ray_start import marked, running_ray
from fluidnb.errors import EnforceNotMet

pytest.importorskip("ray", reason="no Ray: pip install 'fluidnb[distributed]'")
psutil = pytest.importorskip("psutil")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    with running_ray(None) as ray:
        yield ray


def started() -> list[Any]:
    """This process and those of Ray that it started."""
    return [psutil.Process(), *marked(os.environ["FLUIDNB_RAY"])]


def listening() -> list[tuple[str, int]]:
    """Addresses and ports on which they listen."""
    return [
        (row.laddr.ip, row.laddr.port)
        for process in started()
        for row in process.net_connections(kind="inet")
        if row.status == psutil.CONN_LISTEN
    ]


def test_all_ports_are_bound_to_loopback(ray: Any) -> None:
    @ray.remote(num_cpus=0)
    class Actor:
        def answer(self) -> int:
            return 1

    actor = Actor.remote()
    assert ray.get(actor.answer.remote()) == 1  # its process listens, too
    rows = listening()
    assert len(rows) >= 5
    assert {ip.removeprefix("::ffff:") for ip, _ in rows} == {"127.0.0.1"}


def test_the_token_is_in_a_file_of_this_user_and_nowhere_else(ray: Any) -> None:
    assert os.environ["RAY_AUTH_MODE"] == "token"
    path = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    token = path.read_text()
    assert len(token) >= 64
    for process in started():
        assert token not in " ".join(process.cmdline())
        assert token not in process.environ().values()
    session = Path(ray._private.worker.global_worker.node.get_session_dir_path())
    logs = [file for file in session.rglob("*") if file.is_file()]
    assert logs and not [file for file in logs if token.encode() in file.read_bytes()]


def test_another_process_without_the_token_is_refused(ray: Any, tmp_path: Path) -> None:
    wrong = tmp_path / "token"
    wrong.write_text("0" * 64)
    address = ray.get_runtime_context().gcs_address
    code = f"from fluidnb.distributed.ray_start import running_ray\nwith running_ray({address!r}): print('inside')"
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "RAY_AUTH_TOKEN_PATH": str(wrong)}, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode != 0 and "inside" not in run.stdout
    assert f"The Ray cluster at {address} refuses this process." in run.stderr, run.stderr[-2000:]


def test_http_ports_answer_nothing_but_metrics_without_the_token(ray: Any) -> None:
    for _, port in listening():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                assert answer.read().startswith(b"# HELP")
        except (urllib.error.URLError, OSError, ValueError):
            continue
        except Exception as e:  # http.client: a port that does not speak HTTP/1
            assert type(e).__module__ == "http.client"


def formats() -> tuple[list[str], bool, list[str]]:
    """Loaded modules of the grammar for IRIs, whether jsonschema's check of one works, and those loaded then."""
    jsonschema = pytest.importorskip("jsonschema", reason="no jsonschema: pip install 'fluidnb[notebook]'")

    def loaded() -> list[str]:
        return [name for name in ("lark", "rfc3987_syntax.syntax_helpers") if name in sys.modules]

    before = loaded()
    checker = jsonschema.FormatChecker()
    return before, checker.conforms("http://a/é", "iri") and not checker.conforms("a b", "iri"), loaded()


def test_processes_of_ray_import_the_grammar_of_iris_when_they_use_it(ray: Any) -> None:
    pytest.importorskip("rfc3987_syntax", reason="no rfc3987_syntax: pip install jupyterlab")
    grammar = ["lark", "rfc3987_syntax.syntax_helpers"]
    assert ray.get(ray.remote(formats).options(num_cpus=0).remote()) == ([], True, grammar)


def test_as_a_module_of_fluidnb_the_later_import_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])  # as where JupyterLab is not installed
    module = importlib.import_module("fluidnb.distributed.import_later.rfc3987_syntax")
    assert not hasattr(module, "setup_module")  # pytest looks for it, since the file may have examples


def test_the_later_import_has_all_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("rfc3987_syntax", reason="no rfc3987_syntax: pip install jupyterlab")
    monkeypatch.delitem(sys.modules, "rfc3987_syntax")
    with ray_start._quick_imports():
        later = importlib.import_module("rfc3987_syntax")
    assert Path(str(later.__file__)).parent.name == "import_later"
    assert not hasattr(later, "__path__")  # an import reads it, and must not load the package
    assert later.RFC3987_SYNTAX_TERMS == package.RFC3987_SYNTAX_TERMS
    assert sys.modules["rfc3987_syntax"] is not later and later.is_valid_syntax("absolute_iri", "http://a") is True
    with pytest.raises(AttributeError, match="nothing"):
        _ = later.nothing


def test_the_search_path_is_as_before_after_a_start(ray: Any) -> None:
    path = [*sys.path, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    assert not [each for each in path if each.endswith("import_later")]
    assert vars(ray._private.node.Node)["start_monitor"].__module__ == "ray._private.node"


def test_ray_starts_no_process_that_nothing_uses(ray: Any) -> None:
    commands = " ".join(" ".join(process.cmdline()) for process in started())
    assert "raylet" in commands and "gcs_server" in commands
    assert not re.search(r"monitor\.py|dashboard\.py", commands), commands


#: Fails to start, is interrupted while it trains, and trains until it is killed; prints a line when each is over.
DRIVER = """
import os, signal, sys, threading
import fluidnb as fluid
from fluidnb.distributed import RayEngine, split_batches
from fluidnb.distributed import ray_start
from tests.distributed.networks import batches, built, divided, fit_a_line

sgd = lambda: fluid.optimizer.SGD(0.1)
feeds = batches(built(fit_a_line, sgd)[0], 1) * 100000
marks = []
end = ray_start._end
ray_start._end = lambda ray, mark: (marks.append(mark), end(ray, mark))

def left():
    return sum(len(ray_start.marked(mark)) for mark in marks)

if sys.argv[1] == "failed":
    fluid.__version__ = "0.0.1"
    try:
        RayEngine(divided(built(fit_a_line, sgd))).__enter__()
    except fluid.errors.EnforceNotMet as e:
        print(e.summary, "left", left(), e.received, flush=True)
else:
    try:
        with RayEngine(divided(built(fit_a_line, sgd))) as engine:
            def ready():
                while not (engine.states.get("trainer:0") or {}).get("step"):
                    pass
                print("trains", os.environ["FLUIDNB_RAY"], flush=True)
            threading.Thread(target=ready, daemon=True).start()
            engine.train(split_batches(feeds, 2))
    except KeyboardInterrupt:
        print("interrupted", "left", left(), flush=True)
"""


@contextmanager
def driver(*args: str) -> Iterator[subprocess.Popen[str]]:
    """A process that trains with Ray, in a process group as a kernel of Jupyter."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'kernels'}:{ROOT / 'magics'}", "RAY_USAGE_STATS_ENABLED": "0"}
    for name in [name for name in env if name.startswith(("RAY_AUTH", "RAY_ADDRESS", "FLUIDNB_RAY"))]:
        del env[name]
    run = subprocess.Popen(
        [sys.executable, "-c", DRIVER, *args], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    with run:
        try:
            yield run
        finally:
            run.kill()


def test_nothing_is_left_after_a_failed_start() -> None:
    with driver("failed") as run:
        out, _ = run.communicate(timeout=500)
        assert re.search(r"ps:0 runs another version of fluidnb.* left 0", out), out


def test_nothing_is_left_after_an_interrupt() -> None:
    with driver("train") as run:
        assert run.stdout is not None
        assert run.stdout.readline().startswith("trains")
        os.killpg(run.pid, signal.SIGINT)
        out, _ = run.communicate(timeout=500)
        assert "interrupted left 0" in out


def test_nothing_is_left_after_a_killed_driver() -> None:
    with driver("train") as run:
        assert run.stdout is not None
        mark = run.stdout.readline().split()[1]
        assert len(marked(mark)) > 5
    end = time.monotonic() + 120
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.5)
    assert not [process.cmdline() for process in marked(mark)]


def test_a_failed_attempt_leaves_no_handle_of_a_process() -> None:
    from ray._private.services import ConsolePopen

    class Failing:
        tries, kept = 0, None

        def init(self, **where: Any) -> None:
            self.tries += 1
            if self.tries == 1:
                self.kept = ConsolePopen([sys.executable, "-c", ""])  # Ray lets it go at some later time
                self.kept.send_signal(signal.SIGKILL)
                raise RuntimeError("Timed out: timed out")

        def shutdown(self) -> None:
            """Nothing runs."""

    ray = Failing()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ray_start._init(ray, {}, "no mark")
        ray.kept = None
        gc.collect()
    assert ray.tries == 2 and not [str(each.message) for each in caught]


def test_a_machine_that_is_too_busy_for_ray() -> None:
    class Busy:
        tries = 0

        def init(self, **where: Any) -> None:
            self.tries += 1
            raise TimeoutError("Timed out after 30 seconds while waiting for node to startup.")

        def shutdown(self) -> None:
            """Nothing runs."""

    ray = Busy()
    with pytest.raises(EnforceNotMet, match="Ray does not start on this machine.") as caught:
        ray_start._init(ray, {}, "no mark")
    assert ray.tries > 2 and "busy" in str(caught.value)
