"""The kernel lab: kernels and operators written in cells, checked, and removed.

It looks at fluidnb as its users do. In a notebook, ``%%kernel`` and ``%%op`` cells do the same.

Example:
    >>> from fluidnb_kernels.lab import write_kernel
    >>> trial = write_kernel("relu", 'b(np.maximum, b["X"], b.const(0, b["X"].dtype), out=b["Out"])')
    >>> print(str(trial).splitlines()[0])
    relu  on cpu, float32, float64   in its place
    >>> trial.take_back()
"""

from fluidnb_kernels.lab.compile import KernelRefused
from fluidnb_kernels.lab.layer import layer_of
from fluidnb_kernels.lab.new_op import OpTrial, write_op, written_ops
from fluidnb_kernels.lab.trial import Trial, take_back, write_kernel, written

__all__ = [
    "KernelRefused",
    "OpTrial",
    "Trial",
    "layer_of",
    "take_back",
    "write_kernel",
    "write_op",
    "written",
    "written_ops",
]
