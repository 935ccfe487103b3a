"""The works that are measured, and the goals of fluidnb."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

#: The peers in the order of the table; fluidnb first, by numpy alone, then with native code.
PEERS = ("fluidnb", "native", "paddle", "torch", "jax")


@dataclass(frozen=True)
class Goal:
    """An upper bound for fluidnb's time.

    Args:
        bound: how much at most.
        peer: times the time of this peer; None means `bound` is in the work's own unit.

    Example:
        >>> Goal(0.25, "torch").text("s"), Goal(1.0, None).text("s")
        ('<= 0.25x torch', '<= 1.0 s')
    """

    bound: float
    peer: str | None

    def text(self, unit: str) -> str:
        """The goal in words."""
        return f"<= {self.bound}x {self.peer}" if self.peer else f"<= {self.bound} {unit}"


@dataclass(frozen=True)
class Work:
    """One thing that every peer does; its name is that of the function in each module of `peers`.

    Args:
        name: what to ask for on the command line.
        title: what it is, for readers of the table.
        unit: of the numbers shown: ``us``, ``s``, or ``x`` for a multiple.
        goal: what fluidnb has to reach.
        fresh: every measurement is a new process; otherwise the peers' processes stay and take turns.
        per: how many units of work there are in one step, so that the numbers are those of one unit.
        rounds: how often each peer is measured.
        memory: what the peak of resident memory has to reach, None for nothing.
        alone: whether no peer has anything like it.
        native: what native code has to reach, None where it is not measured.
    """

    name: str
    title: str
    unit: str
    goal: Goal
    fresh: bool = False
    per: int = 1
    rounds: int = 21
    memory: Goal | None = None
    alone: bool = False
    native: Goal | None = None


_own = partial(Work, fresh=True, rounds=3, alone=True)
#: Functions that are measured over 2,000 rows of 1,000.
FUNCTIONS = (
    "relu", "sigmoid", "tanh", "exp", "log", "softplus", "logsigmoid", "erf", "gelu", "silu", "mish", "elu", "softmax",
    "log_softmax",
)  # fmt: skip
#: In a browser; each takes its own median or maximum.
_seen = partial(Work, fresh=True, rounds=1, alone=True)

WORKS = {
    work.name: work
    for work in (
        Work("a", "200 operators on one number each, a run", "us", Goal(0.25, "torch"), native=Goal(0.6, "jax")),
        Work(
            "b", "linear regression with SGD, 20 rows of 13, a step", "us", Goal(0.5, "jax"), native=Goal(0.25, "jax")
        ),
        Work(
            "c", "MLP 784-200-200-10 with Adam, batch 64, a step", "us", Goal(0.8, "torch"), native=Goal(0.85, "jax")
        ),
        Work(
            "d", "LeNet with momentum, batch 64, a step", "us", Goal(0.75, "torch"), memory=Goal(0.35, "paddle"),
            native=Goal(0.45, "torch"),
        ),
        Work(
            "e_static",
            "LSTM cell in a StaticRNN with Adam, 50 steps, batch 32, 128 wide, a training step",
            "us",
            Goal(1.0, "paddle"),
            native=Goal(0.8, "jax"),
        ),
        Work(
            "e", "LSTM with Adam over 32 sequences of 5 to 50, 128 wide, a training step", "us", Goal(0.3, "paddle"),
            native=Goal(0.4, "jax"),
        ),
        Work("f", "while loop, s += x[i], an iteration", "us", Goal(0.02, "paddle"), per=1000, native=Goal(1.0, "jax")),
        Work("g", "12 operators on 4 million numbers, a run", "us", Goal(1.0, "torch"), native=Goal(0.35, "torch")),
        *(
            Work(f"of_{name}", f"{name} of 2 million numbers", "us", Goal(3.0, "torch"), native=Goal(1.0, "torch"))
            for name in FUNCTIONS
        ),
        Work("h", "import and the first step of a linear regression", "s", Goal(0.5, "jax"), fresh=True, rounds=7),
        Work("append", "append_op, one of 20,000", "us", Goal(100.0, None), fresh=True, rounds=3),
        Work(
            "chain",
            "5,000 operators in a row with their gradients, the first run",
            "s",
            Goal(1.0, None),
            fresh=True,
            rounds=3,
        ),
        _own("build", "building layers, an operator of 1,000", "us", Goal(50.0, None)),
        _own("append_backward", "append_backward, an operator of 1,000", "us", Goal(50.0, None)),
        _own("first_run", "the first run of layers with gradients, an operator of 2,000", "us", Goal(100.0, None)),
        _own("new_shape", "a new batch size, an operator of 2,000", "us", Goal(20.0, None)),
        _own("load_ext", "%load_ext and a first cell, as a multiple of IPython alone", "x", Goal(2.0, None)),
        _own("step", "a step in the debugger, without its kernel", "us", Goal(50.0, None)),
        _own("back", "a step back in the debugger, the slowest", "us", Goal(1000.0, None)),
        _own("nan", "LeNet with the check for NaN, as a multiple", "x", Goal(1.3, None)),
        _seen("explorer_open", "the explorer opens with 5,000 operators, message to painted", "s", Goal(0.3, None)),
        _seen("explorer_scroll", "the explorer scrolls, a frame slower than 19 of 20", "s", Goal(1 / 30, None)),
        _seen("explorer_step", "the explorer lights a step, command to painted", "s", Goal(0.1, None)),
    )
}
