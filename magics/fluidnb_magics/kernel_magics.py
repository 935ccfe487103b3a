"""``%%kernel`` and ``%%op``: cells that write kernels and operators."""

import inspect
from argparse import Namespace
from itertools import chain
from typing import Any

from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb.errors import FluidError
from fluidnb.utils.source_location import cell_names
from fluidnb_magics.arguments import evaluate, pairs, parse_argstring, unquoted
from fluidnb_magics.cell_errors import shorten
from fluidnb_magics.display import show
from fluidnb_magics.jupyter.front_end import FrontEnd
from fluidnb_magics.session.cells import named_files
from fluidnb_magics.session.workbench import Workbench


@magics_class
class KernelCells(Magics):
    """The cell magics ``%%kernel`` and ``%%op``."""

    shell: Any  # the IPython shell

    def __init__(self, shell: Any, bench: Workbench, front_end: FrontEnd) -> None:
        super().__init__(shell)
        self._bench, self._front_end = bench, front_end

    @magic_arguments("%kernel")  # IPython puts one % in front
    @argument("op", nargs="?", default="", help="the operator")
    @argument("--device", choices=["cpu", "cuda"], help="where it runs; by default what the text looks like")
    @argument("--grad", action="store_true", help="it is a kernel of the operator's gradient")
    @argument("--dtype", nargs="+", default=[], metavar="DTYPE", help="the dtypes that it takes")
    @argument("--grid", metavar="EXPR", help="blocks; a number or a tuple, Python over the shapes: X.shape[0]")
    @argument("--block", metavar="EXPR", help="threads of a block (256)")
    @argument("--shared", metavar="EXPR", help="bytes of dynamic shared memory (0)")
    @argument("--input", nargs="+", action="append", default=[], metavar="SLOT=EXPR", help="what it is tried on")
    @argument("--attr", nargs="+", action="append", default=[], metavar="NAME=EXPR", help="attributes for the trial")
    @argument("--arch", type=int, default=90, help="NVRTC compiles for this architecture (90)")
    @argument("--force", action="store_true", help="take it although its results are wrong")
    @argument("--help", action="store_true", help="show this")
    @cell_magic
    def kernel(self, line: str, cell: str) -> None:
        """Write a kernel for an operator: it is compiled, checked, and used from then on.

        On the CPU the cell is Python that binds, `def kernel(b): ...` or the body of it alone::

            %%kernel relu
            b(np.maximum, b["X"], b.const(0, b["X"].dtype), out=b["Out"])

        On CUDA it is CUDA C++. The parameters of its __global__ functions are called like the operator's slots (X@GRAD
        is X_GRAD), its attributes, or n, the number of elements of the output. A thread takes one element after
        another (EACH of fluid.cuh) in blocks of 256, unless --grid, --block or lines above the kernel say otherwise::

            %%kernel relu
            #include "fluid.cuh"
            //! block = 128
            template <class T> __global__ void relu(const T* X, T* Out, long long n) {
              EACH(i, 0, n) Out[i] = X[i] > T(0) ? X[i] : T(0);
            }

        A line `//! name = expression` gives grid, block, shared or a parameter its value: Python over X.shape, X.size,
        attributes, n, ceil, prod, and workspace(shape, dtype) for memory of its own. Several kernels are launched one
        after the other, each with the lines above it; grid, block and shared count for one kernel.

        The kernel has to give what numpy's gives, on several shapes, and the gradient has to agree with central
        differences; else the kernels stay as they were. Running the cell again replaces it; %fluid kernels drop OP
        takes it back.
        """
        self._run(self.kernel, line, cell, self._kernel)

    @magic_arguments("%op")
    @argument("op", nargs="?", default="", help="the type of the operator that the cell defines")
    @argument("--input", nargs="+", action="append", default=[], metavar="SLOT=EXPR", help="what it is tried on")
    @argument("--attr", nargs="+", action="append", default=[], metavar="NAME=EXPR", help="attributes for the trial")
    @argument("--force", action="store_true", help="take it although something about it is wrong")
    @argument("--help", action="store_true", help="show this")
    @cell_magic
    def op(self, line: str, cell: str) -> None:
        """Write an operator: proto, shape rule, gradient and kernels in one cell; all of it is checked.

        The cell is Python with the decorators of fluidnb.op, which are there without an import: @op, @grad_op, @kernel,
        Attr, default_grad, same and others. cuda("name", "CUDA C++", grid=..., block=...) adds a CUDA kernel, written
        as in a %%kernel cell.

        Afterwards the operator is there for every program, and a function of its name appends it. Running the cell
        again replaces it; %fluid kernels drop OP takes it back.
        """
        self._run(self.op, line, cell, self._op)

    def _run(self, magic: Any, line: str, cell: str, do: Any) -> None:
        args = parse_argstring(magic, line)
        if args.help or not args.op:
            print(inspect.cleandoc(magic.__doc__))
            return
        try:
            show(self.shell, do(args, cell))
        except BaseException as error:
            if isinstance(error, FluidError) and error.where is not None and error.where.line < self._first(cell):
                error.where = None  # the magic itself
            raise shorten(self.shell, error) from None

    def _kernel(self, args: Namespace, cell: str) -> Any:
        from fluidnb_kernels.lab import write_kernel
        from fluidnb_kernels.lab.report import trial_lines

        device = args.device or ("cuda" if "__global__" in cell else "cpu")
        launch = {k: unquoted(v) for k in ("grid", "block", "shared") if (v := getattr(args, k)) is not None}
        trial = write_kernel(
            unquoted(args.op), cell if device == "cuda" else self._transformed(cell), device, grad=args.grad,
            dtypes=args.dtype, launch=launch, names=self.shell.user_ns, force=args.force,
            file="cell" if device == "cuda" else self._file(args, cell), first=self._first(cell),
            architecture=args.arch, **self._operands(args),
        )  # fmt: skip
        return trial_lines(trial)

    def _op(self, args: Namespace, cell: str) -> Any:
        from fluidnb_kernels.lab import write_op
        from fluidnb_kernels.lab.report import op_lines

        trial = write_op(
            unquoted(args.op), self._transformed(cell), names=self.shell.user_ns, force=args.force,
            file=self._file(args, cell), first=self._first(cell), **self._operands(args),
        )  # fmt: skip
        self.shell.push({trial.op: trial.layer}, interactive=True)
        return op_lines(trial)

    def _operands(self, args: Namespace) -> dict[str, Any]:
        names = self.shell.user_ns
        inputs, attrs = (
            {name: evaluate(text, names) for name, text in pairs(chain(*words)).items()}
            for words in (args.input, args.attr)
        )
        return {"inputs": inputs or None, "attrs": attrs or None}

    def _first(self, cell: str) -> int:
        """The number of the cell's first line below the magic, as the editor shows it."""
        return self._front_end.skipped(cell) + 1

    def _transformed(self, cell: str) -> str:
        """The cell as Python; the shell drops empty lines in front, which count."""
        lead = len(cell) - len(cell.lstrip("\n"))
        return "\n" * lead + str(self.shell.transform_cell(cell))

    def _file(self, args: Namespace, cell: str) -> str:
        """The file name under which the shell's tracebacks find the cell."""
        number = self._front_end.number
        text = "\n" * (self._first(cell) - 1) + self._transformed(cell)
        file = str(self.shell.compile.cache(text, number, raw_code=self._front_end.raw or cell))
        cell_names[file] = f"In[{number}]"
        named_files.add(file)
        return file
