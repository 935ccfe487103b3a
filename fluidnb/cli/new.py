"""``fluidnb new``: the files of a new operator, layer, loss, optimizer, command, widget or pass, and a failing test."""

from __future__ import annotations

import ast
import keyword
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from textwrap import fill

from fluidnb.cli.checkout import root
from fluidnb.cli.command import Command
from fluidnb.errors import FluidError, NotFound, OpValueError, near

#: The texts of new files and of what is added to others; ``$name``, ``$camel`` and ``$family`` are filled in.
_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing that can be added."""

    files: dict[str, str]  # path -> name of its template; empty for the test of an operator
    edits: dict[str, tuple[str, ...]]  # files to which it is added: path -> what to insert, see `_insert`
    todo: tuple[str, ...]  # what is left to do, a line each


_KERNELS, _LAYERS = "kernels/fluidnb_kernels", "fluidnb/layers"
_END = "}  // namespace f"  # of the functions of a CUDA file
#: What of a kind cannot be copied by --like.
_COPIED = {"loss": "layer in fluidnb/layers/losses.py", "optimizer": "class in fluidnb/optimizer/algorithms.py"}
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
        {f"{_LAYERS}/__init__.py": ("from fluidnb.layers.$name import $name as $name",)},
        (
            "fill in arguments, docstring and operators; python -m tests.house.layer_index enters it in fluid.layers",
            "declare with @takes what arguments take whose names are no slots of the operator $name",
            "write the expected values into the test",
        ),
    ),
    "loss": Kind(
        {f"{_KERNELS}/loss/$name.py": "loss", "tests/ops/test_$name.py": "loss_test"},
        {
            f"{_KERNELS}/loss/elementwise_losses.cu": (f"loss_terms {_END}",),
            f"{_LAYERS}/losses.py": ("__all__ $name", "loss_layer"),
        },
        (
            "declare slots and attributes in the decorator; huber_loss (loss/regression.py) has an attribute",
            "fill in the formulas, in numpy and in the CUDA file, and the docstrings of operator and layer",
            "write the expected outputs into the test, then: fluidnb check-op $name (--no-nvrtc: in seconds)",
        ),
    ),
    "optimizer": Kind(
        {f"{_KERNELS}/optimizer/$name.py": "optimizer_op", "tests/ops/test_$name.py": "optimizer_test"},
        {
            "fluidnb/optimizer/algorithms.py": ("optimizer if not TYPE_CHECKING",),
            f"{_KERNELS}/optimizer/update.cu": (f"optimizer_step {_END}",),
        },
        (
            "fill in the accumulators of the class in algorithms.py, or delete them and its __init__ if there are none",
            "fill in the operator, and its step in update.cu; decayed_adagrad (adagrad.py) has state and attributes",
            "write the expected outputs into the test, then: fluidnb check-op $name (--no-nvrtc: in seconds)",
            "pytest tests/optimizer/test_every_optimizer.py tests/viz/test_optimizer_lesson.py -k $camel",
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
    parser.add_argument("name", help="its name, in lower case with underscores; of an optimizer that of its class")
    parser.add_argument("--like", metavar="OTHER", help="begin with a copy of another one")
    parser.add_argument("--family", metavar="FOLDER", default="", help="folder of an operator (math)")


def run(options: Namespace) -> int:
    """Write the files and print what is left to do."""
    folder, kind = root("tests"), KINDS[options.kind]
    name, camel = options.name, _camel(options.name)
    if options.kind == "optimizer" and not name.islower():  # SignSGD has the operator sign_sgd
        name, camel = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower(), name
    _check_name(options.kind, name)
    like = None if options.like is None else _models(folder, options.kind, options.like)
    family = options.family or (like[0].parent.name if like and options.kind == "op" else "math")
    fields = {"name": name, "camel": camel, "family": family}
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
            text = _renamed(like[i], options.kind, options.like, name)
        elif not template:
            text = _op_test(options.like, fields)
        else:
            text = _filled(_template(template), fields)
        path.write_text(text, "utf-8")
        print(f"wrote   {path.relative_to(folder)}")
    for file, insertions in kind.edits.items():
        path = folder / file
        text = path.read_text("utf-8")
        for insertion in insertions:
            text = _insert(text, _filled(insertion, fields), fields)
        path.write_text(text, "utf-8")
        print(f"edited  {file}")
    test = next(path for path in written if path.name.startswith("test_"))
    print("\nto do:")
    for line in (*kind.todo, f"pytest {test.relative_to(folder)} fails until then"):
        print(f"  - {_filled(line, fields)}")
    return 0


def _template(name: str) -> str:
    return (_TEMPLATES / f"{name}.txt").read_text("utf-8")


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
    if kind in ("op", "loss", "optimizer"):
        from fluidnb.op import get_op, has_op

        if has_op(name):
            raise OpValueError(f"The operator {name} exists, in {get_op(name).module}.", received=name)


def _models(folder: Path, kind: str, other: str) -> list[Path]:
    """The files of another one of a kind, in the order of `Kind.files`, without its test."""
    if kind in ("loss", "optimizer"):
        raise FluidError(
            f"fluidnb new {kind} takes no --like.", received=other,
            hint=f"fluidnb new op NAME --like {other} copies an operator; copy its {_COPIED[kind]} by hand.",
        )  # fmt: skip
    if kind == "op":
        from fluidnb.op import all_ops, get_op

        module = get_op(other).module
        types = [d.type for d in all_ops() if d.module == module and not d.is_grad]
        path = folder / "kernels" / f"{module.replace('.', '/')}.py"
        ours = module.startswith("fluidnb_kernels.")
        if not ours or types != [other] and not _op_part(path.read_text("utf-8"), other):
            raise FluidError(
                f"{module} defines {len(types)} operators, so it cannot be copied for one.",
                expected="an operator with separate functions", received=", ".join(types[:8]),
                hint=f"add a row in {', '.join(_mentions(folder, module, other))}, or choose another operator.",
            )  # fmt: skip
        return [path]
    if kind == "layer":
        return [_module_of(folder / "fluidnb/layers", other)]
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
    return [str(path.relative_to(folder)) for path in paths if re.search(rf"\b{name}\b", path.read_text("utf-8"))]


def _module_of(package: Path, other: str) -> Path:
    """The module of a package that defines a layer."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(package.glob("*.py"))}
    known = {_defined(node): path for path, tree in trees.items() for node in tree.body}
    if other not in known:
        raise NotFound(f"There is no layer {other}.", received=other, hint=near(other, known) or None)
    return known[other]


def _defined(node: ast.stmt) -> str:
    """The name of a function, or of a layer that is a row of a family; empty for others."""
    if isinstance(node, ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


def _renamed(path: Path, kind: str, other: str, name: str) -> str:
    """A file with another name; of a layer only its part of the file."""
    from fluidnb.op import has_op

    text = path.read_text("utf-8")
    if kind == "layer":
        text = _part(path, text, other)
        if re.search(rf"^{other} = ", text, re.MULTILINE) and not has_op(name):  # a row with the operator of the other
            row = re.sub(rf'\b{other}\b(?!", )', name, text).rstrip().removesuffix(")").rstrip()
            return f'{row}, name="{name}")\n'
        if not has_op(name):  # it appends the operator that the other layer appends
            return re.sub(rf'\b{other}\b(?!",? ?\{{)', name, text)
        return re.sub(rf"\b{other}", name, text)
    if kind == "op":
        text = _without_c_code(text)
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


def _without_c_code(text: str) -> str:
    """The file of an operator without the registration of C code, whose ``.c`` file the copy lacks."""
    lines = text.splitlines(keepends=True)
    for node in reversed(ast.parse(text).body):
        names = [d.func.id for d in getattr(node, "decorator_list", []) if isinstance(d, ast.Call)
                 and isinstance(d.func, ast.Name)]  # fmt: skip
        start, end = node.lineno, node.end_lineno or 0
        if isinstance(node, ast.FunctionDef) and "c_code" in names:
            start = min(d.lineno for d in node.decorator_list)
            del lines[start - 1 : end]
            while start <= len(lines) and not lines[start - 1].strip():
                del lines[start - 1]
        elif isinstance(node, ast.ImportFrom) and node.module == "fluidnb.op.c_code":
            del lines[start - 1 : end]
    return "".join(lines)


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


def _part(path: Path, text: str, name: str) -> str:
    """A layer of a module, with the imports that it needs; helpers of the module are imported from it."""
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
    if helpers := sorted((own & used) - {name}):
        imports.append(f"from fluidnb.layers.{path.stem} import {', '.join(helpers)}")
    imports[1:] = sorted(imports[1:], key=lambda line: line.split()[1])
    head = [f'"""{name}: FILL IN, what it computes in one line."""', "", imports[0], "", *imports[1:], ""]
    return "\n".join([*head, f'__all__ = ["{name}"]', "", "", *lines[first - 1 : node.end_lineno]]) + "\n"


def _annotations(node: ast.AST) -> Iterator[str]:
    """Annotations that are written as strings."""
    for n in ast.walk(node):
        if isinstance(n, ast.arg) and isinstance(n.annotation, ast.Constant):
            yield str(n.annotation.value)


def _op_test(like: str | None, fields: dict[str, str]) -> str:
    """The test of an operator; its slots and attributes are those of the operator that was copied."""
    from fluidnb.op import GRAD, get_op, has_grad, make_grad
    from fluidnb.op.attr import REQUIRED
    from fluidnb.op.input_spec import InputSpec
    from fluidnb.proto.desc import OpDesc

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
        output = next(iter(definition.outputs), "Out")
        if definition.grad is not None:
            given = {n: a.default for n, a in definition.attrs.items() if a.default not in (REQUIRED, None)}
            ins, outs = ({slot: [slot] for slot in side} for side in (definition.inputs, definition.outputs))
            op = OpDesc(definition.type, ins, outs, given)
            gradients = {slot for gradient in make_grad(op) for slot in gradient.outs}
            checked = [name for name in checked if name + GRAD in gradients]
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


def _insert(text: str, what: str, fields: dict[str, str]) -> str:
    """A file with an import, with a name in ``__all__``, or with a template before a line or at its end."""
    word, _, rest = what.partition(" ")
    if word == "from":
        return _with_import(text, what)
    if word == "__all__":
        return _with_name(text, rest)
    lines, filled = text.splitlines(keepends=True), _filled(_template(word), fields)
    at = next(i for i, line in enumerate(lines) if line.startswith(rest)) if rest else len(lines)
    while not lines[at - 1].strip():
        at -= 1
    return _with_line(lines, at, filled)


def _with_name(text: str, name: str) -> str:
    """A module with a name in the list of its public names, which is sorted and filled into lines again."""
    node = next(n for n in ast.parse(text).body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__")
    names = ", ".join(f'"{n}"' for n in sorted([*ast.literal_eval(node.value), name]))
    lines, indent = text.splitlines(keepends=True), " " * 4
    filled = fill(f"{names},", 120, initial_indent=indent, subsequent_indent=indent)
    lines[node.lineno : (node.end_lineno or 0) - 1] = [f"{filled}\n"]
    return "".join(lines)


def _with_import(text: str, line: str) -> str:
    """A module with an import, behind those of modules before it; among those for type checkers where there are any."""
    module = line.split()[1]
    package = module.rpartition(".")[0]
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    found = [node for node in found if (node.module or "").startswith(f"{package}.")]
    indent = max(node.col_offset for node in found)
    found = [node for node in found if node.col_offset == indent]
    before = [node.end_lineno or 0 for node in found if (node.module or "") < module]
    at = max(before, default=found[0].lineno - 1)
    return _with_line(text.splitlines(keepends=True), at, f"{' ' * indent}{line}\n")


def _with_line(lines: list[str], at: int, line: str) -> str:
    return "".join([*lines[:at], line, *lines[at:]])


COMMAND = Command(
    "Write the files of something new, with a test that fails.", arguments, run,
    example="examples:\n  fluidnb new op cube --family math       then fluidnb check-op cube\n"
    "  fluidnb new layer huber --like smooth_l1\n  fluidnb new command sizes --like diff\n"
    "  fluidnb new optimizer SignSGD           its class, operator and CUDA step\n\n"
    "models of operators: label_smooth (element by element), minus (two inputs),\n  clip (attributes)",
)  # fmt: skip
