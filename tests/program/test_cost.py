"""Shapes for given feeds, forward operators of gradients, and costs against numbers counted by hand."""

from __future__ import annotations

import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import NotFound, OpValueError
from fluidnb.op import all_ops, cost_of, get_op, op, remove_op
from fluidnb.program import Program, infer_shapes
from fluidnb.program.cost import batch_shapes, program_cost


def main() -> Program:
    return fluid.default_main_program()


def sums(feeds: dict[str, tuple[int, ...]], *types: str) -> list[int]:
    found = {row.name: row.multiply_adds for row in main().cost(feeds).by("op")}
    return [found[type] for type in types]


def test_lenet() -> None:
    image, label = layers.data("image", [1, 28, 28]), layers.data("label", [1], dtype="int64")
    first = fluid.nets.simple_img_conv_pool(image, 20, 5, 2, 2, act="relu")
    second = fluid.nets.simple_img_conv_pool(first, 50, 5, 2, 2, act="relu")
    loss = layers.mean(layers.cross_entropy(layers.fc(second, 10, act="softmax"), label))
    n, feeds = 64, {"image": (64, 1, 28, 28), "label": (64, 1)}
    conv = [n * 20 * 24 * 24 * 25, n * 50 * 8 * 8 * 20 * 25]
    pool = n * 20 * 12 * 12 * 4 + n * 50 * 4 * 4 * 4
    assert sums(feeds, "conv2d", "pool2d", "mul") == [sum(conv), pool, n * 800 * 10]
    fluid.optimizer.Adam(0.1).minimize(loss)
    weights = 20 * 25 + 20 + 50 * 20 * 25 + 50 + 800 * 10 + 10
    assert sums(feeds, "conv2d_grad", "mul_grad", "adam") == [conv[0] + 2 * conv[1], 2 * n * 800 * 10, 8 * weights]
    by_layer = {row.name: row for row in main().cost(feeds).by("layer")}
    assert by_layer["fc_0"].calls == 8 and main().cost(feeds).total.exact


def test_bytes_and_intensity_of_a_product() -> None:
    x = layers.data("x", [512])
    layers.fc(x, 256, bias_attr=False)
    (row,) = main().cost({"x": (128, 512)}).rows
    assert (row.read, row.written) == (4 * (128 * 512 + 512 * 256), 4 * 128 * 256)
    assert row.intensity == 2 * 128 * 512 * 256 / (row.read + row.written)


def test_a_bottleneck_block() -> None:
    def conv(x: fluid.Variable, filters: int, size: int, stride: int = 1, act: str | None = None) -> fluid.Variable:
        y = layers.conv2d(x, filters, size, stride, (size - 1) // 2, bias_attr=False)
        return layers.batch_norm(y, act=act)

    x = layers.data("x", [64, 56, 56])
    y = conv(conv(conv(x, 64, 1, act="relu"), 64, 3, act="relu"), 256, 1)
    layers.elementwise_add(conv(x, 256, 1), y, act="relu")
    pixels = 8 * 56 * 56
    wanted = pixels * (64 * 64 + 64 * 64 * 9 + 64 * 256 + 64 * 256)
    normed = 4 * pixels * (64 + 64 + 256 + 256)
    assert sums({"x": (8, 64, 56, 56)}, "conv2d", "batch_norm") == [wanted, normed]


def test_grouped_and_transposed_convolutions() -> None:
    x = layers.data("x", [8, 10, 10])
    layers.conv2d(x, 16, 3, groups=4, padding=1, bias_attr=False)
    layers.conv2d_transpose(x, 4, filter_size=2, stride=2, bias_attr=False)
    assert sums({"x": (2, 8, 10, 10)}, "conv2d", "conv2d_transpose") == [
        2 * 16 * 100 * (8 // 4) * 9, 2 * 8 * 100 * 4 * 4,
    ]  # fmt: skip


def test_an_lstm_over_sequences() -> None:
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    projected = layers.fc(layers.embedding(words, [1000, 32]), 4 * 64)
    layers.dynamic_lstm(projected, 4 * 64, use_peepholes=False)
    feeds = {"words": (300, 1)}
    assert sums(feeds, "lookup_table", "mul", "lstm") == [
        0, 300 * 32 * 256, 300 * 64 * 256 + 2 * 300 * 256,
    ]  # fmt: skip
    rows = {row.name: row for row in main().cost(feeds).rows}
    assert rows["lookup_table"].read == 300 * 8 + 300 * 32 * 4, "only the rows that are looked up"


def test_the_body_of_a_recurrent_operator_counts_once_a_step() -> None:
    x = layers.data("x", [7, 4, 16], append_batch_size=False)
    rnn = layers.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        state = rnn.memory(shape=[-1, 8], batch_ref=word)
        new = layers.fc([word, state], 8, act="tanh", bias_attr=False)
        rnn.update_memory(state, new)
        rnn.step_output(new)
    rnn()
    assert sums({}, "mul", "tanh") == [7 * (4 * 16 * 8 + 4 * 8 * 8), 7 * 4 * 8]
    assert all(row.exact for row in main().cost({}).rows if row.name == "mul")


def test_the_body_of_a_while_counts_once_and_says_so() -> None:
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    x = layers.fill_constant([4, 5], "float32", 1.0)
    loop = layers.While(layers.less_than(i, n))
    with loop.block():
        layers.scale(x, 2.0)
        layers.increment(i)
        layers.less_than(i, n, cond=loop.cond_var)
    (row,) = (row for row in main().cost().rows if row.name == "scale")
    assert row.multiply_adds == 20 and not row.exact and row.block == 1
    assert "at least" in str(main().cost())
    assert [op.type for _, _, op in main().each_op()][-4:] == ["while", "scale", "increment", "less_than"]


def test_a_transformer_block() -> None:
    n, time, width, heads, hidden = 2, 10, 32, 4, 128
    x = layers.data("x", [time, width])

    def split(y: fluid.Variable) -> fluid.Variable:
        return layers.transpose(layers.reshape(y, [0, time, heads, width // heads]), [0, 2, 1, 3])

    q, k, v = (split(layers.fc(x, width, num_flatten_dims=2, bias_attr=False)) for _ in range(3))
    weights = layers.softmax(layers.matmul(q, k, transpose_y=True, alpha=(width // heads) ** -0.5))
    y = layers.reshape(layers.transpose(layers.matmul(weights, v), [0, 2, 1, 3]), [0, time, width])
    y = layers.fc(y, width, num_flatten_dims=2, bias_attr=False)
    y = layers.layer_norm(layers.elementwise_add(x, y), begin_norm_axis=2)
    z = layers.fc(y, hidden, num_flatten_dims=2, act="relu", bias_attr=False)
    layers.layer_norm(layers.elementwise_add(layers.fc(z, width, num_flatten_dims=2, bias_attr=False), y))
    rows = n * time
    assert sums({"x": (n, time, width)}, "mul", "matmul", "softmax", "layer_norm", "transpose") == [
        rows * width * (4 * width + 2 * hidden), 2 * n * heads * time * time * (width // heads),
        5 * n * heads * time * time, 2 * 4 * rows * width, 0,
    ]  # fmt: skip


def test_shapes_for_given_feeds() -> None:
    x = layers.data("x", [4])
    h = layers.fc(x, 3)
    loss = layers.mean(h)
    fluid.backward.append_backward(loss)
    before = main().desc.serialize_to_string()
    shapes = infer_shapes(main(), {"x": (32, 4)})
    assert shapes[h.name].shape == shapes[h.name + "@GRAD"].shape == (32, 3) and shapes["x"].dtype == "float32"
    assert main().desc.serialize_to_string() == before and h.shape == (-1, 3)
    assert batch_shapes(main(), 5) == {"x": (5, 4)}
    with pytest.raises(NotFound, match="no variable y"):
        infer_shapes(main(), {"y": (1,)})
    with pytest.raises(OpValueError):
        infer_shapes(main(), {"x": (32, 5)})


def test_forward_operators_of_gradients() -> None:
    x = layers.data("x", [4])
    x.stop_gradient = False
    h = layers.fc(layers.tanh(layers.tanh(x)), 3)
    (slope,) = fluid.gradients(layers.mean(h), x)
    fluid.gradients(slope, x)
    ops = main().global_block().ops
    for place, each in enumerate(ops):
        found = each.forward_op()
        assert (found is None) == (not get_op(each.type).is_grad)
        if found is not None:
            assert each.type == found.type + "_grad" and found.idx < place
    pairs = [(op.input("Out"), op.forward_op().output("Out")) for op in ops if op.type == "tanh_grad"]
    assert len({str(p) for p in pairs}) == 2 and all(given == made for given, made in pairs)


def training_loop() -> None:
    """A loop whose body overwrites what its gradient reads, so that backward reads copies."""
    state = layers.assign(layers.fc(layers.data("x", [4]), 6))
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.assign(layers.fc(state, 6, act="tanh", param_attr="w", bias_attr=False), state)
        layers.increment(i)
        layers.less_than(i, n, cond=more)
    fluid.optimizer.SGD(0.1).minimize(layers.mean(state))


def test_gradients_of_a_loop_have_forward_operators_and_costs() -> None:
    training_loop()
    last = main().blocks[-1]
    grads = [op for op in last.ops if op.type.endswith("_grad")]
    assert last.forward_block_idx == 1
    assert [op.input("X") for op in grads if op.type == "mul_grad"] == [["assign_0.tmp_0@SAVED"]]
    assert [(op.type, op.forward_op().type) for op in grads] == [("tanh_grad", "tanh"), ("mul_grad", "mul")]
    body = [row for row in main().cost({"x": (2, 4)}).rows if row.block > 0]
    assert [row.multiply_adds for row in body if row.name in ("mul", "mul_grad")] == [2 * 6 * 6, 2 * 2 * 6 * 6]


def test_a_gradient_without_a_forward_operator_counts_by_its_own_inputs() -> None:
    training_loop()
    block, op = next((block, op) for block, _, op in main().each_op() if op.type == "mul_grad")
    assert cost_of(op.desc, block.desc, None).multiply_adds == 2 * 6 * 6, "a batch of one"


#: Operators that compute nothing, or whose work depends on values: by folder or by type -> why there is no cost.
NO_COST = {
    "array": "moves elements of arrays", "beam": "sorts as many words as there are", "control": "its block counts",
    "distributed": "moves values between processes",
    "io": "reads, writes or prints", "lod": "moves rows", "reader": "reads batches", "rows": "moves rows",
    "tensor": "moves or fills elements", "detection": "compares as many boxes as there are",
    "vision": "moves elements", "sequence": "moves rows", "random_crop": "moves elements", "hash": "hashes words",
    "ctc_align": "compares labels", "chunk_eval": "counts chunks", "edit_distance": "compares words",
    "positive_negative_pair": "compares pairs of rows", "precision_recall": "counts rows",
}  # fmt: skip


def test_every_operator_that_computes_has_a_cost() -> None:
    used = set()
    for definition in all_ops():
        if definition.is_grad or not definition.module.startswith("fluidnb_kernels.") or definition.cost is not None:
            continue
        folder = definition.module.split(".")[1]
        key = definition.type if definition.type in NO_COST else folder
        assert key in NO_COST, f"{definition.type} has no cost: write @op(cost=...), or the reason in NO_COST"
        used.add(key)
    assert used == set(NO_COST), f"reasons for operators that have a cost: {set(NO_COST) - used}"


def test_a_formula_names_slots_and_attributes() -> None:
    @op("cost_of_nothing", inputs={"X": "any"}, outputs={"Out": "any"}, cost="2 * Y", infer=get_op("relu").infer)
    def nothing(b: object) -> None: ...

    try:
        x = layers.data("x", [4])
        y = x.block.create_var(name="y")
        made = x.block.append_op(type="cost_of_nothing", inputs={"X": x}, outputs={"Out": y})
        with pytest.raises(OpValueError, match="Y of the cost of cost_of_nothing is unknown"):
            cost_of(made.desc, x.block.desc)
    finally:
        remove_op("cost_of_nothing")


def test_every_formula_can_be_counted() -> None:
    """All factors of all formulas are slots and attributes of their operators."""
    import re

    for definition in all_ops():
        if isinstance(definition.cost, str):
            known = {*definition.inputs, *definition.outputs, *definition.attrs}
            words = re.findall(r"[A-Za-z_]\w*", definition.cost)
            assert set(words) <= known, (definition.type, definition.cost)


def test_costs_do_not_change_the_program() -> None:
    layers.fc(layers.data("x", [4]), 2)
    before = main().desc.serialize_to_string()
    assert program_cost(main()).multiply_adds == 4 * 2 + 2
    assert main().desc.serialize_to_string() == before


def test_einsum_multiplies_for_each_combination_of_letters() -> None:
    block = main().global_block()
    for name, shape in (("a", [2, 3]), ("b", [3, 4]), ("out", [2, 4])):
        block.create_var(name=name, shape=shape, dtype="float32")
    block.append_op("einsum", {"Operands": ["a", "b"]}, {"Out": ["out"]}, {"equation": "ij,jk->ik"})
    assert sums({}, "einsum") == [2 * 3 * 4]
