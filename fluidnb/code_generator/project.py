"""The files around a generated model: ``main.c``, ``Makefile`` and ``README.md``."""

import os
import struct
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fluidnb.code_generator.cuda_text import CudaText
from fluidnb.code_generator.functions import Variable
from fluidnb.code_generator.model_text import ModelText, dtype_number

#: Flags of a compiler for a fast program on this machine.
FAST = ("-O3", "-march=native", "-ffp-contract=fast")
_CLOCKS = "-D_WASI_EMULATED_PROCESS_CLOCKS -lwasi-emulated-process-clocks"
MAKEFILE = f"""# make builds the program; make CC=clang by another compiler, make BLAS=openblas with products by CBLAS.
# make checked builds it with sanitizers, make model.wasm as WebAssembly, which node model.mjs runs.
# make small compiles model.c without files and heap, for small devices, and prints its sizes.
CC ?= cc
ZIG ?= python3 -m ziglang
CFLAGS ?= {" ".join(FAST)}
WARNINGS = -std=c11 -Wall -Wextra -Wconversion
BLAS_FLAGS = $(if $(BLAS),-DUSE_CBLAS)
LIBRARIES = $(if $(BLAS),-l$(BLAS)) -lm

model: main.c model.c model.h
\t$(CC) $(WARNINGS) $(CFLAGS) $(BLAS_FLAGS) main.c model.c -o $@ $(LIBRARIES)

checked: main.c model.c model.h
\t$(CC) $(WARNINGS) -g -fsanitize=address,undefined main.c model.c -o $@ -lm

model.wasm: main.c model.c model.h
\t$(ZIG) cc --target=wasm32-wasi $(WARNINGS) -O3 -msimd128 -s {_CLOCKS} main.c model.c -o $@ -lm

small: model.c model.h
\t$(CC) $(WARNINGS) -Os -DMODEL_SMALL -fstack-usage -c model.c -o small.o
\t@size small.o | awk 'NR == 2 {{ print "flash  " $$1 + $$2 " bytes"; print "RAM    " $$2 + $$3 " bytes" }}'
\t@awk '$$2 > most {{ most = $$2 }} END {{ print "stack  " most " bytes in a function at most" }}' small.su

clean:
\trm -f model checked model.wasm small.o small.su
"""
#: Runs ``model.wasm`` where WASI has no files but those of the working directory.
NODE = """// node model.mjs WEIGHTS IN OUT [TIMES] runs model.wasm; paths are relative to the working directory.
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const wasi = new WASI({
    version: "preview1",
    args: ["model", ...process.argv.slice(2)],
    preopens: { ".": process.cwd() },
    returnOnExit: true,
});
const code = await WebAssembly.compile(await readFile(new URL("model.wasm", import.meta.url)));
process.exitCode = wasi.start(await WebAssembly.instantiate(code, wasi.getImportObject()));
"""

CUDA_MAKEFILE = """# make builds the program; CUDA is where CUDA's headers and libraries are.
CC ?= cc
CUDA ?= /usr/local/cuda
CFLAGS ?= -O2
WARNINGS = -std=c11 -Wall -Wextra -Wconversion
PLACES = -DMODEL_CU='"$(CURDIR)/model.cu"' -DCUDA_INCLUDE='"$(CUDA)/include"' -isystem $(CUDA)/include
LIBRARIES = -L$(CUDA)/lib64 -L$(CUDA)/lib64/stubs -Wl,-rpath,$(CUDA)/lib64 -lcuda -lnvrtc -lm

model: main.c model.c model.h
\t$(CC) $(WARNINGS) $(CFLAGS) $(PLACES) main.c model.c -o $@ $(LIBRARIES)

clean:
\trm -f model
"""


def build_flags(text: ModelText, folder: str) -> list[str]:
    """Flags of a compiler for the C files of a folder: places and libraries."""
    if not isinstance(text, CudaText):
        return ["-lm"]
    cuda = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    libraries = [f"-L{cuda}/lib64", f"-L{cuda}/lib64/stubs", f"-Wl,-rpath,{cuda}/lib64", "-lcuda", "-lnvrtc", "-lm"]
    places = [f'-DMODEL_CU="{folder}/model.cu"', f'-DCUDA_INCLUDE="{cuda}/include"', "-isystem", f"{cuda}/include"]
    return places + libraries


_MAIN = """// Runs the model on tensors in files: model WEIGHTS IN OUT [TIMES]
//
// IN has a file NAME.tensor for each feed, in Paddle's format; OUT gets one for each fetch. With TIMES the model runs
// so often, and the time of a run is printed.
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void fail(const char *what, const char *path) {
    fprintf(stderr, "%s %s\\n", what, path);
    exit(1);
}

// Reads a tensor of a known number of bytes; with offsets of sequences it may have fewer, and the rest stays zero.
static void read_values(const char *folder, const char *name, void *values, size_t size, int64_t *offsets,
                        size_t sequences, size_t row) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.tensor", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) fail("cannot open", path);
    uint64_t levels = 0;
    int32_t length = 0;
    if (fseek(file, 4, SEEK_SET) || fread(&levels, 8, 1, file) != 1) fail("no tensor in", path);
    if (levels != (offsets ? 1 : 0)) fail("another number of levels of sequences in", path);
    if (offsets) {
        uint64_t bytes;
        const size_t wanted = 8 * (sequences + 1);
        if (fread(&bytes, 8, 1, file) != 1 || bytes != wanted || fread(offsets, 1, wanted, file) != wanted)
            fail("another number of sequences in", path);
        for (size_t i = 0; i < sequences; ++i)
            if (offsets[0] || offsets[i] > offsets[i + 1]) fail("no offsets of sequences in", path);
        if (offsets[sequences] > (int64_t)(size / row)) fail("too many rows in", path);
        size = (size_t)offsets[sequences] * row;
    }
    if (fseek(file, 4, SEEK_CUR) || fread(&length, 4, 1, file) != 1 || fseek(file, length, SEEK_CUR))
        fail("no tensor in", path);
    if (fread(values, 1, size, file) != size || fgetc(file) != EOF) fail("another number of values in", path);
    fclose(file);
}

static void write_values(const char *folder, const char *name, const void *values, size_t size,
                         const unsigned char *description, size_t length) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.tensor", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file) fail("cannot open", path);
    const unsigned char zeros[16] = {0};
    const int32_t bytes = (int32_t)length;
    if (fwrite(zeros, 1, 16, file) != 16 || fwrite(&bytes, 4, 1, file) != 1 ||
        fwrite(description, 1, length, file) != length || fwrite(values, 1, size, file) != size || fclose(file))
        fail("cannot write", path);
}

"""


def main_file(text: ModelText) -> str:
    """``main.c`` of a model."""
    plan, names = text.plan, text.names
    feeds = [plan.variables[n] for n in plan.feeds if n in plan.variables]
    fetches = [plan.variables[n] for n in plan.fetches if n in plan.variables]
    lines = [_MAIN]
    if isinstance(text, CudaText):
        lines.append('#ifndef MODEL_CU\n#define MODEL_CU "model.cu"\n#endif\n\n')
    lines += [f"static {v.type} in_{names[v.name]}[{max(v.count, 1)}];\n" for v in feeds]
    lines += [f"static int64_t lod_{names[v.name]}[{plan.sequences + 1}];\n" for v in feeds if v.lod]
    lines += [f"static {v.type} out_{names[v.name]}[{max(v.count, 1)}];\n" for v in fetches]
    arguments = [f"{kind}_{names[v.name]}" for v in feeds for kind in (("in", "lod") if v.lod else ("in",))]
    arguments += [f"out_{names[v.name]}" for v in fetches]
    lines.append("\nint main(int count, char **words) {\n")
    lines.append('    if (count < 4) fail("usage: model WEIGHTS IN OUT [TIMES]", "");\n')
    if isinstance(text, CudaText):
        lines.append('    if (model_open(MODEL_CU)) fail("cannot read", MODEL_CU);\n')
    if plan.parameters and text.embedded is None:
        lines.append('    if (model_load(words[1])) fail("parameters do not fit:", words[1]);\n')
    for v in feeds:
        name, row = names[v.name], v.size // max(v.shape[0], 1) if v.shape else v.size
        lod = f"lod_{name}, {plan.sequences}, {row}" if v.lod else "NULL, 0, 0"
        lines.append(f'    read_values(words[2], "{name}", in_{name}, {v.size}, {lod});\n')
    lines.append("    const int times = count > 4 ? atoi(words[4]) : 1;\n    const clock_t start = clock();\n")
    lines.append(f"    for (int i = 0; i < times; ++i) {text.entry}({', '.join(arguments)});\n")
    lines.append("    const double ms = (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC / times;\n")
    lines.append('    if (count > 4) printf("%.3f ms\\n", ms);\n')
    for v in fetches:
        code = _description(v)
        listed = ", ".join(str(byte) for byte in code)
        lines.append(f"    const unsigned char of_{names[v.name]}[] = {{{listed}}};\n")
        name = names[v.name]
        lines.append(f'    write_values(words[3], "{name}", out_{name}, {v.size}, of_{name}, {len(code)});\n')
    if plan.trains:
        lines.append("    char path[4096];\n    snprintf(path, sizeof path, \"%s/weights.bin\", words[3]);\n")
        lines.append('    if (model_save(path)) fail("cannot write", path);\n')
    lines.append("    return 0;\n}\n")
    return "".join(lines)


def _description(v: Variable) -> bytes:
    """A tensor's description in Paddle's files: dtype and sizes."""
    return bytes([8, dtype_number(v)]) + b"".join(b"\x10" + _varint(n) for n in v.shape)


def tensor_bytes(v: Variable, array: np.ndarray, offsets: Sequence[int] = ()) -> bytes:
    """An array as a tensor in Paddle's files, with the offsets of its sequences."""
    description = _description(replace(v, shape=array.shape))
    level = struct.pack(f"<Q{len(offsets)}Q", 8 * len(offsets), *offsets) if offsets else b""
    start = struct.pack("<IQ", 0, 1 if offsets else 0) + level + struct.pack("<Ii", 0, len(description))
    return start + description + array.tobytes()


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


_NEEDS = (
    "C11 source of a program, written by fluidnb; it needs a C compiler and the math library alone.\n\n"
    "`make BLAS=openblas` takes products from a CBLAS; `make model.wasm` builds WebAssembly with zig, which\n"
    "`node model.mjs weights.bin IN OUT` runs. `make small` compiles a program with its parameters in the source\n"
    "for small devices, and prints the sizes of flash and RAM.\n\n"
)
_NEEDS_CUDA = (
    "Source of a program on a GPU, written by fluidnb; it needs a C compiler, CUDA's driver and NVRTC.\n\n"
    "`model.cu` has the kernels, which NVRTC compiles when the program starts; `model.c` launches them in order, a\n"
    "function for each operator. `make CUDA=/usr/local/cuda-13` builds it with another CUDA.\n\n"
)


def readme(text: ModelText) -> str:
    """``README.md`` of a model."""
    plan = text.plan
    parameters = sum(v.size for v in plan.parameters)
    lines = [
        f"# {text.title}\n\n",
        _NEEDS_CUDA if isinstance(text, CudaText) else _NEEDS,
        "    make\n    ./model weights.bin IN OUT 100\n\n",
        "`IN` has a file `NAME.tensor` for each feed, in Paddle's tensor format; `OUT` gets one for each fetch.\n\n",
        "| | name in C | shape | dtype |\n|---|---|---|---|\n",
    ]
    for kind, names in (("feed", plan.feeds), ("fetch", plan.fetches)):
        for v in (plan.variables[n] for n in names if n in plan.variables):
            lines.append(f"| {kind} | `{text.names[v.name]}` | {list(v.shape)} | {v.dtype.name} |\n")
    lines.append(
        f"\nParameters: {len(plan.parameters)}, {parameters:,} bytes. Temporary variables: {plan.arena_size:,} bytes.\n"
    )
    return "".join(lines)
