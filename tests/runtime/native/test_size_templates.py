"""Native code of programs that a template has bound."""

from __future__ import annotations

import pytest

from fluidnb.memory import flags
from tests.runtime.sized_networks import NETWORKS, SIZES
from tests.runtime.test_size_templates import trained


@pytest.mark.parametrize("name", NETWORKS)
def test_the_bits_of_numpy(name: str) -> None:
    """Every size is compiled."""
    flags.values["native"] = "off"
    wanted = trained(NETWORKS[name], SIZES[:8])
    flags.values["native"] = "require"
    assert trained(NETWORKS[name], SIZES[:8]) == wanted and wanted[1] == 1
