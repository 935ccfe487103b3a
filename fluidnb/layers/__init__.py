"""Layers: functions that append operators to the program and give back their outputs."""

import sys
from typing import TYPE_CHECKING, Any

from fluidnb.absent import LAYERS, absent
from fluidnb.errors import near
from fluidnb.initializer import set_defaults
from fluidnb.layers.activation import relu, sigmoid, sign, softmax, sqrt, square, tanh
from fluidnb.layers.adaptive_pool import adaptive_pool2d, adaptive_pool3d
from fluidnb.layers.array import array_length, array_read, array_write, create_array, tensor_array_to_tensor
from fluidnb.layers.auc import auc
from fluidnb.layers.beam import beam_search, beam_search_decode
from fluidnb.layers.bilinear import bilinear_tensor_product
from fluidnb.layers.borders import pad2d
from fluidnb.layers.boxes import box_clip, box_coder, iou_similarity, polygon_box_transform
from fluidnb.layers.click_models import continuous_value_model, data_norm, hash
from fluidnb.layers.compare import equal, greater_than, less_equal, less_than
from fluidnb.layers.control_flow import ConditionalBlock, DynamicRNN, IfElse, StaticRNN, Switch, While
from fluidnb.layers.conv import conv2d, conv2d_transpose, conv3d, conv3d_transpose
from fluidnb.layers.creation import (
    assign,
    cast,
    create_global_var,
    create_parameter,
    create_tensor,
    fill_constant,
    fill_constant_batch_size_like,
    ones,
    zeros,
)
from fluidnb.layers.cross_entropy import sigmoid_cross_entropy_with_logits, softmax_with_cross_entropy
from fluidnb.layers.distances import (
    bpr_loss,
    dice_loss,
    huber_loss,
    kldiv_loss,
    label_smooth,
    log_loss,
    margin_rank_loss,
    rank_loss,
    smooth_l1,
)
from fluidnb.layers.elementwise import (
    elementwise_add,
    elementwise_div,
    elementwise_floordiv,
    elementwise_max,
    elementwise_min,
    elementwise_mod,
    elementwise_mul,
    elementwise_pow,
    elementwise_sub,
)
from fluidnb.layers.embedding import embedding
from fluidnb.layers.fc import fc
from fluidnb.layers.functions import (
    abs,
    acos,
    asin,
    atan,
    ceil,
    cos,
    exp,
    floor,
    log,
    logsigmoid,
    reciprocal,
    round,
    rsqrt,
    sin,
    softplus,
    softsign,
    tanh_shrink,
)
from fluidnb.layers.io import Print, data, load
from fluidnb.layers.learning_rate_scheduler import (
    append_LARS,
    autoincreased_step_counter,
    cosine_decay,
    exponential_decay,
    inverse_time_decay,
    linear_lr_warmup,
    natural_exp_decay,
    noam_decay,
    piecewise_decay,
    polynomial_decay,
)
from fluidnb.layers.lengths import clip_by_norm, cos_sim, cumsum, l2_normalize
from fluidnb.layers.levels import lod_reset
from fluidnb.layers.logic import (
    greater_equal,
    has_inf,
    has_nan,
    is_empty,
    isfinite,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from fluidnb.layers.loss import cross_entropy, square_error_cost
from fluidnb.layers.lrn import lrn
from fluidnb.layers.many_classes import hsigmoid, nce, sampled_softmax_with_cross_entropy
from fluidnb.layers.masks import generate_mask_labels
from fluidnb.layers.matching import bipartite_match, detection_map, multiclass_nms, target_assign
from fluidnb.layers.math import clip, increment, matmul, mul, scale, sum, sums
from fluidnb.layers.mean_iou import mean_iou
from fluidnb.layers.metric import accuracy, topk
from fluidnb.layers.more_losses import add_position_encoding, fsp_matrix, npair_loss, teacher_student_sigmoid_loss
from fluidnb.layers.norm import batch_norm, group_norm, layer_norm, spectral_norm
from fluidnb.layers.numbers import (
    diag,
    gaussian_random_batch_size_like,
    linspace,
    range,
    sampling_id,
    uniform_random_batch_size_like,
    zeros_like,
)
from fluidnb.layers.parallel_do import ParallelDo, get_places
from fluidnb.layers.parts import (
    crop,
    expand,
    gather,
    multiplex,
    pad,
    pad_constant_like,
    reverse,
    scatter,
    slice,
    split,
    stack,
    unstack,
)
from fluidnb.layers.pool import pool2d, pool3d
from fluidnb.layers.priors import anchor_generator, density_prior_box, prior_box
from fluidnb.layers.proposals import (
    box_decoder_and_assign,
    collect_fpn_proposals,
    distribute_fpn_proposals,
    generate_proposal_labels,
    generate_proposals,
    rpn_target_assign,
)
from fluidnb.layers.py_func import py_func
from fluidnb.layers.py_reader import create_py_reader_by_data, py_reader
from fluidnb.layers.random import dropout, gaussian_random, random_crop, uniform_random
from fluidnb.layers.rank import (
    array_to_lod_tensor,
    lod_rank_table,
    lod_tensor_to_array,
    max_sequence_len,
    reorder_lod_tensor_by_rank,
    shrink_memory,
)
from fluidnb.layers.readers import batch, double_buffer, random_data_generator, read_file, shuffle
from fluidnb.layers.rectifiers import (
    brelu,
    elu,
    hard_shrink,
    hard_sigmoid,
    leaky_relu,
    maxout,
    pow,
    prelu,
    relu6,
    selu,
    soft_relu,
    softshrink,
    stanh,
    swish,
    thresholded_relu,
)
from fluidnb.layers.recurrent import dynamic_gru, dynamic_lstm, dynamic_lstmp, gru_unit, lstm, lstm_unit
from fluidnb.layers.reduce import (
    mean,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from fluidnb.layers.regions import psroi_pool, roi_align, roi_perspective_transform, roi_pool
from fluidnb.layers.resize import image_resize, image_resize_short, resize_bilinear, resize_nearest
from fluidnb.layers.rows import get_tensor_from_selected_rows, merge_selected_rows
from fluidnb.layers.search import argmax, argmin, argsort, one_hot, where
from fluidnb.layers.sequence import (
    sequence_expand,
    sequence_expand_as,
    sequence_first_step,
    sequence_last_step,
    sequence_pool,
    sequence_softmax,
)
from fluidnb.layers.sequence_filters import row_conv, sequence_conv
from fluidnb.layers.sequence_parts import (
    im2sequence,
    sequence_concat,
    sequence_enumerate,
    sequence_mask,
    sequence_pad,
    sequence_reshape,
    sequence_reverse,
    sequence_scatter,
    sequence_slice,
    sequence_unpad,
)
from fluidnb.layers.shape import concat, flatten, rank, reshape, shape, squeeze, transpose, unsqueeze
from fluidnb.layers.speech import ctc_greedy_decoder, edit_distance, warpctc
from fluidnb.layers.split_merge import merge_lod_tensor, split_lod_tensor
from fluidnb.layers.ssd import detection_output, multi_box_head, ssd_loss
from fluidnb.layers.tagging import chunk_eval, crf_decoding, linear_chain_crf
from fluidnb.layers.trees import tree_conv
from fluidnb.layers.vision import (
    affine_channel,
    affine_grid,
    grid_sampler,
    pixel_shuffle,
    shuffle_channel,
    similarity_focus,
    space_to_depth,
    temporal_shift,
    unfold,
)
from fluidnb.layers.yolo import yolo_box, yolov3_loss

__all__ = [
    "ConditionalBlock", "DynamicRNN", "IfElse", "ParallelDo", "Print", "StaticRNN", "Switch", "While", "abs",
    "accuracy", "acos", "adaptive_pool2d", "adaptive_pool3d", "add_position_encoding", "affine_channel", "affine_grid",
    "anchor_generator", "append_LARS", "argmax", "argmin", "argsort", "array_length", "array_read",
    "array_to_lod_tensor", "array_write", "asin", "assign", "atan", "auc", "autoincreased_step_counter", "batch",
    "batch_norm", "beam_search", "beam_search_decode", "bilinear_tensor_product", "bipartite_match", "box_clip",
    "box_coder", "box_decoder_and_assign", "bpr_loss", "brelu", "cast", "ceil", "chunk_eval", "clip", "clip_by_norm",
    "collect_fpn_proposals", "concat", "continuous_value_model", "conv2d", "conv2d_transpose", "conv3d",
    "conv3d_transpose", "cos", "cos_sim", "cosine_decay", "create_array", "create_global_var", "create_parameter",
    "create_py_reader_by_data", "create_tensor", "crf_decoding", "crop", "cross_entropy", "ctc_greedy_decoder",
    "cumsum", "data", "data_norm", "density_prior_box", "detection_map", "detection_output", "diag", "dice_loss",
    "distribute_fpn_proposals", "double_buffer", "dropout", "dynamic_gru", "dynamic_lstm", "dynamic_lstmp",
    "edit_distance", "elementwise_add", "elementwise_div", "elementwise_floordiv", "elementwise_max", "elementwise_min",
    "elementwise_mod", "elementwise_mul", "elementwise_pow", "elementwise_sub", "elu", "embedding", "equal", "exp",
    "expand", "exponential_decay", "fc", "fill_constant", "fill_constant_batch_size_like", "flatten", "floor",
    "fsp_matrix", "gather", "gaussian_random", "gaussian_random_batch_size_like", "generate_mask_labels",
    "generate_proposal_labels", "generate_proposals", "get_places", "get_tensor_from_selected_rows", "greater_equal",
    "greater_than", "grid_sampler", "group_norm", "gru_unit", "hard_shrink", "hard_sigmoid", "has_inf", "has_nan",
    "hash", "hsigmoid", "huber_loss", "im2sequence", "image_resize", "image_resize_short", "increment",
    "inverse_time_decay",
    "iou_similarity", "is_empty", "isfinite", "kldiv_loss", "l2_normalize", "label_smooth", "layer_norm", "leaky_relu",
    "less_equal", "less_than", "linear_chain_crf", "linear_lr_warmup", "linspace", "load", "lod_rank_table",
    "lod_reset", "lod_tensor_to_array", "log", "log_loss", "logical_and", "logical_not", "logical_or", "logical_xor",
    "logsigmoid", "lrn", "lstm", "lstm_unit", "margin_rank_loss", "matmul", "max_sequence_len", "maxout", "mean",
    "mean_iou", "merge_lod_tensor", "merge_selected_rows", "mul", "multi_box_head", "multiclass_nms", "multiplex",
    "natural_exp_decay", "nce", "noam_decay", "not_equal", "npair_loss", "one_hot", "ones", "pad", "pad2d",
    "pad_constant_like", "piecewise_decay", "pixel_shuffle", "polygon_box_transform", "polynomial_decay", "pool2d",
    "pool3d", "pow", "prelu", "prior_box", "psroi_pool", "py_func", "py_reader", "random_crop", "random_data_generator",
    "range", "rank", "rank_loss", "read_file", "reciprocal", "reduce_all", "reduce_any", "reduce_max", "reduce_mean",
    "reduce_min", "reduce_prod", "reduce_sum", "relu", "relu6", "reorder_lod_tensor_by_rank", "reshape",
    "resize_bilinear", "resize_nearest", "reverse", "roi_align", "roi_perspective_transform", "roi_pool", "round",
    "row_conv", "rpn_target_assign", "rsqrt", "sampled_softmax_with_cross_entropy", "sampling_id", "scale", "scatter",
    "selu", "sequence_concat", "sequence_conv", "sequence_enumerate", "sequence_expand", "sequence_expand_as",
    "sequence_first_step", "sequence_last_step", "sequence_mask", "sequence_pad", "sequence_pool", "sequence_reshape",
    "sequence_reverse", "sequence_scatter", "sequence_slice", "sequence_softmax", "sequence_unpad", "set_defaults",
    "shape", "shrink_memory", "shuffle", "shuffle_channel", "sigmoid", "sigmoid_cross_entropy_with_logits", "sign",
    "similarity_focus", "sin", "slice", "smooth_l1", "soft_relu", "softmax", "softmax_with_cross_entropy", "softplus",
    "softshrink", "softsign", "space_to_depth", "spectral_norm", "split", "split_lod_tensor", "sqrt", "square",
    "square_error_cost", "squeeze", "ssd_loss", "stack", "stanh", "sum", "sums", "swish", "tanh", "tanh_shrink",
    "target_assign", "teacher_student_sigmoid_loss", "temporal_shift", "tensor_array_to_tensor", "thresholded_relu",
    "topk", "transpose", "tree_conv", "unfold", "uniform_random", "uniform_random_batch_size_like", "unsqueeze",
    "unstack", "warpctc", "where", "yolo_box", "yolov3_loss", "zeros", "zeros_like",
]  # fmt: skip

#: Fluid's modules of layers; all layers are in each of them here, as scripts write ``layers.nn.fc`` for ``layers.fc``.
_MODULES = ("detection", "device", "metric_op", "nn", "ops", "tensor")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in LAYERS:
            return absent(f"layers.{name}")
        if name in _MODULES:
            return sys.modules[__name__]
        raise AttributeError(f"fluid.layers has no {name}. {near(name, __all__)}".rstrip())
