"""Layers over trees."""

from __future__ import annotations

from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["tree_conv"]


@naming.layer
def tree_conv(
    nodes_vector: Variable, edge_set: Variable, output_size: int, num_filters: int = 1, max_depth: int = 2,
    act: str | None = "tanh", param_attr: Any = None, bias_attr: Any = None, name: str | None = None,
) -> Variable:  # fmt: skip
    """Convolves the features of tree nodes with those below them.

    Args:
        nodes_vector: float32 or float64 [batch, nodes, width].
        edge_set: int32 [batch, edges, 2]: parent and child, counted from 1; a row with a 0 ends the tree.
        output_size: size of the result for each filter.
        num_filters: how many filters.
        max_depth: levels of a patch, its root included.
        act: activation.
        param_attr: of the filter [width, 3, output_size, num_filters].
        bias_attr: of the bias; False for none.
        name: start of the names of the parameters.

    Returns:
        [batch, nodes, output_size, num_filters].

    Raises:
        OpValueError: nodes_vector has other dimensions.
        RuleError: the shapes do not fit.

    Example:
        >>> nodes = fluid.layers.data("nodes", [10, 5])
        >>> edges = fluid.layers.data("edges", [9, 2], dtype="int32")
        >>> fluid.layers.tree_conv(nodes, edges, 6).shape
        (-1, 10, 6, 1)

    Source: Fluid's layers.tree_conv.
    """
    helper = LayerHelper("tree_conv", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    if len(nodes_vector.shape) != 3:
        raise OpValueError(
            "nodes_vector of tree_conv must have three dimensions.", expected="[batch, nodes, width]",
            received=list(nodes_vector.shape),
        )  # fmt: skip
    shape = [nodes_vector.shape[2], 3, output_size, num_filters]
    weight = helper.create_parameter(attr=helper.param_attr, shape=shape, dtype=nodes_vector.dtype)
    out = helper.create_variable_for_type_inference(dtype=nodes_vector.dtype)
    helper.append_op(
        type="tree_conv",
        inputs={"NodesVector": [nodes_vector], "EdgeSet": [edge_set], "Filter": [weight]},
        outputs={"Out": [out]},
        attrs={"max_depth": max_depth},
    )
    return helper.append_activation(helper.append_bias_op(out) if helper.bias_attr else out)
