"""Tests of the tools for testing operators."""
