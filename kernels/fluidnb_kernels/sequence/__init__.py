"""Operators over sequences: rows that lie one sequence after the other, without padding."""
