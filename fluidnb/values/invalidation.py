"""A counter of changes that invalidate bound programs.

A bound program remembers arrays. When a tensor it remembers gets another buffer or LoD, or a scope another variable,
`value` rises, and the next run checks its bindings again. `value` is read as ``epoch.value``, never imported by name.
"""

#: Rises with every such change.
value: int = 0
