"""Groups of launches that can be one: they compute element by element, over the same number of elements."""

from typing import Any, NamedTuple

from fluidnb_kernels.cuda import Function, address_of, ctype
from fluidnb_kernels.cuda.element_kernels import ElementKernel, element_kernels

Call = tuple[Any, tuple[Any, ...]]
#: Where an element is: the address of its array, and the type of its elements.
Key = tuple[int, str]

#: Arrays and steps of a group at most: values live in registers, of which a thread has 255.
_ARRAYS, _STEPS = 16, 32


class Step(NamedTuple):
    """A launch that computes element by element.

    Attributes:
        function: its kernel.
        kernel: how it computes an element.
        given: the name of each parameter -> what it got.
        size: the number of elements.
    """

    function: Function
    kernel: ElementKernel
    given: dict[str, Any]
    size: int

    @property
    def types(self) -> dict[str, str]:
        """The name of each argument of its template -> the argument."""
        arguments = self.function.name.partition("<")[2].rstrip(">").split(", ")
        return dict(zip(self.kernel.types.split(), arguments, strict=True))

    @property
    def read(self) -> list[Any]:
        """The arrays of which it reads each element once."""
        return [self.given[name] for name in self.kernel.reads.split()]

    @property
    def written(self) -> list[Any]:
        """The arrays of which it writes each element once."""
        return [self.given[name] for name in self.kernel.results if self.given[name] is not None]

    @property
    def whole(self) -> list[Any]:
        """The arrays of which every thread may read any element."""
        names = (*self.kernel.bands, *self.kernel.pointers.split())
        return [self.given[name] for name in names if self.given[name] is not None]


def step_of(call: Call) -> Step | None:
    """A call as a step of a group; None where it is something else."""
    function, args = call
    if not isinstance(function, Function):
        return None
    kernel = element_kernels.get(function.name.partition("<")[0])
    if kernel is None:
        return None
    *values, count = args[3:]
    return Step(function, kernel, dict(zip(kernel.parameters.split(), values, strict=True)), int(count))


class Group:
    """Steps in a row over the same number of elements, each of which depends on its own place alone.

    Args:
        first: the first step.

    Attributes:
        steps: all steps.
        arrays: where an element is -> the array that was written or read there last.
        loaded: where the first step reads before one writes.
        stored: where a step writes.
    """

    def __init__(self, first: Step) -> None:
        self.steps: list[Step] = []
        self.arrays: dict[Key, Any] = {}
        self.loaded: set[Key] = set()
        self.stored: set[Key] = set()
        self._whole: list[Any] = []
        self._add(first)

    def take(self, step: Step) -> bool:
        """Add a step; False where it cannot be in one kernel with the others."""
        if step.size != self.steps[0].size or len(self.steps) == _STEPS:
            return False
        written, read = {key_of(a): a for a in step.written}, {key_of(a): a for a in step.read}
        if len(self.arrays.keys() | written.keys() | read.keys()) > _ARRAYS:
            return False
        others = {**self.arrays, **read, **written}
        stored = [others[key] for key in self.stored | written.keys()]
        # element i may not depend on another thread's: memory that is written is one array's, or nobody's
        for key in self.stored | written.keys():
            if any(_meet(others[key], other) for at, other in others.items() if at != key):
                return False
        if any(_meet(one, other) for one in stored for other in (*self._whole, *step.whole)):
            return False
        self._add(step)
        return True

    def _add(self, step: Step) -> None:
        for array in step.read:
            if key_of(array) not in self.stored:
                self.loaded.add(key_of(array))
        for array in (*step.read, *step.written):
            self.arrays[key_of(array)] = array
        self.stored.update(map(key_of, step.written))
        self._whole += step.whole
        self.steps.append(step)


def key_of(array: Any) -> Key:
    """The place and the type of an array's elements."""
    return address_of(array), ctype(array.dtype)


def _meet(a: Any, b: Any) -> bool:
    """Whether two arrays share memory; those of elementwise launches have no gaps."""
    start, other = address_of(a), address_of(b)
    return start < other + b.nbytes and other < start + a.nbytes
