"""Writes tests/onnx/models: networks as torch exports them, without their weights.

Run by a Python with torch 2.13, onnx and onnxscript: ``python tests/onnx/make_models.py``. Each network is exported by
the older exporter with fixed and with dynamic sizes, and by the newer one. `tests.onnx.weights` fills in the weights.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn import functional as F

FOLDER = Path(__file__).parent / "models"


class Residual(nn.Module):
    def __init__(self, ins: int, outs: int, stride: int = 1) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(ins, outs, 3, stride, 1, bias=False), nn.BatchNorm2d(outs), nn.ReLU(),
            nn.Conv2d(outs, outs, 3, 1, 1, bias=False), nn.BatchNorm2d(outs),
        )  # fmt: skip
        short = nn.Sequential(nn.Conv2d(ins, outs, 1, stride, bias=False), nn.BatchNorm2d(outs))
        self.short = short if stride > 1 or ins != outs else nn.Identity()

    def forward(self, x: Any) -> Any:
        return torch.relu(self.main(x) + self.short(x))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.layers = nn.Sequential(Residual(16, 16), Residual(16, 32, 2), Residual(32, 64, 2))
        self.fc = nn.Linear(64, 10)

    def forward(self, x: Any) -> Any:
        return self.fc(F.adaptive_avg_pool2d(self.layers(self.stem(x)), 1).flatten(1))


class Inverted(nn.Module):
    def __init__(self, ins: int, outs: int, stride: int, act: Any, excite: bool) -> None:
        super().__init__()
        wide = ins * 4
        self.wide = nn.Sequential(
            nn.Conv2d(ins, wide, 1, bias=False), nn.BatchNorm2d(wide), act(),
            nn.Conv2d(wide, wide, 5, stride, 2, groups=wide, bias=False), nn.BatchNorm2d(wide), act(),
        )  # fmt: skip
        self.excite = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, ins, 1), nn.ReLU(), nn.Conv2d(ins, wide, 1), nn.Hardsigmoid()
        )
        self.narrow = nn.Sequential(nn.Conv2d(wide, outs, 1, bias=False), nn.BatchNorm2d(outs))
        self.excites, self.adds = excite, stride == 1 and ins == outs

    def forward(self, x: Any) -> Any:
        y = self.wide(x)
        y = self.narrow(y * self.excite(y) if self.excites else y)
        return x + y if self.adds else y


class MobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish(),
            Inverted(16, 16, 1, nn.ReLU6, False), Inverted(16, 24, 2, nn.Hardswish, True),
            Inverted(24, 24, 1, nn.SiLU, True),
        )  # fmt: skip
        self.fc = nn.Linear(24, 10)

    def forward(self, x: Any) -> Any:
        return self.fc(self.features(x).mean([2, 3]))


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 32))
        self.places = nn.Parameter(torch.randn(1, 17, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu", norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.fc = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.fc(self.norm(self.encoder(x))[:, 0])


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x: Any, mask: Any = None) -> Any:
        batch, time, width = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        if self.causal:
            later = torch.triu(torch.ones(time, time, dtype=torch.bool), 1)
            scores = scores.masked_fill(later, float("-inf"))
        if mask is not None:
            scores = scores + (1 - mask[:, None, None, :].to(scores.dtype)) * -1e4
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, time, width))


class Encoder(nn.Module):
    """As DistilBERT, in small."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(100, 32), nn.Embedding(64, 32), nn.LayerNorm(32)
        self.attention = nn.ModuleList([Attention(32, 4, False) for _ in range(2)])
        self.dense = nn.ModuleList([nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)) for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(32) for _ in range(4)])
        self.fc = nn.Linear(32, 3)

    def forward(self, ids: Any, mask: Any) -> Any:
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1]))[None])
        for i, (attention, dense) in enumerate(zip(self.attention, self.dense, strict=True)):
            x = self.norms[2 * i](x + attention(x, mask))
            x = self.norms[2 * i + 1](x + dense(x))
        return self.fc(x[:, 0]).softmax(-1)


class Decoder(nn.Module):
    """As GPT, in small."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(100, 32), nn.Parameter(torch.randn(64, 32))
        self.attention = nn.ModuleList([Attention(32, 4, True) for _ in range(2)])
        self.dense = nn.ModuleList(
            [nn.Sequential(nn.Linear(32, 64), nn.GELU("tanh"), nn.Linear(64, 32)) for _ in range(2)]
        )
        self.norms = nn.ModuleList([nn.LayerNorm(32) for _ in range(5)])

    def forward(self, ids: Any) -> Any:
        x = self.words(ids) + self.places[: ids.shape[1]]
        for i, (attention, dense) in enumerate(zip(self.attention, self.dense, strict=True)):
            x = x + attention(self.norms[2 * i](x))
            x = x + dense(self.norms[2 * i + 1](x))
        return self.norms[4](x) @ self.words.weight.T


class Recurrent(nn.Module):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.layers, self.fc = kind(16, 24, 2, batch_first=True, bidirectional=True), nn.Linear(48, 5)

    def forward(self, ids: Any) -> Any:
        states, _ = self.layers(self.words(ids))
        return self.fc(states.max(1).values)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()

        def step(ins: int, outs: int) -> Any:
            return nn.Sequential(nn.Conv2d(ins, outs, 3, padding=1), nn.GroupNorm(2, outs), nn.LeakyReLU(0.1))

        self.down = nn.ModuleList([step(3, 8), step(8, 16), step(16, 32)])
        self.up, self.deep, self.flat = nn.ConvTranspose2d(32, 16, 2, 2), step(32, 16), step(24, 8)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        first = self.down[0](x)
        second = self.down[1](F.max_pool2d(first, 2))
        third = self.down[2](F.avg_pool2d(second, 2))
        y = self.deep(torch.cat([self.up(third), second], 1))
        y = F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
        return self.out(self.flat(torch.cat([y, first], 1)))


class Yolo(nn.Module):
    """A detection head: boxes of a grid, the best five."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.SiLU(),
            nn.Conv2d(32, 32, 3, 2, 1), nn.SiLU(),
        )  # fmt: skip
        self.head = nn.Conv2d(32, 3 * 9, 1)
        self.register_buffer("anchors", torch.tensor([[10.0, 13.0], [16.0, 30.0], [33.0, 23.0]]))

    def forward(self, x: Any) -> Any:
        y = self.head(self.body(x))
        n, _, h, w = y.shape
        y = y.view(n, 3, 9, h, w).permute(0, 1, 3, 4, 2)
        rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack([columns, rows], -1).to(y.dtype)
        centre = (y[..., :2].sigmoid() * 2 - 0.5 + grid) * 8
        size = (y[..., 2:4].sigmoid() * 2) ** 2 * self.anchors[:, None, None, :]
        boxes = torch.cat([centre, size, y[..., 4:].sigmoid()], -1).reshape(n, -1, 9)
        scores, best = boxes[..., 4].topk(5)
        return scores, torch.gather(boxes, 1, best[..., None].expand(-1, -1, 9))


class Functions(nn.Module):
    """Functions of tensors that models use here and there."""

    def forward(self, x: Any) -> Any:
        best = x.argmax(1)
        return (
            torch.where(x > 0, x.exp().clamp(max=3), x.abs().sqrt()), F.pad(x, (1, 2, 0, 1), mode="reflect"),
            x.cumsum(-1), F.softplus(x) + F.elu(x) + F.selu(x) + torch.erf(x), x[..., ::2], torch.roll(x, 1, -1),
            F.pixel_shuffle(torch.cat([x, x], 1)[:, :4], 2), torch.einsum("bchw,bcwk->bchk", x, x.transpose(2, 3)),
            torch.tril(x), best, F.normalize(x, dim=1), x.std(-1), x.prod(1), torch.logsumexp(x, -1),
            F.interpolate(x, size=(5, 7), mode="bicubic"), x.flip(-1), F.one_hot(best, 4), F.instance_norm(x),
            F.interpolate(x, scale_factor=2.0), x.sum((1, 2)), x.round() % 3, torch.remainder(x, 0.7),
            torch.fmod(x, 0.7), torch.std_mean(x, 0)[1],
        )  # fmt: skip


def rows() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(3, 8, 5, 2, 2), nn.BatchNorm1d(8), nn.PReLU(), nn.MaxPool1d(2), nn.ConvTranspose1d(8, 4, 4, 2, 1),
        nn.Hardswish(), nn.AvgPool1d(2),
    )  # fmt: skip


def volumes() -> nn.Module:
    return nn.Sequential(nn.Conv3d(2, 4, 3, 1, 1), nn.BatchNorm3d(4), nn.Mish(), nn.MaxPool3d(2), nn.Flatten())


class Turns(nn.Module):
    def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
        y = x
        for i in range(n):
            y = y * 0.5 + x.tanh() * i
        return y


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            return x * 2 + 1
        return x - 3


class Until(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        k = 0
        while bool(x.abs().max() > 1) and k < 20:
            x = x * 0.7
            k += 1
        return x, k


def ids() -> Any:
    return torch.randint(0, 50, (2, 7))


#: Name -> network, its inputs, and the names of their axes that may have any size.
NETWORKS: dict[str, tuple[nn.Module, tuple[Any, ...], dict[int, str]]] = {
    "resnet": (ResNet(), (torch.randn(2, 3, 64, 64),), {0: "batch"}),
    "mobilenet": (MobileNet(), (torch.randn(2, 3, 32, 32),), {0: "batch"}),
    "vision_transformer": (VisionTransformer(), (torch.randn(2, 3, 32, 32),), {0: "batch"}),
    "encoder": (Encoder(), (ids(), torch.ones(2, 7, dtype=torch.int64)), {0: "batch", 1: "time"}),
    "decoder": (Decoder(), (ids(),), {0: "batch", 1: "time"}),
    "lstm": (Recurrent(nn.LSTM), (ids(),), {0: "batch", 1: "time"}),
    "gru": (Recurrent(nn.GRU), (ids(),), {0: "batch", 1: "time"}),
    "rnn": (Recurrent(nn.RNN), (ids(),), {0: "batch", 1: "time"}),
    "unet": (UNet(), (torch.randn(2, 3, 32, 32),), {0: "batch"}),
    "yolo": (Yolo(), (torch.randn(2, 3, 64, 64),), {0: "batch"}),
    "functions": (Functions(), (torch.randn(2, 4, 6, 6),), {0: "batch"}),
    "rows": (rows(), (torch.randn(2, 3, 32),), {0: "batch"}),
    "volumes": (volumes(), (torch.randn(2, 2, 4, 6, 6),), {0: "batch"}),
}
SCRIPTS: dict[str, tuple[nn.Module, tuple[Any, ...]]] = {
    "turns": (Turns(), (torch.randn(2, 3), torch.tensor(4))),
    "branches": (Branches(), (torch.randn(2, 3),)),
    "until": (Until(), (torch.randn(2, 3) * 5,)),
}


def stripped(model: onnx.ModelProto) -> bytes:
    """A model without its weights, and without the places in files that the exporter notes."""
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and np.prod(tensor.dims) > 16:
            tensor.ClearField("raw_data")
            tensor.doc_string = "weights"
    for node in model.graph.node:
        node.doc_string = ""
        kept = [entry for entry in node.metadata_props if entry.key == "pkg.torch.onnx.name_scopes"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    del model.graph.metadata_props[:]
    del model.metadata_props[:]
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        del value.metadata_props[:]
    return model.SerializeToString()


def export(network: Any, inputs: tuple[Any, ...], name: str, **options: Any) -> None:
    """Exports a network and stores it without its weights."""
    names = [f"in{i}" for i in range(len(inputs))]
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        file = f"{folder}/model.onnx"
        torch.onnx.export(network.eval(), inputs, file, input_names=names, **options)
        (FOLDER / f"{name}.onnx").write_bytes(stripped(onnx.load(file)))


def main() -> None:
    """Exports everything."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    FOLDER.mkdir(exist_ok=True)
    for name, (network, inputs, axes) in NETWORKS.items():
        dynamic = {f"in{i}": axes for i in range(len(inputs))}
        export(network, inputs, f"{name}.new", dynamo=True)
        if name != "vision_transformer":  # the older exporter does not know the fused attention of the layer
            export(network, inputs, f"{name}.old", dynamo=False, opset_version=17)
            export(network, inputs, f"{name}.any", dynamo=False, opset_version=17, dynamic_axes=dynamic)
    for name, (network, inputs) in SCRIPTS.items():
        export(torch.jit.script(network), inputs, f"{name}.old", dynamo=False, opset_version=17)


if __name__ == "__main__":
    main()
