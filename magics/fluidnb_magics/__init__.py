"""fluidnb in IPython and Jupyter: ``%load_ext fluidnb`` gives ``%%fluid`` and ``%fluid``.

``%%fluid`` cells build programs; running one again replaces what it built. ``%fluid`` shows, runs and trains them.
"""

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Registers the magics in a shell: ``%load_ext``."""
    from fluidnb_magics.extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Removes the magics from a shell: ``%unload_ext``."""
    from fluidnb_magics.extension import unload

    unload(shell)
