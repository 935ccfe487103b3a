"""The lesson on append_backward."""
