"""Mean average precision of detections, which the program itself adds up over the batches of a pass."""

from __future__ import annotations

from fluidnb import layers
from fluidnb.arguments import checked
from fluidnb.backward.emit import all_or_nothing
from fluidnb.errors import OpValueError
from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper
from fluidnb.program import Program, Variable, program_guard, unique_name
from fluidnb.runtime import Executor
from fluidnb.values import CPUPlace


@checked
class DetectionMAP:
    """Mean average precision (mAP) of detections: of each batch, and of all batches since the last ``reset``.

    It adds operators to the main program; fetch the variables that ``get_map_var`` gives.

    Args:
        input: float [detections, 6]: class, score, left, top, right, bottom; a sequence for each image.
        gt_label: classes of the objects [objects, 1]; a sequence for each image.
        gt_box: float [objects, 4]: left, top, right, bottom; a sequence for each image.
        gt_difficult: 1 for a difficult object, else 0 [objects, 1]; a sequence for each image; None for no such marks.
        class_num: how many classes there are, with the background.
        background_label: see `fluid.layers.detection_map`.
        overlap_threshold: what the overlap (intersection over union) of a right detection with its object exceeds.
        evaluate_difficult: whether difficult objects count.
        ap_version: ``"integral"`` of precision over recall, or ``"11point"`` (VOC 2007).

    Raises:
        OpTypeError: an argument is not a Variable.
        OpValueError: ``class_num`` is None, or the version is unknown.
        RuleError: the shapes do not fit together.

    Attributes:
        metrics: the variable to fetch for the batch, as evaluators have it.
        cur_map: float [1], of the batch.
        accum_map: float [1], of all batches since the last ``reset``.
        has_state: int32 [1], 0 until the first batch; the startup program and ``reset`` set it to 0.

    Example:
        >>> found = fluid.layers.data("found", [6], lod_level=1)
        >>> label, box = (fluid.layers.data(n, [width], lod_level=1) for n, width in (("label", 1), ("box", 4)))
        >>> metric = fluid.metrics.DetectionMAP(found, label, box, class_num=2)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> start = exe.run(fluid.default_startup_program())
        >>> boxes = np.float32([[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]])
        >>> feed = {"label": fluid.create_lod_tensor(np.float32([[1]]), [[1]])}
        >>> feed["box"] = fluid.create_lod_tensor(boxes[:1], [[1]])
        >>> for box in boxes:
        ...     feed["found"] = fluid.create_lod_tensor(np.float32([[1, 0.9, *box]]), [[1]])
        ...     print(*exe.run(feed=feed, fetch_list=list(metric.get_map_var())))
        [1.] [1.]
        [0.] [0.5]

    Source: fluid.metrics.DetectionMAP.
    """

    def __init__(
        self,
        input: Variable,
        gt_label: Variable,
        gt_box: Variable,
        gt_difficult: Variable | None = None,
        class_num: int | None = None,
        background_label: int = 0,
        overlap_threshold: float = 0.5,
        evaluate_difficult: bool = True,
        ap_version: str = "integral",
    ) -> None:
        if class_num is None:
            raise OpValueError(
                "DetectionMAP needs class_num.", expected="the number of classes, with the background", received="None"
            )
        self.helper = LayerHelper("map_eval")
        self.metrics: list[Variable] = []
        main, startup = self.helper.main_program, self.helper.startup_program
        with all_or_nothing(main, startup):
            marks = [gt_label] if gt_difficult is None else [gt_label, gt_difficult]
            label = layers.concat([*(layers.cast(mark, gt_box.dtype) for mark in marks), gt_box], axis=1)
            of_batch = (input, label, class_num, background_label, overlap_threshold, evaluate_difficult)
            self.cur_map = layers.detection_map(*of_batch, ap_version=ap_version)
            self.metrics.append(self.cur_map)
            self.states = [
                self._state("accum_pos_count", "int32"), self._state("accum_true_pos", input.dtype),
                self._state("accum_false_pos", input.dtype),
            ]  # fmt: skip
            self.has_state = self._state("has_state", "int32", (1,))
            self.helper.set_variable_initializer(self.has_state, Constant(0.0))
            self.accum_map = layers.detection_map(
                *of_batch, has_state=self.has_state, input_states=self.states, out_states=self.states,
                ap_version=ap_version,
            )  # fmt: skip
            layers.fill_constant([1], "int32", 1, out=self.has_state)

    def _state(self, suffix: str, dtype: object, shape: tuple[int, ...] = ()) -> Variable:
        """A persistable variable; the operator sets the shape of the counts."""
        name = f"{unique_name.generate(self.helper.name)}_{suffix}"
        return self.helper.create_global_variable(True, name=name, dtype=dtype, shape=shape, stop_gradient=True)

    def get_map_var(self) -> tuple[Variable, Variable]:
        """The variables to fetch: mAP of the batch, and of all batches since the last `reset`."""
        return self.cur_map, self.accum_map

    def reset(self, executor: Executor | None = None, reset_program: Program | None = None) -> None:
        """Forget all batches, as at the start of a pass.

        Args:
            executor: runs it; None for one on the CPU.
            reset_program: gets the operator; None for a separate program.
        """
        program = Program() if reset_program is None else reset_program
        with program_guard(program, Program()):
            twin = program.global_block().create_var(
                name=self.has_state.name, shape=(1,), dtype="int32", persistable=True
            )
            layers.fill_constant([1], "int32", 0, out=twin)
        (executor or Executor(CPUPlace())).run(program)
