"""Mistakes of users, and their messages."""
