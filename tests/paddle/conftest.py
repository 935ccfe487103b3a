"""What runs inside Paddle's own environment cannot be imported here."""

collect_ignore = ["paddle_side.py", "paddle_sweep.py", "paddle_files.py", "paddle_schedules.py"]
