"""PyTorch beside fluidnb in one process, on the same device: the same nets, numbers to begin with, and batch."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.benchmarks.peers import torch_peer

#: How a side is called -> whether its forward pass goes through torch.compile.
KINDS = {"torch eager": False, "torch.compile": True}
#: torch's gates of an LSTM in the order of fluidnb's: input, forget, candidate, output of candidate, input, ...
_GATES = [1, 2, 0, 3]

Net = tuple[list[Any], Callable[[], Any], Any]


class Missing(Exception):
    """The reason why torch is not measured, in a few words."""


def start(on_gpu: bool) -> tuple[Any, str]:
    """Import torch, computing in float32 throughout.

    Args:
        on_gpu: whether it is to run on a GPU.

    Returns:
        torch, and its name of the device.

    Raises:
        Missing: torch, or its CUDA.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise Missing("not installed" if error.name == "torch" else f"cannot be imported: {_said(error)}") from None
    if on_gpu and not torch.cuda.is_available():
        raise Missing("has no CUDA here")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True  # shapes stay as they are
    return torch, "cuda" if on_gpu else "cpu"


def version() -> str:
    """The version of torch, with that of its CUDA; or what is missing."""
    try:
        torch, _ = start(False)
    except Missing as missing:
        return f"torch {missing}"
    return f"torch {torch.__version__} (CUDA {torch.version.cuda or 'none'})"


def training(
    kind: str, name: str, data: dict[str, Any], values: Sequence[Any], sizes: dict[str, Any], on_gpu: bool
) -> tuple[Callable[[], float], int]:
    """A net that is trained.

    Args:
        kind: of `KINDS`.
        name: of the net: a function of this module.
        data: the batch.
        values: what its parameters begin with, in fluidnb's order and layout.
        sizes: of the net.
        on_gpu: whether it is to run on a GPU.

    Returns:
        A function that makes a step and returns the loss, and the number of parameters.

    Raises:
        Missing: torch cannot do it here.
    """
    torch, device = start(on_gpu)
    torch.manual_seed(0)
    with torch.device(device):
        batch = {key: torch.from_numpy(value).to(device) for key, value in data.items() if key != "lengths"}
        parameters, forward, update = NETS[name](torch, {**data, **batch}, **sizes)
    forward = torch.compile(forward) if KINDS[kind] else forward

    def step() -> float:
        update.zero_grad()
        loss = forward()
        loss.backward()
        update.step()
        return float(loss.item())

    try:
        step()  # what is compiled is compiled now, or not at all
    except Exception as error:
        raise Missing(f"fails: {_said(error)}") from None
    with torch.no_grad():
        for parameter, value in zip(parameters, values, strict=True):
            parameter.copy_(_turned(torch, parameter, value))
    update.state.clear()
    return step, sum(parameter.numel() for parameter in parameters)


def _turned(torch: Any, parameter: Any, value: np.ndarray[Any, Any]) -> Any:
    """A value of fluidnb's in the layout of a parameter."""
    value = value.T if value.ndim == 2 else value
    if getattr(parameter, "has_gates", False):
        value = value.reshape(4, -1)[_GATES]
    return torch.from_numpy(np.ascontiguousarray(value).reshape(tuple(parameter.shape)))


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{type(error).__name__}, {lines[0]}"[:80].replace("|", "/")


def _classifier(torch: Any, data: dict[str, Any], net: Any, update: Any) -> Net:
    def forward() -> Any:
        return torch.nn.functional.cross_entropy(net(data["x"]).flatten(0, -2), data["label"].flatten())

    parameters = list(net.parameters())
    return parameters, forward, update(parameters)


def mlp(torch: Any, data: dict[str, Any], rows: int = 64, **sizes: Any) -> Net:
    """An MLP with Adam."""
    return _classifier(torch, data, torch_peer.mlp(torch.nn, **sizes), _adam(torch))


def lenet(torch: Any, data: dict[str, Any], rows: int = 64, **sizes: Any) -> Net:
    """LeNet with momentum."""
    momentum = lambda parameters: torch.optim.SGD(parameters, 0.01, 0.9, fused=True)  # noqa: E731
    return _classifier(torch, data, torch_peer.lenet(torch.nn, **sizes), momentum)


def _adam(torch: Any) -> Callable[[list[Any]], Any]:
    return lambda parameters: torch.optim.Adam(parameters, 1e-3, fused=True)


def lstm(torch: Any, data: dict[str, Any], width: int = 128, **sizes: Any) -> Net:
    """An LSTM over sequences, of which the last states are classified; a second bias would add nothing to the first."""
    net, last = torch.nn.LSTM(width, width), torch.nn.Linear(width, 2)
    torch.nn.init.zeros_(net.bias_hh_l0).requires_grad_(False)
    for parameter in net.parameters():
        parameter.has_gates = True
    x, lengths = data["x"].transpose(0, 1).contiguous(), torch.from_numpy(data["lengths"]).cpu()
    if (lengths != lengths[0]).any():
        x = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)

    def forward() -> Any:
        _, (state, _) = net(x)
        return torch.nn.functional.cross_entropy(last(state[0]), data["label"].flatten())

    parameters = [p for p in (*net.parameters(), *last.parameters()) if p.requires_grad]
    return parameters, forward, _adam(torch)(parameters)


def transformer(
    torch: Any, data: dict[str, Any], rows: int = 8, length: int = 128, width: int = 256, heads: int = 4
) -> Net:
    """A transformer block, normed before each part, with ten classes for each place; attention is torch's own."""
    nn = torch.nn
    norms, wide = [nn.LayerNorm(width) for _ in range(2)], [nn.Linear(width, width) for _ in range(4)]
    up, down, last = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Linear(width, 10)
    dropout = nn.Dropout(0.0)

    def attended(h: Any) -> Any:
        q, k, v = (part(h).view(rows, length, heads, -1).transpose(1, 2) for part in wide[:3])
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.0)
        return dropout(wide[3](mixed.transpose(1, 2).reshape(rows, length, width)))

    def forward() -> Any:
        x = data["x"]
        x = x + attended(norms[0](x))
        x = x + dropout(down(nn.functional.relu(up(norms[1](x)))))
        return nn.functional.cross_entropy(last(x).flatten(0, 1), data["label"].flatten())

    parameters = list(nn.ModuleList([norms[0], *wide, norms[1], up, down, last]).parameters())
    return parameters, forward, _adam(torch)(parameters)


NETS: dict[str, Callable[..., Net]] = {"mlp": mlp, "lenet": lenet, "lstm": lstm, "transformer": transformer}


def tiny(count: int, on_gpu: bool) -> Callable[[], float]:
    """Operators on one number, one after the other.

    Args:
        count: how many.
        on_gpu: whether they are to run on a GPU.

    Returns:
        A function that runs them and returns the result.

    Raises:
        Missing: torch cannot do it here.
    """
    torch, device = start(on_gpu)
    x, c = torch.ones(1, device=device), torch.ones(1, device=device)

    def run() -> float:
        with torch.inference_mode():
            v = x
            for i in range(count):
                v = torch.add(v, c) if i % 2 else torch.mul(v, c)
            return float(v.item())

    return run
