"""The demonstration: ``python -m fluidnb_magics.demo`` runs its cells in a real IPython session in the terminal."""

import re
import sys
import time
from pathlib import Path
from typing import Any

_TEXT = Path(__file__).with_name("demo_cells.txt").read_text("utf-8")
#: (description, cell); each cell follows a line ``# In: description``
CELLS = tuple(re.findall(r"^# In: ?([^\n]*)\n(.*?)\n*(?=^# In:|\Z)", _TEXT, re.DOTALL | re.MULTILINE))
WANTED = 0.95  # the test accuracy that the classifier has to reach


def main(arguments: list[str] | None = None) -> int:
    """Run the cells and print the accuracy; 0 when it is good enough. ``--stay`` leaves the session open at the end."""
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
