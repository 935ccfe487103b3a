"""Files that run inside Paddle's own environment cannot be imported here."""

collect_ignore_glob = ["paddle_*.py"]
