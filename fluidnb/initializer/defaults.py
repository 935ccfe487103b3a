"""Default initializers of parameters."""

from fluidnb.arguments import checked
from fluidnb.errors import OpValueError, near
from fluidnb.initializer.base import Initializer
from fluidnb.initializer.constants import Constant
from fluidnb.initializer.draws import Uniform, Xavier

#: name of a set of defaults -> (for weights, for biases)
_DEFAULTS: dict[str, tuple[Initializer, Initializer]] = {
    "fluid": (Xavier(), Constant(0.0)), "seed": (Uniform(-1.0, 1.0), Constant(0.0))
}
_chosen = "fluid"


@checked
def set_defaults(name: str) -> str:
    """Choose the initializers of parameters that do not name one.

    Args:
        name: ``fluid`` (Xavier for weights, 0 for biases; what released Fluid does) or ``seed`` (uniform on [-1, 1) for
            weights, 0 for biases; what the Python API design document says).

    Returns:
        The name that was in force before.

    Example:
        >>> fluid.layers.set_defaults("seed")
        'fluid'
        >>> fluid.layers.set_defaults("fluid")
        'seed'
    """
    global _chosen
    if name not in _DEFAULTS:
        raise OpValueError(
            f"There is no set of default initializers called {name!r}.",
            expected=" or ".join(map(repr, _DEFAULTS)), received=repr(name), hint=near(str(name), _DEFAULTS),
        )  # fmt: skip
    before, _chosen = _chosen, name
    return before


def default_weight_initializer() -> Initializer:
    """The initializer of weights that do not name one."""
    return _DEFAULTS[_chosen][0]


def default_bias_initializer() -> Initializer:
    """The initializer of biases that do not name one."""
    return _DEFAULTS[_chosen][1]
