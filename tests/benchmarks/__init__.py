"""Speed beside PaddlePaddle 2.6.2, PyTorch and JAX:  python -m tests.benchmarks  (make bench)."""
