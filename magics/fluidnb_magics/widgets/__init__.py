"""Widgets of sessions, programs and scopes, for notebooks. They hold no logic.

A widget is a Python class over `NotebookWidget`, with a script and a style in ``static/``: no build step, no download.
This package is imported when the first widget is shown.
"""
