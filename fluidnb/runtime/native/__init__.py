"""Native code: consecutive calls of a segment compiled to one C function, with the bits that numpy computes."""
