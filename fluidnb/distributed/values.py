"""Values of variables, copied out of a scope."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.runtime.scope import Scope


def values_of(scope: Scope, names: Sequence[str]) -> dict[str, Any]:
    """Copies of variables of a scope by name, without those that are not there."""
    found = {name: scope.find_var(name) for name in names}
    return {name: np.array(variable.get_tensor()) for name, variable in found.items() if variable is not None}
