"""Convolutions of images and volumes, and their transposes."""
