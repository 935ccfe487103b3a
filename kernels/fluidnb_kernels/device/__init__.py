"""CUDA devices: copies between them and the host."""
