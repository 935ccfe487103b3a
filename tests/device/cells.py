"""Cells that several tests of notebooks with a device run."""

from __future__ import annotations

NET = """%%fluid net --place cuda
x = layers.data("x", shape=[20])
h = layers.fc(x, 16, act="relu")
loss = layers.mean(h)
fluid.optimizer.SGD(0.1).minimize(loss)
"""
