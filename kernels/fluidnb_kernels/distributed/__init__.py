"""Operators that move values between trainers and parameter servers, through an engine."""
