"""Functions of one tensor, element by element, and softmax."""
