"""A grid for the live sweep: operators over sequences, with the LoDs that make trouble."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from tests.paddle.grid import Case, values

#: Lengths of six rows: as they come, with none in the middle, one row each.
LENGTHS = ([2, 3, 1], [4, 0, 2], [1, 1, 1, 1, 1, 1])


def rows(lengths: list[int], *shape: int, salt: int = 0, dtype: str = "float32") -> tuple[Any, list[list[int]]]:
    """Rows with one level of LoD."""
    return values((sum(lengths), *shape), dtype, -1, 1, salt), [lengths]


def words(lengths: list[int], most: int, salt: int = 0, dtype: str = "int64") -> tuple[Any, list[list[int]]]:
    """Numbers from 0 to below a bound, with one level of LoD."""
    rng = np.random.default_rng([salt, most, *lengths])
    return rng.integers(0, most, (sum(lengths), 1)).astype(dtype), [lengths]


def _pooling() -> Iterator[Case]:
    kinds = ("AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST")
    for lengths, kind, dtype in product((*LENGTHS, [0, 6]), kinds, ("float32", "float64")):
        attrs = {"pooltype": kind, "pad_value": 0.5}
        outputs, extra = (("Out", "MaxIndex"), ()) if kind == "MAX" else (("Out",), ("MaxIndex",))
        yield Case("sequence_pool", {"X": rows(lengths, 4, dtype=dtype)}, outputs, attrs, ("X",), extra)
    for lengths in LENGTHS[:2]:
        yield Case("sequence_softmax", {"X": rows(lengths, 1)}, grads=("X",))
        for deep in ([[2, 1], lengths], [[0, 2, 1], lengths]):
            x = rows(lengths, 4)[0], deep
            yield Case("sequence_pool", {"X": x}, ("Out",), {"pooltype": "SUM"}, ("X",), ("MaxIndex",))


def _expanding() -> Iterator[Case]:
    for x, y, level in (
        (None, [[2, 0, 1]], -1), ([1, 2, 3], [[2, 0, 1]], -1), ([1, 0, 3], [[2, 1, 1]], 0),
        ([2, 2], [[2, 2], [3, 3, 1, 1]], 0), (None, [[2, 2], [3, 3, 0, 1]], 1), (None, [[2, 2], [3, 3, 0, 1]], 0),
    ):  # fmt: skip
        given = rows(x, 3) if x else values((len(y[level]), 3), "float32")
        like = values((sum(y[-1]), 1), "float32"), y
        yield Case("sequence_expand", {"X": given, "Y": like}, attrs={"ref_level": level}, grads=("X",))
    for lengths in LENGTHS[:2]:
        yield Case("sequence_expand_as", {"X": values((3, 2), "float32"), "Y": rows(lengths, 1)}, grads=("X",))


def _filters() -> Iterator[Case]:
    for lengths in LENGTHS:
        for start, count in ((-1, 3), (0, 1), (-2, 3), (0, 2)):
            attrs = {"contextStart": start, "contextLength": count, "contextStride": 1}
            inputs = {"X": rows(lengths, 3), "Filter": values((count * 3, 4), "float32")}
            yield Case("sequence_conv", inputs, attrs=attrs, grads=("X", "Filter"))
            around = max(-start, 0) + max(start + count - 1, 0)
            if around:
                inputs |= {"PaddingData": values((around, 3), "float32", salt=2)}
                grads = ("X", "Filter", "PaddingData")
                yield Case("sequence_conv", inputs, attrs=attrs | {"paddingTrainable": True}, grads=grads)
        if 0 not in lengths:  # row_conv of 2.6.2 refuses sequences without rows
            for count in (1, 2, 4):
                inputs = {"X": rows(lengths, 3), "Filter": values((count, 3), "float32")}
                yield Case("row_conv", inputs, grads=("X", "Filter"))


def _parts() -> Iterator[Case]:
    for lengths in LENGTHS:
        n = len(lengths)
        xs = [rows(lengths, 2), rows([1, 0, 2, 1, 1, 1][:n], 2, salt=1), rows(lengths[::-1], 2, salt=2)]
        yield Case("sequence_concat", {"X": xs}, grads=("X",))
        for width in (1, 2, 6):
            yield Case("sequence_reshape", {"X": rows(lengths, 6)}, attrs={"new_dim": width}, grads=("X",))
        yield Case("sequence_reverse", {"X": rows(lengths, 2, 3)}, ("Y",), grads=("X",))
        for length, pad in ((-1, (1,)), (6, (1,)), (7, (2, 2))):
            inputs = {"X": rows(lengths, 2, 2), "PadValue": values(pad, "float32")}
            yield Case("sequence_pad", inputs, ("Out", "Length"), {"padded_length": length}, ("X",))
        yield Case("sequence_enumerate", {"X": words(lengths, 9)}, attrs={"win_size": 3, "pad_value": 7})
        yield Case("sequence_erase", {"X": words(lengths, 5)}, attrs={"tokens": [1, 2]})
        inputs = {"X": values((n, 5), "float32"), "Ids": words(lengths, 5), "Updates": rows(lengths, 1)}
        yield Case("sequence_scatter", inputs, grads=("X", "Updates"))
    for offset, length in (([0, 2], [2, 1]), ([1, 0], [0, 3])):
        inputs = {"X": rows([3, 3], 2), "Offset": np.array(offset)[:, None], "Length": np.array(length)[:, None]}
        yield Case("sequence_slice", inputs, grads=("X",))
    for lengths in ([2, 4, 1], [2, 0, 1]):
        inputs = {"X": values((3, 4, 2), "float32"), "Length": np.array(lengths)}
        yield Case("sequence_unpad", inputs, grads=("X",))
        for most, dtype in product((-1, 3), (3, 5)):
            attrs = {"maxlen": most, "out_dtype": dtype}
            yield Case("sequence_mask", {"X": np.array(lengths)}, ("Y",), attrs)
    for kernels, strides, paddings in (
        ([2, 2], [1, 1], [0, 0, 0, 0]), ([3, 2], [2, 1], [1, 0, 2, 1]), ([2, 3], [1, 2], [0, 1, 1, 0]),
    ):  # fmt: skip
        attrs = {"kernels": kernels, "strides": strides, "paddings": paddings}
        yield Case("im2sequence", {"X": values((2, 3, 5, 6), "float32")}, attrs=attrs, grads=("X",))


def _recurrent() -> Iterator[Case]:
    for lengths, reverse, peepholes, first in product(([2, 3, 1], [1], [3, 3]), *[(False, True)] * 3):
        n = len(lengths)
        bias = values((1, 21 if peepholes else 12), "float32")
        inputs = {"Input": rows(lengths, 12), "Weight": values((3, 12), "float32"), "Bias": bias}
        if first:
            inputs |= {"H0": values((n, 3), "float32", salt=3), "C0": values((n, 3), "float32", salt=4)}
        attrs = {"is_reverse": reverse, "use_peepholes": peepholes}
        extra = ("BatchGate", "BatchCellPreAct")
        yield Case("lstm", inputs, ("Hidden", "Cell"), attrs, tuple(inputs), extra)
        inputs = {"Input": rows(lengths, 9), "Weight": values((3, 9), "float32")}
        inputs |= {"H0": values((n, 3), "float32", salt=3)} if first else {}
        inputs |= {"Bias": values((1, 9), "float32")} if peepholes else {}
        attrs = {"is_reverse": reverse, "origin_mode": peepholes}
        extra = ("BatchGate", "BatchResetHiddenPrev", "BatchHidden")
        yield Case("gru", inputs, ("Hidden",), attrs, tuple(inputs), extra)
    kinds = ("relu", "identity", "sigmoid", "tanh")
    for cell, candidate in product(kinds, kinds):
        inputs = {n: values((m, k), "float32") for n, m, k in (("Weight", 3, 12), ("Bias", 1, 21))}
        inputs = {"Input": rows([2, 3, 1], 12), **inputs}
        attrs = {"cell_activation": cell, "candidate_activation": candidate}
        yield Case("lstm", inputs, ("Hidden", "Cell"), attrs, tuple(inputs), ("BatchGate", "BatchCellPreAct"))
    for kind, origin in product(range(4), (False, True)):
        inputs = {n: values(s, "float32") for n, s in (("Input", (2, 9)), ("HiddenPrev", (2, 3)), ("Weight", (3, 9)))}
        attrs = {"activation": kind, "gate_activation": 1, "origin_mode": origin}
        yield Case("gru_unit", inputs, ("Hidden",), attrs, tuple(inputs), ("Gate", "ResetHiddenPrev"))


def _tagging() -> Iterator[Case]:
    for lengths, tags in product(([2, 3, 1], [3, 0, 2], [1]), (2, 4)):
        inputs = {
            "Emission": rows(lengths, tags), "Transition": values((tags + 2, tags), "float32"),
            "Label": words(lengths, tags),
        }  # fmt: skip
        outputs, extra = ("LogLikelihood", "EmissionExps", "TransitionExps"), ("Alpha",)
        yield Case("linear_chain_crf", inputs, outputs, {}, ("Emission", "Transition"), extra)
        yield Case("crf_decoding", inputs, ("ViterbiPath",))
        yield Case("crf_decoding", {s: v for s, v in inputs.items() if s != "Label"}, ("ViterbiPath",))
    for lengths in ([2, 4, 1], [1, 0, 3]):
        inputs = {
            "Emission": values((3, 4, 3), "float32"), "Transition": values((5, 3), "float32"),
            "Label": values((3, 4, 1), "int64", 0, 2), "Length": np.array(lengths)[:, None],
        }  # fmt: skip
        extra = ("Alpha", "EmissionExps", "TransitionExps")
        yield Case("linear_chain_crf", inputs, ("LogLikelihood",), {}, ("Emission", "Transition"), extra)
        yield Case("crf_decoding", inputs, ("ViterbiPath",))
    outputs = ("Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks")
    for (scheme, tags), types, excluded, salt in product(
        (("IOB", 2), ("IOE", 2), ("IOBES", 4), ("plain", 1)), (1, 3), ([], [0]), range(3)
    ):
        found, right = words([7, 1, 9], types * tags + 1, salt), words([7, 1, 9], types * tags + 1, salt + 1)
        mixed = np.where(values(found[0].shape, "bool"), found[0], right[0]), found[1]
        attrs = {"num_chunk_types": types, "chunk_scheme": scheme, "excluded_chunk_types": excluded}
        yield Case("chunk_eval", {"Inference": mixed, "Label": right}, outputs, attrs)


def _labels() -> Iterator[Case]:
    for one, other, normalized in (([3, 2, 4], [4, 1, 2], True), ([3, 0, 4], [4, 1, 0], False), ([1, 6], [5, 5], True)):
        inputs = {"Hyps": words(one, 4), "Refs": words(other, 4, 1)}
        yield Case("edit_distance", inputs, ("Out", "SequenceNum"), {"normalized": normalized})
    for lengths, blank, merge in product(([6, 3, 1], [4, 0, 5]), (0, 1), (False, True)):
        attrs = {"blank": blank, "merge_repeated": merge}
        yield Case("ctc_align", {"Input": words(lengths, 3, dtype="int32")}, ("Output",), attrs)
    for size, dtype in ((1, "int32"), (3, "int64"), (8, "int32"), (13, "int64")):
        ids = np.concatenate([words([2, 3], 99, salt, dtype)[0] for salt in range(size)], 1)
        yield Case("hash", {"X": (ids, [[2, 3]])}, ("Out",), {"num_hash": 3, "mod_by": 9973})
    for counts, blank, by_times in (([2, 1, 3], 0, False), ([1, 0, 2], 4, True), ([2, 2], 2, False)):
        label, lod = words(counts, 5, dtype="int32")
        label = np.where(label == blank, (blank + 1) % 5, label).astype("int32")
        inputs = {"Logits": rows([2 * n + 2 for n in counts], 5), "Label": (label, lod)}
        attrs = {"blank": blank, "norm_by_times": by_times}
        yield Case("warpctc", inputs, ("Loss",), attrs, ("Logits",), ("WarpCTCGrad",))


def _beams() -> Iterator[Case]:
    for salt, width, size, whole in product(range(4), (1, 3), (1, 2, 4), (False, True)):
        rng = np.random.default_rng([salt, width, size])
        sources = rng.integers(1, 4, 2).tolist()
        n = sum(sources)
        lod = [sources, [1] * n]
        scores = -np.sort(-rng.random((n, width)), 1).astype("float32")
        inputs = {
            "pre_ids": (rng.integers(0, 3, (n, 1)), lod), "pre_scores": (rng.random((n, 1)).astype("float32"), lod),
            "ids": (rng.integers(0, 4, (n, width)), lod), "scores": (scores, lod),
        }  # fmt: skip
        attrs = {"level": 0, "beam_size": size, "end_id": 0, "is_accumulated": whole}
        yield Case("beam_search", inputs, ("selected_ids", "selected_scores", "parent_idx"), attrs)


def sequence_cases() -> Iterator[Case]:
    """Every case of this grid."""
    for family in (_pooling, _expanding, _filters, _parts, _recurrent, _tagging, _labels, _beams):
        yield from family()
