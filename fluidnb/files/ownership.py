"""Owners of files, where the system numbers its users."""

import os


def has_user_numbers() -> bool:
    """Whether files have the number of a user as owner; on Windows access lists protect them."""
    return hasattr(os, "geteuid")


def is_own(status: os.stat_result) -> bool:
    """Whether a file belongs to the user of this process."""
    return not has_user_numbers() or status.st_uid == os.geteuid()
