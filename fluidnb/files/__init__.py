"""Files on disk: atomic writes, and folders that belong to one user."""
