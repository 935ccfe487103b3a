"""CUDAPlace on the emulator, as the tests of devices have it."""

from tests.device.conftest import cuda

__all__ = ["cuda"]
