"""Preprocessing: the steps from an image to the arrays that a model is fed."""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.data.dataset.image_files import load_image
from fluidnb.data.processing.config import ProcessingConfig
from fluidnb.data.processing.resize import METHODS, resize
from fluidnb.errors import EnforceNotMet, FluidError, NotBuiltYet, OpValueError, near

#: ImageNet's mean and standard deviation of red, green and blue, which PaddleClas and PaddleOCR take by default.
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass
class _Picture:
    """An image on its way: pixels as (height, width, channels), with the scales of all resizes so far."""

    pixels: np.ndarray
    scale: tuple[float, float] = (1.0, 1.0)
    size: tuple[int, int] = (0, 0)  # before padding

    def resize(
        self, height: int, width: int, method: str = "linear", scale: tuple[float, float] | None = None
    ) -> None:  # fmt: skip
        """Resizes the pixels."""
        scales = scale or (height / self.pixels.shape[0], width / self.pixels.shape[1])
        self.pixels = resize(self.pixels, height, width, method, scale)
        self.scale, self.size = scales, (height, width)

    def pad(self, height: int, width: int, value: Any = 0.0, top: int = 0, left: int = 0) -> None:
        """Enlarges the image by pixels of one value."""
        old = self.pixels
        if old.shape[0] + top > height or old.shape[1] + left > width:
            raise OpValueError(
                "An image does not fit into the padded one.", expected=f"at most {height} x {width}",
                received=f"{old.shape[0]} x {old.shape[1]}", hint="a smaller image.",
            )  # fmt: skip
        self.pixels = np.empty((height, width, old.shape[2]), old.dtype)
        self.pixels[...] = np.asarray(value).astype(old.dtype)
        self.pixels[top : top + old.shape[0], left : left + old.shape[1]] = old


def preprocess(config: ProcessingConfig, images: Any) -> dict[str, np.ndarray]:
    """Applies the steps of a file to images.

    Args:
        config: what `read_config` read.
        images: path of an image or an array, uint8 of (height, width, 3) with red, green and blue; or a list of them.

    Returns:
        ``image``, float32 of (images, 3, height, width); ``im_shape`` and ``scale_factor``, float32 of (images, 2):
        height and width after resizing, and the scales of both.

    Raises:
        NotBuiltYet: a step that is not here.
        OpValueError: images of different sizes after the steps, or options that do not fit.
    """
    pictures = [_prepared(config, image) for image in (images if isinstance(images, list | tuple) else [images])]
    sizes = {p.pixels.shape for p in pictures}
    if len(sizes) != 1:
        raise OpValueError(
            "Images of one call have one size.", expected="one", hint="give them one by one, or resize them before.",
            received=", ".join(f"{s[0]} x {s[1]}" for s in sorted(sizes)) or "no image",
        )  # fmt: skip
    return {
        "image": np.stack([np.ascontiguousarray(p.pixels.transpose(2, 0, 1), np.float32) for p in pictures]),
        "im_shape": np.array([p.size for p in pictures], np.float32),
        "scale_factor": np.array([p.scale for p in pictures], np.float32),
    }


def size_of(image: Any) -> tuple[int, int]:
    """Height and width of an image: a path, or an array."""
    height, width = _pixels(image).shape[:2]
    return height, width


def _prepared(config: ProcessingConfig, image: Any) -> _Picture:
    picture = _Picture(_pixels(image))
    picture.size = picture.pixels.shape[:2]
    known = _STEPS[config.kind]
    for step in config.before:
        function = _nothing if step.name.endswith("LabelEncode") else known.get(step.name)
        if function is None:
            raise NotBuiltYet(
                f"{config.path} has the step {step.name}, which is not here.", expected=", ".join(known),
                received=str(step), hint=near(step.name, known) or "prepare the array yourself, and use model.run.",
            )  # fmt: skip
        try:
            function(picture, step.options)
        except FluidError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError) as error:
            raise EnforceNotMet(
                f"{config.path} has a step whose options do not fit.", expected=f"options of {step.name}",
                received=f"{step}: {type(error).__name__} {error}"[:200], hint="correct the file.",
            ) from None  # fmt: skip
    return picture


def _pixels(image: Any) -> np.ndarray:
    """Red, green and blue of an image."""
    if isinstance(image, str | os.PathLike):
        return load_image(image)[..., ::-1]
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise OpValueError(
            "An image is an array of (height, width, 3) with red, green and blue from 0 to 255.", expected="uint8",
            received=f"{pixels.dtype} of {pixels.shape}", hint="fluid's model.run takes arrays that are prepared.",
        )  # fmt: skip
    return pixels


def _nothing(picture: _Picture, options: Mapping[str, Any]) -> None:
    """A step about labels, which only training has; and channels first, which comes at the end."""


def _number(value: Any) -> float:
    """A number; PaddleOCR writes fractions as text: ``1./255.``.

    Example:
        >>> _number("1./255."), _number(2)
        (0.00392156862745098, 2.0)
    """
    above, _, below = str(value).partition("/")
    return float(above) / float(below or 1)


def _pair(value: Any) -> tuple[int, int]:
    """Two sizes; one number is both."""
    first, second = (value, value) if isinstance(value, int | float) else value
    return int(first), int(second)


def _method(value: Any) -> str:
    """An interpolation by its name, or by OpenCV's number."""
    if isinstance(value, int):
        return METHODS[value]
    name = str(value).lower().removeprefix("bi")
    return {"lanczos4": "lanczos"}.get(name, name)


def _normalize(picture: _Picture, scale: float, mean: Any, std: Any) -> None:
    values = picture.pixels.astype(np.float32) * np.float32(scale)
    picture.pixels = (values - np.float32(mean)) / np.float32(std)


def _short(picture: _Picture, edge: int, method: str) -> None:
    height, width = picture.pixels.shape[:2]
    scale = edge / min(height, width)
    picture.resize(round(height * scale), round(width * scale), method)


def _long(picture: _Picture, edge: int, method: str) -> None:
    height, width = picture.pixels.shape[:2]
    scale = edge / max(height, width)
    picture.resize(round(height * scale), round(width * scale), method)


# PaddleClas and PaddleOCR.


def _decode(picture: _Picture, options: Mapping[str, Any]) -> None:
    if options.get("img_mode", "RGB") == "BGR" or options.get("to_rgb") is False:
        picture.pixels = picture.pixels[..., ::-1]


def _resize_image(picture: _Picture, options: Mapping[str, Any]) -> None:
    method = _method(options.get("interpolation") or "linear")
    if options.get("resize_short"):
        return _short(picture, int(options["resize_short"]), method)
    width, height = _pair(options["size"])
    picture.resize(height, width, method)


def _crop_image(picture: _Picture, options: Mapping[str, Any]) -> None:
    width, height = _pair(options.get("size", 224))
    tall, wide = picture.pixels.shape[:2]
    if not (1 <= height <= tall and 1 <= width <= wide):
        raise OpValueError(
            "A part cannot be cut out of an image.", expected=f"at most {tall} x {wide}", received=f"{height} x {width}"
        )
    top, left = (tall - height) // 2, (wide - width) // 2
    picture.pixels = picture.pixels[top : top + height, left : left + width]


def _normalize_image(picture: _Picture, options: Mapping[str, Any]) -> None:
    scale = options.get("scale")
    mean, std = (options.get(n) for n in ("mean", "std"))
    _normalize(picture, 1 / 255 if scale is None else _number(scale), mean or _MEAN, std or _STD)


def _text_detection(picture: _Picture, options: Mapping[str, Any]) -> None:
    """Sizes that are multiples of 32; without options the shorter edge has 736 pixels or more."""
    height, width = picture.pixels.shape[:2]
    if height + width < 64:
        picture.pad(max(32, height), max(32, width))
        height, width = picture.pixels.shape[:2]
    if "image_shape" in options:
        tall, wide = _pair(options["image_shape"])
        if options.get("keep_ratio"):
            wide = math.ceil(width * tall / height / 32) * 32
        return picture.resize(tall, wide)
    if "resize_long" in options and "limit_side_len" not in options:
        ratio = options["resize_long"] / max(height, width)
        return picture.resize(*_multiples((int(height * ratio), int(width * ratio)), 128, math.ceil))
    limit, kind = options.get("limit_side_len", 736), options.get("limit_type", "min")
    edge = min(height, width) if kind == "min" else max(height, width)
    beyond = {"min": edge < limit, "max": edge > limit, "resize_long": True}[kind]
    tall, wide = (int(n * (limit / edge if beyond else 1.0)) for n in (height, width))
    most = options.get("max_side_limit", 4000)
    if max(tall, wide) > most:
        tall, wide = (int(n * most / max(tall, wide)) for n in (tall, wide))
    picture.resize(*_multiples((tall, wide), 32, round))


def _multiples(sizes: tuple[int, int], of: int, whole: Callable[[float], int]) -> tuple[int, int]:
    """Sizes as multiples of a number, at least that number."""
    height, width = (max(whole(n / of) * of, of) for n in sizes)
    return height, width


def _text_line(picture: _Picture, options: Mapping[str, Any]) -> None:
    """A line of text: of one height, as wide as it is or padded, from -1 to 1."""
    _, height, width = options["image_shape"]
    tall, wide = picture.pixels.shape[:2]
    width = min(int(height * max(width / height, wide / tall)), 3200)
    picture.resize(height, min(math.ceil(height * wide / tall), width))
    _normalize(picture, 1 / 255, 0.5, 0.5)
    picture.pad(height, width)


# PaddleDetection.


def _detection_resize(picture: _Picture, options: Mapping[str, Any]) -> None:
    target, method = _pair(options["target_size"]), _method(options.get("interp", 1))
    height, width = picture.pixels.shape[:2]
    if not options.get("keep_ratio", True):
        return picture.resize(*target, method)
    scale = min(target) / min(height, width)
    if round(scale * max(height, width)) > max(target):
        scale = max(target) / max(height, width)
    picture.resize(round(height * scale), round(width * scale), method, (scale, scale))


def _detection_normalize(picture: _Picture, options: Mapping[str, Any]) -> None:
    plain = options.get("norm_type", "mean_std") == "none"
    scale = 1 / 255 if options.get("is_scale", True) else 1.0
    _normalize(picture, scale, 0.0 if plain else options["mean"], 1.0 if plain else options["std"])


def _pad_stride(picture: _Picture, options: Mapping[str, Any]) -> None:
    stride = int(options.get("stride", 0))
    if stride > 0:
        height, width = picture.pixels.shape[:2]
        picture.pad(math.ceil(height / stride) * stride, math.ceil(width / stride) * stride)


def _detection_pad(picture: _Picture, options: Mapping[str, Any]) -> None:
    picture.pad(*_pair(options["size"]), options.get("fill_value", 114.0))


def _letter_box(picture: _Picture, options: Mapping[str, Any]) -> None:
    tall, wide = _pair(options["target_size"])
    height, width = picture.pixels.shape[:2]
    ratio = min(tall / height, wide / width)
    inner = round(height * ratio), round(width * ratio)
    picture.resize(*inner, "area")
    top, left = (round((outer - n) / 2 - 0.1) for outer, n in zip((tall, wide), inner, strict=True))
    picture.pad(tall, wide, 127.5, top, left)
    picture.scale, picture.size = (ratio, ratio), inner


# PaddleSeg.


def _segmentation_resize(picture: _Picture, options: Mapping[str, Any]) -> None:
    width, height = _pair(options.get("target_size", 512))
    method = _method(options.get("interp", "linear"))
    if options.get("keep_ratio"):
        tall, wide = picture.pixels.shape[:2]
        scale = min(max(height, width) / max(tall, wide), min(height, width) / min(tall, wide))
        height, width = round(tall * scale), round(wide * scale)
    picture.resize(height, width, method)


def _segmentation_normalize(picture: _Picture, options: Mapping[str, Any]) -> None:
    _normalize(picture, 1 / 255, options.get("mean", 0.5), options.get("std", 0.5))


def _segmentation_pad(picture: _Picture, options: Mapping[str, Any]) -> None:
    width, height = _pair(options["target_size"])
    tall, wide = picture.pixels.shape[:2]
    picture.pad(max(height, tall), max(width, wide), options.get("im_padding_value", 127.5))


_Function = Callable[[_Picture, Mapping[str, Any]], None]
_STEPS: dict[str, dict[str, _Function]] = {
    "PreProcess": {
        "DecodeImage": _decode, "ResizeImage": _resize_image, "CropImage": _crop_image,
        "NormalizeImage": _normalize_image, "ToCHWImage": _nothing, "DetResizeForTest": _text_detection,
        "RecResizeImg": _text_line, "KeepKeys": _nothing,
    },
    "Preprocess": {
        "Resize": _detection_resize, "NormalizeImage": _detection_normalize, "Permute": _nothing,
        "PadStride": _pad_stride, "Pad": _detection_pad, "LetterBoxResize": _letter_box,
    },
    "Deploy": {
        "Resize": _segmentation_resize, "Normalize": _segmentation_normalize, "Padding": _segmentation_pad,
        "ResizeByShort": lambda p, o: _short(p, int(o["short_size"]), "linear"),
        "ResizeByLong": lambda p, o: _long(p, int(o["long_size"]), "linear"),
    },
}  # fmt: skip
