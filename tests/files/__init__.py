"""Files on disk: atomic writes, private folders."""
