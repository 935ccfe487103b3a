"""Normalisation: values less their mean, over their standard deviation."""
