"""Recordings as JSON within a budget of bytes: values are thinned first, then the oldest steps left out."""

import json
import zlib
from base64 import b64encode
from dataclasses import asdict, dataclass, replace
from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.viz.saved_page.recording import GONE, MOST, RecordedStep, RecordedValue, Recording, sampled
from fluidnb.viz.values.tensor_window import element_text

#: Elements of a value at most, from the most to none.
_LEVELS = (MOST, 2048, 1024, 512, 256, 128, 64, 32, 16, 8, 0)
#: Bytes of an element in the file, roughly: text of five digits, compressed and in base64.
_ELEMENT = 5.0


@dataclass(frozen=True, slots=True)
class Packed:
    """A recording as the page reads it."""

    text: str  # compressed, in base64
    steps: int  # number of steps between the first and the last position
    values: int  # number of values
    thinned: int  # number of values of which some elements are left out


def packed(data: bytes) -> str:
    """Bytes compressed, in base64: text that cannot end a script element.

    Example:
        >>> "<" in packed(b"</script>")
        False
    """
    return b64encode(zlib.compress(data, 9)).decode()


def pack(recording: Recording, capacity: int) -> Packed:
    """A recording in at most ``capacity`` characters.

    Raises:
        OpValueError: not even one step without elements fits.
    """
    while True:
        last = len(recording.steps) == 1
        for most in _LEVELS:
            if most and _guess(recording, most) > 2 * capacity:
                continue
            result = _packed(recording, most)
            if len(result.text) <= capacity:
                return result
        if last:
            raise OpValueError(
                "The file does not fit into its limit.", expected=f"at most {max(capacity, 0):,} bytes for the steps",
                received=f"{len(result.text):,} bytes for one step without elements", hint="max_bytes=... raises it.",
            )  # fmt: skip
        recording = newest(recording, len(recording.steps) // 2)


def newest(recording: Recording, count: int) -> Recording:
    """A recording with its last steps alone; the first one of them has all values as they were then."""
    dropped, steps = recording.steps[:-count], recording.steps[-count:]
    state = {(scope, name): value for step in (*dropped, steps[0]) for scope, name, value in step.wrote}
    seen = {scope for step in steps for scope in step.scopes}
    alive = tuple((*at, value) for at, value in state.items() if at[0] in seen and value != GONE)
    steps = [replace(steps[0], wrote=alive), *steps[1:]]
    used = sorted({value for step in steps for _, _, value in step.wrote} - {GONE})
    numbers = {old: new for new, old in enumerate(used)} | {GONE: GONE}
    steps = [replace(s, wrote=tuple((scope, name, numbers[v]) for scope, name, v in s.wrote)) for s in steps]
    here = max(0, recording.here - len(dropped))
    return replace(recording, steps=steps, here=here, values=[recording.values[old] for old in used])


def steps_of(recording: Recording) -> int:
    """Number of steps between the first and the last position."""
    return recording.steps[-1].position.at - recording.steps[0].position.at


def _guess(recording: Recording, most: int) -> float:
    return _ELEMENT * sum(min(value.size, most) for value in recording.values)


def _packed(recording: Recording, most: int) -> Packed:
    sources: dict[Any, int] = {}
    data = {
        "here": recording.here,
        "runs": recording.steps[-1].position.runs,
        "steps": [_step(step, sources) for step in recording.steps],
        "values": [_value(value, most) for value in recording.values],
        "stops": [asdict(stop) for stop in recording.breakpoints],
        "sources": [asdict(source) for source in sources],
    }
    text = packed(json.dumps(data, separators=(",", ":")).encode())
    thinned = sum(_kept(value, most) < value.size for value in recording.values)
    return Packed(text, steps_of(recording), len(recording.values), thinned)


def _kept(value: RecordedValue, most: int) -> int:
    array = sampled(value, most).array if most else None
    return 0 if array is None else array.size


def _step(step: RecordedStep, sources: dict[Any, int]) -> dict[str, Any]:
    """A step; the user's code is stored once."""
    source = step.position.source
    number = None if source is None else sources.setdefault(source, len(sources))
    position = {**asdict(replace(step.position, source=None, runs=())), "source": number}
    facts = {"type": step.type, "scopes": step.scopes, "wrote": step.wrote, "watches": step.watches}
    return {"position": position, **facts}


def _value(value: RecordedValue, most: int) -> dict[str, Any]:
    """A value; its elements as text, with the digits that the panel shows."""
    shown = sampled(value, most)
    data: dict[str, Any] = {"line": asdict(value.line), "shape": value.shape}
    if shown.array is not None and most:
        data["cells"] = " ".join(map(element_text, shown.array.reshape(-1).tolist()))
        if shown.array.size < value.size:
            data["kept"] = [indices.tolist() for indices in shown.kept]
    elif value.array is not None:
        data["cells"], data["kept"] = "", [[] for _ in value.shape]
    if value.sequences:
        data["sequences"] = value.sequences
    if value.parts:
        data["parts"] = [asdict(part) for part in value.parts]
    return data
