"""fluidnb with native code: the works of ``fluidnb_peer.py``, with FLAGS_native=require."""

import importlib.util
import os

_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fluidnb_peer.py")
_spec = importlib.util.spec_from_file_location("fluidnb_peer", _path)
_peer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_peer)
_peer.NATIVE = "require"


def __getattr__(name):
    """A work of fluidnb."""
    return getattr(_peer, name)
