"""The extras of the package, and the one message that names them."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from fluidnb import extras

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def installed(extra: str) -> set[str]:
    """The packages that an extra installs, with those of the extras that it is made of."""
    found: set[str] = set()
    for requirement in EXTRAS[extra]:
        inner = re.fullmatch(r"fluidnb\[(.*)\]", requirement)
        if inner:
            found.update(*(installed(name) for name in inner[1].split(",")))
        else:
            found.add(re.split(r"[\[<>=; ]", requirement)[0].replace("-cuda12x", "").replace("-cuda13x", ""))
    return found


def test_programs_need_numpy_and_protobuf_alone() -> None:
    assert [re.split("[<>=]", name)[0] for name in PROJECT["dependencies"]] == ["numpy", "protobuf"]


@pytest.mark.parametrize("package", extras.PACKAGES)
def test_the_extra_that_a_message_names_installs_the_package(package: str) -> None:
    name, extra = extras.PACKAGES[package]
    assert name in installed(extra)


def test_the_release_installs_the_wheel_on_each_python_and_system_of_the_classifiers() -> None:
    release = (ROOT / ".ci" / "release.yml").read_text("utf-8")
    classifiers = [re.match(r"Programming Language :: Python :: (3\.\d+)", text) for text in PROJECT["classifiers"]]
    pythons = [match[1] for match in classifiers if match]
    assert f"python: {pythons}".replace("'", '"') in release
    systems = {"Linux": "ubuntu", "MacOS": "macos", "Windows": "windows"}
    named = [text.rpartition(" :: ")[2] for text in PROJECT["classifiers"] if text.startswith("Operating System")]
    assert sorted(re.findall(r"(\w+)-latest[,\]]", release)) == sorted(systems[name] for name in named)


def test_every_extra_installs_something() -> None:
    assert all(installed(extra) for extra in EXTRAS)


def test_notebooks_have_all_that_they_need() -> None:
    needed = {"anywidget", "ipykernel", "ipython", "ipywidgets", "jupyterlab", "ml_dtypes", "rich"}
    assert needed <= installed("notebook")


def test_messages_come_from_one_place() -> None:
    """No other file writes the name of an extra."""
    wrong = []
    for folder in ("fluidnb", "kernels/fluidnb_kernels", "magics/fluidnb_magics"):
        for path in (ROOT / folder).rglob("*.py"):
            if "fluidnb[" in path.read_text("utf-8") and path.name != "extras.py":
                wrong.append(str(path.relative_to(ROOT)))
    assert not wrong


def test_a_missing_package_is_an_import_error_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match="Digits needs the package scikit-learn") as caught:
        extras.require("sklearn.datasets", "Digits")
    assert isinstance(caught.value, extras.MissingPackage) and caught.value.hint == "pip install 'fluidnb[data]'"


def test_a_package_that_lacks_another_is_not_called_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "needy.py").write_text("import not_installed_anywhere", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(extras.PACKAGES, "needy", ("needy", "data"))
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        extras.require("needy", "It")
