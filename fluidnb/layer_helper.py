"""LayerHelper: what layer functions share: names, parameters, temporaries, bias, activation."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fluidnb.arguments import checked
from fluidnb.errors import OpTypeError, OpValueError, near, typed
from fluidnb.layer_helper_base import LayerHelperBase
from fluidnb.op import get_op, has_op
from fluidnb.param_attr import ParamAttr, descriptions
from fluidnb.program import Variable
from fluidnb.values import dtypes

__all__ = ["LayerHelper"]


@checked
class LayerHelper(LayerHelperBase):
    """A layer function's arguments, and methods that look up there what they need; what was not given, they leave out.

    Args:
        layer_type: the layer's type, which names start with; or the function's ``locals()``, then its own name serves.
        kwargs: the layer's arguments: ``name``, ``input``, ``param_attr``, ``bias_attr``, ``act``, ``main_program``, …

    Example:
        >>> def doubled(input, act=None, name=None):
        ...     helper = LayerHelper("doubled", **locals())
        ...     out = helper.create_tmp_variable(helper.input_dtype())
        ...     helper.append_op(type="scale", inputs={"X": input}, outputs={"Out": out}, attrs={"scale": 2.0})
        ...     return helper.append_activation(out)
        >>> y = doubled(fluid.layers.data("x", [3]), act="relu")
        >>> y.name, y.op.type
        ('doubled_0.tmp_1', 'relu')

    Source: Python API design document, section on the layer helper.
    """

    def multiple_input(self, input_param_name: str = "input") -> list[Variable]:
        """An argument that may be one variable or several, as a list."""
        return self._inputs(input_param_name)

    def _inputs(self, input_param_name: str) -> list[Variable]:
        argument = self.kwargs.get(input_param_name)
        variables: list[Any] = list(argument) if isinstance(argument, list | tuple) else [argument]
        for v in variables:
            if not isinstance(v, Variable):
                raise OpTypeError(
                    f"{input_param_name} of {self.layer_type} must be a Variable.",
                    expected="a Variable, or a list of them", received=typed(v),
                    hint="layers.data() makes one to feed, layers.assign() or fill_constant() one that holds a value.",
                )  # fmt: skip
        return variables

    def input(self, input_param_name: str = "input") -> Variable:
        """An argument that must be exactly one variable."""
        inputs = self.multiple_input(input_param_name)
        if len(inputs) != 1:
            raise OpValueError(f"{self.layer_type} layer only takes one input", received=f"{len(inputs)} variables")
        return inputs[0]

    def input_dtype(self, input_param_name: str = "input") -> Any:
        """The dtype that all variables of an argument share."""
        inputs = self._inputs(input_param_name)
        if not inputs:
            raise OpTypeError(
                f"{input_param_name} of {self.layer_type} must have at least one Variable.",
                expected="a Variable, or a list of them", received="[] (list)",
            )  # fmt: skip
        for v in inputs[1:]:
            if v.dtype != inputs[0].dtype:
                raise OpValueError(
                    f"Data Type mismatch in {input_param_name} of {self.layer_type}.",
                    slots=[(input_param_name, i.name, dtypes.dtype_name(i.dtype), i.shape) for i in inputs],
                    hint="layers.cast() changes a dtype.",
                )  # fmt: skip
        return inputs[0].dtype

    def multiple_param_attr(self, length: int) -> list[ParamAttr | None]:
        """The ``param_attr`` of the layer, expanded to several parameters."""
        return descriptions(self.kwargs.get("param_attr"), length)

    def iter_inputs_and_params(self, input_param_name: str = "input") -> Iterator[tuple[Variable, ParamAttr | None]]:
        """Every input with the description of its parameter.

        Inside the loop ``create_parameter`` without ``attr`` uses that description.
        """
        inputs = self._inputs(input_param_name)
        for v, attr in zip(inputs, descriptions(self.kwargs.get("param_attr"), len(inputs)), strict=True):
            self._current_attr = attr
            yield v, attr
        self._current_attr = None

    def create_tmp_variable(self, dtype: Any = None, stop_gradient: bool = False) -> Variable:
        """A variable for an operator's output; its shape comes from the operator.

        Args:
            dtype: its dtype; None takes that of the layer's ``input``.
            stop_gradient: whether gradients end here.
        """
        return self._temporary(self.input_dtype() if dtype is None else dtype, stop_gradient)

    create_variable_for_type_inference = create_tmp_variable

    def append_bias_op(self, input_var: Variable, dim_start: int = 1, dim_end: int | None = None) -> Variable:
        """Add a bias to a variable, unless the layer has ``bias_attr=False``.

        Args:
            input_var: the variable.
            dim_start: the bias has the variable's sizes from this axis …
            dim_end: … to before this one; None for the rest.

        Returns:
            The sum, or ``input_var`` itself.
        """
        attr = self.bias_attr
        if attr is None:
            return input_var
        bias = self.create_parameter(attr, input_var.shape[dim_start:dim_end], input_var.dtype, is_bias=True)
        return self._result("elementwise_add", {"X": [input_var], "Y": [bias]}, input_var, {"axis": dim_start})

    def append_activation(self, input_var: Variable) -> Variable:
        """Apply the layer's ``act``, if it has one.

        Raises:
            OpValueError: no operator has that name, or it is not an activation.
            OpTypeError: ``act`` is neither text nor a dict with ``type``.
        """
        act = self.kwargs.get("act")
        if act is None:
            return input_var
        attrs = {"type": act} if isinstance(act, str) else dict(act) if isinstance(act, Mapping) else {}
        act_type = attrs.pop("type", None)
        if not isinstance(act_type, str):
            raise OpTypeError("act names an activation.", expected="text, or a dict with 'type'", received=repr(act))
        if not has_op(act_type) or not {"X"} == set(get_op(act_type).inputs) or "Out" not in get_op(act_type).outputs:
            known = ["relu", "sigmoid", "softmax", "sqrt", "square", "tanh"]
            raise OpValueError(
                f"{act_type} is not an activation.",
                slots=[("input", input_var.name, dtypes.dtype_name(input_var.dtype), input_var.shape)],
                expected=f"for example {', '.join(known)}", received=repr(act),
                hint=near(act_type, known)
                or f"for example act={known[0]!r}; an activation is an operator with one input X and an output Out.",
                argument="act",
            )  # fmt: skip
        return self._result(act_type, {"X": [input_var]}, input_var, attrs)

    def append_sum(self, variables: Sequence[Variable]) -> Variable:
        """The sum of several variables of one shape; one alone is returned as it is."""
        if len(variables) == 1:
            return variables[0]
        return self._result("sum", {"X": list(variables)}, variables[0], {})

    def _result(
        self, type: str, inputs: Mapping[str, list[Variable]], like: Variable, attrs: Mapping[str, Any]
    ) -> Variable:  # fmt: skip
        """The output ``Out`` of a new operator, with the dtype of a variable."""
        block = self.block
        out = block._temporary(self.name, like.dtype, False)
        block._appended(type, inputs, {"Out": [out]}, attrs)
        return out

    def is_instance(self, param_name: str, cls: type) -> None:
        """Raise OpTypeError unless an argument has a type."""
        value = self.kwargs.get(param_name)
        if not isinstance(value, cls):
            raise OpTypeError(
                f"The input {param_name} parameter of method {self.layer_type} must be {cls.__name__}.",
                expected=cls.__name__, received=typed(value),
            )  # fmt: skip

    # The spellings of the design document.
    iter_multiple_input_and_param = iter_inputs_and_params
    create_tmp_var = create_tmp_variable
    add_sum = append_sum
    add_bias = append_bias_op
    add_activation = append_activation
