"""The program as protobuf: messages, stable text, and the Python objects that stand for them."""
