"""Under the limits of Python in a browser: no threads, processes, sockets or signals."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.limits import browser

LIMITED = "from tests.limits import browser; browser.apply()\n"


@pytest.mark.parametrize("script", ["core_script", "notebook_script"])
def test_it_runs_under_the_limits_of_a_browser(script: str) -> None:
    done = _python(f"from tests.limits.{script} import main; main(); print('done')")
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout[-2000:] + done.stderr
    assert not done.stderr


def _python(code: str) -> subprocess.CompletedProcess[str]:
    """A new interpreter with the limits."""
    return subprocess.run([sys.executable, "-c", LIMITED + code], capture_output=True, text=True)


@pytest.mark.parametrize(
    "code",
    [
        "import threading; threading.Thread(target=print).start()",
        "import threading; threading.Timer(0, print).start()",
        "import subprocess; subprocess.run(['true'])",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import signal; signal.signal(signal.SIGINT, print)",
        "import os; os.fork()",
    ],
)
def test_the_limits_are_there(code: str) -> None:
    done = _python(f"try:\n    {code}\nexcept Exception as e: print(e)")
    assert done.stdout.strip() in (browser.NO_THREAD, "[Errno 138] the limits of a browser")


def test_a_reader_in_processes_says_that_there_are_none() -> None:
    done = _python("import fluidnb as fluid; list(fluid.reader.multiprocess_reader([lambda: range(3)])())")
    assert "This Python starts no processes" in done.stderr and "fluid.reader.chain" in done.stderr
