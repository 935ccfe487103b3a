"""Broken programs and feeds: a result or a clear error, never a crash."""
