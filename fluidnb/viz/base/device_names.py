"""Names of devices, and the available places."""

from fluidnb.errors import EnforceNotMet
from fluidnb.values import CPUPlace, CUDAPlace, DeviceContext, Place


def device_name(place: Place) -> str:
    """Name and backend of the device of a place; empty for the host and for an unavailable place."""
    try:
        context = DeviceContext.get(place)
    except EnforceNotMet:
        return ""
    return ", ".join(filter(None, (context.name, context.backend)))


def places_here() -> tuple[list[Place], tuple[str, str]]:
    """The host and each CUDA device; and (reason, hint) where there is no CUDA device, else empty texts."""
    try:
        count = DeviceContext.get(CUDAPlace(0)).devices
    except EnforceNotMet as error:
        return [CPUPlace()], (error.summary.rpartition(": ")[2], error.hint or "")
    return [CPUPlace(), *(CUDAPlace(i) for i in range(count))], ("", "")
