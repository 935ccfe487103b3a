"""Readers inside programs: operators that open and decorate them, and ``read``."""
