"""The demonstration: ``python -m fluidnb_magics.demo`` runs its cells in a real IPython session in the terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

from fluidnb_magics.demo_cells import CELLS

#: What the classifier has to reach on digits that it has never seen.
WANTED = 0.95


def main(arguments: list[str] | None = None) -> int:
    """Run the cells, then say what was reached.

    Args:
        arguments: ``--stay`` leaves the session open at the end; the command line's by default.

    Returns:
        0 when every cell ran and the classifier is good enough, else 1.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    from IPython.terminal.interactiveshell import TerminalInteractiveShell

    shell = TerminalInteractiveShell.instance()
    began = time.perf_counter()
    for text, cell in CELLS:
        if not _run(shell, text, cell):
            return 1
    reached = float(shell.user_ns["test_accuracy"].item())
    print(f"\ntest accuracy {reached:.3f} (wanted {WANTED}), all in {time.perf_counter() - began:.1f} s")
    if "--stay" in arguments:
        shell.mainloop()
    return 0 if reached >= WANTED else 1


def _run(shell: Any, text: str, cell: str) -> bool:
    """Show a cell as the terminal shows what is typed, and run it."""
    if text:
        print(f"\n\x1b[2m# {text}\x1b[0m" if sys.stdout.isatty() else f"\n# {text}")
    prompt = f"In [{len(shell.history_manager.input_hist_parsed)}]: "
    source = _coloured(cell) if sys.stdout.isatty() else cell
    print(prompt + source.replace("\n", f"\n{'...: '.rjust(len(prompt))}"))
    return bool(shell.run_cell(cell, store_history=True).success)


def _coloured(cell: str) -> str:
    from IPython.lib.lexers import IPython3Lexer
    from pygments import highlight
    from pygments.formatters import TerminalFormatter

    return highlight(cell, IPython3Lexer(), TerminalFormatter()).rstrip()


if __name__ == "__main__":
    raise SystemExit(main())
