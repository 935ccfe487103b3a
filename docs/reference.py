"""Pages that are generated: the API from docstrings, operators from the registry, commands from their parsers."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import re
import types
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.memory.flags import FLAGS
from fluidnb.op import all_ops, get_op
from fluidnb.viz.program.op_type import OpSheet, read_op


def write(folder: Path) -> None:
    """Writes all generated pages.

    Args:
        folder: the root of the site's sources.
    """
    layers = layer_operators()
    _documented.clear()
    api(folder / "api", layers)
    operators(folder / "operators", layers)
    commands(folder)
    flag_page(folder / "flags.md")


#: id of an object -> the name under which it is documented; its other names refer to that one.
_documented: dict[int, str] = {}

# The API: a page for each module, for layers a page for each of its files.


def api(folder: Path, layers: dict[str, list[str]]) -> None:
    """Writes the API reference."""
    folder.mkdir(parents=True, exist_ok=True)
    top = [name for name in fluid.__all__ if not isinstance(getattr(fluid, name), types.ModuleType)]
    pages = {"fluid": "fluid: programs, places, executors"}
    page(folder / "fluid.rst", pages["fluid"], "fluidnb", sorted(top, key=str.lower), fluid)
    for module in sorted(name for name in fluid.__all__ if isinstance(getattr(fluid, name), types.ModuleType)):
        value = getattr(fluid, module)
        names = [n for n in getattr(value, "__all__", ()) if not isinstance(getattr(value, n, None), types.ModuleType)]
        if module == "layers":
            pages.update(layer_pages(folder, names, layers))
        elif names:
            pages[module] = f"fluid.{module}"
            page(folder / f"{module}.rst", pages[module], f"fluidnb.{module}", names, value)
    (folder / "index.md").write_text(
        "# API reference\n\nGenerated from the docstrings. `import fluidnb as fluid` comes first.\n\n"
        "```{toctree}\n:maxdepth: 1\n\n" + "\n".join(pages) + "\n```\n"
    )


def page(path: Path, title: str, module: str, names: Iterable[str], value: Any) -> None:
    """Writes the page of a module."""
    lines = [title, "=" * len(title), ""]
    if value is not fluid and inspect.getdoc(value):
        lines += [first(value), ""]
    for name in names:
        lines += entry(f"{module}.{name}", getattr(value, name, None))
    path.write_text("\n".join(lines) + "\n")


def entry(name: str, value: Any) -> Iterator[str]:
    """The directive that documents a name; a reference where the object is documented under another name."""
    kind = "autoclass" if isinstance(value, type) else "autofunction" if callable(value) else ""
    if not kind or getattr(value, "__module__", "builtins") in ("builtins", "typing"):
        return
    known = _documented.setdefault(id(value), name)
    if known != name:
        yield from (f"``{name.replace('fluidnb', 'fluid', 1)}`` is :any:`{known}`.", "")
        return
    yield f".. {kind}:: {name}"
    if kind == "autoclass":
        borrowed = [n for n, member in vars(value).items() if isinstance(member, type) and not n.startswith("_")]
        yield from ("   :members:", *([f"   :exclude-members: {', '.join(borrowed)}"] if borrowed else []))
    yield ""


def layer_pages(folder: Path, names: list[str], layers: dict[str, list[str]]) -> dict[str, str]:
    """Writes a page for each file of layers; a layer is followed by links to its operators."""
    by_file = defaultdict(list)
    for name in names:
        value = getattr(fluid.layers, name)
        if callable(value):
            by_file[inspect.unwrap(value).__module__].append(name)
    pages = {}
    for module, members in sorted(by_file.items()):
        what = first(importlib.import_module(module)).rstrip(".").partition(": ")
        title = f"layers: {(what[2] or what[0])[:1].lower()}{(what[2] or what[0])[1:]}"
        stem = "layers_" + module.removeprefix("fluidnb.layers.").replace(".", "_")
        lines = [title, "=" * len(title), ""]
        for name in members:
            lines += entry(f"fluidnb.layers.{name}", getattr(fluid.layers, name))
            if layers.get(name):
                links = ", ".join(f":doc:`{type} <../operators/{type}>`" for type in layers[name])
                lines += [f"*Operators of* ``{name}``: {links}", ""]
        (folder / f"{stem}.rst").write_text("\n".join(lines) + "\n")
        pages[stem] = title
    return pages


def layer_operators() -> dict[str, list[str]]:
    """Layer -> the operator types that its example appends; a class with a block: its control operators."""
    return {name: appended(name) for name in fluid.layers.__all__}


def appended(name: str) -> list[str]:
    """The operator types that a layer appends while its example runs, in order."""
    layer = getattr(fluid.layers, name)
    found: list[str] = []

    def recorded(*args: Any, **kwargs: Any) -> Any:
        before = operator_types()
        result = layer(*args, **kwargs)
        found.extend(kind for key, kind in operator_types().items() if key not in before)
        return result

    examples = doctest.DocTestParser().get_examples(inspect.getdoc(layer) or "")
    names: dict[str, Any] = {"fluid": fluid, "np": np}
    if not isinstance(layer, type):
        setattr(fluid.layers, name, recorded)
    try:
        with fluid.fresh(), contextlib.redirect_stdout(io.StringIO()):
            for example in examples:
                exec(compile(example.source, name, "single"), names)
            if isinstance(layer, type):
                found = [kind for kind in operator_types().values() if get_op(kind).control]
    finally:
        setattr(fluid.layers, name, layer)
    return list(dict.fromkeys(found))


def operator_types() -> dict[int, str]:
    """Identity -> type of each operator of the main program."""
    return {id(op.desc): op.type for block in fluid.default_main_program().blocks for op in block.ops}


def first(value: Any) -> str:
    """The first paragraph of a docstring as one line."""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


# Operators.


def operators(folder: Path, layers: dict[str, list[str]]) -> None:
    """Writes a page for each operator type, gradients on the page of their operator, and lists by family."""
    folder.mkdir(parents=True, exist_ok=True)
    users = defaultdict(list)
    for layer, ops in layers.items():
        for type in ops:
            users[type].append(layer)
    families = defaultdict(list)
    for definition in all_ops():
        if not definition.is_grad and definition.module.startswith("fluidnb_kernels."):
            sheet = read_op(definition.type)
            families[sheet.family].append(sheet)
            (folder / f"{sheet.type}.md").write_text("\n".join(operator_page(sheet, users[sheet.type])) + "\n")
    lines = ["# Operators", "", "Every operator type by family: formula, slots, attributes, kernels and gradient.", ""]
    for family, sheets in sorted(families.items()):
        lines += [f"## {family}", "", "| operator | computes |", "|---|---|"]
        lines += [f"| [{s.type}]({s.type}.md) | {cell(s.doc[0] if s.doc else '')} |" for s in sheets]
        lines += [""]
    every = "\n".join(sorted(sheet.type for sheets in families.values() for sheet in sheets))
    lines += ["```{toctree}", ":hidden:", "", every, "```"]
    (folder / "index.md").write_text("\n".join(lines) + "\n")


def operator_page(sheet: OpSheet, layers: list[str]) -> Iterator[str]:
    """The page of an operator, as Markdown."""
    yield from (f"# {sheet.type}", "")
    for paragraph in sheet.doc:
        indented = paragraph.startswith(" ")
        yield from ("```text", inspect.cleandoc("\n" + paragraph), "```", "") if indented else (text(paragraph), "")
    if layers:
        named = sorted(layers, key=lambda name: (name != sheet.type, name))  # the layer of its own name comes first
        links = ", ".join(f"`fluid.layers.{name}`" for name in named)
        yield from (f"Layers: {links}", "")
    for title, slots in (("Inputs", sheet.inputs), ("Outputs", sheet.outputs)):
        if slots:
            yield from (f"## {title}", "", "| slot | |", "|---|---|")
            yield from (
                f"| `{s.name}` | {cell(s.doc)}{' *(' + ', '.join(s.marks) + ')*' if s.marks else ''} |" for s in slots
            )
            yield ""
    if sheet.attrs:
        yield from ("## Attributes", "", "| attribute | type and default | |", "|---|---|---|")
        yield from (f"| `{a.name}` | `{a.type}` | {cell(a.doc)} |" for a in sheet.attrs)
        yield ""
    yield from ("## Gradient", "")
    for g in sheet.gradient:
        yield from (f"`{g.type}`: {', '.join(f'`{s}`' for s in g.reads)} → {', '.join(f'`{s}`' for s in g.gives)}", "")
        yield from (text(g.doc), "")
    if not sheet.gradient:
        yield from ("None.", "")
    yield from ("## Kernels", "", "| place | dtypes |", "|---|---|")
    yield from (f"| {place} | {', '.join(dtypes)} |" for place, dtypes in sheet.kernels)
    yield ""
    if sheet.notes:
        yield from ("## Notes", "", *(f"- {text(note)}" for note in sheet.notes), "")
    if sheet.example:
        yield from ("## Example", "", "```pycon", *sheet.example, "```", "")
    if sheet.source:
        yield from (f"*Source: {text(sheet.source)}*", "")


def text(paragraph: str) -> str:
    """A paragraph of a docstring as Markdown: signs that mean something there are escaped outside of code."""
    parts = re.split(r"(`[^`]*`)", " ".join(paragraph.split()))
    return "".join(p if p.startswith("`") else re.sub(r"([*_<>\[\]|#\\])", r"\\\1", p) for p in parts)


def cell(paragraph: str) -> str:
    """A paragraph for a table's cell."""
    return text(paragraph).replace("`|`", "`\\|`")


# Commands.


def usage(text: str) -> list[str]:
    """The help of a command, without the sign that begins its usage."""
    return ["```text", *inspect.cleandoc(text.replace("::", "", 1)).replace("``", "`").splitlines(), "```", ""]


def commands(folder: Path) -> None:
    """Writes the reference of ``%fluid`` and of the command line."""
    from fluidnb.cli.entry import COMMANDS as CLI
    from fluidnb_magics.commands import COMMANDS

    lines = ["# Commands", "", "The words of `%fluid` in a notebook or IPython, then of `fluidnb` in a shell.", ""]
    for section, members in COMMANDS.by_section().items():
        lines += [f"## {section.value}", ""]
        for command in members:
            lines += [f"### %fluid {command.word}", "", *usage(command.help)]
    lines += ["## The fluidnb command", ""]
    for word, command in CLI.items():
        parser = ArgumentParser(prog=f"fluidnb {word}", description=command.summary)
        command.arguments(parser)
        lines += [f"### fluidnb {word}", "", "```text", parser.format_help().strip(), "```", ""]
        if command.example:
            lines += ["```text", inspect.cleandoc(command.example), "```", ""]
    (folder / "commands.md").write_text("\n".join(lines) + "\n")


def flag_page(path: Path) -> None:
    """Writes the list of flags."""
    lines = [
        "# Flags", "",
        "Set by `fluid.set_flags({\"FLAGS_check_nan_inf\": True})` or by an environment variable.", "",
        "| flag | default | |", "|---|---|---|",
    ]  # fmt: skip
    lines += [f"| `FLAGS_{name}` | `{flag.default}` | {cell(flag.doc)} |" for name, flag in sorted(FLAGS.items())]
    path.write_text("\n".join(lines) + "\n")
