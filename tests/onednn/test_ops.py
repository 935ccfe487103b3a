"""The tests of convolution and pooling, by oneDNN."""

from tests.ops import test_conv, test_pool

for _module in (test_conv, test_pool):
    globals().update({name: value for name, value in vars(_module).items() if name.lower().startswith("test")})
