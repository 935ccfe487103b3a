"""All operators have CUDA kernels but those that declare why they have none."""

from __future__ import annotations

from fluidnb.op import all_ops
from fluidnb.viz import plain
from fluidnb_kernels.lab.catalog import catalog_html, catalog_lines, read_catalog


def with_kernel() -> set[str]:
    """The operators of ours that have a CUDA kernel."""
    return {d.type for d in all_ops() if any(k.place == "cuda" for k in d.kernels)}


def ours() -> set[str]:
    """The operators of ours."""
    return {d.type for d in all_ops() if d.module.startswith("fluidnb_kernels.")}


def host_only() -> dict[str, str]:
    """The operators of ours that declare why they have none."""
    return {d.type: d.host_only for d in all_ops() if d.host_only and d.type in ours()}


def test_every_operator_has_a_kernel_or_a_reason() -> None:
    missing = ours() - with_kernel() - host_only().keys()
    assert sorted(missing) == [], "a kernel is missing, and the operator declares no host_only"


def test_no_operator_has_a_kernel_and_a_reason_for_having_none() -> None:
    assert sorted(with_kernel() & host_only().keys()) == []


def test_a_reason_is_a_phrase() -> None:
    assert [t for t, reason in host_only().items() if not reason[0].islower() or reason.endswith(".")] == []


def test_a_row_says_what_there_is() -> None:
    [relu], [feed] = read_catalog("relu"), read_catalog("feed")
    assert (relu.family, relu.state, relu.file) == ("activation", "cuda", "activation.cu")
    assert "float16" in relu.cuda and "float64" in relu.cpu
    assert (feed.state, feed.cuda, feed.host) == ("host only", (), host_only()["feed"])
    assert feed.host in plain(catalog_lines([feed]))


def test_a_kernel_of_both_places_names_the_files_behind_its_verbs() -> None:
    files = {op: read_catalog(op)[0].file for op in ("concat", "slice", "sequence_expand")}
    assert files == {"concat": "strided_copy.cu", "slice": "strided_copy.cu", "sequence_expand": "row_maps.cu"}


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
