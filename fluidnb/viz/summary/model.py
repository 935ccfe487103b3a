"""An object as a title and a few facts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of an object."""

    name: str
    text: str
    style: str = ""  # a key of `fluidnb.viz.base.styled_text.STYLES`


@dataclass(frozen=True, slots=True)
class Summary:
    """An object in a few facts."""

    title: str  # the name of its class
    role: str  # style of the title: ``optimizer``, ``forward`` or ``bold``
    about: str = ""  # what it is, behind the title
    facts: tuple[Fact, ...] = ()
