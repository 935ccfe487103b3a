"""A counter of changes that invalidate bound programs.

A bound program remembers arrays. When a tensor it remembers gets another buffer or LoD, or a scope another variable,
`value` rises, and the next run checks its bindings again. `value` is read as ``epoch.value``, never imported by name.
"""

#: Rises with every such change.
value: int = 0
#: How often a debugger has asked to see the next run.
asked: int = 0


def ask() -> None:
    """Let every bound program check again before its next run, also one that another thread binds at this moment."""
    global asked, value
    asked += 1
    value += 1
