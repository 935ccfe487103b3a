"""Layers of each module, so that the use of one imports its module alone.

``python -m tests.house.layer_index`` writes this file.
"""

#: module -> its layers
NAMES = {
    "activation": (
        "abs acos asin atan brelu ceil cos elu exp floor hard_shrink hard_sigmoid leaky_relu log logsigmoid maxout "
        "pow prelu reciprocal relu relu6 round rsqrt selu sigmoid sign sin soft_relu softmax softplus softshrink "
        "softsign sqrt square stanh swish tanh tanh_shrink thresholded_relu "
    ),
    "array": (
        "array_length array_read array_to_lod_tensor array_write create_array lod_rank_table lod_tensor_to_array "
        "max_sequence_len merge_lod_tensor reorder_lod_tensor_by_rank shrink_memory split_lod_tensor "
        "tensor_array_to_tensor "
    ),
    "boxes": "box_clip box_coder box_decoder_and_assign iou_similarity multiclass_nms polygon_box_transform",
    "compare": (
        "equal greater_equal greater_than has_inf has_nan is_empty isfinite less_equal less_than logical_and "
        "logical_not logical_or logical_xor not_equal "
    ),
    "control_flow": "ConditionalBlock DynamicRNN IfElse StaticRNN Switch While",
    "conv": "adaptive_pool2d adaptive_pool3d conv2d conv2d_transpose conv3d conv3d_transpose pool2d pool3d tree_conv",
    "creation": (
        "assign cast create_global_var create_parameter create_tensor diag dropout fill_constant "
        "fill_constant_batch_size_like gaussian_random gaussian_random_batch_size_like linspace ones random_crop "
        "range sampling_id uniform_random uniform_random_batch_size_like zeros zeros_like "
    ),
    "embedding": "continuous_value_model data_norm embedding hash",
    "fc": "bilinear_tensor_product fc",
    "images": (
        "affine_channel affine_grid grid_sampler image_resize image_resize_short pad2d pixel_shuffle "
        "resize_bilinear resize_nearest shuffle_channel similarity_focus space_to_depth temporal_shift unfold "
    ),
    "io": "Print data load py_func",
    "learning_rate_scheduler": (
        "append_LARS autoincreased_step_counter cosine_decay exponential_decay inverse_time_decay linear_lr_warmup "
        "natural_exp_decay noam_decay piecewise_decay polynomial_decay "
    ),
    "losses": (
        "add_position_encoding bpr_loss cross_entropy dice_loss fsp_matrix hsigmoid huber_loss kldiv_loss "
        "label_smooth log_loss margin_rank_loss nce npair_loss rank_loss sampled_softmax_with_cross_entropy "
        "sigmoid_cross_entropy_with_logits smooth_l1 softmax_with_cross_entropy square_error_cost "
        "teacher_student_sigmoid_loss "
    ),
    "math": (
        "clip clip_by_norm cos_sim cumsum elementwise_add elementwise_div elementwise_floordiv elementwise_max "
        "elementwise_min elementwise_mod elementwise_mul elementwise_pow elementwise_sub increment l2_normalize "
        "matmul mean mul reduce_all reduce_any reduce_max reduce_mean reduce_min reduce_prod reduce_sum scale sum "
        "sums "
    ),
    "metric": "accuracy auc detection_map mean_iou topk",
    "norm": "batch_norm group_norm layer_norm lrn spectral_norm",
    "one_op": "",
    "parallel_do": "ParallelDo get_places",
    "prior_boxes": "anchor_generator density_prior_box prior_box",
    "proposals": (
        "collect_fpn_proposals distribute_fpn_proposals generate_mask_labels generate_proposal_labels "
        "generate_proposals rpn_target_assign "
    ),
    "readers": "batch create_py_reader_by_data double_buffer py_reader random_data_generator read_file shuffle",
    "recurrent": "dynamic_gru dynamic_lstm dynamic_lstmp gru_unit lstm lstm_unit",
    "roi": "psroi_pool roi_align roi_perspective_transform roi_pool",
    "rows": "get_tensor_from_selected_rows merge_selected_rows",
    "sequence": (
        "im2sequence lod_reset row_conv sequence_concat sequence_conv sequence_enumerate sequence_expand "
        "sequence_expand_as sequence_first_step sequence_last_step sequence_mask sequence_pad sequence_pool "
        "sequence_reshape sequence_reverse sequence_scatter sequence_slice sequence_softmax sequence_unpad "
    ),
    "sequence_labels": (
        "beam_search beam_search_decode chunk_eval crf_decoding ctc_greedy_decoder edit_distance linear_chain_crf "
        "warpctc "
    ),
    "shape": (
        "argmax argmin argsort concat crop expand flatten gather multiplex one_hot pad pad_constant_like rank "
        "reshape reverse scatter shape slice split squeeze stack transpose unsqueeze unstack where "
    ),
    "ssd": "bipartite_match detection_output multi_box_head ssd_loss target_assign",
    "weight_norm": "",
    "yolo": "yolo_box yolov3_loss",
}
#: layer -> its module
MODULES = {name: module for module, names in NAMES.items() for name in names.split()}
