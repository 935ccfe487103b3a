"""Operators of Paddle 1.4 that fluidnb does not have: why, and what to use instead."""

from __future__ import annotations

_DIST = "it moves values between processes", "one process trains: Executor, or ParallelExecutor over the same program."
_FUSED = "it is several operators in one, which a pass of Paddle writes", "build the program of the single operators."
_ENGINE = "it hands a part of the program to another library", "load the program before it was converted."
_QUANT = "it rounds to a few bits", "load the program before it was quantized."
_READER = "programs do not open data files by themselves", "layers.py_reader takes any Python reader."

#: (why, what to use instead) -> the operators of which it is true
_GROUPS = {
    _DIST: """allreduce broadcast checkpoint_notify dgc dgc_clip_by_norm fake_init fetch_barrier gen_nccl_id
        listen_and_serv lookup_sparse_table merge_ids ncclAllReduce ncclBcast ncclInit ncclReduce prefetch recv
        ref_by_trainer_id send send_barrier split_byref split_ids split_selected_rows sync_batch_norm""",
    _FUSED: """alloc_continuous_space attention_lstm conv2d_fusion conv2d_inception_fusion fc fused_elemwise_activation
        fused_embedding_fc_lstm fused_embedding_seq_pool fusion_gru fusion_lstm fusion_repeated_fc_relu
        fusion_seqconv_eltadd_relu fusion_seqexpand_concat_fc fusion_seqpool_concat fusion_squared_mat_sub
        fusion_transpose_flatten_concat""",
    _ENGINE: "anakin_engine ngraph_engine tensorrt_engine",
    _QUANT: """dequantize fake_channel_wise_dequantize_max_abs fake_channel_wise_quantize_abs_max
        fake_dequantize_max_abs fake_quantize_abs_max fake_quantize_moving_average_abs_max
        fake_quantize_range_abs_max quantize requantize""",
    _READER: "create_ctr_reader create_custom_reader create_multi_pass_reader create_recordio_file_reader open_files",
    (
        "a program runs on one place",
        "fluid.CPUPlace() or fluid.CUDAPlace(0), given to the Executor.",
    ): "get_places",
    ("programs have no threads of their own", "run two programs in two threads of Python."): "go",
}  # fmt: skip

#: operator -> (why there is none, what to use instead)
ABSENT = {type: facts for facts, types in _GROUPS.items() for type in types.split()}


def reason(type: str) -> tuple[str, str] | None:
    """Why there is no such operator, and what to use instead; None for a name that Paddle 1.4 does not have either.

    Args:
        type: the operator, or the gradient of one.

    Example:
        >>> reason("fusion_gru")
        ('it is several operators in one, which a pass of Paddle writes', 'build the program of the single operators.')
    """
    return ABSENT.get(type.removesuffix("_grad"))
