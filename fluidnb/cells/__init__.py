"""Notebook cells and the operators they appended: transactions, re-run, undo."""
