"""Convolutions by oneDNN, a library for processors, where it is installed: library MKLDNN of Fluid."""
