"""TensorBoard: scalars, histograms of parameters and the graph, as an event file."""

import time

from fluidnb.extras import require
from fluidnb.program import Program
from fluidnb.tracking.tracker import Step, Tracker


class TensorBoard(Tracker):
    """Writes a run into a folder, for ``tensorboard --logdir``; histograms at each multiple of a step, 0 for none."""

    def __init__(self, folder: str, histograms: int = 0) -> None:
        modules = "plugins.scalar.summary_v2 plugins.histogram.summary_v2 compat.proto.event_pb2 compat.proto.graph_pb2"
        names = (f"tensorboard.{name}" for name in [*modules.split(), "summary.writer.event_file_writer"])
        self._scalar, self._histogram, self._event, self._graph, writer = (require(n, "TensorBoard") for n in names)
        self._writer, self._histograms = writer.EventFileWriter(folder), histograms

    def begin(self, program: Program) -> None:
        """Write the operators of the global block as a graph."""
        graph, writers = self._graph.GraphDef(), dict[str, str]()
        for number, op in enumerate(program.global_block().ops):
            reads = [writers[name] for name in op.input_arg_names if name in writers]
            node = graph.node.add(name=f"{number}_{op.type}", op=op.type, input=reads)
            writers.update(dict.fromkeys(op.output_arg_names, node.name))
        self._add(graph_def=graph.SerializeToString())

    def step(self, step: Step) -> None:
        """Write the values and, now and then, the histograms of all parameters."""
        now = self._histograms and step.number % self._histograms == 0
        found = [self._histogram.histogram_pb(*pair) for pair in step.parameters()] if now else []
        for summary in [*(self._scalar.scalar_pb(*pair) for pair in step.values.items()), *found]:
            self._add(step=step.number, summary=summary)

    def end(self, how: str) -> None:
        """Close the file."""
        self._writer.close()

    def _add(self, **fields: object) -> None:
        self._writer.add_event(self._event.Event(wall_time=time.time(), **fields))
