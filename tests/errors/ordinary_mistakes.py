"""Sixty-odd mistakes that people make: the call, its message's headline and hint, and the call as the hint says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers

Array = np.ndarray[Any, Any]
Call = Callable[[], Any]
ONES = np.ones((2, 4), "float32")


@dataclass(frozen=True)
class Row:
    """A mistake in Python."""

    wrong: Call
    headline: str  # a part of the first line of its message
    hint: str  # a part of its hint
    right: Call  # the call, as the hint says


@dataclass(frozen=True)
class Cell:
    """A mistake in a notebook, or in the debugger."""

    wrong: str
    headline: str
    hint: str
    right: str  # what is typed instead, as the hint says
    before: str = ""  # what was typed before


def started() -> fluid.Executor:
    """An executor, after the startup program."""
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def run(feed: dict[str, Any], *fetch: Any) -> Any:
    """One run of the default program."""
    return started().run(feed=feed, fetch_list=list(fetch))


def plain(name: str, *shape: int, dtype: str = "float32") -> Any:
    """Data of this very shape."""
    return layers.data(name, list(shape), dtype=dtype, append_batch_size=False)


def rows(dtype: str = "float32", width: int = 4) -> Any:
    """A batch of rows."""
    return layers.data("x", [width], dtype=dtype)


def hidden() -> Any:
    """A layer over rows of 4."""
    return layers.fc(rows(), 3)


def classifier(y: Array, classes: int = 3, dtype: str = "int64") -> Any:
    label = layers.data("y", [1], dtype=dtype)
    loss = layers.mean(layers.cross_entropy(layers.fc(rows(), classes, act="softmax"), label))
    return run({"x": ONES, "y": y}, loss)


def batch(shape: list[int]) -> Any:
    return run({"x": np.ones((32, 4), "float32")}, layers.fc(layers.data("x", shape), 3))


def gradient(minimize: bool) -> Any:
    loss = layers.mean(layers.fc(rows(), 3, param_attr="w"))
    if minimize:
        fluid.append_backward(loss)
    return run({"x": ONES}, "w@GRAD")


def first_run(startup: bool) -> Any:
    exe, h = fluid.Executor(fluid.CPUPlace()), hidden()
    if startup:
        exe.run(fluid.default_startup_program())
    return exe.run(feed={"x": ONES}, fetch_list=[h])


def foreign(inside: bool) -> Any:
    program = fluid.Program()
    with fluid.program_guard(program):
        x = rows()
        if inside:
            return layers.fc(x, 3)
    return layers.fc(x, 3)


def other_program(passed: bool) -> Any:
    program = fluid.Program()
    with fluid.program_guard(program):
        h = layers.scale(rows(), 2.0)
    return started().run(*[program] * passed, feed={"x": ONES}, fetch_list=[h])


def startup_run(**feed: Any) -> Any:
    hidden()
    return fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program(), **feed)


def table(ids: Array, **cast: Any) -> Any:
    words = layers.data("x", [1], dtype=cast.get("dtype", "int64"))
    return run({"x": ids}, layers.embedding(layers.cast(words, "int64") if cast.get("convert") else words, [10, 4]))


def image(*shape: int, **options: Any) -> Any:
    return layers.conv2d(layers.data("img", list(shape)), 8, **{"filter_size": 3, **options})


def minimized(loss: Any) -> Any:
    return fluid.optimizer.SGD(0.1).minimize(loss)


def saved_model(name: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        h, exe = hidden(), started()
        fluid.io.save_inference_model(f"{folder}/model", ["x"], [h], exe)
        return fluid.io.load_inference_model(f"{folder}/{name}", exe)


def parameters(saved: bool) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        hidden()
        exe = started()
        if saved:
            fluid.io.save_params(exe, folder)
        return fluid.io.load_params(exe, folder)


def of_another_width(width: int) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        layers.fc(rows(), 3, param_attr="w", bias_attr=False)
        exe = started()
        fluid.io.save_params(exe, folder)
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            layers.fc(rows(width=width), 3, param_attr="w", bias_attr=False)
            return fluid.io.load_params(exe, folder)


def inference_model(feeds: Callable[[Any], Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        x = rows()
        return fluid.io.save_inference_model(folder, feeds(x), [layers.fc(x, 3)], started())


def fed(sample: Any) -> Any:
    return fluid.DataFeeder([rows(), layers.data("y", [1])], fluid.CPUPlace()).feed(sample)


def sequences(lengths: list[int], **options: Any) -> Any:
    words = layers.data("words", [1], lod_level=1)
    tensor = fluid.create_lod_tensor(np.ones((3, 1), "float32"), [lengths], fluid.CPUPlace())
    return started().run(feed={"words": tensor}, fetch_list=[layers.scale(words, 2.0)], **options)


def loop(cond: Callable[[Any, Any], Any]) -> Any:
    i, n = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", 3)
    return layers.While(cond(i, n))


def made_in_a_loop(kept: bool) -> Any:
    i, n = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", 3)
    more, last = layers.less_than(i, n), layers.zeros([1], "int64")
    with layers.While(more).block():
        layers.increment(i)
        twice = layers.scale(i, 2.0)
        if kept:
            layers.assign(twice, output=last)
        layers.less_than(i, n, cond=more)
    return layers.scale(last if kept else twice, 1.0)


def two_layers(second: str) -> Any:
    layers.fc(rows(), 3, param_attr="w")
    return layers.fc(layers.data("z", [5]), 3, param_attr=second)


#: What is made: the mistakes of building, running, feeding and files.
ROWS: dict[str, Row] = {
    # building
    "an argument in short": Row(
        lambda: fluid.optimizer.Adam(lr=0.1), "Adam: got an unexpected keyword argument 'lr'",
        'Did you mean "learning_rate"?', lambda: fluid.optimizer.Adam(learning_rate=0.1),
    ),
    "an argument of Keras": Row(
        lambda: layers.fc(rows(), units=3), "fc: got an unexpected keyword argument 'units'",
        'Did you mean "size"?', lambda: layers.fc(rows(), size=3),
    ),
    "an argument in full": Row(
        lambda: layers.fc(rows(), 3, activation="relu"),
        "fc: got an unexpected keyword argument 'activation'", 'Did you mean "act"?',
        lambda: layers.fc(rows(), 3, act="relu"),
    ),
    "weight decay of PyTorch": Row(
        lambda: fluid.optimizer.Adam(0.1, weight_decay=1e-4),
        "Adam: got an unexpected keyword argument 'weight_decay'", 'Did you mean "regularization"?',
        lambda: fluid.optimizer.Adam(0.1, regularization=fluid.regularizer.L2Decay(1e-4)),
    ),
    "an activation in capitals": Row(
        lambda: layers.fc(rows(), 3, act="ReLU"), "ReLU is not an activation", 'Did you mean "relu"?',
        lambda: layers.fc(rows(), 3, act="relu"),
    ),
    "a layer of PyTorch": Row(
        lambda: layers.Linear, "fluid.layers has no Linear", 'Did you mean "fc"?', lambda: layers.fc
    ),
    "a misspelled layer": Row(
        lambda: layers.cross_entrpy, "fluid.layers has no cross_entrpy",
        'Did you mean "cross_entropy"', lambda: layers.cross_entropy,
    ),
    "a misspelled class": Row(
        lambda: fluid.Excutor, "module 'fluidnb' has no attribute 'Excutor'", 'Did you mean "Executor"',
        lambda: fluid.Executor,
    ),
    "a number in quotes": Row(
        lambda: fluid.optimizer.SGD("0.1"), "learning_rate of SGD must be a number",
        "write learning_rate=0.1, without quotes.", lambda: fluid.optimizer.SGD(learning_rate=0.1),
    ),
    "a list of one variable": Row(
        lambda: layers.mean([plain("x", 2, 4)]), "x of mean must be a Variable",
        "write x=x, without brackets.", lambda: layers.mean(x=plain("x", 2, 4)),
    ),
    "an array for a variable": Row(
        lambda: layers.fc(ONES, 3), "input of fc must be a Variable", "layers.data() one to feed.",
        lambda: run({"x": ONES}, layers.fc(layers.data("x", [4]), 3)),
    ),
    "a number as a shape": Row(
        lambda: layers.data("x", 10), "shape of data must be a list of ints", "write shape=[10].",
        lambda: layers.data("x", shape=[10]),
    ),
    "a negative size": Row(
        lambda: layers.data("x", [-4]), 'A size of layers.data("x") is negative', "write shape=[-1].",
        lambda: layers.data("x", shape=[-1]),
    ),
    "a misspelled dtype": Row(
        lambda: rows("flaot32"), '"flaot32" is not a dtype', 'Did you mean "float32"?', lambda: rows("float32")
    ),
    "fc of one axis": Row(
        lambda: layers.fc(plain("x", 4), 3), "fc needs an input of rank 2 or more", "layers.reshape(x, [1, 4])",
        lambda: layers.fc(layers.reshape(plain("x", 4), [1, 4]), 3),
    ),
    "an image without channels": Row(
        lambda: image(28, 28), "The input of conv2d must be a 4-D tensor",
        'layers.data("img", [channels, height, width])', lambda: image(1, 28, 28),
    ),
    "a filter beyond its image": Row(
        lambda: image(1, 2, 2, filter_size=5), "The filter of conv2d is larger than the padded image",
        "padding=2 or more makes it fit", lambda: image(1, 2, 2, filter_size=5, padding=2),
    ),
    "groups that do not divide": Row(
        lambda: image(3, 8, 8, groups=2), "num_channels must be divisible by groups", "groups=1 connects",
        lambda: image(3, 8, 8, groups=1),
    ),
    "pooling by the mean": Row(
        lambda: layers.pool2d(layers.data("img", [3, 8, 8]), 2, pool_type="mean"), "Unknown pool_type: 'mean'",
        "avg the mean.", lambda: layers.pool2d(layers.data("img", [3, 8, 8]), 2, pool_type="avg"),
    ),
    "reshape": Row(
        lambda: layers.reshape(plain("x", 2, 4), [-1, 3]), "X cannot be reshaped", "shape=[-1] has 8",
        lambda: layers.reshape(plain("x", 2, 4), [-1]),
    ),
    "reshape, last size": Row(
        lambda: layers.reshape(plain("x", 2, 4), [4, 3]), "The size of X must be that of Attr(shape)",
        "shape=[4, -1] has 8", lambda: layers.reshape(plain("x", 2, 4), [4, -1]),
    ),
    "reshape, two unknown sizes": Row(
        lambda: layers.reshape(plain("x", 2, 4), [-1, -1]), "Only one dimension value of 'shape'",
        "shape=[-1, 4] keeps that of X.", lambda: layers.reshape(plain("x", 2, 4), shape=[-1, 4]),
    ),
    "concat along the wrong axis": Row(
        lambda: layers.concat([plain("x", 2, 4), plain("y", 3, 4)], axis=1), "The inputs of concat must have the same",
        "axis=0 joins them.", lambda: layers.concat([plain("x", 2, 4), plain("y", 3, 4)], axis=0),
    ),
    "concat beyond the last axis": Row(
        lambda: layers.concat([plain("x", 2, 4), plain("y", 2, 4)], axis=2),
        "Attr(axis) of concat must name a dimension",
        "axis=1 is the last one.", lambda: layers.concat([plain("x", 2, 4), plain("y", 2, 4)], axis=1),
    ),
    "broadcasting": Row(
        lambda: layers.elementwise_add(plain("x", 2, 4), plain("y", 2)), "Broadcast dimension mismatch",
        "axis=0 begins",
        lambda: layers.elementwise_add(plain("x", 2, 4), plain("y", 2), axis=0),
    ),
    "matrices that need a transposition": Row(
        lambda: layers.matmul(plain("x", 2, 4), plain("y", 3, 4)), "First matrix's width must be equal",
        "transpose_y=True swaps", lambda: layers.matmul(plain("x", 2, 4), plain("y", 3, 4), transpose_y=True),
    ),
    "a split with a rest": Row(
        lambda: layers.split(plain("x", 2, 5), 2, dim=1), "The input's size along the split dimension",
        "num_or_sections=[3, -1].", lambda: layers.split(plain("x", 2, 5), num_or_sections=[3, -1], dim=1),
    ),
    "a permutation of too few": Row(
        lambda: layers.transpose(plain("x", 2, 4), [0]), "The rank of X should equal the size of Attr(axis)",
        "perm=[1, 0] reverses them.", lambda: layers.transpose(plain("x", 2, 4), perm=[1, 0]),
    ),
    "more of the top than there is": Row(
        lambda: layers.topk(plain("x", 2, 4), k=5), "The dimension of X along which top_k compares must",
        "k=4 takes all of them.", lambda: layers.topk(plain("x", 2, 4), k=4),
    ),
    "an index of floats": Row(
        lambda: layers.gather(plain("x", 2, 4), plain("i", 2)), "Input(Index) of gather must hold integers",
        'layers.cast(i, "int64") converts it.',
        lambda: layers.gather(plain("x", 2, 4), layers.cast(plain("i", 2), "int64")),
    ),
    "words of floats": Row(
        lambda: table(np.array([[1.0]], "float32"), dtype="float32"), "Input(Ids) of lookup_table must hold integers",
        'layers.cast(x, "int64") converts it.',
        lambda: table(np.array([[1.0]], "float32"), dtype="float32", convert=True),
    ),
    "labels of floats": Row(
        lambda: classifier(np.array([[0.0], [1.0]], "float32"), dtype="float32"),
        "Input(Label) of cross_entropy should hold class numbers", 'declare y with dtype="int64"',
        lambda: classifier(np.array([[0], [1]]), dtype="int64"),
    ),
    "a size that is not of four gates": Row(
        lambda: layers.dynamic_lstm(layers.data("x", [32], lod_level=1), size=30),
        "size of dynamic_lstm counts the columns",
        "size=32, with layers.fc(x, size=32) in front",
        lambda: layers.dynamic_lstm(layers.fc(layers.data("x", [32], lod_level=1), size=32), size=32),
    ),
    "a loop over a number": Row(
        lambda: loop(lambda i, n: i), "condition should be a bool variable", "layers.less_than()",
        lambda: loop(lambda i, n: layers.less_than(i, n)),
    ),
    "a loop over True": Row(
        lambda: loop(lambda i, n: True), "cond of While must be a Variable of bool", "layers.less_than()",
        lambda: loop(lambda i, n: layers.less_than(i, n)),
    ),
    "a variable of a loop's block": Row(
        lambda: made_in_a_loop(kept=False), "which block 0 does not have",
        "is a variable of block 1, which only operators inside that block read. Create a variable before it, write "
        "layers.assign(", lambda: made_in_a_loop(kept=True),
    ),
    "a loss for each row": Row(
        lambda: minimized(hidden()), "The loss must be one number", "layers.mean()",
        lambda: minimized(layers.mean(hidden()))
    ),
    "two shapes for one weight": Row(
        lambda: two_layers("w"), "Variable w has been created before", "give the new variable another name",
        lambda: two_layers("w2"),
    ),
    "a variable of another program": Row(
        lambda: foreign(False), "x belongs to a program of 0 operators", "inside that program's fluid.program_guard",
        lambda: foreign(True),
    ),
    "a number of the host": Row(
        lambda: fluid.CPUPlace(0), "CPUPlace takes no device number", "write CPUPlace().", lambda: fluid.CPUPlace()
    ),
    "a named number of the host": Row(
        lambda: fluid.CPUPlace(device=0), "CPUPlace takes no device number", "write CPUPlace().",
        lambda: fluid.CPUPlace(),
    ),
    "a misspelled flag": Row(
        lambda: fluid.set_flags({"chek_nan_inf": False}), '"chek_nan_inf" is not a flag',
        'Did you mean "check_nan_inf"?',
        lambda: fluid.set_flags({"check_nan_inf": False}),
    ),
    # feeding and running
    "labels of shape (n,)": Row(
        lambda: classifier(np.array([0, 1])), "The fed Variable 'y' should have dimensions = 2",
        "feed y.reshape(-1, 1).",
        lambda: classifier(np.array([0, 1]).reshape(-1, 1)),
    ),
    "a label out of range": Row(
        lambda: classifier(np.array([[0], [3]])), "A label is out of range", "give the last layer more outputs",
        lambda: classifier(np.array([[0], [3]]), classes=4),
    ),
    "a word outside the table": Row(
        lambda: table(np.array([[10]])), "An id of lookup_table is outside the table", "ids start at 0.",
        lambda: table(np.array([[9]])),
    ),
    "the batch in the shape": Row(
        lambda: batch([32, 4]), "The fed Variable 'x' should have dimensions = 3",
        'declare layers.data("x", shape=[4])',
        lambda: batch([4]),
    ),
    "one row": Row(
        lambda: run({"x": ONES[0]}, hidden()), "The fed Variable 'x' should have dimensions = 2", "feed x[None]",
        lambda: run({"x": ONES[0][None]}, hidden()),
    ),
    "another width": Row(
        lambda: run({"x": np.ones((2, 3, 5), "float32")}, layers.scale(layers.data("x", [3, 4]), 2.0)),
        "The fed Variable 'x' should have dimensions = 3", 'layers.data("x", shape=[3, 5])',
        lambda: run({"x": np.ones((2, 3, 5), "float32")}, layers.scale(layers.data("x", shape=[3, 5]), 2.0)),
    ),
    "doubles": Row(
        lambda: run({"x": np.ones((2, 4))}, hidden()), "The fed Variable 'x' should have dtype float32",
        'array.astype("float32") converts it.', lambda: run({"x": np.ones((2, 4)).astype("float32")}, hidden()),
    ),
    "data that is not fed": Row(
        lambda: run({}, hidden()), "The program reads data that was not fed: x", 'exe.run(feed={"x": ...}, ...).',
        lambda: run({"x": ONES}, hidden()),
    ),
    "a name in capitals": Row(
        lambda: run({"X": ONES}, hidden()), 'The program has no variable "X" to feed', 'Did you mean "x"?',
        lambda: run({"x": ONES}, hidden()),
    ),
    "nothing fed": Row(
        lambda: run({"x": None}, hidden()), 'What was fed for "x" cannot be made an array',
        "feed numbers: np.array(..., 'float32').", lambda: run({"x": np.array([[1, 2, 3, 4]], "float32")}, hidden()),
    ),
    "rows of two lengths": Row(
        lambda: run({"x": [[1, 2, 3, 4], [1, 2]]}, hidden()), 'What was fed for "x" cannot be made an array',
        "nested lists must be of equal lengths", lambda: run({"x": [[1, 2, 3, 4], [1, 2, 0, 0]]}, hidden()),
    ),
    "the feed as the program": Row(
        lambda: first_run(True) and started().run({"x": ONES}), "Executor requires Program as its Parameter",
        "a feed is named: exe.run(feed={...}).", lambda: first_run(True) and started().run(feed={"x": ONES}),
    ),
    "a fetch by its Python name": Row(
        lambda: run({"x": ONES}, hidden() and "h"), 'The program has no variable "h" to fetch',
        "fetch the Variable itself, without quotes", lambda: run({"x": ONES}, hidden()),
    ),
    "a gradient that is not there yet": Row(
        lambda: gradient(False), 'The program has no variable "w@GRAD" to fetch', "fluid.append_backward(loss)",
        lambda: gradient(True),
    ),
    "no startup": Row(
        lambda: first_run(False), "Input Y of mul holds no memory", "exe.run(fluid.default_startup_program())",
        lambda: first_run(True),
    ),
    "a feed for the startup": Row(
        lambda: startup_run(feed={"x": ONES}), 'The program has no variable "x" to feed', "leave feed out",
        lambda: startup_run(),
    ),
    "a program that is not passed": Row(
        lambda: other_program(False), 'The program has no variable "x" to feed', "exe.run(program, feed=...)",
        lambda: other_program(True),
    ),
    "the value of a variable": Row(
        lambda: hidden().numpy(), "'Variable' object has no attribute 'numpy'", "fetch_list=[variable]",
        lambda: run({"x": ONES}, hidden()),
    ),
    "a function of numpy": Row(
        lambda: np.exp(rows()), "numpy's exp needs a value", "layers.exp computes it in the program",
        lambda: layers.exp(rows()),
    ),
    "a sum of numpy": Row(
        lambda: np.sum(rows()), "numpy's add.reduce needs a value", "layers.reduce_sum computes it",
        lambda: layers.reduce_sum(rows()),
    ),
    "a product with an array": Row(
        lambda: rows() @ np.ones((4, 3), "float32"), "@ takes a variable beside variable",
        "layers.assign turns an array into",
        lambda: rows() @ layers.assign(np.ones((4, 3), "float32")),
    ),
    "a misspelled argument": Row(
        lambda: fluid.Executor(plce=fluid.CPUPlace()), "Executor: got an unexpected keyword argument 'plce'",
        'Did you mean "place"?', lambda: fluid.Executor(place=fluid.CPUPlace()),
    ),
    "a misspelled strategy": Row(
        lambda: setattr(fluid.BuildStrategy(), "memory_optimise", 1), "BuildStrategy has no option memory_optimise",
        'Did you mean "memory_optimize"?', lambda: setattr(fluid.BuildStrategy(), "memory_optimize", True),
    ),
    "a feed in the plural": Row(
        lambda: fluid.Executor(fluid.CPUPlace()).run(feeds={}),
        "Executor.run: got an unexpected keyword argument 'feeds'", 'Did you mean "feed"?',
        lambda: fluid.Executor(fluid.CPUPlace()).run(feed={}),
    ),
    "a tensor's value by another name": Row(
        lambda: fluid.LoDTensor(arry=np.ones((2, 2), "float32")),
        "LoDTensor: got an unexpected keyword argument 'arry'",
        'Did you mean "array"?', lambda: fluid.LoDTensor(array=np.ones((2, 2), "float32")),
    ),
    "a scope's parent by another name": Row(
        lambda: fluid.Scope(parnt=fluid.global_scope()), "Scope: got an unexpected keyword argument 'parnt'",
        'Did you mean "parent"?', lambda: fluid.Scope(parent=fluid.global_scope()),
    ),
    "backward of a variable": Row(
        lambda: layers.mean(hidden()).backward(), "'Variable' object has no attribute 'backward'",
        "fluid.append_backward(variable)", lambda: fluid.append_backward(layers.mean(hidden())),
    ),
    "lengths that do not add up": Row(
        lambda: sequences([1, 1], return_numpy=False), "The provided lod info is invalid",
        "last-level lengths count rows.",
        lambda: sequences([1, 2], return_numpy=False),
    ),
    "sequences as an array": Row(
        lambda: sequences([1, 2]), "Some of your fetched tensors hold LoD information",
        "exe.run(..., return_numpy=False)",
        lambda: sequences([1, 2], return_numpy=False),
    ),
    "a sample without its label": Row(
        lambda: fed([(ONES[0],)]), "The number of fields in data (1) does not match", "a sample is (x, y,)",
        lambda: fed([(ONES[0], np.ones(1, "float32"))]),
    ),
    "another name for a batch's size": Row(
        lambda: fluid.batch(lambda: iter([]), batchsize=3),
        "batch: got an unexpected keyword argument 'batchsize'", 'Did you mean "batch_size"?',
        lambda: fluid.batch(lambda: iter([]), batch_size=3),
    ),
    "a list as a reader": Row(
        lambda: fluid.batch([1, 2, 3], 2), "reader of batch must be a reader", "wrap a list as lambda: the_list.",
        lambda: fluid.batch(lambda: [1, 2, 3], 2),
    ),
    # files
    "a misspelled folder": Row(
        lambda: saved_model("modle"), "There is no model ", 'Did you mean "model"?',
        lambda: saved_model("model"),
    ),
    "parameters that are not saved": Row(
        lambda: parameters(False), "Cannot open file", "save it first", lambda: parameters(True)
    ),
    "parameters of another network": Row(
        lambda: of_another_width(5), 'does not hold the variable "w"', "w has to have the sizes [4, 3]",
        lambda: of_another_width(4),
    ),
    "variables for names": Row(
        lambda: inference_model(lambda x: [x]), "feeded_var_names of save_inference_model",
        "write feeded_var_names=['x'].",
        lambda: inference_model(lambda x: ["x"]),
    ),
}  # fmt: skip

NET = """%%fluid data
x, y = layers.data("x", shape=[4]), layers.data("y", shape=[1])
"""
MORE = """%%fluid net
loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
"""
VALUES = "import numpy as np\nX, Y = np.ones((2, 4), 'float32'), np.ones((2, 1), 'float32')"
DEBUG = "%fluid debug --feed x=X y=Y --fetch loss"

#: What is typed into a notebook with a regression, cells ``data`` and ``net``, and arrays X and Y.
CELLS: dict[str, Cell] = {
    "a misspelled command": Cell("%fluid shwo", "%fluid has no shwo", 'Did you mean "show"?', "%fluid show"),
    "a misspelled option": Cell(
        "%fluid show --serach mul", "%fluid show does not take --serach", 'Did you mean "--search"?',
        "%fluid show --search mul",
    ),
    "a misspelled cell": Cell("%fluid drop nett", "there is no cell nett", 'Did you mean "net"?', "%fluid drop net"),
    "a run without its data": Cell(
        "%fluid run --fetch loss", "The program reads data that was not fed: x, y",
        "%fluid run --fetch loss --feed x=... y=...", "%fluid run --fetch loss --feed x=X y=Y",
    ),
    "a search for NaN without its data": Cell(
        "%fluid nan 5", "The program reads data that was not fed: x, y", "%fluid nan 5 --feed x=... y=...",
        "%fluid nan 5 --feed x=X y=Y",
    ),
    "a profile without its data": Cell(
        "%fluid profile", "The program reads data that was not fed: x, y", "%fluid profile --feed x=... y=...",
        "%fluid profile --feed x=X y=Y",
    ),
    "a misspelled variable": Cell(
        "%fluid run --feed x=X y=Y --fetch lss", "the program has no variable lss", 'Did you mean "loss"?',
        "%fluid run --feed x=X y=Y --fetch loss",
    ),
    "a program that is none": Cell(
        "%fluid tree --program gan", "there is no program gan", "%%fluid --program gan makes one.",
        "%%fluid g --program gan\nlayers.data('z', [1])\n",
    ),
    "an operator that is a layer's name": Cell(
        "%fluid ops fcc", "no operator or layer is called fcc", 'Did you mean "fc"?', "%fluid ops fc"
    ),
    "a step without a session": Cell(
        "%fluid step", "There is no debug session", "%fluid debug --feed x=... starts one", DEBUG + "\n%fluid step"
    ),
    "a misspelled breakpoint": Cell(
        "%fluid break mull", 'No operator of this program matches "op mull"', 'Did you mean "mul"?',
        "%fluid break mul", DEBUG
    ),
    "a breakpoint on data": Cell(
        "%fluid break var x", 'No operator of this program matches "var x"', "print x shows it.", "%fluid print x",
        DEBUG
    ),
    "a misspelled attribute": Cell(
        "%fluid change 0:0 x_num_cols=1", "mul has no attribute x_num_cols", 'Did you mean "x_num_col_dims"',
        "%fluid change 0:0 x_num_col_dims=1", DEBUG,
    ),
    "a command of no debugger": Cell(
        "%fluid breka mul", "%fluid has no breka", 'Did you mean "break"', "%fluid break mul", DEBUG
    ),
    "an edit of what has no value": Cell(
        "%fluid edit loss = 0", '"loss" has no tensor here', "step until something has written it.",
        "%fluid step 5\n%fluid edit loss = 0", DEBUG,
    ),
}  # fmt: skip
