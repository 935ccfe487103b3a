"""Modules in place of slow packages; Ray's processes have this folder on their search path (`ray_start`)."""
