"""A report of the operators of a program that run as native code."""

from collections.abc import Iterator

from fluidnb.program import Program
from fluidnb.runtime.native.segment_code import NativeCall
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.replay.segment import Segment


def native_calls(program: Program) -> list[NativeCall]:
    """The calls of native code in the last run of a program, in the order of its operators.

    Products of matrices come behind the others of a segment, and loops last.

    Args:
        program: one that has run; FLAGS_native=auto compiles it after some runs, in the background.

    Returns:
        For each call its operators, the number of calls of kernels that it replaces, and its C code, or CUDA C++.

    Example:
        >>> x = fluid.layers.fill_constant([2], "float32", 3.0)
        >>> exe = fluid.Executor()
        >>> exe.run(fetch_list=[fluid.layers.relu(x)])
        [array([3., 3.], dtype=float32)]
        >>> native_calls(fluid.default_main_program())
        []
    """
    ran = [lowered for lowered in program_state(program.desc).recent if lowered.specializations]
    if not ran:
        return []
    roots = [next(reversed(ran[-1].specializations.values())).root, *ran[-1].bodies.values()]
    segments = [segment for root in roots for segment in _segments(root)]
    return [call for segment in segments for call in _made(segment)]


def native_text(program: Program) -> str:
    """A line for each call of native code in the last run of a program: its operators, and what it replaces.

    Args:
        program: one that has run.

    Returns:
        The lines, or a sentence that there is none.

    Example:
        >>> native_text(fluid.default_main_program())
        'No operator runs as native code.'
    """
    lines = [
        f"native code for {', '.join(op.desc.optype for op in call.ops)}: {call.replaced} calls in {_times(call)}, "
        f"loops: {call.loops}{', with all iterations' if call.whole else ''}"
        for call in native_calls(program)
    ]
    return "\n".join(lines) or "No operator runs as native code."


def _segments(segment: Segment) -> Iterator[Segment]:
    yield segment
    if segment.updates is not None:
        yield segment.updates
    for follower in segment.next.values():
        yield from _segments(follower)


def _made(segment: Segment) -> list[NativeCall]:
    """The calls of native code of a segment, and of the copies between iterations where it is the body of a loop."""
    codes = [code for code in (segment.code, segment.unrolled) if code is not None]
    return [call for code in codes for call in (*code.native, *code.products)] or segment.made


def _times(call: NativeCall) -> str:
    return "one" if call.times == 1 else str(call.times)
