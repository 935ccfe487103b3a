"""``model.h`` and ``model.c``: the interface of a generated program, and the program itself."""

from collections.abc import Iterator, Mapping

import numpy as np

from fluidnb.code_generator.functions import Variable, number
from fluidnb.code_generator.loop_text import LoopText
from fluidnb.code_generator.loops import ON_ARRAYS
from fluidnb.code_generator.names import Names, comment
from fluidnb.code_generator.plan import Call, Plan
from fluidnb.program.pseudo_code import op_code
from fluidnb.values.dtypes import var_type

_HEADER = """#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stdint.h>

"""


class ModelText:
    """The text of a planned program in C.

    Args:
        plan: what is generated.
        title: what the program is called in the comments at the top.
        embedded: values of parameters that are written into the source; None where ``weights.bin`` has them.
    """

    #: What ``model.h`` declares beside the program and its parameters.
    declared = ""
    #: Statements after parameters are read, and before they are written.
    after_load, before_save = "", ""

    def __init__(self, plan: Plan, title: str, embedded: Mapping[str, np.ndarray] | None) -> None:
        self.plan, self.title, self.embedded = plan, title, embedded
        self.names = Names()
        self._loops = LoopText(plan, self.names, self._at)
        self.entry = "model_train_step" if plan.trains else "model_run"
        for name in plan.variables:
            self.names[name]

    @property
    def ends(self) -> list[Variable]:
        """The variables of the interface: feeds, then fetches."""
        return [self.plan.variables[n] for n in (*self.plan.feeds, *self.plan.fetches) if n in self.plan.variables]

    def signature(self) -> str:
        """The declaration of the function that runs the program."""
        feeds = []
        for v in self._of(self.plan.feeds):
            feeds.append(f"const {v.type} *{self.names[v.name]}")
            feeds += [f"const int64_t *{self.names[v.name]}_lod"] * (v.lod == v.name)
        fetches = [f"{v.type} *{self.names[v.name]}_out" for v in self._of(self.plan.fetches)]
        return f"void {self.entry}({', '.join(feeds + fetches) or 'void'})"

    def _of(self, names: tuple[str, ...]) -> list[Variable]:
        return [self.plan.variables[n] for n in names if n in self.plan.variables]

    def header(self) -> str:
        """``model.h``."""
        lines = [f"// {comment(self.title)}\n", _HEADER]
        verb = "Runs the program once and updates its parameters" if self.plan.trains else "Runs the program once"
        lines.append(f"// {verb}.\n")
        for v in self._of(self.plan.feeds):
            lines.append(f"//   {self._described(v)}, read\n")
            if v.lod:
                lines.append(f"//   {self.names[v.name]}_lod: the {self.plan.sequences + 1} offsets of its sequences;")
                lines.append(" rows behind the last one are zero\n")
        lines += [f"//   {self._described(v, '_out')}, written\n" for v in self._of(self.plan.fetches)]
        lines.append(self.signature() + ";\n\n")
        lines.append(self.declared)
        if self.plan.parameters and not self._is_constant:
            lines.append("// Reads the parameters from a file; 0, or -1 where the file does not fit.\n")
            lines.append("int model_load(const char *path);\n\n")
            lines.append("// Writes the parameters into a file that model_load and Paddle read; 0, or -1 on failure.\n")
            lines.append("int model_save(const char *path);\n\n")
        lines.append("#endif\n")
        return "".join(lines)

    def _described(self, v: Variable, suffix: str = "") -> str:
        return comment(f"{self.names[v.name]}{suffix}: {v.name}, {v.dtype.name}{list(v.shape)}")

    def source(self) -> str:
        """``model.c``."""
        return "".join(self._source())

    def _source(self) -> Iterator[str]:
        yield f"// {comment(self.title)}\n//\n"
        yield "// Written by fluidnb. Each operator is a function; block_0 calls them in order.\n"
        yield '#include "model.h"\n\n#include <math.h>\n#include <stddef.h>\n#include <string.h>\n'
        yield "#include <stdlib.h>\n" if self.plan.steps else ""
        yield "#include <tgmath.h>\n#ifndef MODEL_SMALL\n#include <stdio.h>\n#endif\n"
        if any("USE_CBLAS" in text for text in self.plan.functions.texts.values()):
            yield "#ifdef USE_CBLAS\n#include <cblas.h>\n#endif\n"
        yield "\n// ---- memory\n\n"
        if self.plan.arena_size:
            yield "// Temporary variables; those that are never needed at once share bytes.\n"
            yield f"static _Alignas(64) unsigned char arena[{self.plan.arena_size}];\n\n"
        for v in self.plan.parameters:
            yield f"// {self._described(v)}\n"
            constant = "const " * self._is_constant
            yield f"static {constant}{v.type} parameter_{self.names[v.name]}[{max(v.count, 1)}]{self._values(v)};\n"
        if self.plan.parameters and self.embedded is None:
            yield '#ifdef MODEL_SMALL\n#error "parameters have to be in the source: generate it with --embed-weights"\n'
            yield "#endif\n"
        yield from self._scopes()
        yield from self._loops.memory()
        yield from self._operators()
        yield from self._entry()
        if self.plan.parameters and not self._is_constant:
            yield "\n#ifndef MODEL_SMALL\n"
            yield from self._files()
            yield "#endif\n"

    @property
    def _is_constant(self) -> bool:
        """Whether parameters are constants of the source."""
        return self.embedded is not None and not self.plan.trains

    def _operators(self) -> Iterator[str]:
        """The functions of operators, and of the blocks that call them."""
        yield "// ---- operators\n\n"
        for text in self.plan.functions.texts.values():
            yield text + "\n"
        yield "// ---- blocks\n\n"
        for index in sorted(self.plan.calls, reverse=True):
            yield f"static void block_{index}(void);\n"
        for index in sorted(self.plan.calls, reverse=True):
            yield from self._loops.keepers(index)
            yield f"\nstatic void block_{index}(void) {{\n"
            yield from self._loops.emptied(index)
            for call in self.plan.calls[index]:
                yield from self._call(call)
            yield "}\n"

    def _values(self, v: Variable) -> str:
        """The initializer of an embedded parameter."""
        return "" if self.embedded is None else self._listed(v, self.embedded[v.name])

    @staticmethod
    def _listed(v: Variable, values: np.ndarray) -> str:
        """An array as an initializer."""
        flat = values.reshape(-1)
        real = v.dtype.kind == "f"
        items = [number(float(x), v.type) if real else str(int(x)) for x in flat]
        rows = [", ".join(items[i : i + 12]) for i in range(0, len(items), 12)]
        return " = {\n    " + ",\n    ".join(rows) + ",\n}" if rows else ""

    def _scopes(self) -> Iterator[str]:
        """A struct of pointers for the variables of each block."""
        for index in sorted(self.plan.calls):
            there = [v for v in self.plan.variables.values() if self.plan.homes[v.name] == index]
            if not there:
                continue
            yield f"\n// Variables of block {index}.\nstatic struct {{\n"
            for v in there:
                if v.lod == v.name:
                    yield f"    const int64_t *{self.names[v.name]}_lod;  // the offsets of its sequences\n"
                const = "const " if v.kind == "fed" or (v.kind == "parameter" and self._is_constant) else ""
                yield f"    {const}{v.type} *{self.names[v.name]};  // {self._described(v)}, {v.kind}\n"
            yield f"}} scope_{index} = {{\n"
            for v in there:
                if v.kind == "temporary":
                    yield f"    .{self.names[v.name]} = ({v.type} *)(void *)(arena + {v.offset}),\n"
                elif v.kind == "parameter":
                    yield f"    .{self.names[v.name]} = parameter_{self.names[v.name]},\n"
                else:
                    yield f"    .{self.names[v.name]} = NULL,\n"
            yield "};\n\n"

    def _at(self, name: str) -> str:
        return f"scope_{self.plan.homes[name]}.{self.names[name]}"

    def _call(self, call: Call) -> Iterator[str]:
        """The lines of an operator in its block."""
        where = None if call.op.view is None else call.op.view.where
        place = "" if where is None else f"  // {comment(f'{where.short()}: {where.source}')}"
        if call.backward is not None:
            yield from self._loops.backward(call, place)
            return
        if call.block >= 0 and call.block in self.plan.backward:
            yield from self._loops.forward(call, place)
            return
        if call.op.optype in ON_ARRAYS:
            yield f"    // {comment(op_code(call.op))}\n    {self._loops.on_array(call)};{place}\n"
            return
        if call.block >= 0:
            word = "while" if call.op.optype == "while" else "if"
            yield f"    {word} ({self._condition(call.condition)}) block_{call.block}();{place}\n"
            return
        yield f"    // {comment(op_code(call.op))}\n"
        arguments = []
        for argument in call.arguments:
            if argument.parameter.is_lod:
                source = self.plan.lods.get(argument.names[0], "") if argument.names else ""
                arguments.append(f"{self._at(source)}_lod" if source else "NULL")
            elif argument.parameter.is_list:
                const = "const " if argument.parameter.is_input else ""
                items = ", ".join(self._at(n) for n in argument.names)
                arguments.append(f"({const}{argument.type} *const[]){{{items}}}")
            else:
                arguments.append(self._at(argument.names[0]) if argument.names else "NULL")
        yield f"    {call.function}({', '.join(arguments)});{place}\n"

    def _condition(self, name: str) -> str:
        """The value of a condition."""
        return f"*{self._at(name)}"

    def _entry(self) -> Iterator[str]:
        yield f"\n{self.signature()} {{\n"
        for v in self._of(self.plan.feeds):
            yield f"    scope_0.{self.names[v.name]} = {self.names[v.name]};\n"
            if v.lod:
                yield f"    scope_0.{self.names[v.name]}_lod = {self.names[v.name]}_lod;\n"
        yield "    block_0();\n"
        for v in self._of(self.plan.fetches):
            yield f"    memcpy({self.names[v.name]}_out, {self._at(v.name)}, {v.size});\n"
        yield "}\n"

    def _files(self) -> Iterator[str]:
        """Functions that read and write parameters in Paddle's format."""
        yield _READ_AND_WRITE
        yield "\nint model_load(const char *path) {\n    FILE *file = fopen(path, \"rb\");\n    if (!file) return -1;\n"
        yield "    const bool fine =\n        "
        yield " &&\n        ".join(
            f"read_tensor(file, parameter_{self.names[v.name]}, {v.size})" for v in self.plan.parameters
        )  # fmt: skip
        yield f";\n    fclose(file);\n{self.after_load}    return fine ? 0 : -1;\n}}\n"
        yield f"\nint model_save(const char *path) {{\n{self.before_save}"
        yield "    FILE *file = fopen(path, \"wb\");\n    if (!file) return -1;\n"
        for v in self.plan.parameters:
            sizes = ", ".join(map(str, v.shape))
            yield f"    const int64_t shape_{self.names[v.name]}[] = {{{sizes or 0}}};\n"
        yield "    const bool fine =\n        "
        named = [(self.names[v.name], v) for v in self.plan.parameters]
        yield " &&\n        ".join(
            f"write_tensor(file, parameter_{name}, {v.size}, {dtype_number(v)}, shape_{name}, {len(v.shape)})"
            for name, v in named
        )
        yield ";\n    return fclose(file) == 0 && fine ? 0 : -1;\n}\n"


def dtype_number(v: Variable) -> int:
    """The number of a dtype in Paddle's files."""
    return int(var_type(v.dtype))


_READ_AND_WRITE = """
// ---- files: a tensor is a version, levels of detail, a version, a description and the values

// Reads a tensor of a known number of bytes; false where the file has another one.
static bool read_tensor(FILE *file, void *values, size_t size) {
    uint32_t version;
    uint64_t levels;
    int32_t length;
    if (fread(&version, 4, 1, file) != 1 || version != 0) return false;
    if (fread(&levels, 8, 1, file) != 1 || levels != 0) return false;
    if (fread(&version, 4, 1, file) != 1 || version != 0) return false;
    if (fread(&length, 4, 1, file) != 1 || length < 0 || length > 1000) return false;
    if (fseek(file, length, SEEK_CUR)) return false;
    return fread(values, 1, size, file) == size;
}

// Writes a number in seven bits a byte, as protobuf does.
static size_t put_number(unsigned char *to, uint64_t number) {
    size_t n = 0;
    while (number > 127) {
        to[n++] = (unsigned char)((number & 127) | 128);
        number >>= 7;
    }
    to[n++] = (unsigned char)number;
    return n;
}

// Writes a tensor.
static bool write_tensor(FILE *file, const void *values, size_t size, int dtype, const int64_t *shape, int rank) {
    unsigned char text[200] = {8};
    size_t length = 1 + put_number(text + 1, (uint64_t)dtype);
    for (int i = 0; i < rank; ++i) {
        text[length++] = 16;
        length += put_number(text + length, (uint64_t)shape[i]);
    }
    const uint32_t version = 0;
    const uint64_t levels = 0;
    const int32_t bytes = (int32_t)length;
    return fwrite(&version, 4, 1, file) == 1 && fwrite(&levels, 8, 1, file) == 1 && fwrite(&version, 4, 1, file) == 1 &&
           fwrite(&bytes, 4, 1, file) == 1 && fwrite(text, 1, length, file) == length &&
           fwrite(values, 1, size, file) == size;
}
"""
