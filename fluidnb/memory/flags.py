"""FLAGS_*: the switches of memory, checks and timing, read from the environment once and changed by `set_flags`."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from fluidnb.errors import OpTypeError, OpValueError, near, typed


class Flag(NamedTuple):
    """Definition of one flag: its default (whose type is the flag's type), its meaning, its rule."""

    default: Any
    doc: str
    check: Callable[[Any], bool] | None = None
    rule: str = ""


#: Every flag, by its name without the prefix ``FLAGS_``.
FLAGS: dict[str, Flag] = {}
#: The value of every flag now; hot paths read it directly.
values: dict[str, Any] = {}
#: What is called when a flag has been set, where a library outside must be told.
when_set: dict[str, Callable[[], None]] = {}
_TRUE, _FALSE = ("1", "true", "yes", "on", "t", "y"), ("0", "false", "no", "off", "f", "n", "")


def define_flag(name: str, default: Any, doc: str, check: Callable[[Any], bool] | None = None, rule: str = "") -> None:
    """Adds a flag; its value comes from the environment variable ``FLAGS_name`` where that is set.

    Args:
        name: without the prefix ``FLAGS_``.
        default: bool, int, float or str; also fixes the flag's type.
        doc: one sentence of meaning.
        check: whether a value is allowed.
        rule: the check in words.

    Example:
        >>> define_flag("docs_example", 3, "Only an example.")
        >>> get_flags("docs_example")
        {'docs_example': 3}
        >>> del FLAGS["docs_example"], values["docs_example"]
    """
    FLAGS[name] = Flag(default, doc, check, rule)
    text = os.environ.get(f"FLAGS_{name}")
    values[name] = default if text is None else _convert(name, text)


def set_flags(flags: Mapping[str, Any]) -> None:
    """Changes flags; all of them or, when one is wrong, none.

    Args:
        flags: name (with or without ``FLAGS_``) to value; texts are read as from the environment.

    Example:
        >>> set_flags({"FLAGS_check_nan_inf": True})
        >>> get_flags("FLAGS_check_nan_inf")
        {'FLAGS_check_nan_inf': True}
        >>> set_flags({"check_nan_inf": False})
    """
    if not isinstance(flags, Mapping):
        raise OpTypeError("flags should be a dict.", received=type(flags).__name__)
    new = {_known(name): _convert(_known(name), value) for name, value in flags.items()}
    values.update(new)
    for name in when_set.keys() & new.keys():
        when_set[name]()


def get_flags(names: str | Iterable[str] | None = None) -> dict[str, Any]:
    """The values of flags.

    Args:
        names: one name, several, or None for all; with or without ``FLAGS_``.

    Example:
        >>> get_flags(["FLAGS_fraction_of_gpu_memory_to_use"])
        {'FLAGS_fraction_of_gpu_memory_to_use': 0.92}
    """
    if names is None:
        names = [f"FLAGS_{n}" for n in FLAGS]
    if not isinstance(names, Iterable):
        raise OpTypeError("names should be a name of a flag, or a list of them.", received=typed(names))
    return {name: values[_known(name)] for name in ([names] if isinstance(names, str) else names)}


def _known(name: str) -> str:
    if not isinstance(name, str):
        raise OpTypeError("The name of a flag is a text.", received=typed(name))
    short = name.removeprefix("FLAGS_")
    if short not in FLAGS:
        raise OpValueError(f'"{name}" is not a flag.', hint=near(short, FLAGS) or f"the flags are {', '.join(FLAGS)}.")
    return short


def _convert(name: str, value: Any) -> Any:
    flag = FLAGS[name]
    kind = type(flag.default)
    try:
        if kind is bool and isinstance(value, str):
            result = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}[value.strip().lower()]
        else:
            result = kind(value)
        if flag.check is not None and not flag.check(result):
            raise ValueError(flag.rule)
    except (KeyError, OverflowError, TypeError, ValueError):
        expected = flag.rule or f"a value of type {kind.__name__}"
        hint = f"its default is {flag.default!r}. {flag.doc}"
        raise OpValueError(f"FLAGS_{name} cannot be {value!r}.", expected=expected, hint=hint) from None
    return result


for _name, _default, _doc in (
    ("fraction_of_cpu_memory_to_use", 1.0, "Share of the host's memory that the CPU pool may plan with."),
    ("fraction_of_gpu_memory_to_use", 0.92, "Share of a device's memory that its pool may plan with."),
):
    define_flag(_name, _default, _doc, lambda value: 0 < value <= 1, "a fraction: more than 0, at most 1")
for _name, _switch, _doc in (
    ("use_pinned_memory", False, "Lock the pages of new CPU chunks, so that they are never swapped out."),
    ("check_nan_inf", False, "Look for NaN and infinity in every output of every operator."),
    ("eager_delete_tensor_gb", -1.0, "Free dead tensors early once they hold this many GB; negative: never."),
    ("benchmark", False, "Time every operator and wait for the device after each."),
    ("init_allocated_mem", False, "Fill new tensors with NaN, or 0xAA bytes where a dtype has no NaN."),
    ("strict_feeds", True, "Refuse feeds that differ from the declared shape or dtype; off, operators decide."),
    ("use_mkldnn", False, "Compute convolutions and poolings by oneDNN, where the extra onednn is installed."),
    ("constant_filters", False, "Convert filters for oneDNN once; for inference, where no program trains them."),
    ("dataset_download", False, "Let data sets fetch files that are not in the cache; off, synthetic data are used."),
    ("cuda_graphs", True, "Runs on CUDAPlace launch kernels in a row as one CUDA graph."),
):
    define_flag(_name, _switch, _doc)
_STRATEGY = "naive_best_fit"
define_flag("allocator_strategy", _STRATEGY, "How pools choose a block.", lambda v: v == _STRATEGY, f'"{_STRATEGY}"')
define_flag(
    "max_loop_iterations", 10_000_000, "Stop a while loop that would begin one more iteration than this; 0: no limit.",
    lambda n: n >= 0, "0 or more",
)  # fmt: skip
define_flag(
    "cuda_backend", "cupy", "What CUDAPlace runs on: cupy (a GPU), or emulator (the processor, slowly, to test).",
    lambda v: v in ("cupy", "emulator"), "cupy or emulator",
)  # fmt: skip
_MODES = ("auto", "off", "require")
define_flag(
    "native", "auto",
    "Compile operators to C: auto, in the background when they have run often and a C compiler is there; require, "
    "before the first run; off, never. Large products of float32 matrices run in C from the first run of a process on, "
    "or never, since their last digits differ from those of BLAS. On CUDAPlace require makes one kernel of several "
    "that follow each other.",
    lambda v: v in _MODES, '"auto", "off" or "require"',
)  # fmt: skip
define_flag(
    "num_threads", 0, "Threads of products of matrices, by BLAS or in C; 0: as many as BLAS takes by itself.",
    lambda n: n >= 0, "0 or more",
)  # fmt: skip
