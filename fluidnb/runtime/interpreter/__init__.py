"""The interpreter: runs a lowered program operator by operator, forwards and backwards."""
