"""What the tests share: the pytest plugin `session` and its parts."""
