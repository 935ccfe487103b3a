"""Whether feeds must have the declared shape, dtype and LoD.

By default another shape, dtype or LoD is refused. Fluid accepted any value, and its own tests rely on that: they
declare every variable float32 and feed other dtypes. While Paddle's names are installed, `binding` is False. It is read
as ``declared.binding``, never imported by name.
"""

#: Whether feeds must have the declared shape and dtype, and a LoD that fits their rows.
binding: bool = True
