"""Helpers that all pictures share: styled text, HTML, SVG, PNG, curves, and where to display."""
