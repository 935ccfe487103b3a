"""Text rendering of the roles of distributed training."""

from collections.abc import Sequence

from fluidnb.memory.stats import size_text
from fluidnb.viz.base.styled_text import Line, columns
from fluidnb.viz.roles.model import Link, Role, RolesPicture, RoleState

#: Variables of a server that are listed.
_SHOWN = 6


def roles_lines(picture: RolesPicture, width: int = 0) -> list[Line]:
    """Each role with its variables, and what flows.

    Args:
        width: of the terminal; 0 for any.
    """
    lines: list[Line] = [[("roles", "bold"), (f"  {picture.words}", "dim")]]
    links = {link.server: link for link in picture.links}
    for role in picture.trainers:
        lines.append([(role.name, "forward"), *_in(role.state)])
    lines += [[("  " + word, "")] for word in picture.trainers[0].words]
    for role in picture.servers:
        lines += [[(title(role), "optimizer"), *_in(role.state)], [("  " + "; ".join(role.words), "")]]
        rows: list[list[Line]] = [
            [[("  " + row.name, "name")], [(row.facts, "")], [(size_text(row.size), "dim")]]
            for row in role.held[:_SHOWN]
        ]
        lines += columns(rows, width)
        if len(role.held) > _SHOWN:
            lines.append([(f"  and {len(role.held) - _SHOWN} more, {size_text(role.size)} in all", "dim")])
        lines += [[(word, "")] for word in link_words(links[role.name])]
    return lines


def title(role: Role) -> str:
    """The name of a role, with the endpoint of a server where that is another one."""
    known = not role.endpoint or role.endpoint.replace(":", "") == role.name
    return role.name if known else f"{role.name} ({role.endpoint})"


def link_words(link: Link) -> list[str]:
    """The flow between a server and each trainer in one step, as lines."""
    rows = [f"  and rows of {name}" for name in link.rows]
    gives = f"  gives {size_text(link.parameters)} of parameters"
    return [f"  gets {size_text(link.gradients)} of gradients", *rows, gives]


def state_rows(states: Sequence[RoleState]) -> list[list[str]]:
    """Cells of a table of the roles of a run: name, state, steps, rate, values, bytes."""
    rows = []
    for state in states:
        rows.append([
            state.name, state.state, "" if state.steps is None else f"step {state.steps:,}",
            "" if state.rate is None else f"{state.rate:,.0f} samples/s",
            "  ".join(f"{name} {value:.4g}" for name, value in state.values.items()),
            f"sent {size_text(state.sent)}", f"received {size_text(state.received)}",
        ])  # fmt: skip
    return rows


def state_lines(states: Sequence[RoleState], width: int = 0) -> list[Line]:
    """A line for each role of a run."""
    rows: list[list[Line]] = []
    for (name, *cells), state in zip(state_rows(states), states, strict=True):
        style = "optimizer" if state.steps is None else "forward"
        mark = "warn" if state.state in ("failed", "paused") else ""
        rows.append([[(name, style)], [(cells[0], mark)], *([(cell, "")] for cell in cells[1:])])
    return columns(rows, width)


def state_words(state: RoleState) -> list[str]:
    """The state of a role in a few phrases."""
    _, where, steps, rate, values, sent, received = state_rows([state])[0]
    return [word for word in (f"{where} {steps}".strip(), rate, values, f"{sent}, {received}") if word]


def _in(state: RoleState | None) -> Line:
    return [] if state is None else [("  " + "  ".join(state_words(state)), "dim")]
