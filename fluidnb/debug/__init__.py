"""Looking into runs: the profiler."""
