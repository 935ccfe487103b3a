// The functions of CUDA's driver and of NVRTC that generated programs call, over kernels that the emulator compiled.
//
// The folder $EMULATED_PARTS has partN.so, the kernels of part N of model.cu, and partN.txt, their names in order.
// Misuse ends the program: an unknown address, a copy outside of an allocation, a launch that the emulator refuses.
#include <cuda.h>
#include <dlfcn.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct _nvrtcProgram {
    int part, names;
    char name[500][200], lowered[500][32];
};
struct CUmod_st {
    void *library;
    int part;
};
typedef int (*Run)(void **, const unsigned *, const unsigned *, size_t, int, unsigned, char *);

enum { MOST = 64 };
static struct {
    char *start;
    size_t size;
} regions[MOST];
static int count;

static void fail(const char *what) {
    fprintf(stderr, "emulated driver: %s\n", what);
    exit(3);
}

static char *at(CUdeviceptr address, size_t size) {
    char *p = (char *)address;
    for (int i = 0; i < count; ++i)
        if (p >= regions[i].start && p + size <= regions[i].start + regions[i].size) return p;
    fail("memory that was not allocated");
    return NULL;
}

CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) { *device = ordinal; return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    *context = (CUcontext)(size_t)(device + 1);
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) { return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT; }
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
    return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "error";
    return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr *address, size_t size) {
    if (getenv("EMULATED_MEMORY") && size > (size_t)atoll(getenv("EMULATED_MEMORY"))) return CUDA_ERROR_OUT_OF_MEMORY;
    void *p = NULL;
    if (count == MOST || posix_memalign(&p, 256, size)) return CUDA_ERROR_OUT_OF_MEMORY;
    memset(p, 0xff, size);  // NaN for whoever reads before writing
    regions[count].start = p, regions[count++].size = size;
    *address = (CUdeviceptr)p;
    return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size) {
    memcpy(at(to, size), from, size);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size) {
    memcpy(to, at(from, size), size);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    if (stream) fail("another stream");
    memmove(at(to, size), at(from, size), size);
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    static struct CUmod_st modules[MOST];
    const int part = atoi((const char *)image);
    char path[4096];
    snprintf(path, sizeof path, "%s/part%d.so", getenv("EMULATED_PARTS"), part);
    modules[part].part = part;
    modules[part].library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!modules[part].library) fail(dlerror());
    *module = &modules[part];
    return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    char path[4096], line[256], symbol[64];
    snprintf(path, sizeof path, "%s/part%d.txt", getenv("EMULATED_PARTS"), module->part);
    FILE *file = fopen(path, "r");
    if (!file) fail(path);
    for (int i = 0; fgets(line, sizeof line, file); ++i) {
        line[strcspn(line, "\n")] = 0;
        snprintf(symbol, sizeof symbol, "emu_run_%d", i);
        if (strcmp(name, line) && strcmp(name, symbol)) continue;
        fclose(file);
        void *found = dlsym(module->library, symbol);
        *function = (CUfunction)found;
        return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    }
    fclose(file);
    return CUDA_ERROR_NOT_FOUND;
}
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void **arguments, void **extra) {
    if (stream || extra) fail("another stream, or extra arguments");
    const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    char error[400] = "";
    if (((Run)(void *)function)(arguments, grid, block, shared, 1, 1, error)) fail(error);
    return CUDA_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *text, const char *name, int n,
                               const char *const *headers, const char *const *names) {
    (void)text, (void)name, (void)n, (void)headers, (void)names;
    *program = calloc(1, sizeof **program);
    return *program ? NVRTC_SUCCESS : NVRTC_ERROR_OUT_OF_MEMORY;
}
nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char *name) {
    if (!strchr(name, '<')) fail("a name expression without template arguments");
    snprintf(program->name[program->names], 200, "%s", name);
    ++program->names;
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n, const char *const *options) {
    program->part = -1;
    int architecture = 0;
    for (int i = 0; i < n; ++i) {
        if (!strncmp(options[i], "-DMODEL_PART=", 13)) program->part = atoi(options[i] + 13);
        architecture |= !strcmp(options[i], "--gpu-architecture=sm_90");
    }
    return program->part >= 0 && architecture ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_OPTION;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size) { (void)program; *size = 16; return NVRTC_SUCCESS; }
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *code) {
    snprintf(code, 16, "%d", program->part);
    return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char *name, const char **lowered) {
    for (int i = 0; i < program->names; ++i)
        if (!strcmp(program->name[i], name)) {
            *lowered = program->name[i];  // the list of names has it as it is
            return NVRTC_SUCCESS;
        }
    return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size) { (void)program; *size = 1; return NVRTC_SUCCESS; }
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log) { (void)program; *log = 0; return NVRTC_SUCCESS; }
nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}
const char *nvrtcGetErrorString(nvrtcResult result) { return result ? "error" : "success"; }
