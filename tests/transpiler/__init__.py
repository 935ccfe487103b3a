"""Tests of the transpilers."""
