"""Two runs compared by their values: the first operator whose output differs."""
