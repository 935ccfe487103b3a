"""ONNX models as programs, and programs as ONNX models, by the package onnx."""
