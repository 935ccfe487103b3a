"""Names of variables and parameters: from the user's own line, else from the cell."""

from __future__ import annotations

from types import FunctionType

import pytest

import fluidnb as fluid
from fluidnb_magics.session.cell_names import names_bound, names_read
from fluidnb_magics.session.name_hints import targets
from tests.magics.conftest import Session

CALLS = [
    ("h = f(1)", [("h",)]),
    ("h = f(f(1))", [(), ("h",)]),
    ("h = f + f", [("h",)]),
    ("h = -f", [("h",)]),
    ("h = f[0]", [("h",)]),
    ("h = f < f", [("h",)]),
    ("h = f.m(1, k=2)", [("h",)]),
    ("h = f.m(*[1], **{})", [("h",)]),
    ("h = f.m(\n  f.m(1),\n  2)", [(), ("h",)]),
    ("a, b = f.two()", [("a", "b")]),
    ("a = b = f(1)", [("a",)]),
    ("h: int = f(1)", [("h",)]),
    ("h = f(1) if f else f(2)", [("h",)]),
    ("print(h := f(1), file=open('/dev/null', 'w'))", [("h",)]),
    ("h = f(1); h += f", [("h",), ("h",)]),
    ("d = {}\nd['x'] = f(1)", [()]),
    ("class C: pass\nC.h = f(1)", [("h",)]),
    ("class C:\n    def __init__(self): self.h = f(1)\nC()", [("h",)]),
    ("class C:\n    h = f(1)", [("h",)]),
    ("f(1)", [()]),
    ("hs = [f(1) for _ in range(1)]", [()]),
    ("def g():\n    h = f(1)\n    return h\ng()", [("h",)]),
    ("def g():\n    a, b = f.two(); c = f(a); return c\ng()", [("a", "b"), ("c",)]),
    ("def g():\n    y = f(1)\n    def inner(): return y\ng()", [("y",)]),
]


class Spy:
    """Notes to which names the result of each call goes."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, ...]] = []

    def _note(self, *args: object, **kwargs: object) -> Spy:
        import sys

        frame = sys._getframe(1)
        self.seen.append(targets(frame.f_code, frame.f_lasti))
        return self

    m = _note

    def two(self) -> tuple[Spy, Spy]:
        import sys

        frame = sys._getframe(1)
        self.seen.append(targets(frame.f_code, frame.f_lasti))
        return self, self


for _name in ("__call__", "__add__", "__iadd__", "__neg__", "__getitem__", "__lt__"):
    setattr(Spy, _name, FunctionType(Spy._note.__code__, {"targets": targets, "__builtins__": __builtins__}))


@pytest.mark.parametrize("source, expected", CALLS, ids=[source for source, _ in CALLS])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_where_results_go(source: str, expected: list[tuple[str, ...]]) -> None:
    spy = Spy()
    exec(compile(source, "<cell>", "exec"), {"f": spy})
    assert spy.seen == expected


def test_names_follow_the_line(session: Session) -> None:
    session.run("%%fluid data\nx = layers.data('image', shape=[4])")
    session.run("%%fluid net\nh = layers.fc(x, 3)\nh = layers.fc(h, 2)\nlayers.fc(h, 1)\nz = h + layers.relu(h)")
    block = fluid.default_main_program().global_block()
    assert [p.name for p in block.all_parameters()] == [
        "h.w_0", "h.b_0", "h.w_1", "h.b_1", "net.fc_0.w_0", "net.fc_0.b_0",
    ]  # fmt: skip
    assert session.names["h"].name == "h_1"
    assert session.names["z"].name == "z"
    assert session.names["x"].name == "image"


def test_plain_cells_have_fluids_names(session: Session) -> None:
    session.run("x = layers.data('x', shape=[4])\nh = layers.fc(x, 3)")
    assert fluid.default_main_program().all_parameters()[0].name == "fc_0.w_0"


def test_names_read_and_bound() -> None:
    names: dict[str, object] = {}
    exec("size = 3\ndef net(): return size + deep()\ndef deep(): return far", names)
    code = compile(
        "import os as system\nfor i in range(3): h = net()\ndef f():\n    global g\n    g = near", "", "exec"
    )
    assert {"net", "size", "deep", "far", "near"} <= names_read(code, names)
    assert names_bound(code) == {"system", "i", "h", "f", "g"}


@pytest.mark.parametrize(
    "made, read, change",
    [
        ("class C: size = 5", "C.size", "C.size = 7"),
        ("class B: size = 5\nclass C(B): pass", "C.size", "B.size = 7"),
        ("class B: size = 5\nclass C(B): pass", "C.size", "C.size = 7"),
        ("class C: size = 5\nc = C()", "c.size", "C.size = 7"),
        ("class C(list): size = 5\nc = C()", "c.size", "C.size = 7"),
        ("class C:\n    size = 5\n    def of(self): return self.size\nc = C()", "c.of()", "C.size = 7"),
        ("class C:\n    size = 5\n    @classmethod\n    def of(cls): return cls.size", "C.of()", "C.size = 7"),
        ("class C:\n    class D: size = 5", "C.D.size", "C.D.size = 7"),
        ("class C: size = 5\ndef size(): return C.size", "size()", "C.size = 7"),
        ("class C:\n    def of(self): return 5\nc = C()", "c.of()", "C.of = lambda self: 7"),
        ("import types\nC = types.ModuleType('C')\nC.size = 5", "C.size", "C.size = 7"),
    ],
)
def test_an_attribute_of_a_class_that_is_read_rebuilds(session: Session, made: str, read: str, change: str) -> None:
    session.run(made)
    session.run("%%fluid data\nx = layers.data('x', [4])")
    session.run(f"%%fluid net\nh = layers.fc(x, size={read})")
    session.run(change)
    assert "built again: net" in session.run("%%fluid data\nx = layers.data('x', [4])")
    assert fluid.default_main_program().all_parameters()[0].shape == (4, 7)
    assert "built again" not in session.run("%%fluid data\nx = layers.data('x', [4])")


def test_an_attribute_that_a_cell_sets_builds_it_once(session: Session) -> None:
    session.run("class C:\n    count = 0\n    @classmethod\n    def more(cls):\n        cls.count += 1")
    session.run("%%fluid data\nx = layers.data('x', [4])")
    session.run("%%fluid net\nC.more(); C.size = C.count\nh = layers.fc(x, size=C.size)")
    for source in ("C.size = 9", "C.count = 9"):
        session.run(source)
        assert "built again" not in session.run("%%fluid data\nx = layers.data('x', [4])")
    assert fluid.default_main_program().all_parameters()[0].shape == (4, 1)


def test_a_variable_that_is_kept_in_a_class(session: Session) -> None:
    session.run("class C: pass\nsize = 5")
    session.run("%%fluid data\nC.x = layers.data('x', [4])")
    session.run("%%fluid net\nh = layers.fc(C.x, size=size)")
    for shape in (5, 7):
        session.run(f"size = {shape}")
        assert "stale" not in session.run("%%fluid data\nC.x = layers.data('x', [4])")
        assert fluid.default_main_program().all_parameters()[0].shape == (4, shape)
    session.run("%%fluid data\nC.x = layers.data('x', [3])")
    session.run("%fluid undo")
    assert "stale" not in session.run("%%fluid more\nlayers.data('y', [3])")


@pytest.mark.parametrize(
    "made",
    [
        "class Net:\n    def build(self, x): return layers.fc(x, size)\nnet = Net().build",
        "import functools\ndef build(x, a): return layers.fc(x, size)\nnet = functools.partial(build, a=1)",
        "def twice(f):\n    def inner(x): return f(x)\n    return inner\n@twice\ndef net(x): return layers.fc(x, size)",
        "class Net:\n    def __call__(self, x): return layers.fc(x, size)\nnet = Net()",
        "parts = {'fc': [lambda x: layers.fc(x, size)]}\ndef net(x): return parts['fc'][0](x)",
        "class Net:\n    @staticmethod\n    def build(x): return layers.fc(x, size)\ndef net(x): return Net.build(x)",
    ],
    ids=["method", "partial", "decorator", "object", "containers", "static method"],
)
def test_a_name_that_is_read_through_other_objects_rebuilds(session: Session, made: str) -> None:
    session.run(f"size = 5\n{made}")
    session.run("%%fluid data\nx = layers.data('x', [4])")
    session.run("%%fluid net\nh = net(x)")
    session.run("size = 7")
    session.run("%%fluid data\nx = layers.data('x', [4])")
    assert fluid.default_main_program().all_parameters()[0].shape == (4, 7)
