"""The core's own Executor: runs one block of a description, with feeds and fetches in variables of the scope."""


from fluidnb.program import Program
from fluidnb.proto.desc import OpDesc, ProgramDesc
from fluidnb.runtime import Executor as _Executor
from fluidnb.runtime import Interpreter, LoweredProgram, Scope
from fluidnb.values import LoDTensor, LoDTensorArray, Place


class Executor:
    """Runs a block of a description in a scope.

    Example:
        >>> program = Program()
        >>> out = program.global_block().create_var(name="one", shape=[1], dtype="float32", persistable=True)
        >>> op = program.global_block().append_op(
        ...     "fill_constant", {}, {"Out": out}, {"shape": [1], "dtype": "float32", "value": 1.0})
        >>> scope = Scope()
        >>> Executor(fluid.CPUPlace()).run(program.desc, scope, 0)
        >>> np.array(scope.find_var("one").get_tensor())
        array([1.], dtype=float32)
    """

    def __init__(self, place: Place) -> None:
        self._executor = _Executor(place)

    def run(
        self, desc: ProgramDesc, scope: Scope, block_id: int = 0, create_local_scope: bool = True,
        create_vars: bool = True,
    ) -> None:  # fmt: skip
        """Run every operator of a block; feed and fetch operators read and write their variables in the scope.

        Args:
            create_local_scope: put the block's own variables into a scope that goes when the run ends (True), or
                into ``scope`` (False).
            create_vars: ignored (compatibility); variables are made by the operators that write them.
        """
        if create_local_scope and block_id == 0:
            self._whole(desc, scope)
            return
        lowered = LoweredProgram(desc, (), (), self._executor.place)
        local = scope.new_scope() if create_local_scope else scope
        outside, local.block = local.block, lowered.blocks[block_id]
        interpreter = Interpreter(lowered, local)
        interpreter.stack = (interpreter.stack[0]._replace(block=lowered.blocks[block_id]),)
        try:
            interpreter.run()
        finally:
            local.block = outside
            if create_local_scope:
                scope.kids.remove(local)

    def _whole(self, desc: ProgramDesc, scope: Scope) -> None:
        program = desc.view if isinstance(desc.view, Program) else Program(desc)
        feed, fetched = {}, []
        for op in desc.blocks[0].ops:
            if op.optype == "feed":
                column = scope.find_var(op.input("X")[0])
                feed[op.output("Out")[0]] = None if column is None else column.get(LoDTensorArray).read(_column(op))
            elif op.optype == "fetch":
                fetched.append(op)
        names = [op.input("X")[0] for op in fetched]
        results = self._executor.run(program, feed, names, scope=scope, return_numpy=False)
        for op, value in zip(fetched, results, strict=True):
            set_feed_variable(scope, value, op.output("Out")[0], _column(op))


def set_feed_variable(scope: Scope, tensor: LoDTensor, name: str, index: int) -> None:
    """Put a tensor into a column of the variable from which feed operators read.

    Args:
        name: the variable, as a rule ``feed``.
        index: the column.

    Example:
        >>> scope = Scope(); set_feed_variable(scope, LoDTensor(np.ones(2)), "feed", 0)
        >>> len(scope.find_var("feed").get_lod_tensor_array())
        1
    """
    scope.var(name).get_lod_tensor_array().write(index, tensor)


def get_fetch_variable(scope: Scope, name: str, index: int) -> LoDTensor:
    """The tensor that a fetch operator wrote into a column.

    Args:
        name: the variable, as a rule ``fetch``.
        index: the column.

    Raises:
        EnforceNotMet: nothing was written there.

    Example:
        >>> scope = Scope(); set_feed_variable(scope, LoDTensor(np.ones(2)), "fetch", 0)
        >>> np.array(get_fetch_variable(scope, "fetch", 0))
        array([1., 1.])
    """
    return scope.var(name).get_fetch_list().read(index)


def _column(op: OpDesc) -> int:
    column: int = op.attrs.get("col", 0)
    return column
