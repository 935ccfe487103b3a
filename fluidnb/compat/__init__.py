"""Old scripts unchanged: ``import paddle``, ``paddle.fluid``, ``paddle.v2.fluid`` mean this package once installed.

Nothing happens until `install` is called, and `uninstall` leaves no trace.

Example:
    >>> from fluidnb import compat
    >>> compat.install(force=True)
    >>> import paddle
    >>> import paddle.v2.fluid as old
    >>> old is fluid, paddle.batch is fluid.batch
    (True, True)
    >>> compat.uninstall()
"""

from fluidnb.compat.aliases import install, is_installed, uninstall
from fluidnb.compat.evaluation import evaluate

__all__ = ["evaluate", "install", "is_installed", "uninstall"]
