"""The scripts are run by ``test_scripts.py``: they import paddle, which is there only then."""

collect_ignore = ["scripts"]
