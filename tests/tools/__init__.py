"""Shared by all tests: the pytest plugin `session` and its parts."""
