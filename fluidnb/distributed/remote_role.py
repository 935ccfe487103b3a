"""A debug session in a role whose process is another one: lines typed here run there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fluidnb.debug.session import Session
from fluidnb.errors import EnforceNotMet, FluidError, NotFound

if TYPE_CHECKING:
    from fluidnb.distributed.ray_engine import RayEngine

#: Seconds between two checks of a call.
_POLL = 0.1


class RemoteRole:
    """The role that a session is in, whose program runs in another process: `fluidnb.debug.session.Role`.

    Args:
        engine: whose role it is.
        session: the session here, which has no run.
        name: of the role, ``trainer0``.
        key: what the engine calls it.
    """

    def __init__(self, engine: RayEngine, session: Session, name: str, key: str) -> None:
        self.engine, self.session, self.name, self._key = engine, session, name, key
        self._call("attach", name)
        session.role = self
        engine.attached += 1
        engine.suspend_deadline(True)

    def there(self, function: Callable[..., Any], *args: Any) -> Any:
        """The result of a function of the session there and further arguments; Ctrl-C pauses the program."""
        return self._call("debug", function, *args)

    def wait(self) -> None:
        """Wait until it is paused; Ctrl-C pauses it where it is.

        Raises:
            NotFound: the role has ended, or its process is a new one.
        """
        self._call("wait")

    def leave(self) -> None:
        """Let it run on without stops."""
        if self.session.role is not self:
            return
        self.session.role = None
        self.engine.attached -= 1
        self.engine.suspend_deadline(self.engine.attached > 0)
        with contextlib.suppress(FluidError):  # a process that has ended was left, too
            self._call("leave")

    def _call(self, method: str, *args: Any) -> Any:
        """Call a method of the role's process."""
        import ray
        from ray.exceptions import RayActorError

        actor = self.engine.actor(self._key)
        answer = getattr(actor, method).remote(*args)
        while True:
            try:
                if ray.wait([answer], timeout=_POLL)[0]:
                    return ray.get(answer)
                if not self.engine.is_training:
                    raise NotFound(
                        f"{self.name} has ended.", expected="a role that runs", received=self.name,
                        hint="attach to it while the training runs.",
                    )  # fmt: skip
            except KeyboardInterrupt:
                actor.pause.remote()
            except RayActorError:
                raise EnforceNotMet(
                    f"The process of {self.name} has ended.", expected="a process that runs", received=self._key,
                    hint=f"attach {self.name} goes into its new process.",
                ) from None  # fmt: skip
