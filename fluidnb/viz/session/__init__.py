"""Debug sessions: position, values, breakpoints, and the debugger panel."""
