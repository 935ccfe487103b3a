"""Widgets: faces of sessions, programs and scopes that live in a notebook. They hold no logic.

A widget is a Python class over `Face`, and beside it in ``static/`` a script and a style, as they are: nothing is built
and nothing is fetched. This package is imported when the first widget is shown.
"""
