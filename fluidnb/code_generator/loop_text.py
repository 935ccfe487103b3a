"""C text of loops and branches with gradients, and of arrays of tensors."""

from collections.abc import Callable, Iterator

from fluidnb.code_generator.functions import Variable
from fluidnb.code_generator.names import Names, comment
from fluidnb.code_generator.plan import Call, Plan
from fluidnb.program.pseudo_code import op_code


class LoopText:
    """Writes what loops with gradients need: memory for their steps, functions that keep and reopen one, statements.

    Args:
        plan: the program.
        names: names of C.
        at: the expression of a variable's memory.
    """

    def __init__(self, plan: Plan, names: Names, at: Callable[[str], str]) -> None:
        self._plan, self._names, self._at = plan, names, at

    def _count(self, block: int) -> str:
        """The variable that counts how often a block has run."""
        return f"kept_{block}_count"

    def _memory_of(self, block: int, v: Variable) -> str:
        """The memory in which the iterations of a block keep a variable."""
        return f"kept_{block}_{self._names[v.name]}"

    def memory(self) -> Iterator[str]:
        """Arrays of tensors, and the functions on them that the program calls."""
        loops = any(call.backward is not None and call.backward.loops for call in self._plan.backward.values())
        if not self._plan.arrays and not loops:
            return
        yield f"// ---- arrays of tensors, and loops with a gradient\n\nenum {{ STEPS = {self._plan.steps} }};\n{_STOP}"
        calls = [call for calls in self._plan.calls.values() for call in calls]
        used = {call.op.optype for call in calls}
        if self._plan.arrays:
            yield _ARRAYS
        yield _WRITE if "write_to_array" in used else ""
        yield _READ if "read_from_array" in used else ""
        for v in self._plan.arrays.values():
            name, what = f"array_{self._names[v.name]}", f"{v.name}, elements of {v.dtype.name}{list(v.shape)}"
            yield f"\nstatic {v.type} {name}_values[STEPS][{max(v.count, 1)}];  // {comment(what)}\n"
            yield f"static bool {name}_there[STEPS];\n"
            yield f"static struct array {name} = {{{name}_values, {name}_there, {v.size}, 0}};\n"
        for type in sorted({self._plan.arrays[call.op.outs["Out"][0]].type for call in calls if _accumulates(call)}):
            yield _ADD.replace("TYPE", type)
        yield "\n"

    def keepers(self, block: int) -> Iterator[str]:
        """Memory for what iterations keep for the gradient block, and functions that keep and reopen one."""
        call = self._plan.backward.get(block)
        if call is None or call.backward is None:
            return
        count = self._count(block)
        yield f"\n// How often block {block} has run.\nstatic int {count};\n"
        if not call.backward.loops:
            return
        there = self._plan.kept(block)
        for v in there:
            yield f"static {v.type} {self._memory_of(block, v)}[STEPS][{max(v.count, 1)}];\n"
        yield f"\n// Keeps what the gradient of block {block} reads of an iteration.\n"
        yield f"static void keep_{block}(void) {{\n"
        yield f'    if ({count} == STEPS) stop("a loop has more steps than there is memory for");\n'
        for v in there:
            yield f"    memcpy({self._memory_of(block, v)}[{count}], {self._at(v.name)}, {v.size});\n"
        yield f"    ++{count};\n}}\n"
        if there:
            yield f"\n// Brings back the variables of an iteration of block {block}.\n"
            yield f"static void reopen_{block}(int step) {{\n"
            for v in there:
                yield f"    memcpy({self._at(v.name)}, {self._memory_of(block, v)}[step], {v.size});\n"
            yield "}\n"

    def emptied(self, block: int) -> Iterator[str]:
        """Statements that empty the arrays of a block before it runs."""
        for name in self._plan.arrays:
            if self._plan.homes[name] == block:
                yield f"    array_empty(&array_{self._names[name]});\n"

    def forward(self, call: Call, place: str) -> Iterator[str]:
        """The lines of an operator that runs a block which has a gradient.

        Args:
            place: a comment with the user's line.
        """
        count, condition = self._count(call.block), f"*{self._at(call.condition)}"
        if call.op.optype == "while":
            yield f"    {count} = 0;\n    while ({condition}) {{{place}\n"
            yield f"        block_{call.block}();\n        keep_{call.block}();\n    }}\n"
        else:
            yield f"    {count} = {condition} ? 1 : 0;\n    if ({count}) block_{call.block}();{place}\n"

    def backward(self, call: Call, place: str) -> Iterator[str]:
        """The lines of an operator that runs a gradient block, over kept iterations from the last to the first.

        Args:
            place: a comment with the user's line.
        """
        assert call.backward is not None
        block, sums = call.backward.forward, call.backward.sums
        yield f"    // {comment(op_code(call.op))}\n"
        for total, _ in sums:
            yield f"    memset({self._at(total)}, 0, {self._plan.variables[total].size});\n"
        yield f"    for (int step = {self._count(block)}; step-- > 0;) {{{place}\n"
        if call.backward.loops and self._plan.kept(block):
            yield f"        reopen_{block}(step);\n"
        yield f"        block_{call.block}();\n"
        for total, inside in sums:
            count = self._plan.variables[total].count
            yield f"        for (ptrdiff_t i = 0; i < {count}; ++i) {self._at(total)}[i] += {self._at(inside)}[i];\n"
        yield "    }\n"

    def on_array(self, call: Call) -> str:
        """A statement that writes to an array of tensors, reads from it, or measures it."""
        ins, outs = call.op.ins, call.op.outs
        [array] = outs["Out"] if call.op.optype == "write_to_array" else ins["X"]
        name = f"array_{self._names[array]}"
        if call.op.optype == "lod_array_length":
            return f"*{self._at(outs['Out'][0])} = {name}.length"
        index = f"*{self._at(ins['I'][0])}"
        if call.op.optype == "read_from_array":
            backward = "true" if call.op.attrs.get("consume", False) else "false"
            return f"array_read(&{name}, {index}, {self._at(outs['Out'][0])}, {backward})"
        x = self._plan.variables[ins["X"][0]]
        if _accumulates(call):
            return f"array_add_{x.type}(&{name}, {index}, {self._at(x.name)}, {x.count})"
        return f"array_write(&{name}, {index}, {self._at(x.name)})"


def _accumulates(call: Call) -> bool:
    """Whether a call adds a gradient to an element of an array."""
    return call.op.optype == "write_to_array" and bool(call.op.attrs.get("accumulate", False))


_STOP = """
// Ends the program with a sentence.
static void stop(const char *text) {
#ifndef MODEL_SMALL
    fprintf(stderr, "%s (STEPS = %d)\\n", text, STEPS);
#else
    (void)text;
#endif
    abort();
}
"""
_ARRAYS = """
// An array of tensors of one size: its elements, which of them have been written, their bytes, and how many there are.
struct array {
    void *values;
    bool *there;
    size_t size;
    int64_t length;
};

// Leaves an array without elements.
static void array_empty(struct array *array) {
    memset(array->there, 0, STEPS * sizeof *array->there);
    array->length = 0;
}
"""
_WRITE = """
// Copies a tensor into an array.
static void array_write(struct array *array, int64_t at, const void *x) {
    if (at < 0 || at >= STEPS) stop("an array of tensors has more elements than there is memory for");
    memcpy((unsigned char *)array->values + (size_t)at * array->size, x, array->size);
    array->there[at] = true;
    if (at >= array->length) array->length = at + 1;
}
"""
_READ = """
// Copies an element. Backward takes it out, and reads zeros where nothing has been written.
static void array_read(struct array *array, int64_t at, void *out, bool backward) {
    const bool there = at >= 0 && at < array->length && array->there[at];
    if (!there && !backward) stop("an array of tensors is read where nothing has been written");
    if (!there) {
        memset(out, 0, array->size);
        return;
    }
    memcpy(out, (unsigned char *)array->values + (size_t)at * array->size, array->size);
    if (backward) array->there[at] = false;
}
"""
_ADD = """
// Adds a tensor to an element of an array.
static void array_add_TYPE(struct array *array, int64_t at, const TYPE *x, ptrdiff_t count) {
    if (at < 0 || at >= array->length || !array->there[at]) {
        array_write(array, at, x);
        return;
    }
    TYPE *to = (TYPE *)array->values + at * count;
    for (ptrdiff_t i = 0; i < count; ++i) to[i] += x[i];
}
"""
