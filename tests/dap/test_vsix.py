"""The extension as a `.vsix`: its parts, its manifest, and the attributes of its configurations."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

import pytest

import fluidnb
from fluidnb.dap.requests import ARGUMENTS, checked_arguments
from fluidnb.dap.vsix import write_vsix
from fluidnb.errors import OpValueError
from tests.dap.extension import EDITORS

ROOT = Path(__file__).parents[2]
SPACES = {
    "v": "http://schemas.microsoft.com/developer/vsx-schema/2011",
    "t": "http://schemas.openxmlformats.org/package/2006/content-types",
}


@pytest.fixture
def vsix(tmp_path: Path) -> zipfile.ZipFile:
    """The archive."""
    return zipfile.ZipFile(write_vsix(tmp_path))


def test_every_part_has_a_place_and_a_content_type(vsix: zipfile.ZipFile) -> None:
    names = vsix.namelist()
    assert {"extension.vsixmanifest", "[Content_Types].xml", "extension/package.json"} < set(names)
    assert vsix.read("extension/LICENSE") == (ROOT / "LICENSE").read_bytes()
    types = ElementTree.fromstring(vsix.read("[Content_Types].xml"))
    suffixes = {row.get("Extension") for row in types.findall("t:Default", SPACES)}
    single = {row.get("PartName") for row in types.findall("t:Override", SPACES)}
    for name in names:
        assert name == "[Content_Types].xml" or PurePosixPath(name).suffix in suffixes or f"/{name}" in single


def test_the_manifest_is_that_of_package_json(vsix: zipfile.ZipFile) -> None:
    package = json.loads(vsix.read("extension/package.json"))
    manifest = ElementTree.fromstring(vsix.read("extension.vsixmanifest"))
    [identity] = manifest.findall("v:Metadata/v:Identity", SPACES)
    assert identity.attrib == {
        "Language": "en-US", "Id": package["name"], "Version": fluidnb.__version__, "Publisher": package["publisher"],
    }  # fmt: skip
    assert package["version"] == fluidnb.__version__ and not package.get("dependencies")
    [engine] = manifest.findall("v:Metadata/v:Properties/v:Property", SPACES)
    assert engine.attrib == {"Id": "Microsoft.VisualStudio.Code.Engine", "Value": package["engines"]["vscode"]}
    assert [row.get("Id") for row in manifest.findall("v:Installation/*", SPACES)] == ["Microsoft.VisualStudio.Code"]
    assets = {row.get("Type"): row.get("Path") for row in manifest.findall("v:Assets/v:Asset", SPACES)}
    assert assets["Microsoft.VisualStudio.Code.Manifest"] == "extension/package.json"
    assert {*assets.values(), manifest.findtext("v:Metadata/v:License", "", SPACES)} <= set(vsix.namelist())
    assert "extension/" + package["main"].removeprefix("./") in vsix.namelist()
    assert all(file.date_time == (1980, 1, 1, 0, 0, 0) for file in vsix.infolist())


def test_attributes_are_those_that_the_extension_and_the_adapter_read() -> None:
    package = json.loads((EDITORS / "vscode" / "package.json").read_text("utf-8"))
    script = (EDITORS / "vscode" / "extension.js").read_text("utf-8")
    by_extension = set(re.findall(r"config\.(\w+)", script)) - {"type", "request", "token"}
    for request in ("launch", "attach"):
        attributes = package["contributes"]["debuggers"][0]["configurationAttributes"][request]["properties"]
        assert set(ARGUMENTS[request]) <= set(attributes) <= by_extension | set(ARGUMENTS[request])
        by_extension -= set(attributes)
        for name, kind in ARGUMENTS[request].items():
            assert attributes[name]["type"] == {bool: "boolean", str: "string"}[kind]
    assert not by_extension


def test_an_attribute_of_another_type_is_refused() -> None:
    assert checked_arguments("launch", {"stopOnEntry": True, "program": "a.py"})["stopOnEntry"] is True
    with pytest.raises(OpValueError, match="stopOnEntry of attach must be"):
        checked_arguments("attach", {"stopOnEntry": "no"})
