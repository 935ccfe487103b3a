"""The session behind the magics: cells, the programs that they build, runs and training."""
