"""Whether what a program declares binds the values that come.

Here it does: a feed of another shape or dtype, or a LoD that does not fit its rows, is refused at once. Fluid let the
value have the last word, and its own tests rely on that: they declare every variable float32 and feed what they like.
While Paddle's names are installed, `binding` is False. It is read as ``declared.binding``, never imported by name.
"""

#: Whether what is fed must have the declared shape and dtype, and a LoD fit the rows that are there.
binding: bool = True
