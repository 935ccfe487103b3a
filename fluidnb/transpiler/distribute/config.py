"""DistributeTranspilerConfig: settings of the division of parameters."""

from collections.abc import Sequence

from fluidnb.arguments import checked
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.transpiler.distribute.dispatchers import PSDispatcher, RoundRobin

#: Modes, and what they are for.
MODES = {"pserver": "parameter servers", "collective": "all-reduce among trainers"}


@checked
class DistributeTranspilerConfig:
    """Settings of a `DistributeTranspiler`; attributes are set after construction, as in Fluid.

    Attributes:
        slice_var_up: whether large parameters are divided into slices, one for each server at most.
        split_method: class of the dispatcher; None for `RoundRobin`.
        min_block_size: elements that a slice has at least.
        mode: ``"pserver"`` or ``"collective"``; ``"nccl2"`` is another name of the latter.
        wait_port, enable_dc_asgd, print_log, sync_mode, runtime_split_send_recv: see Fluid; only their defaults and
            ``wait_port`` have an effect here.

    Example:
        >>> config = fluid.DistributeTranspilerConfig(); config.slice_var_up = False
        >>> config.min_block_size
        8192

    Source: fluid.DistributeTranspilerConfig.
    """

    slice_var_up: bool = True
    split_method: type[PSDispatcher] | None = None
    min_block_size: int = 8192
    enable_dc_asgd: bool = False
    mode: str = "pserver"
    print_log: bool = False
    wait_port: bool = True
    sync_mode: bool = True
    runtime_split_send_recv: bool = False

    @property
    def is_collective(self) -> bool:
        """Whether trainers reduce gradients among themselves, without parameter servers."""
        return self.mode in ("collective", "nccl2")

    def dispatcher(self, endpoints: Sequence[str]) -> PSDispatcher:
        """A dispatcher over endpoints."""
        return (self.split_method or RoundRobin)(endpoints)

    def check(self) -> None:
        """Refuse settings that mean nothing.

        Raises:
            OpTypeError, OpValueError: with the setting and what it may be.
        """
        method = self.split_method
        if method is not None and not (isinstance(method, type) and issubclass(method, PSDispatcher)):
            raise OpTypeError(
                "config.split_method is no dispatcher.", expected="RoundRobin, HashName or a subclass of PSDispatcher",
                received=repr(method)[:80], hint="give the class, not an instance: config.split_method = "
                "fluid.transpiler.HashName.",
            )  # fmt: skip
        if not isinstance(self.min_block_size, int) or self.min_block_size < 1:
            raise OpValueError(
                "config.min_block_size must be a positive number of elements.", expected="1 or more",
                received=repr(self.min_block_size), hint="8192 is Fluid's default.",
            )  # fmt: skip
        if self.mode not in (*MODES, "nccl2"):
            raise OpValueError(
                f"There is no mode {self.mode!r} of distributed training.",
                expected=" or ".join(f'"{name}" ({what})' for name, what in MODES.items()), received=repr(self.mode),
                hint='config.mode = "pserver" is the default.',
            )  # fmt: skip
        if self.enable_dc_asgd:
            raise OpValueError(
                "Delay-compensated updates (enable_dc_asgd) are not built.", expected="False", received="True",
                hint="sync_mode=False of transpile trains without waiting, and without compensation.",
            )  # fmt: skip
