"""A saved model on the command line: ``fluidnb run MODEL`` and ``fluidnb debug MODEL``, with arrays from files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluidnb.errors import EnforceNotMet, FluidError, NotBuiltYet
from fluidnb.files.atomic_write import atomic_write

if TYPE_CHECKING:
    import numpy as np

    from fluidnb.runtime.opened_model import OpenedModel

#: The options of a model, for the help of words that also take scripts.
HELP = (
    "options of a model:\n"
    "  --feed FILE.npz   the arrays that are fed, by name; a .npy feeds the only one\n"
    "  --image FILE      an image instead, prepared as inference.yml says; repeat it\n"
    "  --fetch NAME      a variable to compute, also an intermediate one; repeat it\n"
    "  --all             compute every variable of the main block\n"
    "  --out FILE.npz    write what was computed\n"
    "  --times           the time of each operator, and of each operator type"
)


def is_model(path: Path) -> bool:
    """Whether a path of the command line is a saved model, and no script."""
    from fluidnb.runtime.model_files import MODEL, PARAMETERS, PROGRAMS

    if path.is_file():
        return path.name == MODEL or path.suffix in (*PROGRAMS, *PARAMETERS)
    if path.is_dir():
        return any(inside.name == MODEL or inside.suffix in PROGRAMS for inside in path.iterdir())
    return any(Path(f"{path}{ending}").is_file() for ending in PROGRAMS)


def parsed(word: str, rest: Sequence[str], **given: object) -> Namespace:
    """The options of a model, which follow its path."""
    parser = ArgumentParser(f"fluidnb {word} MODEL", allow_abbrev=False)
    fed = parser.add_mutually_exclusive_group(required=True)
    fed.add_argument("--feed", metavar="FILE", type=Path, help="a .npz by name, or a .npy")
    fed.add_argument("--image", metavar="FILE", action="append", help="an image, prepared as inference.yml says")
    parser.add_argument("--fetch", metavar="NAME", action="append", default=[], help="a variable to compute")
    parser.set_defaults(all=False, out=None, times=False)
    if word == "run":
        parser.add_argument("--all", action="store_true", help="compute every variable of the main block")
        parser.add_argument("--out", metavar="FILE", type=Path, help="a .npz for what was computed")
        parser.add_argument("--times", action="store_true", help="the time of each operator")
    else:
        parser.add_argument("--prompt", action="store_true", help="a prompt in this terminal instead of an editor")
    return parser.parse_args(rest, Namespace(**given))


def opened(path: Path, options: Namespace) -> Callable[[], int]:
    """Opens a model and its arrays; a function that runs it, prints what it computes, and writes it."""
    from fluidnb.runtime.opened_model import open_model

    if options.out is not None and options.out.suffix != ".npz":
        raise FluidError(f"{options.out} is no .npz.", expected="a file for several arrays", hint=f"{options.out}.npz")
    model = open_model(str(path))
    feed = model.preprocess(options.image) if options.image else read_feed(model, options.feed)
    names = options.fetch or ([] if options.all else [v.name for v in model.fetches])
    if options.all:
        names = list(dict.fromkeys((*names, *model.computed())))
    return lambda: _run(model, feed, names, options)


def _run(model: OpenedModel, feed: dict[str, np.ndarray], names: list[str], options: Namespace) -> int:
    import numpy as np

    from fluidnb.cli.show import print_lines
    from fluidnb.debug.profile import profile_steps
    from fluidnb.viz.values.reader import read_tensor
    from fluidnb.viz.values.text import tensor_lines

    results = model.run(feed, names)
    if options.times:
        profile, _ = profile_steps(lambda: model.run(feed, names))  # the first run also compiles
        print(profile.text("op", "total"), profile.text("type", "total"), sep="\n\n", end="\n\n")
    for name, value in zip(names, results, strict=True):
        print_lines([[(f"{name}  ", "bold"), *tensor_lines(read_tensor(value))[0]]])
    if options.image and not options.fetch and not options.all:
        _print_processed(model, results, options.image)
    if options.out is not None:
        with atomic_write(options.out, parents=True) as file:
            arrays: dict[str, Any] = dict(zip(names, results, strict=True))
            np.savez(file, **arrays)
        print(f"written  {options.out}: {len(names)} arrays")
    return 0


def _print_processed(model: OpenedModel, results: list[np.ndarray], images: list[str]) -> None:
    """Print labels, texts or boxes of each image; where nothing computes them, what is missing."""
    import numpy as np

    try:
        processed = model.postprocess(results, images)
    except NotBuiltYet as error:
        print(error.summary)
        return
    for image, found in zip(images, processed, strict=True):
        if isinstance(found, np.ndarray):  # a class for each pixel
            numbers, counts = np.unique(found, return_counts=True)
            found = [f"{count / found.size:7.2%}  {number}" for number, count in zip(numbers, counts, strict=True)]
        print(image, *(found if isinstance(found, list) else [found]) or ["nothing"], sep="\n  ")


def read_feed(model: OpenedModel, path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file for the feeds of a model; no code in it runs."""
    names = [v.name for v in model.feeds]
    arrays = read_arrays(path, names)
    if list(arrays) != [""]:
        return arrays
    if len(names) != 1:
        raise EnforceNotMet(
            f"{path} has one array, and the model takes {len(names)}.", expected=", ".join(names),
            received=arrays[""].shape, hint=f"np.savez('feeds.npz', {', '.join(f'{n}=…' for n in names[:4])})",
        )  # fmt: skip
    return {names[0]: arrays[""]}


def read_arrays(path: Path, names: Sequence[str] = ("x",)) -> dict[str, np.ndarray]:
    """The arrays of a file by name; the one of a ``.npy`` has an empty one. No code in it runs."""
    from fluidnb.files.numpy_arrays import load_arrays

    try:
        return load_arrays(path)
    except (OSError, ValueError) as error:
        raise EnforceNotMet(
            f"Cannot read arrays from {path}.", expected="a .npz or .npy of numpy, without objects",
            received=str(error)[:120], hint=f"np.savez({str(path)!r}, {', '.join(f'{n}=…' for n in names[:4])})",
        ) from None  # fmt: skip
