"""The tests: one folder for each room of the packages, and house, paddle, benchmarks and tools beside them."""
