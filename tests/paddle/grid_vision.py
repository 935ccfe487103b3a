"""Grids for the live sweep: images resampled and rearranged, boxes in images."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from tests.paddle.grid import Array, Case, values


def _resampled() -> Iterator[Case]:
    for shape, size, corners, mode, layout, dtype in product(
        ((2, 3, 4, 5), (1, 1, 1, 6)), ((4, 5), (7, 3), (1, 1), (2, 11)), (True, False), (0, 1), ("NCHW", "NHWC"),
        ("float32", "float64"),
    ):  # fmt: skip
        x = values(shape, dtype)
        attrs: dict[str, Any] = {"out_h": size[0], "out_w": size[1], "align_corners": corners, "align_mode": mode}
        attrs["data_layout"] = layout
        for method in ("bilinear", "nearest"):
            yield Case(f"{method}_interp", {"X": x}, attrs={**attrs, "interp_method": method}, grads=("X",))
    for method, scale in product(("bilinear", "nearest"), (0.6, 2.0, 1.7)):
        attrs = {"scale": scale, "interp_method": method}
        yield Case(f"{method}_interp", {"X": values((2, 3, 4, 5))}, attrs=attrs, grads=("X",))
    for corners, mode, padding in product((True, False), ("bilinear", "nearest"), ("zeros", "border", "reflection")):
        x, grid = values((2, 3, 4, 5)), values((2, 3, 6, 2), low=-1.6, high=1.6)
        attrs = {"align_corners": corners, "mode": mode, "padding_mode": padding}
        yield Case("grid_sampler", {"X": x, "Grid": grid}, ("Output",), attrs, ("X", "Grid"))
    for shape, corners in product(([2, 3, 4, 5], [2, 1, 1, 3]), (True, False)):
        attrs = {"output_shape": shape, "align_corners": corners}
        if corners and 1 in shape[2:]:
            continue  # Paddle divides by nothing there
        yield Case("affine_grid", {"Theta": values((2, 2, 3))}, ("Output",), attrs, ("Theta",))


def _resampled_axes() -> Iterator[Case]:
    """The second versions along one, two and three axes."""
    names = {1: "linear", 2: "bilinear", 3: "trilinear"}
    places = product((True, False), (0, 1), ("NCHW", "NHWC"), ("float32", "float64"))
    for corners, mode, layout, dtype in places:
        if dtype == "float64" and not corners and mode == 0:
            continue  # there 2.6.2 has shares in double; in all else, and before, in float
        options = {"align_corners": corners, "align_mode": mode, "data_layout": layout}
        for rank, method in names.items():
            sizes, names_of = (3, 4, 5)[-rank:], ("out_d", "out_h", "out_w")[-rank:]
            x = values((2, 3, *sizes) if layout == "NCHW" else (2, *sizes, 3), dtype)
            for new in ((2, 7, 3), (3, 4, 5), (1, 1, 9), (5, 2, 1)):
                attrs = {**options, **dict(zip(names_of, new[-rank:], strict=True)), "interp_method": method}
                yield Case(f"{method}_interp_v2", {"X": x}, attrs=attrs, grads=("X",))
            for scale in ([2.0], [0.6], [1.7, 0.4, 2.5][:rank]):
                attrs = {**options, "scale": scale * (rank if len(scale) < rank else 1), "interp_method": method}
                yield Case(f"{method}_interp_v2", {"X": x}, attrs=attrs, grads=("X",))
        given = {"X": values((2, 3, 4), dtype) if layout == "NCHW" else values((2, 4, 3), dtype)}
        attrs = {**options, "interp_method": "linear", "out_w": -1}
        yield Case("linear_interp_v2", {**given, "OutSize": np.array([6], "int32")}, attrs=attrs, grads=("X",))
        yield Case("linear_interp_v2", {**given, "SizeTensor": [np.array([6], "int32")]}, attrs=attrs, grads=("X",))


def _deformed() -> Iterator[Case]:
    for groups, parts, step, padding, dilation, dtype in product(
        (1, 2), (1, 2), (1, 2), (0, 1), (1, 2), ("float32", "float64")
    ):  # fmt: skip
        x, w = values((2, 4, 6, 7), dtype), values((4, 4 // groups, 3, 2), dtype)
        rows, columns = ((size + 2 * padding - dilation * (k - 1) - 1) // step + 1 for size, k in ((6, 3), (7, 2)))
        offset = values((2, 12 * parts, rows, columns), dtype, -2.2, 2.2)
        attrs = {"strides": [step] * 2, "paddings": [padding] * 2, "dilations": [dilation] * 2, "groups": groups,
                 "deformable_groups": parts, "im2col_step": 1}  # fmt: skip
        slots = ("Input", "Offset", "Filter")
        yield Case("deformable_conv_v1", dict(zip(slots, (x, offset, w), strict=True)), ("Output",), attrs, slots)
        mask = values((2, 6 * parts, rows, columns), dtype, 0, 1, salt=1)
        operands = {"Input": x, "Offset": offset, "Mask": mask, "Filter": w}
        yield Case("deformable_conv", operands, ("Output",), attrs, tuple(operands))


def _suppressed() -> Iterator[Case]:
    random = np.random.default_rng(2)
    corners = random.uniform(0, 6, (2, 20, 2))
    boxes = np.concatenate([corners, corners + random.uniform(1, 4, (2, 20, 2))], 2)
    scores = random.uniform(0, 1, (2, 3, 20))
    for background, post, top, keep, normalized, gaussian in product(
        (-1, 0), (0.0, 0.3), (-1, 6), (-1, 7), (True, False), (True, False)
    ):  # fmt: skip
        attrs: dict[str, Any] = {"background_label": background, "score_threshold": 0.2, "post_threshold": post}
        attrs |= {"nms_top_k": top, "keep_top_k": keep, "normalized": normalized}
        attrs |= {"use_gaussian": gaussian, "gaussian_sigma": 2.5}
        limits = {n: attrs[n] for n in ("background_label", "score_threshold", "nms_top_k", "keep_top_k", "normalized")}
        for dtype in ("float32", "float64"):
            if post == 0 and not gaussian:  # boxes that are less than a pixel apart
                more = {**limits, "nms_threshold": 0.02}
                operands = {"BBoxes": boxes.astype(dtype), "Scores": scores.astype(dtype)}
                yield Case("multiclass_nms3", operands, ("Out", "Index", "NmsRoisNum"), more)
            operands = {"BBoxes": boxes.astype(dtype), "Scores": scores.astype(dtype)}
            yield Case("matrix_nms", operands, ("Out", "Index", "RoisNum"), attrs)


def _rearranged() -> Iterator[Case]:
    x = values((4, 8, 4, 6))
    for factor, layout in product((1, 2), ("NCHW", "NHWC")):
        attrs = {"upscale_factor": factor, "data_format": layout}
        y = x if layout == "NCHW" else values((2, 3, 5, 8))
        yield Case("pixel_shuffle", {"X": y}, attrs=attrs, grads=("X",))
    for group in (1, 2, 4, 8):  # in float64 Paddle's own is wrong
        yield Case("shuffle_channel", {"X": x.astype("float32")}, attrs={"group": group})
    for steps, ratio, layout in product((1, 2, 4), (0.25, 0.4, 0.1), ("NCHW", "NHWC")):
        attrs = {"seg_num": steps, "shift_ratio": ratio, "data_format": layout}
        yield Case("temporal_shift", {"X": x}, attrs=attrs, grads=("X",))
    edges = ([0] * 4, [1, 2, 0, 1])
    for kernel, stride, edge, dilation in product(([2, 3], [1, 1]), ([1, 1], [2, 3]), edges, (1, 2)):
        attrs = {"kernel_sizes": kernel, "strides": stride, "paddings": edge, "dilations": [dilation] * 2}
        yield Case("unfold", {"X": values((2, 3, 6, 7))}, ("Y",), attrs, ("X",))
    for size, height, kind in product(((4, 4), (5, 7), (3, 8)), (1, 2, 3), ("max", "avg")):
        attrs = {"pyramid_height": height, "pooling_type": kind}
        if min(size) >= 2 ** (height - 1):
            yield Case("spp", {"X": values((2, 3, *size))}, attrs=attrs, grads=("X",))
    for rank, size, step, padding in product((2, 3), (2, 3), (1, 2), (0, 1)):
        attrs: dict[str, Any] = {"ksize": [size] * rank, "strides": [step] * rank, "paddings": [padding] * rank}
        for more in ({}, {"adaptive": True}, {"global_pooling": True}):
            y = values((2, 2, *(5, 6, 4)[:rank]))
            yield Case(f"max_pool{rank}d_with_index", {"X": y}, ("Out", "Mask"), {**attrs, **more}, ("X",))
    where = np.stack([np.random.default_rng(k).permutation(16)[:4] for k in range(6)]).reshape(2, 3, 2, 2)
    attrs = {"ksize": [2, 2], "strides": [2, 2], "unpooling_type": "max", "output_size": [4, 4]}
    yield Case("unpool", {"X": values((2, 3, 2, 2)), "Indices": where.astype("int32")}, attrs=attrs, grads=("X",))


def _normalised() -> Iterator[Case]:
    x, scale, bias = values((2, 5, 3, 4)), values((5,), salt=1), values((5,), salt=2)
    for layout in ("NCHW", "NHWC"):
        y = x if layout == "NCHW" else values((2, 3, 4, 5))
        operands = {"X": y, "Scale": scale, "Bias": bias}
        yield Case("affine_channel", operands, attrs={"data_layout": layout}, grads=("X", "Scale", "Bias"))
        for n in (1, 3, 5, 7):
            attrs = {"n": n, "k": 1.0, "alpha": 0.1, "beta": 0.75, "data_format": layout}
            yield Case("lrn", {"X": y.astype("float32")}, ("Out", "MidOut"), attrs, ("X",))
    for shape in ((2, 5, 6), (2, 5, 3, 4), (1, 5, 2, 3, 2)):
        operands = {"X": values(shape), "Scale": scale, "Bias": bias}
        outs = ("Y", "SavedMean", "SavedVariance")
        yield Case("instance_norm", operands, outs, {"epsilon": 1e-4}, ("X", "Scale", "Bias"))
    for dim, steps, shape in product((0, 1), (0, 1, 5), ((4, 3), (2, 3, 2, 2))):
        rest = int(np.prod(shape)) // shape[dim]
        operands = {"Weight": values(shape), "U": values((shape[dim],)), "V": values((rest,))}
        yield Case("spectral_norm", operands, attrs={"dim": dim, "power_iters": steps})  # Paddle's gradient is wrong
    seen = {"BatchSize": values((6,), low=5, high=9), "BatchSum": scale.repeat(2)[:6]}
    seen["BatchSquareSum"] = values((6,), low=1)
    rows = values((4, 6))
    rows[1, 0] = rows[2, 3] = 0
    wanted = ("X", *seen)
    for width in (-1, 3):
        given = wanted if width < 0 else tuple(seen)  # Paddle lets a gradient through to slots that are not there
        yield Case("data_norm", {"X": rows, **seen}, ("Y", "Means", "Scales"), {"slot_dim": width}, given)
        operands = {"scale_w": values((6,), salt=4), "bias": values((6,), salt=5), "X": rows, **seen}
        attrs = {"slot_dim": width, "enable_scale_and_shift": True}
        yield Case("data_norm", operands, ("Y", "Means", "Scales"), attrs, (*wanted, "scale_w", "bias"))


def _boxes(shape: tuple[int, ...], size: float, salt: int = 0, dtype: str = "float32") -> Array:
    """Boxes within an image of a size, some reaching beyond it."""
    rng = np.random.default_rng([salt, *shape])
    first = rng.uniform(-0.1 * size, 0.6 * size, (*shape, 2))
    return np.concatenate([first, first + rng.uniform(0.1 * size, 0.6 * size, (*shape, 2))], -1).astype(dtype)


def _regions() -> Iterator[Case]:
    x, rois = values((2, 3, 8, 9)), _boxes((5,), 16, dtype="float64")
    for rows, columns, scale in ((2, 2, 0.5), (3, 4, 0.4), (1, 1, 1.0)):
        attrs = {"pooled_height": rows, "pooled_width": columns, "spatial_scale": scale}
        yield Case("roi_pool", {"X": x, "ROIs": (rois, [[2, 3]])}, ("Out", "Argmax"), attrs, ("X",))
        for ratio, aligned in product((-1, 1, 3), (False, True)):
            more = {**attrs, "sampling_ratio": ratio, "aligned": aligned}
            same = not aligned or scale > 0.4  # in its gradient alone, Paddle makes aligned regions a pixel wide
            yield Case("roi_align", {"X": x, "ROIs": (rois, [[2, 3]])}, ("Out",), more, ("X",) if same else ())


def _priors() -> Iterator[Case]:
    maps = {"Input": values((1, 2, 3, 4), "float32"), "Image": values((1, 3, 30, 36), "float32")}
    variances = [0.1, 0.1, 0.2, 0.2]
    both = (True, False)
    for flip, clip, order, step, large in product(both, both, both, (0.0, 8.0), ([], [9.0, 20.0])):
        attrs = {"min_sizes": [4.0, 11.0], "max_sizes": large, "aspect_ratios": [1.0, 2.0, 3.0], "variances": variances,
                 "flip": flip, "clip": clip, "min_max_aspect_ratios_order": order, "step_w": step,
                 "step_h": step}  # fmt: skip
        yield Case("prior_box", maps, ("Boxes", "Variances"), attrs)
    for flat, clip, step in product((True, False), (True, False), (0.0, 7.0)):
        attrs = {"fixed_sizes": [4.0, 9.0], "fixed_ratios": [1.0, 0.5], "densities": [2, 3], "variances": variances,
                 "flatten_to_2d": flat, "clip": clip, "step_w": step, "step_h": step}  # fmt: skip
        yield Case("density_prior_box", maps, ("Boxes", "Variances"), attrs)
    for stride, offset in product(([16.0, 16.0], [8.0, 12.0]), (0.5, 0.0)):
        attrs = {"anchor_sizes": [32.0, 50.0], "aspect_ratios": [0.5, 1.0, 1.7], "variances": variances,
                 "stride": stride, "offset": offset}  # fmt: skip
        yield Case("anchor_generator", {"Input": maps["Input"]}, ("Anchors", "Variances"), attrs)


def _coded() -> Iterator[Case]:
    prior, target = _boxes((4,), 1.0), _boxes((3,), 1.0, 1)
    codes, spread = values((3, 4, 4), "float32", -1, 1), values((4, 4), "float32", 0.1, 0.9)
    for normalized, given in product((True, False), ("input", "attribute", "none")):
        more = {"PriorBoxVar": spread} if given == "input" else {}
        attrs: dict[str, Any] = {"box_normalized": normalized}
        if given == "attribute":
            attrs["variance"] = [0.1, 0.2, 0.3, 0.4]
        boxes = {"PriorBox": prior, **more}
        yield Case("box_coder", {**boxes, "TargetBox": (target, [[1, 2]])}, ("OutputBox",),
                   {**attrs, "code_type": "encode_center_size"})  # fmt: skip
        for axis in (0, 1):
            now = codes if axis == 0 else values((4, 3, 4), "float32", -1, 1)
            yield Case("box_coder", {**boxes, "TargetBox": now}, ("OutputBox",),
                       {**attrs, "code_type": "decode_center_size", "axis": axis})  # fmt: skip
        yield Case("iou_similarity", {"X": (_boxes((5,), 9), [[2, 3]]), "Y": _boxes((4,), 9, 2)},
                   attrs={"box_normalized": normalized})  # fmt: skip
    info = np.array([[20, 18, 1.0], [30, 33, 2.0]], "float32")
    yield Case("box_clip", {"Input": (_boxes((5,), 20), [[2, 3]]), "ImInfo": info}, ("Output",))
    yield Case("polygon_box_transform", {"Input": values((2, 8, 3, 4), "float32")}, ("Output",))


def _polygons(images: int, count: int, corners: int) -> Array:
    """Star-shaped polygons [images, count, 2 · corners] that overlap each other."""
    rng = np.random.default_rng(corners)
    angle = np.sort(rng.uniform(0, 2 * np.pi, (images, count, corners)), -1)
    radius, center = rng.uniform(1, 4, angle.shape), rng.uniform(0, 5, (images, count, 1, 2))
    spokes = radius[..., None] * np.stack([np.cos(angle), np.sin(angle)], -1)
    return (center + spokes).reshape(images, count, -1).astype("float32")


def _found() -> Iterator[Case]:
    dist = values((5, 4), "float32", 0, 1)
    for kind, limit, lengths in product(("bipartite", "per_prediction"), (0.3, 0.8), ([[2, 3]], [[5]])):
        attrs = {"match_type": kind, "dist_threshold": limit}
        outs = ("ColToRowMatchIndices", "ColToRowMatchDist")
        yield Case("bipartite_match", {"DistMat": (dist, lengths)}, outs, attrs)
    matches = np.array([[0, -1, -1, 2, -1, -1], [-1, -1, 1, -1, -1, -1]], "int32")
    losses = {"ClsLoss": values((2, 6), "float32", 0, 2), "LocLoss": values((2, 6), "float32", 0, 2, 1)}
    losses |= {"MatchIndices": matches, "MatchDist": values((2, 6), "float32", 0, 1)}
    for kind, ratio, size in (("max_negative", 1.0, 0), ("max_negative", 2.5, 0), ("hard_example", 1.0, 3)):
        attrs = {"mining_type": kind, "neg_pos_ratio": ratio, "sample_size": size}
        yield Case("mine_hard_examples", losses, ("NegIndices", "UpdatedMatchIndices"), attrs)
    for first, most, normalized, eta, background, limit in product(
        (-1, 5), (-1, 4), (True, False), (1.0, 0.8), (0, -1), (0.3, 0.7)
    ):
        attrs = {"nms_top_k": first, "keep_top_k": most, "normalized": normalized, "nms_eta": eta,
                 "background_label": background, "score_threshold": 0.1, "nms_threshold": limit}  # fmt: skip
        scores = values((2, 3, 9), "float32", 0, 1)
        yield Case("multiclass_nms", {"BBoxes": _boxes((2, 9), 9), "Scores": scores}, attrs=attrs)
        yield Case("multiclass_nms2", {"BBoxes": _boxes((2, 9), 9), "Scores": scores}, ("Out", "Index"), attrs)
        lengths = [[4, 5]]
        operands = {"BBoxes": (_boxes((9, 3), 9), lengths), "Scores": (values((9, 3), "float32", 0, 1), lengths)}
        yield Case("multiclass_nms", operands, attrs=attrs)
    for corners, eta, limit in product((4, 8, 12, 16), (1.0, 0.8), (0.2, 0.6)):
        attrs = {"nms_top_k": -1, "keep_top_k": 7, "score_threshold": 0.1, "nms_threshold": limit, "nms_eta": eta}
        scores = values((2, 3, 9), "float32", 0, 1)
        yield Case("multiclass_nms", {"BBoxes": _polygons(2, 9, corners), "Scores": scores}, attrs=attrs)
    for least in (0.1, 5.0):
        attrs = {"nms_top_k": -1, "keep_top_k": -1, "score_threshold": least}
        scores = values((1, 3, 9), "float32", 0, 1)
        yield Case("multiclass_nms", {"BBoxes": _boxes((1, 9), 9), "Scores": scores}, attrs=attrs)


def _precision() -> Iterator[Case]:
    outs = ("MAP", "AccumPosCount", "AccumTruePos", "AccumFalsePos")
    lengths = [[0, 3, 2, 0]]
    hits = values((5, 1), "float32", 0, 1) > 0.4
    scores = values((5, 1), "float32", 0, 1, salt=1)
    states = {"PosCount": np.array([[0], [2], [3], [0]], "int32"),
              "TruePos": (np.concatenate([scores, hits], 1).astype("float32"), lengths),
              "FalsePos": (np.concatenate([scores, ~hits], 1).astype("float32"), lengths)}  # fmt: skip
    for seed, kind, every, background in product((1, 2, 3), ("integral", "11point"), (True, False), (0, 2, -1)):
        rng = np.random.default_rng(seed)
        corner = rng.uniform(0, 0.6, (7, 2))
        own = np.concatenate([corner, corner + rng.uniform(0.1, 0.4, (7, 2))], 1)
        label = np.concatenate([rng.integers(1, 4, (7, 1)), rng.integers(0, 2, (7, 1)), own], 1).astype("float32")
        near = own[np.repeat(np.arange(7), 2)] + rng.normal(0, 0.03, (14, 4))
        found = np.concatenate([np.repeat(label[:, :1], 2, 0), rng.permutation(14)[:, None] / 15 + 0.03, near], 1)
        found[::5, 0] = 1
        found[(found[:, 0] == seed) & (seed > 1), 0] = 0  # a class without a detection
        inputs = {"DetectRes": (found.astype("float32"), [[4, 6, 4]]), "Label": (label, [[2, 0, 5]])}
        attrs = {"class_num": 4, "ap_type": kind, "evaluate_difficult": every, "background_label": background,
                 "overlap_threshold": 0.5}  # fmt: skip
        yield Case("detection_map", inputs, outs, attrs)
        plain = {**inputs, "Label": (label[:, [0, 2, 3, 4, 5]], [[2, 0, 5]])}
        for state in (0, 1):
            yield Case("detection_map", {**plain, **states, "HasState": np.array([state], "int32")}, outs, attrs)


def _masks() -> Iterator[Case]:
    rng = np.random.default_rng(8)
    for size, scale, low, none in product((1, 7, 14), (1.0, 1.7), (0, -8), (False, True)):
        polygons = rng.integers(1, 3, 4)
        corners = rng.integers(3, 7, polygons.sum())
        images = [[1, 3]]
        operands = {
            "ImInfo": np.array([[40, 40, scale]] * 2, "float32"),
            "GtClasses": (np.array([[2], [1], [0], [2]], "int32"), images),
            "IsCrowd": (np.array([[0], [0], [0], [1]], "int32"), images),
            "GtSegms": (
                rng.uniform(low, 30, (corners.sum(), 2)).astype("float32"),
                [*images, polygons.tolist(), corners.tolist()],
            ),
            "Rois": (_boxes((5,), 30, size), [[2, 3]]),
            "LabelsInt32": (np.array([[0], [0 if none else 2], [1], [0], [2]], "int32"), [[2, 3]]),
        }
        outs = ("MaskRois", "RoiHasMaskInt32", "MaskInt32")
        yield Case("generate_mask_labels", operands, outs, {"num_classes": 3, "resolution": size})


def _yolo() -> Iterator[Case]:
    anchors = [10, 13, 16, 30, 33, 23]
    for clip, spread, aware, dtype in product((True, False), (1.0, 1.2), (False, True), ("float32", "float64")):
        x = values((2, 3 * (7 + aware), 3, 4), dtype)
        attrs = {"anchors": anchors, "class_num": 2, "conf_thresh": 0.4, "downsample_ratio": 32, "clip_bbox": clip,
                 "scale_x_y": spread, "iou_aware": aware, "iou_aware_factor": 0.3}  # fmt: skip
        sizes = np.array([[90, 120], [64, 50]], "int32")
        yield Case("yolo_box", {"X": x, "ImgSize": sizes}, ("Boxes", "Scores"), attrs)
    boxes = np.random.default_rng(5).uniform(0.1, 0.9, (2, 4, 4))
    boxes[1, 2] = 0
    labels = np.array([[0, 1, 2, 0], [2, 1, 0, 1]], "int32")
    both = (True, False)
    for mask, smooth, spread, near, scored in product(([0, 1], [2]), both, (1.0, 1.1), (0.3, 0.7), both):
        operands = {"X": values((2, len(mask) * 8, 3, 3)), "GTBox": boxes, "GTLabel": labels}
        operands |= {"GTScore": values((2, 4), low=0.1, high=1)} if scored else {}
        attrs = {"anchors": anchors, "anchor_mask": mask, "class_num": 3, "ignore_thresh": near, "downsample_ratio": 32,
                 "use_label_smooth": smooth, "scale_x_y": spread}  # fmt: skip
        yield Case("yolov3_loss", operands, ("Loss", "ObjectnessMask", "GTMatchMask"), attrs, ("X",))


def vision_cases() -> Iterator[Case]:
    """Every case, in a fixed order."""
    grids = (
        _resampled, _resampled_axes, _deformed, _suppressed, _rearranged, _normalised, _regions, _priors, _coded,
        _found, _precision, _masks, _yolo,
    )  # fmt: skip
    for grid in grids:
        yield from grid()
