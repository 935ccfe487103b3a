"""The VS Code extension as a file that VS Code installs: ``python -m fluidnb.dap.vsix [FOLDER]``."""

import json
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from fluidnb.files.atomic_write import atomic_write

SOURCE = Path(__file__).parent / "editors" / "vscode"
_TYPES = {".json": "application/json", ".js": "application/javascript", ".md": "text/markdown",
          ".vsixmanifest": "text/xml"}  # fmt: skip
#: Files of the extension that its manifest names -> the kind of asset.
_ASSETS = {"package.json": "Code.Manifest", "README.md": "Services.Content.Details",
           "LICENSE": "Services.Content.License"}  # fmt: skip
#: The same files give the same archive.
_DATE = (1980, 1, 1, 0, 0, 0)


def write_vsix(folder: Path) -> Path:
    """Write the extension into a folder as ``NAME-VERSION.vsix``, and return the path."""
    manifest = json.loads((SOURCE / "package.json").read_text("utf-8"))
    files = sorted(path for path in SOURCE.iterdir() if path.is_file())
    parts = {"extension.vsixmanifest": _package(manifest), "[Content_Types].xml": _content_types()}
    parts |= {f"extension/{path.name}": path.read_text("utf-8") for path in files}
    target = folder / f"{manifest['name']}-{manifest['version']}.vsix"
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(target) as file, ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(ZipInfo(name, _DATE), text, ZIP_DEFLATED)
    return target


def _package(manifest: dict[str, Any]) -> str:
    """The package manifest: which extension it is, for which VS Code, and where its parts are."""
    name, version, publisher = (quoteattr(manifest[key]) for key in ("name", "version", "publisher"))
    assets = "\n".join(
        f'    <Asset Type="Microsoft.VisualStudio.{kind}" Path="extension/{file}" Addressable="true"/>'
        for file, kind in _ASSETS.items()
    )
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id={name} Version={version} Publisher={publisher}/>
    <DisplayName>{escape(manifest["displayName"])}</DisplayName>
    <Description xml:space="preserve">{escape(manifest["description"])}</Description>
    <Categories>{escape(",".join(manifest["categories"]))}</Categories>
    <License>extension/LICENSE</License>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value={quoteattr(manifest["engines"]["vscode"])}/>
    </Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
{assets}
  </Assets>
</PackageManifest>
"""


def _content_types() -> str:
    """The content type of each part, as packages of this format need it."""
    rows = "".join(f'<Default Extension="{suffix}" ContentType="{kind}"/>' for suffix, kind in _TYPES.items())
    override = '<Override PartName="/extension/LICENSE" ContentType="text/plain"/>'
    space = "http://schemas.openxmlformats.org/package/2006/content-types"
    return f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="{space}">{rows}{override}</Types>\n'


if __name__ == "__main__":
    print(write_vsix(Path(*sys.argv[1:2])))
