"""Scripts and styles that widgets and saved pages share: files in ``viz/static/``."""

from collections.abc import Sequence
from pathlib import Path

#: The folder of the shared files.
SHARED = Path(__file__).parents[1] / "static"


def read_static(name: str, folders: Sequence[Path] = (SHARED,)) -> str:
    """The text of a script or style, from the first folder that has it; FileNotFoundError without one.

    Example:
        >>> "virtualRows" in read_static("shared.js")
        True
    """
    paths = [folder / name for folder in folders]
    return next((path for path in paths if path.exists()), paths[-1]).read_text("utf-8")
