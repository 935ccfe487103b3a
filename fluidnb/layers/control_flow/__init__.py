"""Loops, branches and recurrent networks: layers whose operators run sub-blocks."""

from fluidnb.layers.array import (
    array_length,
    array_read,
    array_to_lod_tensor,
    array_write,
    create_array,
    lod_rank_table,
    lod_tensor_to_array,
    max_sequence_len,
    merge_lod_tensor,
    reorder_lod_tensor_by_rank,
    shrink_memory,
    split_lod_tensor,
)
from fluidnb.layers.compare import equal, is_empty, less_than
from fluidnb.layers.control_flow.body import BodyGuard, reads_and_writes
from fluidnb.layers.control_flow.conditional import ConditionalBlock
from fluidnb.layers.control_flow.dynamic_rnn import DynamicRNN
from fluidnb.layers.control_flow.if_else import IfElse
from fluidnb.layers.control_flow.static_rnn import BlockGuardWithCompletion, StaticRNN, StaticRNNMemoryLink
from fluidnb.layers.control_flow.switch import Switch
from fluidnb.layers.control_flow.while_loop import While, WhileGuard
from fluidnb.layers.math import increment
from fluidnb.layers.metric import topk
from fluidnb.program import BlockGuard

__all__ = [
    "BlockGuard", "BlockGuardWithCompletion", "BodyGuard", "ConditionalBlock", "DynamicRNN", "IfElse", "StaticRNN",
    "StaticRNNMemoryLink", "Switch", "While", "WhileGuard", "array_length", "array_read", "array_to_lod_tensor",
    "array_write", "create_array", "equal", "increment", "is_empty", "less_than", "lod_rank_table",
    "lod_tensor_to_array", "max_sequence_len", "merge_lod_tensor", "reads_and_writes", "reorder_lod_tensor_by_rank",
    "shrink_memory", "split_lod_tensor", "topk",
]  # fmt: skip
