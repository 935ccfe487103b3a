"""VLOG: leveled log lines on stderr, switched by GLOG_v and GLOG_vmodule as in Fluid."""

import fnmatch
import os
import sys
import threading
import time


class _Levels:
    """The level for everything, the levels by module pattern, and the largest of them all (for hot paths)."""

    everywhere = 0
    modules: tuple[tuple[str, int], ...] = ()
    top = 0


def init_glog(v: int | None = None, vmodule: str | None = None) -> None:
    """Selects which VLOG lines are written.

    Args:
        v: highest level to write; None reads GLOG_v from the environment (0 when unset).
        vmodule: ``pattern=level`` pairs, comma separated, matched against a module's last name or dotted path;
            None reads GLOG_vmodule.

    Example:
        >>> init_glog(10); vlog_is_on(10)
        True
        >>> init_glog(0); vlog_is_on(10)
        False
    """
    v = _number(os.environ.get("GLOG_v", "0")) if v is None else v
    pairs = (os.environ.get("GLOG_vmodule", "") if vmodule is None else vmodule).split(",")
    _Levels.everywhere = v
    _Levels.modules = tuple((name.strip(), _number(n)) for name, eq, n in (p.partition("=") for p in pairs) if eq)
    _Levels.top = max([v, *(n for _, n in _Levels.modules)])


def vlog_is_on(level: int) -> bool:
    """Whether any module logs this level; a cheap check before building a message."""
    return level <= _Levels.top


def VLOG(level: int, message: str) -> None:  # noqa: N802 - Fluid's name
    """Writes one line to stderr when the level is on for the calling module; level 0 is always on.

    Example:
        >>> VLOG(99, "only with GLOG_v=99")
    """
    if level > _Levels.top:
        return
    frame = sys._getframe(1)
    module = frame.f_globals.get("__name__", "")
    limit = _Levels.everywhere
    for pattern, n in _Levels.modules:
        if fnmatch.fnmatchcase(module.rpartition(".")[2], pattern) or fnmatch.fnmatchcase(module, pattern):
            limit = n
            break
    if level <= limit:
        now = time.time()
        clock = time.strftime("%m%d %H:%M:%S", time.localtime(now))
        file = frame.f_code.co_filename.rpartition("/")[2]
        thread = getattr(threading, "get_native_id", threading.get_ident)()  # the former is not everywhere
        place = f"{thread} {file}:{frame.f_lineno}"
        print(f"I{clock}.{int(now % 1 * 1e6):06d} {place}] {message}", file=sys.stderr)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # a broken variable of a log switch must not stop an import
        return 0


init_glog()
