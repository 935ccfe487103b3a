"""Recomputation: gradients read activations that are computed a second time, from checkpoints that are kept.

The checkpoints divide the operators of the global block into segments. Only checkpoints, and what must not be computed
twice, live from forward to backward. The gradients of a segment are preceded by copies of its operators, which compute
the other activations again. The last segment is not repeated: its activations are still there.

Source: Chen et al., "Training deep nets with sublinear memory cost", 2016; the names are those of Paddle's
RecomputeOptimizer.
"""

from bisect import bisect_left
from collections.abc import Collection

from fluidnb.backward.walk import Walk
from fluidnb.errors import OpValueError, near
from fluidnb.op import EMPTY, get_op
from fluidnb.program.constants import SHAPES_ONLY, OpRole
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.values.dtypes import VarType

#: Operators that read statistics which they update, and whose other outputs do not depend on them in training.
_KEEP_STATISTICS = frozenset({"batch_norm"})
_NOT_REPEATED = OpRole.Optimize | OpRole.LRSched | OpRole.Backward


def recompute(walk: Walk, checkpoints: Collection[str]) -> None:
    """Let the gradient operators of a walk read recomputed activations.

    Args:
        walk: the finished walk over a global block; the copies are put between its gradient operators.
        checkpoints: names of variables that are kept.

    Raises:
        OpValueError: a checkpoint is not a variable of the block.
    """
    segments = _Segments(walk.block, checkpoints)
    # A shape is there without the value: nothing is repeated for it, where Paddle repeats a product.
    reads = [[] if op.optype in SHAPES_ONLY else op.input_arg_names() for op in walk.ops]
    read = {n for names in reads for n in names if n in segments.of}
    renamed: dict[str, str] = {}
    done: set[int] = set()
    ops: list[OpDesc] = []
    for gradient, names_read in zip(walk.ops, reads, strict=True):
        wanted = [n for n in names_read if n in segments.of]
        for segment in sorted({segments.of[n] for n in wanted} - done):
            suffix = f".subprog_{len(done)}"
            done.add(segment)
            for op in segments.needed(segment, read):
                ops += _again(walk, op, suffix, segments.of, renamed)
        if wanted:
            for slot, names in list(gradient.ins.items()):
                gradient.set_input(slot, [renamed.get(n, n) for n in names])
        ops.append(gradient)
    walk.ops[:] = ops


class _Segments:
    """The segments of a block, and the variables that can be computed again.

    Attributes:
        of: variable that is not kept -> the number of its segment.
    """

    def __init__(self, block: BlockDesc, checkpoints: Collection[str]) -> None:
        self.block = block
        self._writers: dict[str, list[int]] = {}
        for i, op in enumerate(block.ops):
            for name in dict.fromkeys(op.output_arg_names()):
                self._writers.setdefault(name, []).append(i)
        self._check(checkpoints)
        self._cuts = sorted(self._writers[name][-1] for name in checkpoints if name in self._writers)
        self.of: dict[str, int] = {}
        for i, op in enumerate(block.ops):
            segment = self._number(i)
            if segment < len(self._cuts) and self._repeats(i, op):
                self.of.update((n, segment) for n in op.output_arg_names() if n != EMPTY and not self._lasts(n))
        self._keep(checkpoints)

    def needed(self, segment: int, read: Collection[str]) -> list[OpDesc]:
        """The operators that compute what gradients read of a segment, in order."""
        wanted = {name for name in read if self.of[name] == segment}
        found = []
        first = self._cuts[segment - 1] + 1 if segment else 0
        for op in reversed(self.block.ops[first : self._cuts[segment] + 1]):
            if not wanted.isdisjoint(op.output_arg_names()):
                found.append(op)
                wanted.update(n for n in op.input_arg_names() if n in self.of)
        return found[::-1]

    def _number(self, position: int) -> int:
        """The segment of an operator: it ends with the operator that writes a checkpoint."""
        return bisect_left(self._cuts, position)

    def _check(self, checkpoints: Collection[str]) -> None:
        for name in checkpoints:
            if self.block.find_var_recursive(name) is None:
                raise OpValueError(
                    f"{name} cannot be a checkpoint.", expected="a variable of block 0",
                    received=name, hint=near(name, self.block.vars) or "checkpoints are results of layers.",
                )  # fmt: skip

    def _keep(self, checkpoints: Collection[str]) -> None:
        """Forget checkpoints, and what other segments or nested blocks read, since those read it under its name."""
        program = self.block.program
        assert program is not None
        kept = {*checkpoints, *(n for inner in program.blocks[1:] for op in inner.ops for n in op.input_arg_names())}
        for i, op in enumerate(self.block.ops):
            if op.attrs.get("op_role", 0) & _NOT_REPEATED:
                continue
            segment = self._number(i)
            kept.update(n for n in op.input_arg_names() if self.of.get(n, segment) != segment)
            if "sub_block" in op.attrs:
                kept.update(op.input_arg_names())
        for name in kept & self.of.keys():
            del self.of[name]

    def _repeats(self, position: int, op: OpDesc) -> bool:
        """Whether an operator that runs a second time, in backward, gives the same values and changes nothing else."""
        definition = get_op(op.optype)
        if definition.random or definition.side_effect or "sub_block" in op.attrs:
            return False  # a random operator would draw other numbers
        if op.attrs.get("op_role", 0) & _NOT_REPEATED:
            return False
        ins, outs = ([n for n in names if n != EMPTY] for names in (op.input_arg_names(), op.output_arg_names()))
        if not all(self._is_tensor(n) for n in ins + outs) or any(self._writers[n] != [position] for n in outs):
            return False
        statistics = op.optype in _KEEP_STATISTICS and not op.attrs.get("is_test", False)
        statistics = statistics and not op.attrs.get("use_global_stats", False)
        for writers in (self._writers.get(name, []) for name in ins):
            stays = len(writers) <= 1 and all(w < position for w in writers)
            if not stays and not (statistics and writers == [position]):
                return False
        return True

    def _is_tensor(self, name: str) -> bool:
        var = self.block.find_var_recursive(name)
        return var is not None and var.type() == VarType.LOD_TENSOR

    def _lasts(self, name: str) -> bool:
        var = self.block.find_var_recursive(name)
        return var is None or var.persistable()


def _again(walk: Walk, op: OpDesc, suffix: str, read: Collection[str], renamed: dict[str, str]) -> list[OpDesc]:
    """The operator once more, with other outputs; adds those that may be read to ``renamed``."""
    copy = op.clone()
    written = {n: walk.free(n + suffix) for n in op.output_arg_names() if n != EMPTY}
    walk.part_of.update((new, name) for name, new in written.items())
    renamed.update((name, new) for name, new in written.items() if name in read)
    # Statistics are updated in place, once a step: the second time it is a copy of them.
    kept = [name for name in written if name in op.input_arg_names()]
    for slot, names in op.ins.items():
        copy.set_input(slot, [written[n] if n in kept else renamed.get(n, n) for n in names])
    for slot, names in op.outs.items():
        copy.set_output(slot, [written.get(n, n) for n in names])
    ops = [*(OpDesc("assign", {"X": [name]}, {"Out": [written[name]]}) for name in kept), copy]
    for each in ops:
        each.set_attr("op_role", int(OpRole.Backward))
        walk.repeated[id(each)] = op
    return ops
