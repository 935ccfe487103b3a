"""Long use: memory stays flat, faults leave the next run right."""
