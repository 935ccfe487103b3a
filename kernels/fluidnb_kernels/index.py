"""Module of each operator, so that a look-up imports that one alone.

``python -m tests.house.operator_index`` writes this file. An operator that is not here is found by importing all.
"""

_TYPES = {
    "activation.functions": (
        "abs abs_double_grad abs_grad ceil ceil_grad cos cos_double_grad cos_grad exp exp_grad exp_grad_grad floor "
        "floor_grad log log_grad log_grad_grad reciprocal reciprocal_grad reciprocal_grad_grad relu relu_grad "
        "relu_grad_grad round round_grad rsqrt rsqrt_grad rsqrt_grad_grad sigmoid sigmoid_grad sigmoid_grad_grad "
        "sin sin_double_grad sin_grad sqrt sqrt_grad sqrt_grad_grad square square_grad square_grad_grad tanh "
        "tanh_grad tanh_grad_grad trunc trunc_grad "
    ),
    "activation.maxout": "maxout maxout_grad",
    "activation.piecewise": (
        "brelu brelu_grad brelu_grad_grad hard_shrink hard_shrink_grad hard_shrink_grad_grad hard_sigmoid "
        "hard_sigmoid_grad hard_sigmoid_grad_grad hard_swish hard_swish_grad leaky_relu leaky_relu_grad "
        "leaky_relu_grad_grad relu6 relu6_grad relu6_grad_grad softshrink softshrink_grad softshrink_grad_grad "
        "thresholded_relu thresholded_relu_grad thresholded_relu_grad_grad "
    ),
    "activation.pow": "pow pow_double_grad pow_grad",
    "activation.prelu": "prelu prelu_grad",
    "activation.smooth": (
        "acos acos_grad acosh acosh_grad asin asin_grad asinh asinh_grad atan atan_grad atanh atanh_grad celu "
        "celu_grad cosh cosh_grad elu elu_grad elu_grad_grad expm1 expm1_grad log10 log10_grad log1p log1p_grad "
        "log2 log2_grad logsigmoid logsigmoid_grad mish mish_grad selu selu_grad silu silu_grad sinh sinh_grad "
        "soft_relu soft_relu_grad softplus softplus_grad softsign softsign_grad stanh stanh_grad swish swish_grad "
        "tan tan_grad tanh_shrink tanh_shrink_grad "
    ),
    "activation.softmax": "log_softmax log_softmax_grad softmax softmax_grad",
    "activation.special": "digamma digamma_grad erf erf_grad gelu gelu_grad lgamma lgamma_grad logit logit_grad",
    "array.sequence_steps": "array_to_lod_tensor lod_tensor_to_array",
    "array.tensor_array_to_tensor": "tensor_array_to_tensor tensor_array_to_tensor_grad",
    "array.tensor_arrays": "lod_array_length read_from_array write_to_array",
    "beam.search": "beam_search beam_search_decode gather_tree",
    "compare.bitwise": "bitwise_and bitwise_not bitwise_or bitwise_xor",
    "compare.compare": (
        "allclose equal equal_all greater_equal greater_than less_equal less_than logical_and logical_not "
        "logical_or logical_xor not_equal "
    ),
    "control.delete_var": "delete_var",
    "control.py_func": "py_func",
    "control.recurrent": "recurrent recurrent_grad",
    "control.select": "select_input select_output",
    "control.while_loop": "conditional_block conditional_block_grad while while_grad",
    "conv.conv": (
        "conv2d conv2d_grad conv2d_grad_grad conv2d_transpose conv2d_transpose_grad conv2d_transpose_grad_grad "
        "conv3d conv3d_grad conv3d_grad_grad conv3d_transpose conv3d_transpose_grad conv3d_transpose_grad_grad "
        "depthwise_conv2d depthwise_conv2d_grad depthwise_conv2d_grad_grad depthwise_conv2d_transpose "
        "depthwise_conv2d_transpose_grad depthwise_conv2d_transpose_grad_grad "
    ),
    "conv.deformable": "deformable_conv deformable_conv_grad deformable_conv_v1 deformable_conv_v1_grad",
    "detection.boxes": "box_clip box_coder box_decoder_and_assign iou_similarity polygon_box_transform",
    "detection.detection_map": "detection_map",
    "detection.matching": "bipartite_match mine_hard_examples target_assign",
    "detection.matrix_nms": "matrix_nms",
    "detection.nms": "multiclass_nms multiclass_nms2 multiclass_nms3",
    "detection.priors": "anchor_generator density_prior_box prior_box",
    "detection.proposals": "collect_fpn_proposals distribute_fpn_proposals generate_proposals",
    "detection.region_targets": "generate_mask_labels generate_proposal_labels rpn_target_assign",
    "detection.regions": (
        "psroi_pool psroi_pool_grad roi_align roi_align_grad roi_perspective_transform "
        "roi_perspective_transform_grad roi_pool roi_pool_grad "
    ),
    "detection.yolo": "yolo_box yolov3_loss yolov3_loss_grad",
    "distributed.collective": "allreduce broadcast",
    "distributed.listen_and_serv": "listen_and_serv",
    "distributed.slices": "split_byref split_selected_rows",
    "distributed.tables": "fake_init lookup_sparse_table merge_ids prefetch split_ids",
    "distributed.transfer": "checkpoint_notify fetch_barrier recv send send_barrier",
    "elementwise.arithmetic": (
        "elementwise_add elementwise_add_grad elementwise_add_grad_grad elementwise_div elementwise_div_grad "
        "elementwise_div_grad_grad elementwise_floordiv elementwise_fmax elementwise_fmax_grad elementwise_fmin "
        "elementwise_fmin_grad elementwise_max elementwise_max_grad elementwise_min elementwise_min_grad "
        "elementwise_mod elementwise_mul elementwise_mul_grad elementwise_mul_grad_grad elementwise_pow "
        "elementwise_pow_grad elementwise_sub elementwise_sub_grad elementwise_sub_grad_grad "
    ),
    "elementwise.atan2": "atan2 atan2_grad",
    "io.feed_fetch": "feed fetch",
    "io.print": "print",
    "io.save_load": "load load_combine save save_combine",
    "lod.rank_table": (
        "lod_rank_table max_sequence_len reorder_lod_tensor_by_rank reorder_lod_tensor_by_rank_grad "
        "rnn_memory_helper rnn_memory_helper_grad shrink_rnn_memory shrink_rnn_memory_grad "
    ),
    "lod.reset": "lod_reset lod_reset_grad",
    "lod.split_merge": "merge_lod_tensor merge_lod_tensor_infer split_lod_tensor",
    "loss.bce_nll_kldiv": "bce_loss bce_loss_grad kldiv_loss kldiv_loss_grad nll_loss nll_loss_grad",
    "loss.binary": (
        "hinge_loss hinge_loss_grad log_loss log_loss_grad sigmoid_cross_entropy_with_logits "
        "sigmoid_cross_entropy_with_logits_grad teacher_student_sigmoid_loss teacher_student_sigmoid_loss_grad "
    ),
    "loss.cross_entropy": (
        "cross_entropy cross_entropy2 cross_entropy_grad cross_entropy_grad2 softmax_with_cross_entropy "
        "softmax_with_cross_entropy_grad "
    ),
    "loss.hierarchical_sigmoid": "hierarchical_sigmoid hierarchical_sigmoid_grad",
    "loss.label_smooth": "label_smooth label_smooth_grad",
    "loss.nce": "nce nce_grad",
    "loss.ranking": "bpr_loss bpr_loss_grad margin_rank_loss margin_rank_loss_grad rank_loss rank_loss_grad",
    "loss.regression": (
        "huber_loss huber_loss_grad modified_huber_loss modified_huber_loss_grad smooth_l1_loss "
        "smooth_l1_loss_grad "
    ),
    "loss.sample_logits": "sample_logits sample_logits_grad",
    "math.addmm_kron_cross": "addmm addmm_grad cross cross_grad kron kron_grad mv mv_grad",
    "math.bilinear": "bilinear_tensor_product bilinear_tensor_product_grad conv_shift conv_shift_grad fsp fsp_grad",
    "math.clip": "clip clip_grad",
    "math.cumsum": "cumsum cumsum_grad",
    "math.dot": "cos_sim cos_sim_grad dot dot_grad squared_l2_distance squared_l2_distance_grad",
    "math.einsum": "einsum einsum_grad",
    "math.histogram": "histogram",
    "math.inverse_cholesky": "cholesky cholesky_grad inverse inverse_grad",
    "math.matmul": (
        "bmm bmm_grad bmm_grad_grad matmul matmul_grad matmul_grad_grad matmul_v2 matmul_v2_grad "
        "matmul_v2_grad_grad mul mul_grad mul_grad_grad "
    ),
    "math.minus": "minus",
    "math.moving_average_abs_max_scale": "moving_average_abs_max_scale stright_throuth_estimator_grad",
    "math.norms": (
        "clip_by_norm dist dist_grad l1_norm l1_norm_grad norm norm_grad p_norm p_norm_grad squared_l2_norm "
        "squared_l2_norm_grad "
    ),
    "math.quantize_linear": "dequantize_linear quantize_linear",
    "math.scale": "increment scale sign",
    "math.sum": "sum",
    "metric.chunk_eval": "chunk_eval",
    "metric.classification": "accuracy auc precision_recall",
    "metric.edit_distance": "edit_distance",
    "metric.mean_iou": "mean_iou",
    "metric.positive_negative_pair": "positive_negative_pair",
    "norm.batch_norm": "batch_norm batch_norm_grad batch_norm_grad_grad",
    "norm.data_norm": "data_norm data_norm_grad",
    "norm.layer_norm": (
        "group_norm group_norm_grad instance_norm instance_norm_grad instance_norm_grad_grad layer_norm "
        "layer_norm_grad layer_norm_grad_grad "
    ),
    "norm.lrn": "lrn lrn_grad",
    "norm.spectral_norm": "spectral_norm spectral_norm_grad",
    "optimizer.adam": "adam adamax adamw",
    "optimizer.adaptive": "adadelta adagrad decayed_adagrad proximal_adagrad rmsprop",
    "optimizer.average_accumulates": "average_accumulates",
    "optimizer.momentum": "momentum",
    "optimizer.proximal": "ftrl proximal_gd",
    "optimizer.sgd": "sgd",
    "optimizer.trust_ratio": "dpsgd lamb lars_momentum",
    "pool.pool": "pool2d pool2d_double_grad pool2d_grad pool3d pool3d_double_grad pool3d_grad spp spp_grad",
    "pool.with_index": (
        "max_pool2d_with_index max_pool2d_with_index_grad max_pool2d_with_index_grad_grad max_pool3d_with_index "
        "max_pool3d_with_index_grad max_pool3d_with_index_grad_grad "
    ),
    "random.dropout": "dropout dropout_grad",
    "random.numbers": (
        "gaussian_random gaussian_random_batch_size_like randint randperm sampling_id truncated_gaussian_random "
        "uniform_random uniform_random_batch_size_like "
    ),
    "random.random_crop": "random_crop",
    "reader.readers": (
        "create_batch_reader create_double_buffer_reader create_py_reader create_random_data_generator "
        "create_shuffle_reader read "
    ),
    "reduce.reduce": (
        "frobenius_norm frobenius_norm_grad logsumexp logsumexp_grad mean mean_grad reduce_all reduce_any "
        "reduce_max reduce_max_grad reduce_mean reduce_mean_grad reduce_min reduce_min_grad reduce_prod "
        "reduce_prod_grad reduce_sum reduce_sum_grad "
    ),
    "rnn.cudnn_lstm": "cudnn_lstm cudnn_lstm_grad",
    "rnn.gru": "gru gru_grad gru_unit gru_unit_grad",
    "rnn.lstm": "lstm lstm_grad lstmp lstmp_grad",
    "rnn.lstm_unit": "lstm_unit lstm_unit_grad",
    "rnn.rnn": "rnn rnn_grad",
    "rows.operators": "get_tensor_from_selected_rows merge_selected_rows",
    "sequence.add_position_encoding": "add_position_encoding add_position_encoding_grad",
    "sequence.conv": "row_conv row_conv_grad sequence_conv sequence_conv_grad",
    "sequence.crf": "crf_decoding linear_chain_crf linear_chain_crf_grad",
    "sequence.ctc": "ctc_align warpctc warpctc_grad",
    "sequence.cvm": "cvm cvm_grad",
    "sequence.hash": "hash",
    "sequence.im2sequence": "im2sequence im2sequence_grad",
    "sequence.pad": "sequence_mask sequence_pad sequence_pad_grad sequence_unpad sequence_unpad_grad",
    "sequence.pool": "sequence_pool sequence_pool_grad sequence_softmax sequence_softmax_grad",
    "sequence.rearrange": (
        "sequence_concat sequence_concat_grad sequence_expand sequence_expand_as sequence_expand_as_grad "
        "sequence_expand_grad sequence_reshape sequence_reshape_grad sequence_reverse "
    ),
    "sequence.scatter": "sequence_scatter sequence_scatter_grad",
    "sequence.select": "sequence_enumerate sequence_erase sequence_slice sequence_slice_grad",
    "sequence.tree_conv": "tree_conv tree_conv_grad",
    "tensor.along_axis": "put_along_axis put_along_axis_grad take_along_axis take_along_axis_grad",
    "tensor.assign": "assign cast",
    "tensor.concat": (
        "concat concat_grad concat_grad_grad partial_concat partial_concat_grad partial_sum partial_sum_grad split "
    ),
    "tensor.diagonals": "diag_embed diag_embed_grad diag_v2 diag_v2_grad eye trace trace_grad tril_triu tril_triu_grad",
    "tensor.expand": "expand expand_as_v2 expand_as_v2_grad expand_grad expand_v2 expand_v2_grad tile tile_grad",
    "tensor.fill": (
        "assign_value fill fill_any_like fill_constant fill_constant_batch_size_like fill_zeros_like "
        "fill_zeros_like2 linspace range "
    ),
    "tensor.gather_scatter": (
        "gather gather_grad gather_nd gather_nd_grad scatter scatter_grad scatter_nd_add scatter_nd_add_grad "
    ),
    "tensor.index_select": (
        "index_sample index_sample_grad index_select index_select_grad masked_select masked_select_grad multiplex "
        "multiplex_grad "
    ),
    "tensor.lookup_table": "lookup_table lookup_table_grad lookup_table_v2 lookup_table_v2_grad",
    "tensor.meshgrid_roll_unbind": "meshgrid meshgrid_grad roll roll_grad unbind",
    "tensor.one_hot": "one_hot one_hot_v2 shard_index",
    "tensor.order": "arg_max arg_min argsort argsort_grad top_k top_k_grad top_k_v2 top_k_v2_grad",
    "tensor.pad": (
        "crop crop_grad crop_tensor crop_tensor_grad pad pad2d pad2d_grad pad3d pad3d_grad pad_constant_like "
        "pad_constant_like_grad pad_grad "
    ),
    "tensor.properties": "is_empty isfinite isfinite_v2 isinf isinf_v2 isnan isnan_v2 shape size",
    "tensor.reshape": (
        "flatten flatten2 flatten2_grad flatten_contiguous_range flatten_contiguous_range_grad flatten_grad "
        "reshape reshape2 reshape2_grad reshape2_grad_grad reshape_grad squeeze squeeze2 squeeze2_grad "
        "squeeze_grad unsqueeze unsqueeze2 unsqueeze2_grad unsqueeze_grad "
    ),
    "tensor.set_value": "set_value set_value_grad",
    "tensor.slice": "slice slice_grad strided_slice strided_slice_grad",
    "tensor.stack": "stack stack_grad unstack unstack_grad",
    "tensor.transpose": "flip reverse transpose transpose2 transpose2_grad transpose_grad",
    "tensor.unique": "unique unique_with_counts",
    "tensor.where": "diag where where_grad where_index",
    "vision.affine_channel": "affine_channel affine_channel_grad",
    "vision.bicubic": "bicubic_interp_v2 bicubic_interp_v2_grad",
    "vision.grid_sampler": "affine_grid affine_grid_grad grid_sampler grid_sampler_grad",
    "vision.interp": (
        "bilinear_interp bilinear_interp_grad bilinear_interp_v2 bilinear_interp_v2_grad linear_interp_v2 "
        "linear_interp_v2_grad nearest_interp nearest_interp_grad nearest_interp_v2 nearest_interp_v2_grad "
        "trilinear_interp_v2 trilinear_interp_v2_grad "
    ),
    "vision.shuffle": (
        "pixel_shuffle pixel_shuffle_grad shuffle_channel shuffle_channel_grad space_to_depth space_to_depth_grad "
        "temporal_shift temporal_shift_grad "
    ),
    "vision.similarity_focus": "similarity_focus",
    "vision.unfold": "unfold unfold_grad",
    "vision.unpool": "unpool unpool_grad",
}
_MODULES = {type: module for module, types in _TYPES.items() for type in types.split()}


def module_of(type: str) -> str | None:
    """The module that defines an operator; None where it is not known."""
    module = _MODULES.get(type)
    return module and f"{__package__}.{module}"
