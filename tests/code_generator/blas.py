"""A CBLAS for generated programs: the OpenBLAS in numpy's wheel, which has other names and wide sizes."""

from pathlib import Path

import numpy as np

_HEADER = """#include <stdint.h>
typedef enum { CblasRowMajor = 101 } CBLAS_ORDER;
typedef enum { CblasNoTrans = 111, CblasTrans = 112 } CBLAS_TRANSPOSE;
#define cblas_sgemm scipy_cblas_sgemm64_
#define cblas_dgemm scipy_cblas_dgemm64_
void cblas_sgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, int64_t m, int64_t n, int64_t k, float alpha,
                 const float *x, int64_t ldx, const float *y, int64_t ldy, float beta, float *out, int64_t ldout);
void cblas_dgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, int64_t m, int64_t n, int64_t k, double alpha,
                 const double *x, int64_t ldx, const double *y, int64_t ldy, double beta, double *out, int64_t ldout);
"""


def missing() -> str:
    """The reason why there is no CBLAS; empty when there is one."""
    return "" if _library() else "no OpenBLAS in numpy.libs"


def _library() -> Path | None:
    folder = Path(np.__file__).parents[1] / "numpy.libs"
    return next(iter(sorted(folder.glob("libscipy_openblas64_*.so"))), None)


def compiler_with_blas(folder: Path) -> str:
    """A compiler's command that finds ``cblas.h`` and its library, for programs built with USE_CBLAS.

    Args:
        folder: gets the header; an existing folder.
    """
    library = _library()
    assert library is not None
    (folder / "cblas.h").write_text(_HEADER)
    return f"gcc -DUSE_CBLAS -I{folder} -Wl,--no-as-needed {library} -Wl,-rpath,{library.parent}"
