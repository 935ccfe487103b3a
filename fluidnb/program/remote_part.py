"""Part of a variable that a parameter server keeps."""

#: Endpoint of the server, name of the part there, its shape.
RemotePart = tuple[str, str, tuple[int, ...]]
