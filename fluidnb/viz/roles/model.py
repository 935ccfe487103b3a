"""Roles of distributed training as plain data: the variables of each, what flows between them, and numbers of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RoleState:
    """A role of a run at one moment.

    Attributes:
        name: ``trainer0``, ``pserver1``.
        state: ``starting``, ``running``, ``paused``, ``ended`` or ``failed``.
        steps: training steps of a trainer since it began; None for a server.
        rate: samples per second lately; None for a server.
        sent, received: bytes of a trainer to and from all servers; of a server to and from all trainers.
        seconds: that a trainer has spent in calls of servers; for a server, that trainers have spent in its calls.
        values: the newest fetched values by name.
    """

    name: str
    state: str
    steps: int | None = None
    rate: float | None = None
    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Held:
    """A variable that a server keeps."""

    name: str
    facts: str  # its dtype and shape
    size: int  # bytes


@dataclass(frozen=True)
class Role:
    """A role, as its program describes it."""

    name: str  # ``trainer0``, ``pserver1``
    endpoint: str  # of a server; empty for a trainer
    words: tuple[str, ...]  # what it does
    held: tuple[Held, ...] = ()  # what a server keeps
    state: RoleState | None = None  # its state in a run

    @property
    def size(self) -> int:
        """Bytes of all that it keeps."""
        return sum(row.size for row in self.held)


@dataclass(frozen=True)
class Link:
    """The flow between each trainer and a server in one training step."""

    server: str
    gradients: int  # bytes to the server
    parameters: int  # bytes to the trainer
    rows: tuple[str, ...] = ()  # tables of which as many rows flow as a batch uses, beside these bytes


@dataclass(frozen=True)
class Flow:
    """The flow between a trainer and a server since a run began."""

    sent: int  # bytes to the server
    received: int  # bytes to the trainer
    seconds: float  # in the trainer's calls of the server


@dataclass(frozen=True)
class RolesPicture:
    """All roles of a training."""

    trainers: tuple[Role, ...]
    servers: tuple[Role, ...]
    links: tuple[Link, ...]  # of each server
    sync: bool
    flows: Mapping[tuple[str, str], Flow] = field(default_factory=dict)  # (trainer, server) -> in a run

    @property
    def words(self) -> str:
        """The numbers of roles, and the mode."""
        counts = [(len(self.trainers), "trainer"), (len(self.servers), "parameter server")]
        roles = ", ".join(f"{count} {what}{'s' * (count != 1)}" for count, what in counts)
        return f"{roles}, {'synchronous' if self.sync else 'asynchronous'}"
