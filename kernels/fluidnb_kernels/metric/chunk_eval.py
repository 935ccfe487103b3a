"""chunk_eval: how many chunks of tagged sequences are found."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op, values_of
from fluidnb_kernels.emit import store
from fluidnb_kernels.rules import fits, whole_numbers
from fluidnb_kernels.sequences import offsets_of, ranges, require_lod, within

#: Scheme -> what the tags of a chunk type are called, in order: Begin, Inside, End, Single.
SCHEMES = {"IOB": "BI", "IOE": "IE", "IOBES": "BIES", "plain": "-"}


@dataclass(frozen=True, slots=True)
class Tags:
    """The meaning of the numbers of tags."""

    scheme: str  # a key of `SCHEMES`
    types: int  # how many chunk types there are; a higher number means that a word is in no chunk
    excluded: tuple[int, ...]  # chunk types that do not count

    def type_of(self, labels: Array) -> Array:
        """The chunk type of each label."""
        return labels // len(SCHEMES[self.scheme])

    def starts(self, labels: Array, firsts: Array) -> Array:
        """Whether a chunk starts at each label."""
        letters = np.array([ord(letter) for letter in SCHEMES[self.scheme]])
        kind, tag = self.type_of(labels), letters[labels % len(letters)]
        inside = kind < self.types
        new = np.ones(len(labels), bool)  # by the word before: another type, or a tag that opens here or closed there
        same = kind[1:] == kind[:-1]
        new[1:] = ~same | np.isin(tag[1:], [ord("B"), ord("S")]) | np.isin(tag[:-1], [ord("E"), ord("S")])
        new[firsts[firsts < len(new)]] = True
        return new & inside

    def chunks(self, labels: Array, firsts: Array) -> Iterator[tuple[int, int, int]]:
        """First word, word behind the last one, and type of each chunk that counts."""
        kind, starts = self.type_of(labels), self.starts(labels, firsts)
        begin = np.flatnonzero(starts)
        borders = starts | (kind >= self.types)
        borders[firsts[firsts < len(borders)]] = True
        stops = np.append(np.flatnonzero(borders), len(labels))
        end = stops[np.searchsorted(stops, begin, side="right")]
        counts = ~np.isin(kind[begin], self.excluded)
        return zip(*(a[counts].tolist() for a in (begin, end, kind[begin])), strict=True)


def evaluate(tags: Tags, found: Array, right: Array, rows: Array, firsts: Array, outs: tuple[Array, ...]) -> None:
    """Compare the chunks of two taggings.

    ``outs``: precision, recall, F1 score and the numbers of chunks found, right and both; written where wanted.
    """
    mine, theirs = (set(tags.chunks(labels.reshape(-1)[rows], firsts)) for labels in (found, right))
    both = len(mine & theirs)
    counts = len(mine), len(theirs), both
    precision, recall = (both / n if n else 0.0 for n in counts[:2])
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    store(outs, (precision, recall, f1, *counts))


def _infer(c: Context) -> None:
    for slot in ("Inference", "Label"):
        whole_numbers(c, slot)
    found, right = c["Inference"], c["Label"]
    fits(c, "Inference", right.shape, "Inference's shape must be the same as Label's shape.")
    if c.has("SeqLength"):
        c.require(
            found.ndim in (2, 3) and (c["SeqLength"].size in (-1, found.shape[0]) or found.shape[0] < 0),
            "Input(SeqLength) of chunk_eval must have a length for each row of Input(Label).",
            expected="[batch, 1] with tags [batch, steps, 1]", received=list(c["SeqLength"].shape),
        )  # fmt: skip
        if c.runtime:
            within(c, "SeqLength", found.shape[1], "the steps")
    else:
        for slot in ("Inference", "Label"):
            require_lod(c, slot)
        c.require(
            c.lod("Inference") == c.lod("Label") or not c.runtime, "LoD must be the same of Inference and Label.",
            expected=[list(n) for n in c.lod("Label")] if c.runtime else "the same LoD",
            received=[list(n) for n in c.lod("Inference")] if c.runtime else "another LoD",
        )  # fmt: skip
    for slot in ("Precision", "Recall", "F1-Score"):
        c.set(slot, (1,), np.float32)
    for slot in ("NumInferChunks", "NumLabelChunks", "NumCorrectChunks"):
        c.set(slot, (1,), np.int64)


@op(
    "chunk_eval",
    inputs={
        "Inference: int64[n, 1] lod | int64[batch, steps, 1]": "the tags found; without LoD SeqLength has the lengths",
        "Label: int64[n, 1] lod | int64[batch, steps, 1]": "the right tags",
        "SeqLength?: int64[batch, 1]": "how many steps are a sequence's own",
    },
    outputs={
        "Precision": "float32 [1]: the share of the chunks found that are right",
        "Recall": "float32 [1]: the share of the right chunks that are found",
        "F1-Score": "float32 [1]: their harmonic mean",
        "NumInferChunks": "int64 [1]: how many chunks are found",
        "NumLabelChunks": "int64 [1]: how many there are",
        "NumCorrectChunks": "int64 [1]: how many are found and right",
    },
    attrs={
        "num_chunk_types": Attr("int", doc="how many chunk types there are", gt=0),
        "chunk_scheme": Attr("string", "IOB", "which tags a chunk's words have", enum=tuple(SCHEMES)),
        "excluded_chunk_types": Attr("ints", [], "chunk types that do not count"),
    },
    infer=_infer,
    guard=values_of("SeqLength"),
    dtype_slot="Inference",
    host_only="counts matches of a whole pass, one after the other",
)
def chunk_eval(b: Binder) -> None:
    """Precision = right / found; Recall = right / labelled; F1-Score = 2 P R / (P + R), counted in chunks.

    A label is ``chunk type · tags of the scheme + tag``; a chunk is right when its first word, its last word and its
    type are. ``num_chunk_types · tags of the scheme`` is a word in no chunk.

    Example:
        >>> from fluidnb.testing import run_op
        >>> found, right = ([[0], [1], [2]], [[3]]), ([[0], [1], [0]], [[3]])  # B I O against B I B
        >>> out = run_op("chunk_eval", {"Inference": found, "Label": right}, {"num_chunk_types": 1})
        >>> out["Precision"], out["Recall"]
        (array([1.], dtype=float32), array([0.5], dtype=float32))

    Source: Fluid's chunk_eval_op (the scheme of the CoNLL-2000 task's script).
    """
    found, right = b["Inference"], b["Label"]
    if b.has("SeqLength"):
        lengths = np.asarray(b["SeqLength"]).reshape(-1).astype(np.int64)
        rows = ranges(np.arange(len(lengths)) * found.shape[1], lengths)
    else:
        offsets = offsets_of(b, "Label")
        lengths, rows = np.diff(offsets), np.arange(offsets[-1])
    tags = Tags(b.attr("chunk_scheme"), b.attr("num_chunk_types"), tuple(b.attr("excluded_chunk_types")))
    outs = tuple(b[slot] for slot in b.definition.outputs)
    b(evaluate, tags, found, right, rows, np.cumsum(lengths) - lengths, outs)
