"""Source locations in user code, and escapes of control characters."""
