"""Widgets of sessions, programs and scopes, for notebooks; imported when the first one is shown."""
