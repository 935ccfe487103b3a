"""Old scripts unchanged: ``import paddle``, ``paddle.fluid``, ``paddle.v2.fluid`` mean this package once installed.

Nothing happens until `install` is called, and `uninstall` leaves no trace. ``import paddle as pd`` also gives the words
of the design documents, as `fluidnb.compat.pd` always does: ``pd.minibatch``, ``pd.ifelse``, ``pd.rnn``, ….

Example:
    >>> from fluidnb import compat
    >>> compat.install(force=True)
    >>> import paddle
    >>> import paddle.v2.fluid as old
    >>> old is fluid, paddle.batch is fluid.batch
    (True, True)
    >>> paddle.evaluate(paddle.add(paddle.minibatch([10, 20]), 1)).ravel()
    array([11., 21.], dtype=float32)
    >>> compat.uninstall()
"""

from fluidnb.compat.aliases import install, is_installed, uninstall
from fluidnb.compat.evaluation import evaluate

__all__ = ["evaluate", "install", "is_installed", "uninstall"]
