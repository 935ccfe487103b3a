"""An operator whose result has a shape that depends on values is asked for it before its operands are checked."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError


def test_a_wrong_rank_is_named_by_the_operators_declaration() -> None:
    fluid.set_flags({"FLAGS_strict_feeds": False})
    try:
        with fluid.fresh() as (main, _):
            for name in ("boxes", "scores"):
                fluid.layers.data(name, [-1, -1, -1], append_batch_size=False)
            block = main.global_block()
            outs = {slot: [block.create_var(name=slot)] for slot in ("Out", "Index", "RoisNum")}
            block.append_op(
                "matrix_nms", {"BBoxes": ["boxes"], "Scores": ["scores"]}, outs,
                {"score_threshold": 0.1, "nms_top_k": -1, "keep_top_k": -1},
            )  # fmt: skip
            feed = {"boxes": np.zeros((), "float32"), "scores": np.zeros((1, 2, 3), "float32")}
            with pytest.raises(FluidError) as caught:
                fluid.Executor().run(feed=feed, fetch_list=["Out"])
    finally:
        fluid.set_flags({"FLAGS_strict_feeds": True})
    assert str(caught.value).startswith("Input(BBoxes) of matrix_nms must have the shape [images, n, 4].")


def test_outputs_that_are_missing_are_named() -> None:
    with fluid.fresh() as (main, _):
        ids = fluid.layers.data("ids", [1], dtype="int64")
        block = main.global_block()
        op = block.append_op("split_ids", {"Ids": [ids]}, {"Out": [block.create_var(name="out", dtype="int64")]})
        del op.desc.outs["Out"]
        with pytest.raises(FluidError, match="operator split_ids: Out is missing"):
            fluid.Executor().run(feed={"ids": np.array([[1], [2]])}, fetch_list=[ids])
