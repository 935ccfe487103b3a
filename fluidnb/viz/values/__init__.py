"""Tensors and scopes: summaries, previews, windows into large tensors."""
