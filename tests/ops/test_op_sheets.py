"""``%fluid ops NAME`` shows of every operator its formula, slots, attributes, kernels, gradient, an example."""

import pytest

from fluidnb.errors import NotFound
from fluidnb.op import Attr, all_ops, default_grad, get_op, grad_op, kernel, no_slope, op, remove_op, same
from fluidnb.viz import list_lines, plain, read_op, sheet_lines

OURS = [d.type for d in all_ops() if d.module.startswith("fluidnb_kernels.")]
FORWARD = [t for t in OURS if not get_op(t).is_grad]
#: What finds, chooses, runs, stores or sends, and so has no formula; the text says what it does.
WORDS = {
    "beam_search_decode", "bipartite_match", "conditional_block", "delete_var", "fetch_barrier", "listen_and_serv",
    "multiclass_nms", "multiclass_nms2", "multiclass_nms3", "recurrent", "recv", "save", "save_combine", "send",
    "send_barrier", "checkpoint_notify", "while",
}  # fmt: skip
#: Operators that look at shapes alone, so that backward appends nothing; py_func where it has no function for it.
NO_SLOPE = {"py_func", *(t for t in FORWARD if get_op(t).grad is no_slope)}


@pytest.mark.parametrize("type", FORWARD)
def test_a_sheet_has_all_there_is_to_know(type):
    sheet, d = read_op(type), get_op(type)
    assert {s.name for s in (*sheet.inputs, *sheet.outputs)} == {*d.inputs, *d.outputs}
    assert {a.name for a in sheet.attrs} == set(d.attrs)
    assert ("=" in " ".join(sheet.doc)) == (type not in WORDS), "a formula"
    assert sheet.source and sheet.kernels
    assert sheet.example or d.control
    assert bool(sheet.gradient) == (d.grad is not None and type not in NO_SLOPE)
    assert all(g.doc for g in sheet.gradient)


@pytest.mark.parametrize("size", [80, 120])
def test_every_sheet_fits_and_loses_nothing(size):
    for type in OURS:
        sheet = read_op(type)
        lines = plain(sheet_lines(sheet, size)).splitlines()
        assert max(map(len, lines)) <= size, type
        shown = "".join("".join(lines).split())
        for slot in (*sheet.inputs, *sheet.outputs, *sheet.attrs):
            assert slot.name in shown and "".join(slot.doc.split()) in shown, type
        for paragraph in sheet.doc:
            assert "".join(paragraph.split()) in shown, type


def test_an_example_that_is_broken_into_lines_is_still_code():
    """At 80 characters; a few examples have a line that cannot be broken anywhere, and these are whole words."""
    broken = []
    for type in FORWARD:
        shown = plain(sheet_lines(read_op(type), 80)).partition("\nexample\n")[2].partition("\nsource\n")[0]
        code = "\n".join(line[6:] for line in shown.splitlines() if line.startswith(("  >>> ", "  ... ")))
        try:
            compile(code, type, "exec")
        except SyntaxError:
            broken.append(type)
    assert len(broken) <= 2, broken


@pytest.mark.parametrize("type", [t for t in OURS if get_op(t).is_grad])
def test_a_gradient_operator_has_a_sheet(type):
    sheet = read_op(type)
    assert sheet.doc and sheet.kernels


def test_the_page_of_an_operator():
    assert plain(sheet_lines(read_op("clip"), 80)) == """\
clip  math operator
  Out = min(max(X, min), max); Out inherits X's LoD.

inputs
  X    any shape
  Min  (optional) any[1]: a lower bound
  Max  (optional) any[1]: an upper bound

outputs
  Out  X limited to [min, max]

attributes
  min  float, required; lower bound
  max  float, required; upper bound

kernels
  cpu   any dtype
  cuda  float16, bfloat16, float32, float64, int32, int64

gradient
  clip_grad  Max, Min, Out@GRAD, X → X@GRAD
             dX = dOut where min < X < max, 0 elsewhere.

notes
  may write over its input

example
  >>> from fluidnb.testing import run_op
  >>> run_op("clip", {"X": [-2.0, 0.5, 5.0]}, {"min": -1.0, "max": 1.0})["Out"]
  array([-1. ,  0.5,  1. ])

source
  Fluid's clip_op."""


def test_a_gradient_that_is_the_operator_itself_says_what_goes_in():
    assert "  scale  X=Out@GRAD, ScaleTensor → Out=X@GRAD\n" in plain(sheet_lines(read_op("scale"), 80))


def test_what_a_user_defines_has_a_sheet_too():
    @op(
        "doctest_twice", inputs={"X*": "any", "By?": "a factor"}, outputs={"Out": "twice", "Kept~": "for later"},
        attrs={"times": Attr("int", doc="how often", ge=1), "how": Attr("string", "a", "a way", enum=("a", "b"))},
        infer=same(), grad=default_grad("X", "Out@GRAD", wrt=["X"]), random=True, dtypes=("float32",),
    )  # fmt: skip
    def twice(b):
        """Out = 2 X."""

    @kernel("doctest_twice", library="MINE", place="cuda", dtypes=("float32", "float64"))
    def mine(b):
        """The same elsewhere."""

    @grad_op("doctest_twice_grad")
    def twice_grad(b):
        """dX = 2 dOut."""

    try:
        text = plain(sheet_lines(read_op("doctest_twice"), 80))
        back = plain(sheet_lines(read_op("doctest_twice_grad"), 80))
        names = plain(list_lines([get_op("doctest_twice"), get_op("relu")]))
    finally:
        remove_op("doctest_twice")
        remove_op("doctest_twice_grad")
    assert text == f"""\
doctest_twice  {__name__} operator
  Out = 2 X.

inputs
  X   (list) any
  By  (optional) a factor

outputs
  Out   twice
  Kept  (for the gradient) for later

attributes
  times  int, required; how often; from 1 on
  how    string = "a"; a way; one of a, b

kernels
  cpu        float32
  cuda MINE  float32, float64

gradient
  doctest_twice_grad  Out@GRAD, X → X@GRAD
                      dX = 2 dOut.

notes
  draws random numbers"""
    assert "gradient of doctest_twice" in back and "Out@GRAD  the gradient of Out" in back
    assert names == f"activation (1)\n  relu\n{__name__} (1)\n  doctest_twice"


def test_an_operator_that_there_is_not():
    with pytest.raises(NotFound, match="has not been registered"):
        read_op("sequence_pol")
