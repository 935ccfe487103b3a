"""Signals to the main thread of this process, also on systems that send none to a thread."""

import _thread
import signal
import threading


def signal_main(number: signal.Signals) -> None:
    """Has the main thread handle a signal, from any thread."""
    main = threading.main_thread().ident
    if main is None:
        return
    if hasattr(signal, "pthread_kill"):  # it ends a wait for the system, too
        signal.pthread_kill(main, number)
    else:
        _thread.interrupt_main(number)
