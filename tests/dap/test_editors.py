"""Files for editors: the VS Code extension with its manifest and launch.json, the configuration for nvim-dap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import fluidnb
from fluidnb.cli import main
from fluidnb.cli.debug import COMMAND
from fluidnb.dap.host import Host
from fluidnb.dap.server import Server
from tests.dap.extension import EDITORS, ask

MANIFEST = json.loads((EDITORS / "vscode" / "package.json").read_text())
DEBUGGER = MANIFEST["contributes"]["debuggers"][0]


def entries(path: Path) -> list[dict[str, Any]]:
    """The configurations of a launch.json."""
    return json.loads(path.read_text())["configurations"]


def check(entry: dict[str, Any]) -> None:
    """Whether an entry of a launch.json is one that the extension knows."""
    known = DEBUGGER["configurationAttributes"][entry["request"]]
    jsonschema.Draft7Validator.check_schema(known)
    own = {key: value for key, value in entry.items() if key not in ("type", "request", "name")}
    jsonschema.validate(own, {**known, "type": "object", "additionalProperties": False})
    assert entry["type"] == DEBUGGER["type"] and entry["name"]


def test_the_manifest_is_one_of_a_debugger() -> None:
    assert {"name", "version", "publisher", "engines", "main", "contributes"} <= set(MANIFEST)
    assert MANIFEST["activationEvents"] == [f"onDebugResolve:{DEBUGGER['type']}"]
    assert (EDITORS / "vscode" / MANIFEST["main"]).is_file() and MANIFEST["version"] == fluidnb.__version__
    assert MANIFEST["contributes"]["breakpoints"] == [{"language": "python"}]
    for entry in DEBUGGER["initialConfigurations"] + [row["body"] for row in DEBUGGER["configurationSnippets"]]:
        check(entry)


def test_every_launch_json_is_valid() -> None:
    for entry in entries(EDITORS / "launch.json"):
        check(entry)
    with Server(Host(lambda: None, "t"), "t") as server:
        check(server.configuration())


def test_the_extension_joins_a_server_or_starts_one() -> None:
    with Server(Host(lambda: None, "t"), "t") as server:
        join = server.configuration()
        launch = {"request": "launch", "program": "/a/train.py", "args": ["-n", "3"], "startup": True, "cwd": "/a"}
        joined, started, attach = ask({"describe": join}, {"describe": launch}, {"resolve": join})
    assert attach == {"stopOnEntry": True, **join, "token": "t"}
    assert joined == {"kind": "server", "port": join["port"], "host": "127.0.0.1"}
    words = ["-m", "fluidnb", "debug", "--stdio", "--startup", "/a/train.py", "-n", "3"]
    assert started == {"kind": "executable", "command": "python3", "args": words, "options": {"cwd": "/a"}}
    options = _parsed(words[3:])
    assert options.stdio and options.startup and options.arguments == ["-n", "3"]


def test_f5_without_a_launch_json_takes_the_script_in_the_editor() -> None:
    given = {"type": "fluidnb", "request": "launch", "name": "x", "program": "y"}
    mine, none, entry, kept = ask(
        {"resolve": {}, "file": "/a/b.py", "language": "python"},
        {"resolve": {}, "file": "/a/b.txt", "language": "text"},
        {"resolve": given},
        {"resolve": {**given, "stopOnEntry": False}},
    )
    check(mine)
    assert mine["program"] == "/a/b.py" and none is None
    assert entry == {**given, "stopOnEntry": True}
    assert kept == {**given, "stopOnEntry": False}


def test_nvim_starts_the_same_command() -> None:
    text = (EDITORS / "nvim-dap.lua").read_text()
    assert '{ "-m", "fluidnb", "debug", "--stdio", config.program }' in text
    assert text.count("{") == text.count("}") and text.count("(") == text.count(")")


def test_a_script_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["debug", str(tmp_path / "none.py")]) == 1
    assert "There is no" in capsys.readouterr().err


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    with Server(Host(lambda: None, "t"), "t") as server:
        assert main(["debug", "--port", str(server.port), str(tmp_path / "train.py")]) == 1
    assert f"Nothing can listen on port {server.port}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("import sys\nprint('ran', sys.argv[1:])\n", 0, "ran ['x']"),
        ("import sys\nsys.exit(3)\n", 3, ""),
        ("raise ValueError('bad')\n", 1, "ValueError: bad"),
        ("import sys\nsys.exit('why')\n", 1, "why"),
    ],
)
def test_without_waiting_a_script_runs_as_it_would(
    text: str, status: int, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    assert main(["debug", "--no-wait", str(script), "x"]) == status
    shown = capsys.readouterr()
    assert said in shown.out + shown.err and "launch.json" in shown.err


def _parsed(words: list[str]) -> Any:
    from argparse import ArgumentParser

    parser = ArgumentParser()
    COMMAND.arguments(parser)
    return parser.parse_args(words)
