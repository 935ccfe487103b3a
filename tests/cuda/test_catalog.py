"""Which operators have CUDA kernels: all of them but those of a closed list."""

from __future__ import annotations

from fluidnb.op import all_ops
from fluidnb.viz import plain
from fluidnb_kernels.cuda.host_only import HOST_ONLY
from fluidnb_kernels.lab.catalog import catalog_html, catalog_lines, read_catalog


def with_kernel() -> set[str]:
    """The operators of ours that have a CUDA kernel."""
    return {d.type for d in all_ops() if any(k.place == "cuda" for k in d.kernels)}


def ours() -> set[str]:
    """The operators of ours."""
    return {d.type for d in all_ops() if d.module.startswith("fluidnb_kernels.")}


def test_every_operator_has_a_kernel_or_a_reason() -> None:
    missing = ours() - with_kernel() - HOST_ONLY.keys()
    assert sorted(missing) == [], "a kernel is missing, and the operator is not of the closed list"


def test_no_operator_has_a_kernel_and_a_reason_for_having_none() -> None:
    assert sorted(with_kernel() & HOST_ONLY.keys()) == []


def test_the_list_names_operators_that_there_are() -> None:
    assert sorted(HOST_ONLY.keys() - ours()) == []
    assert all(reason and reason[0].islower() for reason in HOST_ONLY.values())


def test_a_row_says_what_there_is() -> None:
    [relu], [feed] = read_catalog("relu"), read_catalog("feed")
    assert (relu.family, relu.state, relu.file) == ("activation", "cuda", "activation.cu")
    assert "float16" in relu.cuda and "float64" in relu.cpu
    assert (feed.state, feed.cuda, feed.host) == ("host only", (), HOST_ONLY["feed"])


def test_every_kernel_has_a_file() -> None:
    rows = read_catalog()
    assert [r.op for r in rows if r.state == "cuda" and not r.file] == []
    assert len(rows) == len({r.op for r in rows}) >= len(ours())


def test_the_faces() -> None:
    rows = read_catalog()
    text = plain(catalog_lines(rows))
    assert "activation" in text and "host only" in text and len(text.splitlines()) < 40
    one = plain(catalog_lines(read_catalog("control"), 100))
    assert "while_grad" in one and max(map(len, one.splitlines())) <= 100
    page = catalog_html(rows)
    assert page.count("<details>") == len({r.family for r in rows}) and "relu_grad" in page
