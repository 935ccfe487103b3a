"""The Debug Adapter Protocol: editors step through programs, forwards and backwards.

Example:
    >>> from fluidnb.dap import Adapter, ScriptSources
    >>> y = fluid.layers.relu(fluid.layers.fill_constant([2], "float32", -1.0))
    >>> d = fluid.debug(feed={}); events = []
    >>> adapter = Adapter(events.append, d, ScriptSources(lambda: d.program))
    >>> adapter.handle({"seq": 1, "type": "request", "command": "threads"})["body"]["threads"][0]["name"]
    'fluid program'
    >>> adapter.close(); d.close()
"""

from fluidnb.dap.adapter import Adapter
from fluidnb.dap.sources import ScriptSources, Sources

__all__ = ["Adapter", "ScriptSources", "Sources"]
