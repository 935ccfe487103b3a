"""Exports models with the Paddle that runs this: program and parameters, inputs and outputs of a run.

Each model is a function in `MODELS` that returns a layer and its inputs: arrays, and the shapes to declare.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F  # noqa: N812  (its usual name)
from paddle.static import InputSpec
from paddle.vision import models as vision
from paddle.vision.ops import DeformConv2D, matrix_nms

random = np.random.default_rng(0)
#: Sizes that differ from run to run.
ANY = None
#: A layer, its inputs by name, and the shapes that are declared for them.
Model = tuple[Any, dict[str, np.ndarray], dict[str, list[int | None]]]
MODELS: dict[str, Callable[[], Model]] = {}


def model(build: Callable[[], Model]) -> Callable[[], Model]:
    """Adds a function to the models, by its name."""
    MODELS[build.__name__] = build
    return build


def images(size: int, channels: int = 3, batch: int = 2) -> np.ndarray:
    """Images with values from 0 to 1."""
    return random.random((batch, channels, size, size), "float32")


def picture(layer: Any, size: int, channels: int = 3) -> Model:
    """A model of images, with any number of them."""
    return layer, {"image": images(size, channels)}, {"image": [ANY, channels, size, size]}


@model
def lenet() -> Model:
    return picture(vision.LeNet(), 28, 1)


@model
def alexnet() -> Model:
    return picture(vision.alexnet(num_classes=0), 64)


@model
def densenet121() -> Model:
    return picture(vision.densenet121(num_classes=10), 64)


@model
def googlenet() -> Model:
    return picture(vision.googlenet(num_classes=10), 224)


@model
def inception_v3() -> Model:
    return picture(vision.inception_v3(num_classes=10), 96)


@model
def mobilenet_v1() -> Model:
    return picture(vision.mobilenet_v1(scale=0.25, num_classes=10), 64)


@model
def mobilenet_v2() -> Model:
    return picture(vision.mobilenet_v2(scale=0.25, num_classes=10), 64)


@model
def mobilenet_v3_small() -> Model:
    return picture(vision.mobilenet_v3_small(scale=0.35, num_classes=10), 64)


@model
def mobilenet_v3_large() -> Model:
    return picture(vision.mobilenet_v3_large(scale=0.35, num_classes=10), 64)


@model
def resnet18() -> Model:
    return picture(vision.resnet18(num_classes=10), 64)


@model
def resnext50() -> Model:
    return picture(vision.resnext50_32x4d(num_classes=10), 64)


@model
def shufflenet_v2() -> Model:
    return picture(vision.shufflenet_v2_x0_25(num_classes=10), 64)


@model
def squeezenet() -> Model:
    return picture(vision.squeezenet1_1(num_classes=10), 64)


@model
def vgg11() -> Model:
    return picture(vision.vgg11(num_classes=0), 64)


class Encoder(nn.Layer):
    """Token ids to vectors, with the mask of padding."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.positions = nn.Embedding(12, 16)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, activation="gelu"), 2)
        self.pooled = nn.Linear(16, 16)

    def forward(self, ids: Any) -> Any:
        mask = (ids == 0).astype("float32").unsqueeze([1, 2]) * -1e4
        place = paddle.cumsum(paddle.ones_like(ids), axis=-1) - 1
        out = self.encoder(self.words(ids) + self.positions(place), mask)
        return out, paddle.tanh(self.pooled(out[:, 0]))


@model
def transformer_encoder() -> Model:
    return Encoder(), {"ids": random.integers(0, 50, (2, 7))}, {"ids": [ANY, ANY]}


class Decoder(nn.Layer):
    """One step of a decoder with its cache: keys and values of the steps before."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 16)
        self.attention = nn.MultiHeadAttention(16, 4)
        self.norm = nn.LayerNorm(16)
        self.out = nn.Linear(16, 40)

    def forward(self, ids: Any, keys: Any, values: Any) -> Any:
        x = self.words(ids)
        cache = nn.MultiHeadAttention.Cache(keys, values)
        y, cache = self.attention(x, x, x, None, cache)
        logits = self.out(self.norm(x + y))[:, -1]
        score, best = paddle.topk(logits, 3)
        return score, best, cache.k, cache.v


@model
def transformer_decoder() -> Model:
    state = {n: random.standard_normal((2, 4, 5, 4)).astype("float32") for n in ("keys", "values")}
    shapes: dict[str, list[int | None]] = {"ids": [ANY, 1], "keys": [ANY, 4, ANY, 4], "values": [ANY, 4, ANY, 4]}
    return Decoder(), {"ids": random.integers(0, 40, (2, 1)), **state}, shapes


class Recogniser(nn.Layer):
    """A line of text from an image: convolution, recurrent layers both ways, classes of each column."""

    def __init__(self, rnn: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2D(1, 8, 3, stride=2, padding=1)
        self.rnn = rnn(8 * 4, 12, num_layers=2, direction="bidirect")
        self.out = nn.Linear(24, 11)

    def forward(self, image: Any) -> Any:
        x = F.relu(self.conv(image)).transpose([0, 3, 1, 2]).flatten(2)
        return F.softmax(self.out(self.rnn(x)[0]), -1)


def line(rnn: Any) -> Model:
    return Recogniser(rnn), {"image": random.random((2, 1, 8, 20), "float32")}, {"image": [ANY, 1, 8, ANY]}


@model
def lstm_recogniser() -> Model:
    return line(nn.LSTM)


@model
def gru_recogniser() -> Model:
    return line(nn.GRU)


class SimpleRecurrent(nn.Layer):
    """A plain recurrent layer over sequences of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.SimpleRNN(6, 5)

    def forward(self, x: Any, lengths: Any) -> Any:
        out, state = self.rnn(x, None, lengths)
        return out, state


@model
def simple_rnn() -> Model:
    feeds = {"x": random.random((3, 4, 6), "float32"), "lengths": np.array([4, 2, 3], "int32")}
    return SimpleRecurrent(), feeds, {"x": [ANY, ANY, 6], "lengths": [ANY]}


class UNet(nn.Layer):
    """Two scales of a U-Net; upsampled once bilinear, once nearest, once by a transposed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.LayerList([nn.Conv2D(a, b, 3, padding=1) for a, b in ((3, 6), (6, 8), (8, 8), (8, 8))])
        self.norms = nn.LayerList([nn.GroupNorm(2, 6), nn.InstanceNorm2D(8), nn.BatchNorm2D(8), nn.GroupNorm(4, 8)])
        self.up = nn.Conv2DTranspose(8, 4, 2, stride=2)
        self.out = nn.Conv2D(4 + 3, 2, 1)

    def forward(self, image: Any) -> Any:
        x, steps = image, []
        for conv, norm in zip(self.down, self.norms):  # noqa: B905  (Paddle translates it, and knows no strict)
            steps.append(F.silu(norm(conv(x))))
            x = F.max_pool2d(steps[-1], 2)
        x = F.interpolate(x, size=steps[3].shape[2:], mode="nearest") + steps[3]
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True) + steps[2]
        x = F.interpolate(x, scale_factor=2, mode="bilinear") + steps[1]
        return F.sigmoid(self.out(paddle.concat([self.up(x), image], 1)))


@model
def unet() -> Model:
    return picture(UNet(), 32)


class Detector(nn.Layer):
    """A detection head: boxes by cell of a grid, and non-maximum suppression."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2D(3, 8, 3, stride=4, padding=1)
        self.score = nn.Conv2D(8, 3, 1)
        self.box = nn.Conv2D(8, 4, 1)

    def forward(self, image: Any) -> Any:
        x = F.leaky_relu(self.conv(image))
        height, width = x.shape[2], x.shape[3]
        rows, columns = paddle.meshgrid(paddle.arange(height), paddle.arange(width))
        centres = (paddle.stack([columns, rows], -1).reshape([-1, 2]).astype("float32") + 0.5) * 4.0
        sizes = F.softplus(self.box(x)).flatten(2).transpose([0, 2, 1]) * 3.0
        boxes = paddle.concat([centres - sizes[:, :, :2], centres + sizes[:, :, 2:]], -1)
        scores = F.sigmoid(self.score(x) * 4.0).flatten(2)
        return nms(boxes, scores)


def nms(boxes: Any, scores: Any) -> Any:
    """Non-maximum suppression by Paddle's operator, which has no public function."""
    attrs = {
        "background_label": -1, "score_threshold": 0.3, "nms_top_k": 20, "nms_threshold": 0.4, "keep_top_k": 10,
        "nms_eta": 1.0, "normalized": True,
    }  # fmt: skip
    if paddle.in_dynamic_mode():
        return paddle._C_ops.multiclass_nms3(boxes, scores, None, *nms_arguments(attrs))
    if hasattr(paddle.framework, "in_pir_mode") and paddle.framework.in_pir_mode():
        out, index, count = paddle._C_ops.multiclass_nms3(boxes, scores, None, *nms_arguments(attrs))
        return out, count
    from paddle.base.layer_helper import LayerHelper

    helper = LayerHelper("multiclass_nms3")
    out = helper.create_variable_for_type_inference("float32")
    index, count = (helper.create_variable_for_type_inference("int32") for _ in range(2))
    outputs = {"Out": out, "Index": index, "NmsRoisNum": count}
    helper.append_op(
        type="multiclass_nms3", inputs={"BBoxes": boxes, "Scores": scores}, attrs=attrs, outputs=outputs
    )
    return out, count


def nms_arguments(attrs: dict[str, Any]) -> list[Any]:
    order = ("score_threshold", "nms_top_k", "keep_top_k", "nms_threshold", "normalized", "nms_eta", "background_label")
    return [attrs[name] for name in order]


@model
def detector() -> Model:
    return picture(Detector(), 32)


class Branches(nn.Layer):
    """An `if` and a `while` that depend on values."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        y = self.linear(x)
        if y.mean() > 0:
            y = y * 2
        else:
            y = y - 1
        i = paddle.zeros([1], "int64")
        while i < 3:
            y = F.tanh(self.linear(y)) + y
            i += 1
        return y, i


@model
def branches() -> Model:
    return Branches(), {"x": random.standard_normal((3, 4)).astype("float32")}, {"x": [ANY, 4]}


class Quantized(nn.Layer):
    """A linear layer between int8: quantized and dequantized again."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 4)
        self.scale = self.create_parameter([1], default_initializer=nn.initializer.Constant(2.0))
        self.zero, self.accum, self.state = (
            self.create_parameter([1], default_initializer=nn.initializer.Constant(n)) for n in (0.0, 1.0, 1.0)
        )

    def forward(self, x: Any) -> Any:
        scales = self.scale, self.zero, self.accum, self.state
        return self.linear(rounded(x, *scales)), rounded(self.linear.weight, *scales)


def rounded(x: Any, scale: Any, zero: Any, accum: Any, state: Any) -> Any:
    """x as int8 and back."""
    if paddle.in_dynamic_mode():
        whole = paddle.clip(paddle.round(x / scale * 127), -128, 127)
        return whole * scale / 127
    attrs = {"quant_axis": -1, "bit_length": 8, "round_type": 0}
    if hasattr(paddle.framework, "in_pir_mode") and paddle.framework.in_pir_mode():
        options = (scale, zero, accum, state, -1, 8, -128, 127, 0, True, False)
        return paddle._C_ops.dequantize_linear(paddle._C_ops.quantize_linear(x, *options)[0], *options)[0]
    from paddle.base.layer_helper import LayerHelper

    for kind in ("quantize_linear", "dequantize_linear"):
        helper = LayerHelper(kind)
        y = helper.create_variable_for_type_inference("float32")
        inputs = {"X": x, "Scale": scale, "ZeroPoint": zero}
        helper.append_op(type=kind, inputs=inputs, outputs={"Y": y}, attrs=attrs)
        x = y
    return x


@model
def quantized_linear() -> Model:
    return Quantized(), {"x": random.standard_normal((3, 8)).astype("float32")}, {"x": [ANY, 8]}


class ZeroD(nn.Layer):
    """Numbers without axes, and shapes that depend on the input."""

    def forward(self, x: Any, rate: Any) -> Any:
        total = x.sum() * rate
        rows = x.shape[0]
        table = x.reshape([rows, -1]) / (total + 1.0)
        best = paddle.argmax(table, axis=-1)
        wide = paddle.expand(table.mean(axis=-1, keepdim=True), [-1, 3])
        return total, table, best, wide, paddle.full([rows, 2], 1.5)


@model
def zero_d() -> Model:
    feeds = {"x": random.random((2, 3, 4), "float32"), "rate": np.array(0.5, "float32")}
    return ZeroD(), feeds, {"x": [ANY, ANY, 4], "rate": []}


class TensorFunctions(nn.Layer):
    """Tensor functions that models of public collections use."""

    def forward(self, x: Any, ids: Any) -> Any:
        a = paddle.tile(x, [1, 2]).roll(1, 0)
        b = paddle.take_along_axis(x, ids, 1)
        c = paddle.put_along_axis(x, ids, paddle.full_like(ids, 0.5, 'float32'), 1)
        d = paddle.where(x > 0.5, x, -x)
        e = paddle.index_select(x, paddle.to_tensor([0, 2]), 1)
        f = paddle.masked_select(x, x > 0.5).sum()
        g = paddle.einsum("ij,kj->ik", x, d)
        h = paddle.linalg.norm(x, axis=-1) + paddle.logsumexp(x, -1)
        y = x.clone()
        y[:, 1] = 0.25
        k = paddle.argsort(x, -1, descending=True)
        m = paddle.flip(paddle.stack(paddle.unbind(x, 1), 0), [0])
        n = paddle.gather_nd(x, ids[:, :1]) + paddle.gather(x, ids[:, 0]).mean()
        return a, b, c, e, f, g, h, y, k, m, n, paddle.triu(g), F.one_hot(ids[:, 0], 4), paddle.floor(x * 9) % 4


@model
def tensor_functions() -> Model:
    feeds = {"x": random.random((3, 4), "float32"), "ids": random.integers(0, 3, (3, 2))}
    return TensorFunctions(), feeds, {"x": [ANY, 4], "ids": [ANY, 2]}


class Images(nn.Layer):
    """Functions of images that detection, segmentation and text recognition use."""

    def __init__(self) -> None:
        super().__init__()
        self.shuffle = nn.PixelShuffle(2)
        self.pool = nn.AdaptiveMaxPool2D(3)
        self.act = nn.PReLU(4)

    def forward(self, image: Any, theta: Any) -> Any:
        grid = F.affine_grid(theta, [2, 4, 8, 8], align_corners=False)
        a = F.grid_sample(image, grid, align_corners=False)
        b = F.unfold(image, 3, 2, 1)
        c = F.pad(image, [1, 1, 2, 2], mode="reflect")
        d = self.shuffle(image)
        e = self.pool(self.act(image - 0.5))
        f = F.local_response_norm(image, 3)
        g = F.normalize(image, axis=1)
        h = F.avg_pool2d(image, 3, 2, 1, exclusive=False)
        k = F.elu(image - 0.5) + F.mish(image) + F.relu6(image * 9) + F.hardtanh(image) + F.swish(image) + F.selu(image)
        return a, b, c, d, e, f, g, h, k, F.interpolate(image, size=[5, 5], mode="bicubic"), F.log_softmax(image, 1)


@model
def image_functions() -> Model:
    feeds = {"image": images(8, 4), "theta": random.standard_normal((2, 2, 3)).astype("float32")}
    return Images(), feeds, {"image": [2, 4, 8, 8], "theta": [2, 2, 3]}


class Deformed(nn.Layer):
    """Deformable convolutions with and without a mask, and images of one to three axes resampled."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = nn.Conv2D(4, 2 * 2 * 9, 3, padding=1)
        self.mask = nn.Conv2D(4, 2 * 9, 3, padding=1)
        self.first = DeformConv2D(4, 6, 3, padding=1, deformable_groups=2, groups=2)
        self.second = DeformConv2D(6, 4, 3, padding=1, deformable_groups=2)

    def forward(self, image: Any) -> Any:
        offset = self.offset(image)
        x = self.first(image, offset)
        y = self.second(F.relu(x), offset * 0.5, F.sigmoid(self.mask(image)))
        line = F.interpolate(y.flatten(2), size=[50], mode="linear", data_format="NCW")
        room = F.interpolate(y.unsqueeze(2), scale_factor=[2, 1, 2], mode="trilinear", data_format="NCDHW")
        return y, line, room, F.interpolate(y.unsqueeze(2), size=[3, 4, 5], mode="trilinear", align_corners=True,
                                            data_format="NCDHW")  # fmt: skip


@model
def deformable() -> Model:
    return picture(Deformed(), 8, 4)


class MatrixDetector(nn.Layer):
    """A detection head with matrix non-maximum suppression."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Conv2D(3, 3, 3, stride=4, padding=1)
        self.box = nn.Conv2D(3, 4, 3, stride=4, padding=1)

    def forward(self, image: Any) -> Any:
        corners = F.softplus(self.box(image) * 4.0).flatten(2).transpose([0, 2, 1]) * 9.0
        boxes = paddle.concat([corners[:, :, :2], corners[:, :, :2] + corners[:, :, 2:]], -1)
        scores = F.sigmoid(self.score(image) * 4.0).flatten(2)
        return matrix_nms(boxes, scores, 0.2, 0.25, 20, 10, True, 2.0, -1, False)[:2]


@model
def matrix_detector() -> Model:
    return picture(MatrixDetector(), 32)


def exported(name: str, folder: Path) -> list[str]:
    """Export one model; returns the shapes of its outputs."""
    global random
    random = np.random.default_rng(len(name))
    paddle.seed(7)
    layer, feeds, shapes = MODELS[name]()
    layer.eval()
    specs = [InputSpec(shapes[n], str(a.dtype), n) for n, a in feeds.items()]
    folder.mkdir(parents=True, exist_ok=True)
    paddle.jit.save(paddle.jit.to_static(layer, input_spec=specs, full_graph=True), str(folder / "inference"))
    np.savez(folder / "feeds.npz", **feeds)
    outputs = run_saved(folder / "inference", feeds)
    np.savez(folder / "outputs.npz", **{str(i): a for i, a in enumerate(outputs)})
    return [f"{a.dtype}{list(a.shape)}" for a in outputs]


def run_saved(prefix: Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of an exported model, run by Paddle's inference engine."""
    from paddle import inference

    program = next(p for p in (prefix.with_suffix(".json"), prefix.with_suffix(".pdmodel")) if p.exists())
    parameters = prefix.with_suffix(".pdiparams")
    config = inference.Config(str(program), str(parameters) if parameters.exists() else "")
    config.disable_gpu()
    config.disable_glog_info()
    config.switch_ir_optim(False)
    if program.suffix == ".json":
        config.disable_mkldnn()  # with it 3.3.1 crashes in multiclass_nms3, and has no bilinear_interp
    predictor = inference.create_predictor(config)
    for name in predictor.get_input_names():
        handle = predictor.get_input_handle(name)
        handle.reshape(feeds[name].shape)
        handle.copy_from_cpu(feeds[name])
    predictor.run()
    return [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]


def main(folder: Path, *names: str) -> None:
    """Export the models of these names, or all of them; after ``--run`` run an exported one with the folder's feeds."""
    if names[:1] == ("--run",):
        outputs = run_saved(Path(names[1]), dict(np.load(folder / "feeds.npz")))
        np.savez(folder / "again.npz", **{str(i): a for i, a in enumerate(outputs)})
        return
    done: dict[str, Any] = {"paddle": paddle.__version__}
    for name in names or MODELS:
        try:
            done[name] = exported(name, folder / name)
        except Exception as error:  # noqa: BLE001  what this Paddle cannot export is part of the answer
            done[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[-1][:200]}"
    print(json.dumps(done))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
