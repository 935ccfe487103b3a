"""Adds measured times to the operators of a program."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture
from fluidnb.viz.time.timeline import Timeline, time_text


def timed(picture: ProgramPicture, timeline: Timeline) -> ProgramPicture:
    """Adds the mean time of each operator in profiled runs to a program.

    Example:
        >>> from fluidnb.debug.profile import Event
        >>> from fluidnb.viz.time.timeline import read_timeline
        >>> picture = ProgramPicture(BlockRow(0, -1, (OpRow(0, 0, "relu", "forward"), OpRow(0, 1, "mean", "forward"))))
        >>> events = [Event("relu", "", 0, "", 0, 3000, index=0), Event("mean", "", 0, "", 3000, 4000, index=1)]
        >>> [(op.took, op.share) for op in timed(picture, read_timeline(events, [0])).root.ops]
        [('3.0 µs', 0.75), ('1.0 µs', 0.25)]
    """
    runs, whole = max(len(timeline.runs), 1), timeline.busy or 1
    times: dict[tuple[int, int], list[int]] = defaultdict(list)
    for bar in timeline.bars:
        times[bar.event.block, bar.event.index].append(bar.own)

    def block(row: BlockRow) -> BlockRow:
        return replace(row, ops=tuple(map(op, row.ops)))

    def op(row: OpRow) -> OpRow:
        took, text = times.get((row.block, row.index), []), ""
        if took:
            count = len(took) / runs
            text = (f"{count:.0f} times  " if count > 1 else "") + time_text(sum(took) / runs)
        return replace(row, blocks=tuple(map(block, row.blocks)), took=text, share=sum(took) / whole)

    mean = f"mean of {runs} runs" if runs > 1 else "one run"
    clocks = timeline.clocks or ["by the host's clock"]
    note = f"({'; '.join([mean, *clocks])})"
    return replace(picture.with_blocks(block), note=note)
