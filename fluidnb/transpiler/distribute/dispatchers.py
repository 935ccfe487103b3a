"""Dispatchers: choose the parameter server of each slice of a parameter."""

import zlib
from collections.abc import Sequence
from typing import Any

from fluidnb.arguments import checked
from fluidnb.errors import OpValueError


@checked
class PSDispatcher:
    """Base of dispatchers.

    Args:
        pserver_endpoints: endpoints of the parameter servers.

    Raises:
        OpValueError: there are none.

    Source: fluid.transpiler.ps_dispatcher.
    """

    def __init__(self, pserver_endpoints: Sequence[str]) -> None:
        self._eps = list(pserver_endpoints)
        if not self._eps:
            raise OpValueError(
                f"{type(self).__name__} needs an endpoint to send variables to.", expected="at least one endpoint",
                received="none", hint='for example ["127.0.0.1:6174"].',
            )  # fmt: skip
        self.reset()

    @property
    def eps(self) -> list[str]:
        """The endpoints."""
        return self._eps

    def reset(self) -> None:
        """Begin again with the first server."""
        self._step = 0

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """The endpoint of each variable."""
        raise NotImplementedError("a dispatcher must define dispatch(varlist).")


@checked
class RoundRobin(PSDispatcher):
    """Gives variables to the servers in turn.

    Example:
        >>> RoundRobin(["ps:0", "ps:1"]).dispatch(["a", "b", "c"])
        ['ps:0', 'ps:1', 'ps:0']
    """

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """The endpoint of each variable, beginning after the last one of the call before."""
        start, self._step = self._step, self._step + len(varlist)
        return [self._eps[i % len(self._eps)] for i in range(start, self._step)]


@checked
class HashName(PSDispatcher):
    """Gives each variable to the server that the CRC-32 of its name chooses, the same in every process.

    Example:
        >>> HashName(["ps:0", "ps:1"]).dispatch(["fc_0.w_0", "fc_0.b_0"])
        ['ps:0', 'ps:1']
    """

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """The endpoint of each variable."""
        names = (v if isinstance(v, str) else v.name for v in varlist)
        return [self._eps[zlib.crc32(name.encode()) % len(self._eps)] for name in names]
