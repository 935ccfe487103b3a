"""Tests of distributed training."""
