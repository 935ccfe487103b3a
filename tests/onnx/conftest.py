"""The script that writes the stored models needs torch, which the tests do not."""

collect_ignore = ["make_models.py"]
