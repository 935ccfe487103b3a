"""``fluidnb new``: the files of a new operator, layer, optimizer, command, widget or pass, with a test that fails."""

from __future__ import annotations

import ast
import keyword
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

from fluidnb.cli.checkout import root
from fluidnb.cli.command import Command
from fluidnb.errors import FluidError, NotFound, OpValueError, near

#: The texts of new files; ``$name``, ``$camel`` and ``$family`` are filled in.
_TEMPLATES = Path(__file__).parent / "templates"
#: Edits of a file: its path and what its text becomes.
Edit = tuple[str, Callable[[str], str]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing that can be added."""

    files: dict[str, str]  # path -> name of its template; empty for the test of an operator
    edits: dict[str, tuple[str, ...]]  # lists that must mention it: path -> what to insert, see `_insert`
    todo: tuple[str, ...]  # what is left to do, a line each


_LAYERS, _OPTIMIZERS = "fluidnb/layers/__init__.py", "fluidnb/optimizer/__init__.py"
_LESSON = "fluidnb/viz/lessons/optimizer/choices.py"
_COMMANDS = "magics/fluidnb_magics/commands"
_WIDGETS = "magics/fluidnb_magics/widgets"
KINDS = {
    "op": Kind(
        {
            "kernels/fluidnb_kernels/$family/$name.py": "op", "tests/ops/test_$name.py": "",
            "kernels/fluidnb_kernels/$family/$name.cu": "op_cuda",
        },
        {},
        (
            "declare slots, attributes and the shape rule in the decorator; `fluidnb new op --help` names models",
            "fill in the kernels and the docstrings; delete the gradient if there is none",
            "write the expected outputs into the test, then: fluidnb check-op $name (--no-nvrtc: in seconds)",
            "fill in the CUDA kernels; where there are none, delete them and give @op host_only=\"reason\"",
        ),
    ),
    "layer": Kind(
        {"fluidnb/layers/$name.py": "layer", "tests/layers/test_$name.py": "layer_test"},
        {_LAYERS: ("from fluidnb.layers.$name import $name as $name",)},
        (
            "fill in arguments, docstring and operators",
            "declare with @takes what arguments take whose names are no slots of the operator $name",
            "write the expected values into the test; run `python -m tests.house.public_api` for the list of names",
        ),
    ),
    "optimizer": Kind(
        {"fluidnb/optimizer/$name.py": "optimizer", "tests/optimizer/test_$name.py": "optimizer_test"},
        {
            _OPTIMIZERS: (
                "from fluidnb.optimizer.$name import ${camel}Optimizer", "alias $camel = ${camel}Optimizer",
                "__all__ $camel ${camel}Optimizer",
            ),
            _LESSON: ('row OPTIMIZERS "$camel": Kind("FILL IN, its effect in a sentence.", optimizer.$camel, 0.1),',),
        },
        (
            "fill in the accumulators and the operator; `fluidnb new op $name --like momentum` writes one",
            "write the expected parameter into the test; run `python -m tests.house.public_api` for the list of names",
        ),
    ),
    "command": Kind(
        {f"{_COMMANDS}/$name.py": "command", "tests/magics/test_$name.py": "command_test"},
        {},
        (
            "choose the section of %fluid --help; fill in options, docstring (it is the help) and what is shown",
            "write what is shown into the test",
        ),
    ),
    "widget": Kind(
        {
            f"{_WIDGETS}/$name.py": "widget", f"{_WIDGETS}/static/$name.js": "widget_script",
            f"{_WIDGETS}/static/$name.css": "widget_style", "tests/magics/test_$name.py": "widget_test",
        },
        {},
        (
            "fill in the data, its text rendering, and what the page draws and calls",
            "show it from a command: show_widget(bench.shell, $camel()); `fluidnb new command` writes one",
            "write the text rendering into the test",
        ),
    ),
    "pass": Kind(
        {"fluidnb/passes/$name.py": "pass", "tests/passes/test_$name.py": "pass_test"}, {},
        (
            "fill in what it finds; a pass that changes a program works on program.clone()",
            "infer_shapes(program, feeds), op.forward_op() and program.cost(feeds) know shapes, gradients and costs",
            "write what it finds into the test",
        ),
    ),
}  # fmt: skip


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("kind", choices=KINDS, help="what to add")
    parser.add_argument("name", help="its name, in lower case with underscores")
    parser.add_argument("--like", metavar="OTHER", help="begin with a copy of another one")
    parser.add_argument("--family", metavar="FOLDER", default="", help="folder of an operator (math)")


def run(options: Namespace) -> int:
    """Write the files and print what is left to do."""
    folder, kind = root("tests"), KINDS[options.kind]
    _check_name(options.kind, options.name)
    like = None if options.like is None else _models(folder, options.kind, options.like)
    family = options.family or (like[0].parent.name if like and options.kind == "op" else "math")
    fields = {"name": options.name, "camel": _camel(options.name), "family": family}
    files = kind.files
    if options.kind == "op" and like:  # its kernels launch those of the other's CUDA file
        files = {path: template for path, template in files.items() if not path.endswith(".cu")}
    written = {folder / _filled(path, fields): text for path, text in files.items()}
    for path in written:
        if path.exists():
            raise OpValueError(f"{path.relative_to(folder)} exists.", expected="a new name", received=options.name)
        if not path.parent.is_dir():
            raise NotFound(
                f"There is no folder {path.parent.relative_to(folder)}.", received=path.parent.name,
                hint=near(path.parent.name, [p.name for p in path.parent.parent.iterdir() if p.is_dir()]),
            )  # fmt: skip
    for i, (path, template) in enumerate(written.items()):
        if like is not None and i < len(like):
            text = _renamed(like[i], options.kind, options.like, options.name)
        elif not template:
            text = _op_test(options.like, fields)
        else:
            text = _filled(_template(template), fields)
        path.write_text(text)
        print(f"wrote   {path.relative_to(folder)}")
    for file, insertions in kind.edits.items():
        path = folder / file
        text = path.read_text()
        for insertion in insertions:
            text = _insert(text, _filled(insertion, fields))
        path.write_text(text)
        print(f"edited  {file}")
    test = next(path for path in written if path.name.startswith("test_"))
    print("\nto do:")
    for line in (*kind.todo, f"pytest {test.relative_to(folder)} fails until then"):
        print(f"  - {_filled(line, fields)}")
    return 0


def _template(name: str) -> str:
    return (_TEMPLATES / f"{name}.txt").read_text()


def _filled(text: str, fields: dict[str, str]) -> str:
    return Template(text).safe_substitute(fields)


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _check_name(kind: str, name: str) -> None:
    """Raise unless a name can be a module's and is not taken."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise OpValueError(
            f"{name} cannot be the name of a new {kind}.", expected="lower-case letters, digits and underscores",
            received=name,
        )  # fmt: skip
    if kind == "op":
        from fluidnb.op import get_op, has_op

        if has_op(name):
            raise OpValueError(f"The operator {name} exists, in {get_op(name).module}.", received=name)


def _models(folder: Path, kind: str, other: str) -> list[Path]:
    """The files of another one of a kind, in the order of `Kind.files`, without its test."""
    if kind == "op":
        from fluidnb.op import all_ops, get_op

        module = get_op(other).module
        types = [d.type for d in all_ops() if d.module == module and not d.is_grad]
        path = folder / "kernels" / f"{module.replace('.', '/')}.py"
        if not module.startswith("fluidnb_kernels.") or types != [other] and not _op_part(path.read_text(), other):
            raise FluidError(
                f"{module} defines {len(types)} operators, so it cannot be copied for one.",
                expected="an operator with separate functions", received=", ".join(types[:8]),
                hint=f"add a row in {', '.join(_mentions(folder, module, other))}, or choose another operator.",
            )  # fmt: skip
        return [path]
    if kind in ("layer", "optimizer"):
        return [_module_of(folder / "fluidnb" / ("layers" if kind == "layer" else "optimizer"), kind, other)]
    files = [path for path in KINDS[kind].files if not Path(path).name.startswith("test_")]
    paths = [folder / _filled(path, {"name": other}) for path in files]
    if missing := [path for path in paths if not path.exists()]:
        names = [path.stem for path in paths[0].parent.glob("*.py") if path.stem != "__init__"]
        raise NotFound(
            f"There is no {missing[0].relative_to(folder)}.", received=other, hint=near(other, names) or None
        )
    return paths


def _mentions(folder: Path, module: str, name: str) -> list[str]:
    """The files of an operator's family that mention it."""
    family = (folder / "kernels" / module.replace(".", "/")).parent
    paths = sorted(path for path in family.glob("*") if path.suffix in (".py", ".cu"))
    return [str(path.relative_to(folder)) for path in paths if re.search(rf"\b{name}\b", path.read_text())]


def _module_of(package: Path, kind: str, other: str) -> Path:
    """The module of a package that defines a layer, or the class of an optimizer."""
    known: dict[str, Path] = {}
    for path in sorted(package.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if name := _defined(node):
                known[name.removesuffix("Optimizer")] = path
    if other not in known:
        raise NotFound(f"There is no {kind} {other}.", received=other, hint=near(other, known) or None)
    return known[other]


def _defined(node: ast.stmt) -> str:
    """The name of a function, of a class, or of a layer that is a row of a family; empty for others."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


def _renamed(path: Path, kind: str, other: str, name: str) -> str:
    """A file with another name; of a layer or an optimizer only its part of the file."""
    from fluidnb.op import has_op

    text = path.read_text()
    if kind in ("layer", "optimizer"):
        text = _part(path, text, other if kind == "layer" else f"{other}Optimizer", kind)
        old = other if kind == "layer" else rf"{other}(?=Optimizer|\b)"
        if re.search(rf"^{old} = ", text, re.MULTILINE) and not has_op(name):  # a row with the operator of the other
            row = re.sub(rf'\b{old}\b(?!", )', name, text).rstrip().removesuffix(")").rstrip()
            return f'{row}, name="{name}")\n'
        if kind == "layer" and not has_op(name):  # it appends the operator that the other layer appends
            return re.sub(rf'\b{old}\b(?!",? ?\{{)', name, text)
        return re.sub(rf"\b{old}", name if kind == "layer" else _camel(name), text)
    if kind == "op":
        return _renamed_op(_op_part(text, other) or text, other, name)
    lines = text.splitlines(keepends=True)
    return "".join(
        line if line.startswith(("from ", "import "))
        else re.sub(rf"\b{_camel(other)}(Widget)?\b", _camel(name), re.sub(rf"\b{other}\b", name, line))
        for line in lines
    )  # fmt: skip


def _renamed_op(text: str, other: str, name: str) -> str:
    """The file of an operator with another name, and a gap for the source of the formula.

    Its functions are renamed everywhere, other mentions outside bodies alone: bodies mention numpy's functions and
    kernels of a CUDA file, which stay.
    """
    tree = ast.parse(text)
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    imported = {a.asname or a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    bodies: set[int] = set()
    for function in functions:
        documented = ast.get_docstring(function) is not None
        for statement in function.body[documented:]:
            bodies |= set(range(statement.lineno, (statement.end_lineno or 0) + 1))
    own, part = {f.name for f in functions}, re.compile(rf"(?<![A-Za-z0-9]){re.escape(other)}(?![A-Za-z0-9])")

    def renamed(line: str, body: bool) -> str:
        def word(match: re.Match[str]) -> str:
            quoted = line[match.start() - 1] == '"'
            stays = match[0] in imported or body and (quoted or match[0] not in own)
            return match[0] if stays else part.sub(name, match[0])

        return re.sub(r"(?<![\w.])[A-Za-z_]\w*\b(?!\.cu)", word, line)

    text = "".join(renamed(line, i in bodies) for i, line in enumerate(text.splitlines(keepends=True), 1))
    source = _template("op").split("    Source: ")[1].splitlines()[0]
    return re.sub(r'(?<=\n    Source: )(?:(?!\n\n|\n    """).)*', source, text, flags=re.DOTALL)


def _op_part(text: str, name: str) -> str:
    """An operator of a file with several: its functions and what they use; empty where it shares a function."""
    tree, lines = ast.parse(text), text.splitlines()
    own = re.compile(rf"{re.escape(name)}(_\w*grad\w*)?")
    kept: set[ast.stmt] = set()
    for node in tree.body:
        calls = getattr(node, "decorator_list", [node.value] if isinstance(node, ast.Expr) else [])
        first = [d.args[0] for d in calls if isinstance(d, ast.Call) and d.args]
        types = {a.value for a in first if isinstance(a, ast.Constant) and " " not in str(a.value)}
        if any(own.fullmatch(str(type)) for type in types):
            kept.add(node)
            if not all(own.fullmatch(str(type)) for type in types):
                return ""
    if not kept:
        return ""
    used: set[str] = set()
    while True:
        words = {n.id for node in kept for n in ast.walk(node) if isinstance(n, ast.Name)}
        if words == used:
            break
        used = words
        kept |= {node for node in tree.body if _names_of(node) & used}
    imports = (ast.Import, ast.ImportFrom)
    out = [f'"""{name}: FILL IN."""', ""]
    for node in tree.body:
        if isinstance(node, imports):
            names = [a for a in node.names if (a.asname or a.name).partition(".")[0] in used]
            if names:
                node.names = names
                out.append(ast.unparse(node))
        elif node in kept:
            start = min(d.lineno for d in [*getattr(node, "decorator_list", []), node])
            out += ["", "", *lines[start - 1 : node.end_lineno]]
    return "\n".join(out) + "\n"


def _names_of(node: ast.stmt) -> set[str]:
    """The names that a statement of a module defines, imports aside."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}


def _part(path: Path, text: str, name: str, kind: str) -> str:
    """A function or class of a module, with the imports that it needs; helpers of the module are imported from it."""
    tree, lines = ast.parse(text), text.splitlines()
    node = next(n for n in tree.body if _defined(n) == name)
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    used |= {n.id for n in ast.walk(ast.parse("\n".join(_annotations(node)))) if isinstance(n, ast.Name)}
    imports = []
    for n in tree.body:
        if isinstance(n, ast.Import | ast.ImportFrom):
            kept = [a for a in n.names if (a.asname or a.name).partition(".")[0] in used | {"annotations"}]
            if kept:
                imports.append(ast.unparse(type(n)(**{**vars(n), "names": kept})))
    own = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    own |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    package = "fluidnb.layers" if kind == "layer" else "fluidnb.optimizer"
    if helpers := sorted((own & used) - {name}):
        imports.append(f"from {package}.{path.stem} import {', '.join(helpers)}")
    imports[1:] = sorted(imports[1:], key=lambda line: line.split()[1])
    head = [f'"""{name}: FILL IN, what it computes in one line."""', "", imports[0], "", *imports[1:], ""]
    head += [f'__all__ = ["{name}"]', ""] if kind == "layer" else []
    return "\n".join([*head, "", *lines[first - 1 : node.end_lineno]]) + "\n"


def _annotations(node: ast.AST) -> Iterator[str]:
    """Annotations that are written as strings."""
    for n in ast.walk(node):
        if isinstance(n, ast.arg) and isinstance(n.annotation, ast.Constant):
            yield str(n.annotation.value)


def _op_test(like: str | None, fields: dict[str, str]) -> str:
    """The test of an operator; its slots and attributes are those of the operator that was copied."""
    from fluidnb.op import get_op, has_grad
    from fluidnb.op.attr import REQUIRED
    from fluidnb.op.input_spec import InputSpec

    definition = None if like is None else get_op(like)
    inputs, attrs, checked, output = ['"X": rng.uniform(0.5, 2, (3, 4))'], "", ["X"], "Out"
    if definition is not None:
        inputs, checked = [], []
        for slot in definition.inputs.values():
            if slot.dispensable:
                continue
            spec = slot.specs[0] if slot.specs else InputSpec("float")
            axes = enumerate(spec.axes or ("n", "m"))
            sizes = [int(axis) if axis.isdigit() else 3 if axis == "…" else 2 + i for i, axis in axes]
            whole = spec.dtype_class in ("int", "bool")
            value = f"rng.integers(0, 2, {sizes})" if whole else f"rng.uniform(0.5, 2, {sizes})"
            inputs.append(f'"{slot.name}": {value}')
            checked += [] if whole else [slot.name]
        needed = {n: a for n, a in definition.attrs.items() if a.default is REQUIRED}
        attrs = ", ".join(f'"{n}": ...' for n in needed)
        output = next(iter(definition.outputs))
    line = ", ".join(inputs)
    if len(line) > 90:
        line = "".join(f"\n            {item}," for item in inputs) + "\n        "
    numeric = like is None or has_grad(like)
    fields = {
        **fields, "inputs": line, "numeric": " and its numeric gradient" if numeric else "", "attrs": attrs,
        "output": output,
        "outputs": f'"{output}": ...', "checked": ", ".join(f'"{n}"' for n in checked),
    }  # fmt: skip
    grad = _template("op_test_grad") if numeric else ""
    return _filled(_template("op_test") + grad, fields).replace(
        ": ...}\n\n    def", ": ...}  # FILL IN: the expected values, in numpy\n\n    def", 1
    )


def _insert(text: str, what: str) -> str:
    """A module with an import, an alias, names in ``__all__`` or a row of a table added."""
    word, _, rest = what.partition(" ")
    if word == "from":
        return _with_import(text, what)
    tree, lines = ast.parse(text), text.splitlines(keepends=True)
    if word == "alias":
        aliases = [n for n in tree.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Name)]
        return _with_line(lines, aliases[-1].end_lineno or 0, f"{rest}\n")
    row = ", ".join(f'"{name}"' for name in rest.split()) + ","
    if word == "row":
        word, _, row = rest.partition(" ")
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == word:
            return _with_line(lines, (node.end_lineno or 0) - 1, f"    {row}\n")
    raise NotFound(f"There is no {word} to add {rest} to.")


def _with_import(text: str, line: str) -> str:
    """A module with an import, behind those of modules before it."""
    module = line.split()[1]
    package = module.rpartition(".")[0]
    lines, at, first = text.splitlines(keepends=True), 0, 0
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package):
            first = first or node.lineno - 1
            if (node.module or "") < module:
                at = node.end_lineno or 0
    return _with_line(lines, at or first, f"{line}\n")


def _with_line(lines: list[str], at: int, line: str) -> str:
    return "".join([*lines[:at], line, *lines[at:]])


COMMAND = Command(
    "Write the files of something new, with a test that fails.", arguments, run,
    example="examples:\n  fluidnb new op cube --family math       then fluidnb check-op cube\n"
    "  fluidnb new layer huber --like smooth_l1\n  fluidnb new command sizes --like diff\n\n"
    "models: label_smooth (element by element), kldiv_loss (two inputs),\n  momentum (an optimizer)",
)  # fmt: skip
