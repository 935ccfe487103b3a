"""The files of a program on CUDA: ``model.cu`` with the kernels, and the host program that launches them."""

from collections.abc import Iterator
from pathlib import Path

from fluidnb.code_generator.cuda_functions import CudaFunctions, Kernel
from fluidnb.code_generator.functions import Variable
from fluidnb.code_generator.model_text import ModelText
from fluidnb.code_generator.names import comment
from fluidnb.memory.arena import ALIGN


class CudaText(ModelText):
    """The text of a planned program that launches CUDA kernels."""

    declared = (
        "// Compiles the kernels in a file, as model.cu, for the first GPU, and allocates memory there; 0, or -1\n"
        "// where the file cannot be read. To be called first.\n"
        "int model_open(const char *kernels);\n\n"
    )
    after_load = "    if (fine) upload();\n"
    before_save = "    download();\n"

    @property
    def parts(self) -> list[tuple[Path, list[Kernel]]]:
        """The files of kernels, each with those of its kernels that are launched."""
        found: dict[Path, list[Kernel]] = {}
        for kernel in self._functions.kernels.values():
            found.setdefault(kernel.function.source.path, []).append(kernel)
        return list(found.items())

    @property
    def _functions(self) -> CudaFunctions:
        assert isinstance(self.plan.functions, CudaFunctions)
        return self.plan.functions

    def kernels(self) -> str:
        """``model.cu``: each file of kernels is a part, compiled by itself; parts share what they include."""
        users: dict[Path, list[int]] = {}
        texts: dict[Path, str] = {}
        for i, (_, kernels) in enumerate(self.parts):
            for path, text in kernels[0].function.source.pieces():
                users.setdefault(path, []).append(i)
                texts[path] = text
        lines = [f"// {comment(self.title)}\n//\n// Written by fluidnb: the kernels of its operators. NVRTC compiles "]
        lines.append("each part by itself, with\n// MODEL_PART defined as its number.\n")
        for path in _in_order(kernels[0].function.source.pieces() for _, kernels in self.parts):
            condition = " || ".join(f"MODEL_PART == {i}" for i in users[path])
            lines.append(f"\n#if {condition}  // {path.parent.name}/{path.name}\n")
            lines.append(texts[path].replace("#pragma once\n", ""))
            lines.append("#endif\n")
        return "".join(lines)

    def _source(self) -> Iterator[str]:
        yield f"// {comment(self.title)}\n//\n"
        yield "// Written by fluidnb. Each operator is a function that launches kernels of model.cu; block_0 calls\n"
        yield '// them in order. All variables are in the memory of the GPU.\n#include "model.h"\n\n'
        yield "#include <cuda.h>\n#include <nvrtc.h>\n#include <math.h>\n#include <stddef.h>\n#include <stdio.h>\n"
        yield "#include <stdlib.h>\n#include <string.h>\n"
        yield from self._kernel_table()
        yield "// ---- memory\n\n"
        for v in self.plan.parameters:
            yield f"// {self._described(v)}\n"
            constant = "const " * self._is_constant
            yield f"static {constant}{v.type} parameter_{self.names[v.name]}[{max(v.count, 1)}]{self._values(v)};\n"
        for v in self._tables:
            values = self._listed(v, self._functions.tables[v.name])
            yield f"static const {v.type} table_{self.names[v.name]}[{max(v.count, 1)}]{values};\n"
        yield from self._scopes()
        if self._functions.draws:
            yield "// The number of the run, for operators that draw numbers.\nstatic uint64_t run;\n\n"
        yield from self._moves()
        yield from self._operators()
        yield from self._opening()
        yield from self._entry()
        if self.plan.parameters and not self._is_constant:
            yield from self._files()

    def _kernel_table(self) -> Iterator[str]:
        """The kernels by name, and the functions that compile and launch them."""
        yield "\n// ---- kernels\n\nenum {\n"
        for _, kernels in self.parts:
            yield "".join(f"    {kernel.name},\n" for kernel in kernels)
        yield f"    KERNELS,\n    PARTS = {len(self.parts)}\n}};\n\n"
        yield "// Each kernel's part of model.cu, and its name there.\n"
        yield "static const struct {\n    int part;\n    const char *name;\n} kernels[KERNELS] = {\n"
        for i, (_, kernels) in enumerate(self.parts):
            yield "".join(f'    {{{i}, "{kernel.function.name}"}},\n' for kernel in kernels)
        yield "};\n"
        yield _HOST

    @property
    def _tables(self) -> list[Variable]:
        return [v for v in self.plan.variables.values() if v.kind == "table"]

    def _scopes(self) -> Iterator[str]:
        """A struct of addresses for the variables of each block."""
        for index in sorted(self.plan.calls):
            there = [v for v in self.plan.variables.values() if self.plan.homes[v.name] == index]
            if there:
                yield f"\n// Addresses of the variables of block {index}.\nstatic struct {{\n"
                for v in there:
                    yield f"    CUdeviceptr {self.names[v.name]};  // {self._described(v)}, {v.kind}\n"
                yield f"}} scope_{index};\n\n"

    def _moves(self) -> Iterator[str]:
        """Functions that move conditions and parameters between the host and the GPU."""
        if any(call.block >= 0 for calls in self.plan.calls.values() for call in calls):
            yield _CONDITION
        if not self.plan.parameters:
            return
        for name, end, call in (("upload", "to", "HtoD({0}, {1}, {2})"), ("download", "from", "DtoH({1}, {0}, {2})")):
            if name == "download" and self._is_constant:
                continue
            yield f"// Moves all parameters {end} the GPU.\nstatic void {name}(void) {{\n"
            for v in self.plan.parameters:
                moved = call.format(self._at(v.name), f"parameter_{self.names[v.name]}", v.size)
                yield f"    check(cuMemcpy{moved});\n"
            yield "}\n\n"

    def _opening(self) -> Iterator[str]:
        """``model_open``: kernels, memory, constants."""
        yield "\nint model_open(const char *path) {\n    if (compile_all(path)) return -1;\n"
        size = self.plan.arena_size
        placed = []
        for v in self.plan.variables.values():
            offset = v.offset
            if v.kind != "temporary":
                offset, size = size, size + max(v.size, 1) + -max(v.size, 1) % ALIGN
            placed.append((v, offset))
        yield f"    CUdeviceptr memory;\n    check(cuMemAlloc(&memory, {max(size, 1)}));\n"
        for v, offset in placed:
            yield f"    {self._at(v.name)} = memory + {offset};\n"
        for v in self._tables:
            yield f"    check(cuMemcpyHtoD({self._at(v.name)}, table_{self.names[v.name]}, {v.size}));\n"
        if self.embedded is not None and self.plan.parameters:
            yield "    upload();\n"
        yield "    return 0;\n}\n"

    def _entry(self) -> Iterator[str]:
        yield f"\n{self.signature()} {{\n"
        for v in self._of(self.plan.feeds):
            yield f"    check(cuMemcpyHtoD({self._at(v.name)}, {self.names[v.name]}, {v.size}));\n"
        yield "    block_0();\n"
        if self._functions.draws:
            yield "    ++run;\n"
        for v in self._of(self.plan.fetches):
            yield f"    check(cuMemcpyDtoH({self.names[v.name]}_out, {self._at(v.name)}, {v.size}));\n"
        yield "}\n"

    def _condition(self, name: str) -> str:
        return f"is_true({self._at(name)})"


def _in_order(pieces: Iterator[list[tuple[Path, str]]]) -> list[Path]:
    """Files in an order in which each comes after those that it includes, each once."""
    return list(dict.fromkeys(path for piece in pieces for path, _ in piece))


_HOST = r"""
static CUfunction functions[KERNELS];

// Ends the program where a call of the driver fails.
static void check(CUresult result) {
    if (result == CUDA_SUCCESS) return;
    const char *text = "unknown error";
    cuGetErrorString(result, &text);
    fprintf(stderr, "CUDA: %s\n", text);
    exit(1);
}

// Launches a kernel on a grid of blocks of threads.
static void launch(int kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, void **arguments) {
    check(cuLaunchKernel(functions[kernel], grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, NULL, arguments,
                         NULL));
}

// Ends the program where the compiler fails, with what it says.
static void check_compiler(nvrtcResult result, nvrtcProgram program) {
    if (result == NVRTC_SUCCESS) return;
    size_t size = 0;
    char *log = NULL;
    if (program && !nvrtcGetProgramLogSize(program, &size) && (log = calloc(size + 1, 1)))
        nvrtcGetProgramLog(program, log);
    fprintf(stderr, "NVRTC: %s\n%s\n", nvrtcGetErrorString(result), log ? log : "");
    exit(1);
}

#ifndef CUDA_INCLUDE
#define CUDA_INCLUDE "/usr/local/cuda/include"
#endif

// Compiles a part of model.cu for an architecture, as sm_90, and finds its kernels.
static void compile(const char *text, int part, const char *architecture) {
    nvrtcProgram program = NULL;
    check_compiler(nvrtcCreateProgram(&program, text, "model.cu", 0, NULL, NULL), NULL);
    for (int i = 0; i < KERNELS; ++i)
        if (kernels[i].part == part && strchr(kernels[i].name, '<'))
            check_compiler(nvrtcAddNameExpression(program, kernels[i].name), program);
    char number[32];
    snprintf(number, sizeof number, "-DMODEL_PART=%d", part);
    const char *options[] = {"--std=c++17", "-I" CUDA_INCLUDE, architecture, number};
    check_compiler(nvrtcCompileProgram(program, 4, options), program);
    size_t size = 0;
    check_compiler(nvrtcGetCUBINSize(program, &size), program);
    char *code = malloc(size);
    if (!code) exit(1);
    check_compiler(nvrtcGetCUBIN(program, code), program);
    CUmodule module;
    check(cuModuleLoadData(&module, code));
    free(code);
    for (int i = 0; i < KERNELS; ++i) {
        if (kernels[i].part != part) continue;
        const char *name = kernels[i].name;
        if (strchr(name, '<')) check_compiler(nvrtcGetLoweredName(program, kernels[i].name, &name), program);
        check(cuModuleGetFunction(&functions[i], module, name));
    }
    check_compiler(nvrtcDestroyProgram(&program), NULL);
}

// Compiles all parts of model.cu for the first GPU; -1 where the file cannot be read.
static int compile_all(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return -1;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    char *text = size < 0 ? NULL : calloc((size_t)size + 1, 1);
    if (!text) exit(1);
    rewind(file);
    const bool whole = fread(text, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (whole) {
        CUdevice device;
        CUcontext context;
        int major = 0, minor = 0;
        check(cuInit(0));
        check(cuDeviceGet(&device, 0));
        check(cuDevicePrimaryCtxRetain(&context, device));
        check(cuCtxSetCurrent(context));
        check(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
        check(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
        char architecture[64];
        snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%d", major, minor);
        for (int part = 0; part < PARTS; ++part) compile(text, part, architecture);
    }
    free(text);
    return whole ? 0 : -1;
}

"""
_CONDITION = """// The value of a condition on the GPU.
static bool is_true(CUdeviceptr condition) {
    bool value;
    check(cuMemcpyDtoH(&value, condition, 1));
    return value;
}

"""
