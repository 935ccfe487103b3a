"""OpTest: an operator checked against expected results, other executors, and numeric gradients."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fluidnb.op import get_op
from fluidnb.program import Program
from fluidnb.testing.compare import assert_close, assert_same
from fluidnb.testing.numeric import slopes
from fluidnb.testing.one_op import OneOp
from fluidnb.testing.values import named, value_of
from fluidnb.values import LoDTensor

#: Other ways to run an operator that a test suite adds: ``check(one, program, fed)``, called with the operator, the
#: program of it or of it and its gradient, and what is fed beside its inputs; it raises when a result is off.
also: list[Callable[[OneOp, Program, Mapping[str, Any]], None]] = []


class OpTest:
    """The base of a test of one operator.

    Set ``op_type``, ``inputs``, ``attrs`` and ``outputs`` in the class or in ``setUp`` (``setup_method``), then call
    `check_output` and `check_grad` in the tests. Values are arrays, ``(array, lengths)`` for sequences, or a list of
    either, with names if you like, for a slot that takes several. An expected output may also be a function that takes
    the result and asserts something about it.

    Example:
        >>> class TestDouble(OpTest):
        ...     op_type, inputs, attrs = "scale", {"X": np.array([1.0, 2.0])}, {"scale": 2.0}
        ...     outputs = {"Out": np.array([2.0, 4.0])}
        >>> test = TestDouble(); test.check_output(); test.check_grad("X", "Out")
    """

    op_type: str = ""
    inputs: Mapping[str, Any] = {}
    attrs: Mapping[str, Any] = {}
    outputs: Mapping[str, Any] = {}

    def setUp(self) -> None:
        """Prepare the attributes; for tests that compute them."""

    def setup_method(self) -> None:
        """The setup hook of pytest, before each test."""
        self.setUp()

    # ---- results

    def check_output(self, rtol: float = 1e-5, atol: float = 1e-7, no_check: Collection[str] = ()) -> None:
        """Run the operator every way there is and compare with ``outputs``.

        The ways: the compiled run thrice (bound, again, and after other data), the interpreter, which must give the
        same bits, the program after a round trip through its bytes, with the batch size unknown while building, with
        inputs in column order that change after binding, and, where the operator may work in place, with its input as
        its output.

        Args:
            rtol: relative tolerance for floating results; others must be equal.
            atol: absolute tolerance.
            no_check: output slots whose values are not compared.
        """
        one = OneOp(self.op_type, self.inputs, self.attrs, self._outputs())
        program = one.program()
        results = one.run(program)
        self._compare(one, results, rtol, atol, no_check)
        one.check_shapes(program, results)
        one.check_shapes(one.program(batch_unknown=True), results)
        again = one.run(Program.parse_from_string(program.desc.serialize_to_string()))
        assert_same(results, again, "after a round trip through bytes")
        if not get_op(self.op_type).random:
            assert_same(results, one.run(program, keep_scopes=True), "by the interpreter")
            one.check_rebinding(program, results)
            one.check_in_place(results)
            one.check_memory_order(results, max(rtol, 1e-12), max(atol, 1e-12))
        for check in also:
            check(one, program, {})

    def _outputs(self) -> dict[str, list[str]]:
        """Slot -> names of variables; a list of expected values means as many variables."""
        definition = get_op(self.op_type)
        slots = dict.fromkeys(self.outputs) or dict.fromkeys(definition.outputs)
        for slot, info in definition.outputs.items():
            if not info.dispensable or info.intermediate:
                slots.setdefault(slot)
        out: dict[str, list[str]] = {}
        for slot in slots:
            expected = self.outputs.get(slot)
            count = len(expected) if isinstance(expected, list) and definition.outputs[slot].duplicable else 1
            out[slot] = [f"{slot}@out"] if count == 1 else [f"{slot}@out{i}" for i in range(count)]
        return out

    def _compare(
        self, one: OneOp, results: Mapping[str, Any], rtol: float, atol: float, no_check: Collection[str]
    ) -> None:
        for slot, expected in self.outputs.items():
            if slot in no_check or expected is None:
                continue
            names = one.outputs[slot]
            wanted = expected if len(names) > 1 else [expected]
            for name, want in zip(names, wanted, strict=True):
                got = results[name]
                if callable(want):
                    want(np.asarray(got) if isinstance(got, LoDTensor) else got)
                else:
                    assert_close(got, value_of(want), rtol, atol, f"{self.op_type}: {slot}")

    # ---- gradients

    def check_grad(
        self, inputs_to_check: str | Sequence[str], output_names: str | Sequence[str] | None = None,
        max_relative_error: float = 1e-6, no_grad_set: Iterable[str] = (), numeric_grad_delta: float = 1e-4,
    ) -> None:  # fmt: skip
        """Compare the gradient kernels with central differences, in float64, for random gradients of the outputs.

        Args:
            inputs_to_check: input slots, or names of variables.
            output_names: output slots that the loss depends on; default: the first floating one.
            max_relative_error: how far they may be apart, relative to the numeric gradient where that is above 1.
                Large inputs are moved along random directions; a direction with a kink is left out or drawn again.
            no_grad_set: names of variables without gradient.
            numeric_grad_delta: how far an element is moved for the numeric gradient.
        """
        one = OneOp(self.op_type, _wide(self.inputs), self.attrs, self._outputs())
        names = _variables(one, inputs_to_check)
        program, cotangents = one.backward(_slots(output_names), set(no_grad_set))
        fetch = [n + "@GRAD" for n in names]
        got = one.run(program, fetch, feed=cotangents)
        assert_same(got, one.run(program, fetch, feed=cotangents, keep_scopes=True), "by the interpreter")
        for check in also:
            check(one, program, cotangents)
        for name in names:
            have = np.asarray(got[name + "@GRAD"])
            for slope in slopes(one, name, cotangents, numeric_grad_delta):
                mine = float((have.reshape(slope.direction.shape) * slope.direction).sum())
                error = abs(mine - slope.value) / max(abs(slope.value), 1)
                assert error <= max_relative_error, (
                    f"{self.op_type}: the gradient of {name} is off by {error:.1e}: {mine} for {slope.value} "
                    f"along {np.array2string(slope.direction, threshold=20)}"
                )

    def gradients_of_mean(
        self, inputs_to_check: Sequence[str], output_names: str | Sequence[str], no_grad_set: Iterable[str] = ()
    ) -> dict[str, Any]:
        """The gradients of the mean of some outputs, as Fluid's OpTest defines its loss.

        Args:
            inputs_to_check: input slots of one variable, or names of variables.
            output_names: output slots; with several, the loss is the average of their means.
            no_grad_set: names of variables without gradient.

        Returns:
            Name in ``inputs_to_check`` -> its gradient.
        """
        one = OneOp(self.op_type, self.inputs, self.attrs, self._outputs())
        slots = _slots(output_names) or ()
        program, cotangents = one.backward(slots, set(no_grad_set))
        used = [n + "@GRAD" for s in slots for n in one.outputs[s]]
        for name in used:
            cotangents[name] = np.full_like(cotangents[name], 1 / (cotangents[name].size * len(used)))
        names = _variables(one, inputs_to_check)
        got = one.run(program, [n + "@GRAD" for n in names], feed=cotangents)
        return {name: np.asarray(got[n + "@GRAD"]) for name, n in zip(inputs_to_check, names, strict=True)}


def _slots(output_names: str | Sequence[str] | None) -> Sequence[str] | None:
    return [output_names] if isinstance(output_names, str) else output_names


def _variables(one: OneOp, inputs_to_check: str | Sequence[str]) -> list[str]:
    """The variables behind input slots and names."""
    wanted = [inputs_to_check] if isinstance(inputs_to_check, str) else inputs_to_check
    return [n for w in wanted for n in ([n for n, _ in one.inputs[w]] if w in one.inputs else [w])]


def _wide(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs with float64 instead of other floats."""
    out: dict[str, Any] = {}
    for slot, row in named(inputs).items():
        pairs: list[Any] = []
        for name, value in row:
            if isinstance(value, LoDTensor) and value.array is not None and value.array.dtype.kind == "f":
                value = LoDTensor(value.array.astype(np.float64), value.lod_)
            pairs.append((name, value))
        out[slot] = pairs
    return out
