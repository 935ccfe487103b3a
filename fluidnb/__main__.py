"""``python -m fluidnb`` is the ``fluidnb`` command."""

from fluidnb.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
