"""Initializers: append the operator that initializes a parameter to the startup program."""

from fluidnb.initializer.base import Initializer
from fluidnb.initializer.base import check_initializer as check_initializer
from fluidnb.initializer.constants import (
    Bilinear,
    BilinearInitializer,
    Constant,
    ConstantInitializer,
    NumpyArrayInitializer,
    force_init_on_cpu,
    init_on_cpu,
)
from fluidnb.initializer.constants import array_attrs as array_attrs
from fluidnb.initializer.constants import number_attrs as number_attrs
from fluidnb.initializer.defaults import default_bias_initializer, default_weight_initializer, set_defaults
from fluidnb.initializer.draws import (
    MSRA,
    MSRAInitializer,
    Normal,
    NormalInitializer,
    TruncatedNormal,
    TruncatedNormalInitializer,
    Uniform,
    UniformInitializer,
    Xavier,
    XavierInitializer,
)
from fluidnb.initializer.draws import fans as fans

__all__ = [
    "Bilinear", "BilinearInitializer", "Constant", "ConstantInitializer", "Initializer", "MSRA", "MSRAInitializer",
    "Normal", "NormalInitializer", "NumpyArrayInitializer", "TruncatedNormal", "TruncatedNormalInitializer",
    "Uniform", "UniformInitializer", "Xavier", "XavierInitializer", "default_bias_initializer",
    "default_weight_initializer", "force_init_on_cpu", "init_on_cpu", "set_defaults",
]  # fmt: skip
