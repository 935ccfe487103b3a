"""Programs of trainers and servers: operators, their order, variables, as in Fluid 1.4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import FluidError
from fluidnb.program.constants import role_of
from fluidnb.transpiler.distribute.slices import slice_variable
from tests.distributed.networks import built, divided, fit_a_line, lenet, shared_table, types, wide_regression, word2vec

FORWARD = ["mul", "elementwise_add", "elementwise_sub", "square", "mean"]
BACKWARD = ["fill_constant", "mean_grad", "square_grad", "elementwise_sub_grad", "elementwise_add_grad"]


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def test_a_trainer_sends_gradients_where_they_are_complete() -> None:
    parts = built(wide_regression, sgd)
    trainer = divided(parts).get_trainer_program()
    assert types(trainer.global_block()) == [
        *FORWARD, *BACKWARD, "send", "mul_grad", "split_byref", "send",
        "send_barrier", "recv", "recv", "fetch_barrier", "concat",
    ]  # fmt: skip
    send = [op for op in trainer.global_block().ops if op.type == "send"]
    assert [op.input("X") for op in send] == [
        ["fc_b@GRAD.trainer_0"], ["fc_w@GRAD.block0.trainer_0", "fc_w@GRAD.block1.trainer_0"],
    ]  # fmt: skip
    assert [op.attr("epmap") for op in send] == [["ps:0"], ["ps:1", "ps:0"]]


def test_pictures_draw_what_moves_values_as_the_optimizer() -> None:
    trainer = divided(built(wide_regression, sgd)).get_trainer_program()
    roles = {op.type: role_of(op.desc) for op in trainer.global_block().ops}
    assert {roles[type] for type in ("send", "split_byref", "send_barrier", "recv", "concat")} == {"optimizer"}
    assert roles["mul"] == "forward" and roles["mul_grad"] == "backward"


def test_the_training_program_stays_as_it_is() -> None:
    parts = built(lenet, lambda: fluid.optimizer.Momentum(0.1, 0.9))
    before = parts[0].desc.serialize_to_string()
    transpiler = divided(parts)
    transpiler.get_trainer_program()
    transpiler.get_pserver_programs("ps:0")
    assert parts[0].desc.serialize_to_string() == before


def test_a_startup_program_receives_the_initial_values_once() -> None:
    parts = built(wide_regression, sgd)
    transpiler = divided(parts)
    expected = ["uniform_random", "fill_constant", "fill_constant", "recv", "recv", "fetch_barrier", "concat"]
    assert types(parts[1].global_block()) == expected
    transpiler.transpile(1, parts[0], pservers="ps:0,ps:1", trainers=2, startup_program=parts[1])
    assert types(parts[1].global_block()) == expected
    assert {"fc_w.block0", "fc_w.block1", "fc_w", "fc_b"} <= set(parts[1].global_block().vars)
    assert "fc_w@GRAD" not in parts[1].global_block().vars


def test_a_server_sums_scales_and_updates() -> None:
    main, startup = divided(built(wide_regression, sgd)).get_pserver_programs("ps:0")
    assert [types(block) for block in main.blocks] == [
        ["listen_and_serv"], ["sum", "scale", "sgd"], ["sum", "scale", "sgd"],
    ]  # fmt: skip
    assert sorted(types(startup.global_block())) == ["fill_constant", "fill_constant", "uniform_random"]
    assert startup.global_block().var("fc_w.block1").shape == (500, 1000)
    listen = main.global_block().ops[0]
    assert listen.attr("Fanin") == 2 and listen.attr("optimize_blocks") == [1, 2]
    assert listen.attr("grad_to_block_id") == ["fc_b@GRAD:1", "fc_w@GRAD.block1:2"]


def test_every_parameter_is_updated_on_one_server_and_on_no_trainer() -> None:
    parts = built(lenet, lambda: fluid.optimizer.Adam(0.01))
    transpiler = divided(parts)
    updated = []
    for endpoint in ("ps:0", "ps:1"):
        program = transpiler.get_pserver_program(endpoint)
        updated += [op.input("Param")[0] for _, _, op in program.each_op() if "Param" in op.input_names]
    assert len(updated) == len(set(updated))
    assert {name.partition(".block")[0] for name in updated} == {p.name for p in parts[0].all_parameters()}
    assert not any("Param" in op.input_names for op in transpiler.get_trainer_program().global_block().ops)


@pytest.mark.parametrize(
    "how, shapes",
    [
        ({}, {"fc_w.block0": (500, 1000), "fc_w.block1": (500, 1000), "fc_b": (1000,)}),
        ({"min_block_size": 1048576}, {"fc_w": (1000, 1000), "fc_b": (1000,)}),
        ({"slice_var_up": False}, {"fc_w": (1000, 1000), "fc_b": (1000,)}),
        ({"split_method": fluid.transpiler.HashName}, {"fc_w.block0": (500, 1000), "fc_w.block1": (500, 1000)}),
    ],
)
def test_parameters_are_divided_as_the_configuration_says(how: dict[str, Any], shapes: dict[str, Any]) -> None:
    transpiler = divided(built(wide_regression, sgd), **how)
    kept = {}
    for endpoint in ("ps:0", "ps:1"):
        block = transpiler.get_pserver_program(endpoint).global_block()
        kept.update({name: var.shape for name, var in block.vars.items() if name in shapes})
    assert kept == shapes


@pytest.mark.parametrize("trainers, sync, update", [(1, True, ["sgd"]), (2, False, ["sgd"])])
def test_one_trainer_or_no_waiting_needs_no_sum(trainers: int, sync: bool, update: list[str]) -> None:
    transpiler = divided(built(fit_a_line, sgd), trainers=trainers, sync_mode=sync)
    assert types(transpiler.get_pserver_program("ps:0").block(1)) == update
    trainer = types(transpiler.get_trainer_program().global_block())
    assert ("send_barrier" in trainer, "fetch_barrier" in trainer) == (sync, sync)


def test_a_schedule_runs_on_the_servers_before_the_updates() -> None:
    boundaries, values = [10000, 20000], [1.0, 0.5, 1.0]
    parts = built(wide_regression, lambda: fluid.optimizer.SGD(layers.piecewise_decay(boundaries, values)))
    schedule = [op.type for op in parts[0].global_block().ops if op.desc.attrs["op_role"] == 16]
    main, startup = divided(parts).get_pserver_programs("ps:0")
    assert types(main.block(1)) == schedule
    assert main.global_block().ops[0].attr("optimize_blocks") == [1, 5, 6]  # 2 to 4 are branches of the schedule
    assert "@LR_DECAY_COUNTER@" in startup.global_block().vars
    assert not set(types(divided(parts).get_trainer_program().global_block())) & {"conditional_block", "increment"}


def test_clipping_and_weight_decay_run_on_the_servers() -> None:
    parts = built(
        lambda: wide_regression(
            regularizer=fluid.regularizer.L2Decay(), gradient_clip=fluid.clip.GradientClipByValue(0.1)
        ), sgd,
    )  # fmt: skip
    main = divided(parts).get_pserver_program("ps:0")
    assert types(main.block(1)) == ["sum", "scale", "clip", "scale", "sum", "sgd"]
    assert types(main.block(2)) == ["sum", "scale", "sgd"]


@pytest.mark.parametrize(
    "optimizer, accumulators",
    [
        (lambda: fluid.optimizer.Momentum(0.1, 0.9), {"fc_w_velocity_0": (500, 1000)}),
        (lambda: fluid.optimizer.Adam(0.1), {"fc_w_moment1_0": (500, 1000), "fc_w_beta1_pow_acc_0": (1,)}),
        (lambda: fluid.optimizer.Adagrad(0.1), {"fc_w_moment_0": (500, 1000)}),
        (lambda: fluid.optimizer.RMSProp(0.1), {"fc_w_momentum_0": (500, 1000)}),
        (lambda: fluid.optimizer.Ftrl(0.1), {"fc_w_squared_0": (500, 1000)}),
    ],
)
def test_accumulators_have_the_shape_of_the_slice(optimizer: Any, accumulators: dict[str, Any]) -> None:
    main, startup = divided(built(wide_regression, optimizer)).get_pserver_programs("ps:0")
    for name, shape in accumulators.items():
        assert main.global_block().var(name).shape == startup.global_block().var(name).shape == shape
        assert next(op for op in startup.global_block().ops if op.output("Out") == [name]).attr("shape") == list(shape)


def test_sparse_gradients_are_divided_by_rows() -> None:
    ops = types(divided(built(word2vec, sgd)).get_trainer_program().global_block())
    assert ops[ops.index("lookup_table_grad") + 4 :][:3] == ["sum", "split_selected_rows", "send"]


@pytest.mark.parametrize("sync, update", [(True, ["sum", "scale", "sgd"]), (False, ["sgd"])])
def test_rows_of_a_distributed_table_are_on_all_servers(sync: bool, update: list[str]) -> None:
    parts = built(shared_table, sgd)
    transpiler = divided(parts, sync_mode=sync)
    trainer = types(transpiler.get_trainer_program().global_block())
    assert trainer[:4] == ["split_ids", "prefetch", "merge_ids", "concat"] and "lookup_table" not in trainer
    assert trainer[trainer.index("lookup_table_grad") + 4 :][:3] == ["sum", "split_ids", "send"]
    main, startup = transpiler.get_pserver_programs("ps:1")
    assert main.global_block().var("table").shape == (500, 32)
    assert [types(block) for block in main.blocks][-2:] == [update, ["lookup_sparse_table"]]
    assert next(op for op in startup.global_block().ops if op.output("Out") == ["table"]).attr("slice_step") == 2
    assert types(parts[1].global_block()).count("fake_init") == 1


def test_a_table_needs_sparse_gradients_and_is_updated_by_sgd() -> None:
    def dense() -> fluid.Variable:
        ids = layers.data("ids", [1], dtype="int64")
        return layers.mean(layers.embedding(ids, [100, 4], is_sparse=False, is_distributed=True))

    with pytest.raises(FluidError, match="is distributed and has a dense gradient"):
        divided(built(dense, sgd))
    with pytest.warns(UserWarning, match="is updated by sgd on its servers, not by adam"):
        divided(built(shared_table, lambda: fluid.optimizer.Adam(0.01)))


@pytest.mark.parametrize(
    "shape, sizes",
    [
        ([3, 5], [15]),
        ([1024], [1024]),
        ([28, 784], [2352] * 9 + [784]),
        ([8, 1020], [2040] * 4),
        ([800, 10], [1150] * 6 + [1100]),
    ],
)
def test_slices_are_whole_rows(shape: list[int], sizes: list[int]) -> None:
    var = fluid.Program().global_block().create_var(name="v", shape=shape, dtype="float32")
    assert slice_variable([var], 10, 1024) == [f"v:{i}:{n}" for i, n in enumerate(sizes)]
    assert sum(sizes) == np.prod(shape)


def test_a_configuration_without_meaning_is_refused() -> None:
    def refused(**settings: Any) -> str:
        config = fluid.DistributeTranspilerConfig()
        for name, value in settings.items():
            setattr(config, name, value)
        with pytest.raises(FluidError) as caught:
            fluid.DistributeTranspiler(config)
        return str(caught.value)

    assert "no dispatcher" in refused(split_method="RoundRobin")
    assert "no mode 'ring'" in refused(mode="ring")
    assert "min_block_size" in refused(min_block_size=0)


@pytest.mark.parametrize(
    "call, message",
    [
        ({"trainer_id": 2, "trainers": 2}, "There is no trainer 2 among 2."),
        ({"trainer_id": 0, "pservers": "ps:0,ps:0"}, "pservers must name each parameter server once."),
        ({"trainer_id": 0, "pservers": " "}, "pservers must name each parameter server once."),
    ],
)
def test_a_call_without_meaning_is_refused(call: dict[str, Any], message: str) -> None:
    main, startup, _ = built(fit_a_line, sgd)
    with pytest.raises(FluidError, match=message):
        fluid.DistributeTranspiler().transpile(program=main, startup_program=startup, **call)


def test_programs_are_asked_for_in_order_and_by_known_endpoints() -> None:
    with pytest.raises(FluidError, match="Nothing is divided yet."):
        fluid.DistributeTranspiler().get_trainer_program()
    with pytest.raises(FluidError, match="There is no parameter server ps:7."):
        divided(built(fit_a_line, sgd)).get_pserver_program("ps:7")
    with pytest.raises(FluidError, match="The program has no optimizer"):
        fluid.DistributeTranspiler().transpile(0, fluid.Program(), startup_program=fluid.Program())


def test_a_global_norm_is_refused() -> None:
    clip = fluid.clip.GradientClipByGlobalNorm(1.0)
    parts = built(lambda: wide_regression(gradient_clip=clip), sgd)
    transpiler = divided(parts)  # one parameter alone has its norm on one server
    assert transpiler.plan.updates
    with pytest.raises(FluidError, match="needs the gradients of several parameters at once"):

        def two_layers() -> fluid.Variable:
            x, y = layers.data("x", [4]), layers.data("y", [1])
            hidden = layers.fc(x, 4, param_attr=fluid.ParamAttr(gradient_clip=clip), bias_attr=False)
            out = layers.fc(hidden, 1, param_attr=fluid.ParamAttr(gradient_clip=clip), bias_attr=False)
            return layers.mean(layers.square_error_cost(out, y))

        divided(built(two_layers, sgd))


def test_a_second_call_replaces_what_the_first_appended_to_the_startup_program() -> None:
    parts = built(fit_a_line, lambda: fluid.optimizer.SGD(0.1))
    t = divided(parts)
    first = parts[1].desc.serialize_to_string()
    t.transpile(0, parts[0], pservers="other:0", trainers=2, startup_program=parts[1])
    transfers = [op for op in parts[1].global_block().ops if op.type == "recv"]
    assert transfers and {name for op in transfers for name in op.attr("epmap")} == {"other:0"}
    t.transpile(0, parts[0], pservers="ps:0,ps:1", trainers=2, startup_program=parts[1])
    assert parts[1].desc.serialize_to_string() == first
