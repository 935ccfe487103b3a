"""The closed list of operators that have no CUDA kernel, and why; every other one needs one."""

from __future__ import annotations

from collections.abc import Iterator

_FEEDS = "it moves values between the user and the scope"
_DELETE = "it lets go of a variable"
_CALL = "it calls a Python function of the user's"
_CONTROL = "it runs blocks; the operators in them run where they belong"
_LOD = "it works on offsets and lengths, which the host keeps"
_FILES = "it reads or writes files"
_READERS = "it takes batches that Python makes"
_METRIC = "it counts matches of a whole pass, one after the other"
_SEARCH = "each step depends on the one before: it sorts, keeps and drops candidates"
_CLICKS = "its models train on the CPU, as Fluid has it there alone"
_SIZE = "how much it gives depends on the values, and the next shape waits for it"
_TREES = "it follows the edges of trees, of which each is short"
_SOLVER = "cuSOLVER does it on a GPU"

_GROUPS: tuple[tuple[str, str], ...] = (
    (_FEEDS, "feed fetch print"),
    (_DELETE, "delete_var"),
    (_CALL, "py_func"),
    (_CONTROL, "conditional_block conditional_block_grad while while_grad recurrent recurrent_grad"),
    (_LOD, "lod_rank_table max_sequence_len lod_array_length"),
    (_FILES, "save save_combine load load_combine"),
    (_READERS, "read create_py_reader create_double_buffer_reader create_shuffle_reader create_batch_reader"),
    (_READERS, "create_random_data_generator"),
    (_METRIC, "chunk_eval edit_distance auc precision_recall positive_negative_pair detection_map"),
    (_SEARCH, "beam_search_decode crf_decoding multiclass_nms multiclass_nms2 bipartite_match mine_hard_examples"),
    (_SEARCH, "generate_proposals similarity_focus"),
    (_CLICKS, "cvm cvm_grad hash"),
    (_TREES, "tree_conv tree_conv_grad"),
    (_SIZE, "unique unique_with_counts rpn_target_assign generate_proposal_labels"),
    (_SIZE, "distribute_fpn_proposals collect_fpn_proposals"),
    (_SOLVER, "cholesky cholesky_grad inverse inverse_grad"),
)


def _pairs() -> Iterator[tuple[str, str]]:
    for reason, types in _GROUPS:
        for type in types.split():
            yield type, reason


#: operator -> why it has no CUDA kernel
HOST_ONLY: dict[str, str] = dict(_pairs())
