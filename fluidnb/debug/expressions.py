"""Python expressions that users type: conditions, watches, values of options."""

import ast
from types import CodeType

__all__ = ["code_of", "tree_of"]


def tree_of(text: str) -> ast.Expression:
    """The syntax tree of an expression."""
    try:
        return ast.parse(text.strip(), mode="eval")
    except (MemoryError, RecursionError):  # what the parser raises beyond its depth
        raise SyntaxError(_DEEP) from None
    except ValueError as error:  # a null byte, half of a surrogate pair
        raise SyntaxError(f"the expression has a character that Python cannot read ({error})") from None


def code_of(text: str, file: str) -> CodeType:
    """The compiled code of an expression."""
    try:
        return compile(tree_of(text), file, "eval")
    except (MemoryError, RecursionError):
        raise SyntaxError(_DEEP) from None


_DEEP = "the expression is nested too deeply"
