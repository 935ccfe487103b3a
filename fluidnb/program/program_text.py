"""How a program shows itself: protobuf text, readable code, one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fluidnb.program import hooks, origin
from fluidnb.program.codes import program_lines
from fluidnb.program.printing import proto_text
from fluidnb.proto.desc import ProgramDesc

if TYPE_CHECKING:
    from fluidnb.program.program import Program


class ProgramText:
    """The texts of a `Program`."""

    desc: ProgramDesc

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The description as protobuf text.

        Args:
            throw_on_error: whether required fields that are not set are an error.
            with_details: whether to write the readable form instead, with what only Python knows.

        Returns:
            Many lines; the protobuf text ends with the version.

        Raises:
            OpValueError: required fields are not set.

        Example:
            >>> from fluidnb.program import Program
            >>> Program().to_string().splitlines()[-3:]
            ['version {', '  version: 0', '}']
        """
        origin.saw_list(cast("Program", self))
        if with_details:
            return "\n".join(program_lines(self.desc, details=True)) + "\n"
        return proto_text(self.desc.to_pb(), throw_on_error)

    def _to_readable_code(self) -> str:
        """The program as readable code: a line for each variable and operator."""
        origin.saw_list(cast("Program", self))
        return "\n".join(program_lines(self.desc)) + "\n"

    def short(self) -> str:
        """How messages call the program: ``the default main program``, or what is in it."""
        from fluidnb.program.defaults import called

        return called(cast("Program", self)) or f"a program of {len(self.desc.blocks[0].ops)} operators"

    def __str__(self) -> str:
        return self.to_string(False)

    def __repr__(self) -> str:
        blocks = self.desc.blocks
        ops, variables = sum(len(b.ops) for b in blocks), sum(len(b.vars) for b in blocks)
        counts = f"{len(blocks)} block(s), {variables} variable(s), {ops} operator(s)"
        return f"Program: {counts}, version {self.desc.version}"

    def _repr_html_(self) -> str | None:
        return None if hooks.repr_html is None else hooks.repr_html(self)
