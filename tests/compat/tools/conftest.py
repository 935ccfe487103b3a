"""The scripts are run by ``test_tool_scripts.py``: they import paddle, which is there only then."""

collect_ignore_glob = ["*.py"]
