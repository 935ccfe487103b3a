"""IfElse: some rows of a batch go through one block, the others through another."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fluidnb.arguments import Count, checked
from fluidnb.backward.emit import all_or_nothing
from fluidnb.errors import OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.array import merge_lod_tensor
from fluidnb.layers.compare import logical_not
from fluidnb.layers.control_flow import rows
from fluidnb.layers.control_flow.body import BodyGuard, Condition, check_made_outside, inside, operand, reads_and_writes
from fluidnb.layers.control_flow.conditional import append_branch
from fluidnb.layers.creation import assign
from fluidnb.program import Block, Variable, unique_name
from fluidnb.program import layer_calls as naming
from fluidnb.values.dtypes import dtype_name


@dataclass
class Side:
    """One side of an `IfElse`."""

    holds: bool  # whether it is the side for rows whose condition holds
    body: Block | None = None  # its block; None before it is filled
    results: list[Variable | None] = field(default_factory=list)  # its results, variables of its block
    outs: list[Variable] = field(default_factory=list)  # the outer variables that get them

    @property
    def name(self) -> str:
        """The user-visible name of the branch."""
        return "true_block" if self.holds else "false_block"


@checked
class IfElse:
    """Two blocks, between which a bool for each row of a batch decides; the results come back in the order of the rows.

    A side runs if it has rows, and on these alone. A method that is called at the wrong time, outside of its block for
    example, raises OpValueError. It can be written in three ways:

    - Fluid's: ``ie = IfElse(cond)``; in a block ``x = ie.input(x)`` takes the rows of an outer variable that go this
      way, ``ie.output(y)`` gives a result, and afterwards ``ie()`` has the results. What is not taken by ``input`` is
      seen whole.
    - ``ie = IfElse()``, the condition given at the end: ``ie(cond)``. Of the outer variables that a block reads, those
      that have a row for each element of the condition are split unasked; parameters and single numbers are not.
    - ``ie = IfElse(inputs=[x], output_num=1)``: ``ie.inputs(True, 0)`` takes and ``ie.set_output(True, 0, y)`` gives by
      number, and ``ie(cond)`` has the results.

    Args:
        cond: bool [N, 1] or [N], one for each row, or of sequences for each sequence; or of shape [1], which decides
            for the whole batch. None: it is given at the call.
        name: name of the layer.
        inputs: the variables that ``inputs(side, i)`` takes.
        output_num: how many results each side has; with 1 the call gives a variable instead of a list.

    Example:
        >>> x = fluid.layers.data("x", [1])
        >>> limit = fluid.layers.fill_constant_batch_size_like(x, [-1, 1], "float32", 0.0)
        >>> ie = fluid.layers.IfElse(fluid.layers.less_than(x, limit))
        >>> with ie.true_block() as body:
        ...     ie.output(fluid.layers.scale(ie.input(x), -1.0))
        >>> with ie.false_block() as body:
        ...     ie.output(fluid.layers.scale(ie.input(x), 10.0))
        >>> [out] = ie()
        >>> feed = {"x": np.array([[1.0], [-2.0], [3.0]], "float32")}
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[out])[0].ravel()
        array([10.,  2., 30.], dtype=float32)

    Source: design documents, blocks with if-else.
    """

    def __init__(
        self, cond: Condition | None = None, name: str | None = None, inputs: Sequence[Variable] | None = None,
        output_num: int | None = None,
    ) -> None:  # fmt: skip
        if cond is not None:
            rows.check_condition(cond)
        self.helper = LayerHelper("ifelse", name=name)
        self._cond = None if cond is None else rows.as_column(cond)
        self._declared = list(inputs or ())
        self._output_num = output_num
        self._open: Side | None = None
        self._sides: dict[bool, Side] = {}
        #: outer variable -> its rows where the condition holds, and the others
        self._parts: dict[str, tuple[Variable, Variable]] = {}
        self._merged: list[Variable] | None = None

    # The sides.

    def true_block(self) -> BodyGuard:
        """The block for the rows whose condition holds, to fill in a ``with``."""
        return _SideGuard(self, True)

    def false_block(self) -> BodyGuard:
        """The block for the other rows; see `true_block`."""
        return _SideGuard(self, False)

    def input(self, x: Variable) -> Variable:
        """The rows of an outer variable that go this way.

        Args:
            x: [N, ...] or sequences, made before and outside.

        Returns:
            Some of its rows; a variable outside of the block, so that it can be fetched.
        """
        side = self._side("input must in true/false blocks")
        return self._parts_of(x)[not side.holds]

    def inputs(self, side: bool, index: int) -> Variable:
        """`input` of one of the variables that were declared.

        Args:
            side: True in the true block, False in the false block.
            index: which of them.

        Returns:
            Some of its rows.
        """
        self._side("input must in true/false blocks", side, f"inputs({side}, {index})")
        if not 0 <= index < len(self._declared):
            raise OpValueError(
                f"IfElse has no input {index}.", expected=f"0 to {len(self._declared) - 1}" if self._declared else
                "IfElse(inputs=[…])", received=index, hint="ie.input(x) takes a variable that was not declared.",
            )  # fmt: skip
        return self.input(self._declared[index])

    def output(self, *outs: Variable) -> None:
        """Give results of the block that is open.

        Args:
            outs: variables with a row for each row of this side. Both sides give as many.
        """
        side = self._side("output can only be invoked in the sub-block")
        side.results.extend(outs)

    def set_output(self, side: bool, index: Count, out: Variable) -> None:
        """Give one result of the block that is open.

        Args:
            side: True in the true block, False in the false block.
            index: which result it is.
            out: as for `output`.
        """
        opened = self._side("output can only be invoked in the sub-block", side, f"set_output({side}, {index}, …)")
        if index < 0 or self._output_num is not None and index >= self._output_num:
            raise OpValueError(
                f"IfElse has no output {index}.", received=index, hint="output_num says how many there are.",
                expected="0 and up" if self._output_num is None else f"0 to {self._output_num - 1}",
            )  # fmt: skip
        opened.results.extend([None] * (index + 1 - len(opened.results)))
        opened.results[index] = out

    def _side(self, otherwise: str, wanted: bool | None = None, call: str = "") -> Side:
        if self._open is None:
            raise OpValueError(
                otherwise, expected="with ie.true_block(): …", received="outside of both blocks",
                hint="or in the false_block; each sees its own rows.",
            )  # fmt: skip
        if wanted is not None and wanted != self._open.holds:
            raise OpValueError(
                f"{call} belongs into the {Side(wanted).name}.", expected=f"with ie.{Side(wanted).name}(): …",
                received=f"in the {self._open.name}",
                hint=f"in this block it is {call.replace(str(wanted), str(not wanted))}.",
            )  # fmt: skip
        return self._open

    # Rows.

    def _parts_of(self, x: Variable) -> tuple[Variable, Variable]:
        """The two parts of an outer variable, and the operator that splits it once the condition is known."""
        known = self._parts.get(x.name)
        if known is not None:
            return known
        home = self._home()
        check_made_outside(home, x, "x", "input of IfElse")
        level, shape = x.lod_level, (-1, *x.shape[1:])
        name = f"ifelse_input{self.helper.name}"
        true, false = (
            home.create_var(name=unique_name.generate(name), dtype=x.dtype, shape=shape, lod_level=level)
            for _ in range(2)
        )
        if self._cond is not None:
            self._split(x, true, false)
        self._parts[x.name] = (true, false)
        return true, false

    def _split(self, x: Variable, true: Variable, false: Variable) -> None:
        home, cond = self._home(), self._cond
        assert cond is not None
        with inside(home.program, home):
            mask = rows.spread(cond, x) if rows.is_one(cond) else cond
        home.append_op(
            type="split_lod_tensor", inputs={"X": [x], "Mask": [mask]},
            outputs={"OutTrue": [true], "OutFalse": [false]}, attrs={"level": 0},
        )  # fmt: skip

    def _home(self) -> Block:
        """The block around both sides."""
        body = self._open.body if self._open is not None else next(iter(self._sides.values())).body
        assert body is not None
        return body.program.block(body.parent_idx)

    # Ends.

    def _close(self, body: Block) -> None:
        """A side is filled."""
        side = self._side("")
        wanted = self._output_num
        count = sum(v is not None for v in side.results)
        if not count or count != len(side.results) or wanted not in (None, count):
            raise OpValueError(
                "Must set output inside block", expected=f"{wanted or 'some'} by ie.output(…) in the {side.name}",
                received=f"{count} outputs" if count else "no output", hint="a side without results does nothing.",
            )  # fmt: skip
        self._sides[side.holds] = side
        if self._cond is not None:
            if rows.is_one(self._cond):
                self._check_pairs()
            self._give(side)
            self._append(side)
        self._open = None

    def _check_pairs(self) -> None:
        """Checks that corresponding results of the branches have rows of one kind."""
        if len(self._sides) == 2:
            for true, false in zip(self._sides[True].results, self._sides[False].results, strict=False):
                assert true is not None and false is not None
                _check_fit(true, false)

    def _give(self, side: Side) -> None:
        """Complete a side's block: its results go to outer variables."""
        assert side.body is not None and self._cond is not None
        program, one, home = side.body.program, rows.is_one(self._cond), self._home()
        other = self._sides.get(not side.holds)
        shared = other.outs if one and other is not None else []
        for k, result in enumerate(v for v in side.results if v is not None):
            out = shared[k] if k < len(shared) else home.create_var(
                name=unique_name.generate(f"{self.helper.name}_output"), dtype=result.dtype, lod_level=result.lod_level
            )  # fmt: skip
            before = out.shape
            if not one and -1 not in result.shape[1:]:
                _no_rows(home, out, result)
            with inside(program, side.body):
                assign(result, output=out)
            if k < len(shared):  # it gets the results of both
                out.desc.set_shape([a if a == b else -1 for a, b in zip(before, out.shape, strict=True)])
            side.outs.append(out)

    def _append(self, side: Side) -> None:
        """Append the operator that runs a side's block."""
        assert side.body is not None and self._cond is not None
        with inside(side.body.program, self._home()):
            deciding = self._decider(side)
        append_branch(side.body, [deciding], scalar=rows.is_one(self._cond))

    def _decider(self, side: Side) -> Variable:
        """The condition of a branch: one bool, or the rows that it needs."""
        cond = self._cond
        assert cond is not None
        if rows.is_one(cond):
            return cond if side.holds else logical_not(cond)
        plain = [p[not side.holds] for p in self._parts.values() if not p[0].lod_level]
        return plain[0] if plain else self._parts_of(cond)[not side.holds]

    # The call.

    @naming.layer
    def __call__(self, cond: Condition | None = None) -> list[Variable] | Variable:
        """The results of both sides, their rows in the order of the condition.

        With one side alone, its results: just its rows.

        Args:
            cond: the condition, if it was not given before.

        Returns:
            The results; the variable itself for ``output_num=1``.
        """
        if self._open is not None:
            raise OpValueError(
                "IfElse::__call__ must be out of sub-block", expected="ie() after the blocks",
                received=f"inside the {self._open.name}", hint="end the with first.",
            )  # fmt: skip
        if not self._sides:
            raise OpValueError(
                "Must invoke true_block/false_block before __call__", expected="with ie.true_block(): …",
                received="no block", hint="fill one or both, each with ie.output(…).",
            )  # fmt: skip
        counts = {s.name: len(s.results) for s in self._sides.values()}
        if len(set(counts.values())) > 1:
            raise OpValueError(
                "The output side must be same", expected="as many outputs of each side",
                received=" and ".join(f"{n} of the {name}" for name, n in sorted(counts.items(), reverse=True)),
                hint="the first output of one side goes with the first of the other, and so on.",
            )  # fmt: skip
        self._check_pairs()
        if cond is not None and self._cond is not None:
            raise OpValueError(
                "IfElse has its condition already.", expected="ie()", received=f"ie({getattr(cond, 'name', cond)})",
                hint="it was given when the IfElse was made, or called before.",
            )  # fmt: skip
        if self._cond is None:
            self._decide(cond)
        if self._merged is None:
            self._merged = self._merge()
        return self._merged[0] if self._output_num == 1 else list(self._merged)

    def _decide(self, cond: Variable | None) -> None:
        """The condition is known at last: split what the sides read, and append them."""
        rows.check_condition(cond)
        assert cond is not None
        home = self._home()
        if home.program.current_block_idx != home.idx:
            raise OpValueError(
                "IfElse must be called in the block that contains its branches.", expected=f"in block {home.idx}",
                received=f"in block {home.program.current_block_idx}", hint="call it before or after the other block.",
            )  # fmt: skip
        parts = dict(self._parts)
        try:
            with all_or_nothing(home.program):
                self._cond = rows.as_column(cond)
                for name, (true, false) in parts.items():
                    self._split(home.var_recursive(name), true, false)
                for side in self._ordered():
                    self._give(side)
                    self._split_what_it_reads(side)
                for side in self._ordered():
                    self._append(side)
                self._merged = self._merge()
        except BaseException:
            self._cond, self._parts = None, parts
            for side in self._sides.values():
                side.outs.clear()
            raise

    def _ordered(self) -> list[Side]:
        return [self._sides[holds] for holds in (True, False) if holds in self._sides]

    def _split_what_it_reads(self, side: Side) -> None:
        body, cond = side.body, self._cond
        assert body is not None and cond is not None
        if rows.is_one(cond):  # the side that runs has the whole batch
            return
        reads, writes = reads_and_writes(body)
        taken = {p.name for both in self._parts.values() for p in both}
        for name in reads:
            x = body.var_recursive(name)
            if name in taken or not rows.has_rows_of(cond, x):
                continue
            if name in writes:
                raise OpValueError(
                    f"The {side.name} writes {name}, of which it has only some rows.", slots=[operand(name, x)],
                    expected="results by ie.output(…)", received=f"a write to block {x.block.idx}",
                    hint="assign() without output creates a new variable.",
                )  # fmt: skip
            rows.read_instead(body, name, self._parts_of(x)[not side.holds].name)

    def _merge(self) -> list[Variable]:
        """The results: of one side as they are, of two sides joined."""
        cond, sides = self._cond, self._ordered()
        assert cond is not None
        if len(sides) == 1 or rows.is_one(cond):
            return sides[0].outs
        return [merge_lod_tensor(true, false, cond, cond) for true, false in zip(*(s.outs for s in sides), strict=True)]


class _SideGuard(BodyGuard):
    """The ``with`` of one side."""

    def __init__(self, ifelse: IfElse, holds: bool) -> None:
        self._ifelse, self._side = ifelse, Side(holds)
        self._check_start()
        super().__init__(ifelse.helper, ifelse._close, self._forget)
        self.role = self._side.name

    def _check_start(self) -> None:
        ifelse, name = self._ifelse, self._side.name
        if ifelse._open is not None:
            raise OpValueError(
                "You cannot invoke IfElse.block() inside a block", expected="one block after the other",
                received=f"{name}() inside the {ifelse._open.name}",
                hint="for a choice inside a branch, create another IfElse.",
            )  # fmt: skip
        if self._side.holds in ifelse._sides:
            raise OpValueError(
                f"IfElse has its {name} already.", expected="one of each", received="a second one",
                hint="another choice is another IfElse().",
            )  # fmt: skip

    def __enter__(self) -> Block:
        self._side.body = super().__enter__()
        self._side.results.clear()  # of a block that an error ended
        self._parts = dict(self._ifelse._parts)
        self._ifelse._open = self._side
        return self._side.body

    def _forget(self) -> None:
        self._ifelse._open, self._ifelse._parts = None, self._parts
        self._ifelse._sides.pop(self._side.holds, None)


def _no_rows(home: Block, out: Variable, result: Variable) -> None:
    """Gives the branch that does not run an empty result; Paddle would reuse the previous run's."""
    home.append_op(
        type="fill_constant", outputs={"Out": [out]},
        attrs={"shape": [0, *result.shape[1:]], "dtype": int(result.dtype), "value": 0.0},
    )  # fmt: skip


def _check_fit(true: Variable, false: Variable) -> None:
    fits = true.dtype == false.dtype and len(true.shape) == len(false.shape)
    if not fits or any(-1 not in ab and ab[0] != ab[1] for ab in zip(true.shape[1:], false.shape[1:], strict=True)):
        raise OpValueError(
            "The sides of IfElse give rows that do not fit together.",
            slots=[operand("true_block", true), operand("false_block", false)],
            expected=f"{dtype_name(true.dtype)}{[-1, *true.shape[1:]]}, as of the true_block",
            received=f"{dtype_name(false.dtype)}{list(false.shape)}",
            hint="an output has a row for each row of its side, and both sides give the same kind of rows.",
        )  # fmt: skip
