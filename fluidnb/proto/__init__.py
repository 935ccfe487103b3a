"""The program as protobuf: messages, stable text, and their Python wrappers."""
