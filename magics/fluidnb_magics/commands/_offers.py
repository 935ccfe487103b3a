"""The words that the Tab key offers: cells, blocks, programs, variables, operators, training runs."""

from fluidnb.op import all_ops
from fluidnb.runtime import global_scope
from fluidnb.viz.program.filter import FIELDS
from fluidnb_magics.session.workbench import Workbench

Words = list[str]


def cells(bench: Workbench, words: Words) -> Words:
    """The names of the cells."""
    return [placed.title for placed in bench.cells]


def blocks(bench: Workbench, words: Words) -> Words:
    """The names of the blocks."""
    return [name for main, _ in bench.programs.values() for name in bench.blocks.names(main)]


def cells_and_blocks(bench: Workbench, words: Words) -> Words:
    """The names of cells and blocks."""
    return [*cells(bench, words), *blocks(bench, words)]


def programs(bench: Workbench, words: Words) -> Words:
    """The names of the programs."""
    return list(bench.programs)


def variables(bench: Workbench, words: Words) -> Words:
    """The variables of all blocks of the default program."""
    return list(dict.fromkeys(n for b in bench.program()[0].desc.blocks for n in b.vars))


def global_variables(bench: Workbench, words: Words) -> Words:
    """The variables in the global block of the program that ``--program`` names, else of the default one."""
    name = words[words.index("--program") + 1] if "--program" in words[:-1] else None
    return list(bench.program(name if name in bench.programs else None)[0].desc.blocks[0].vars)


def scope_variables(bench: Workbench, words: Words) -> Words:
    """The variables of the global scope."""
    return list(global_scope().local_var_names())


def op_types(bench: Workbench, words: Words) -> Words:
    """The types of operators."""
    return [d.type for d in all_ops()]


def search_words(bench: Workbench, words: Words) -> Words:
    """The words for ``--search``: operator types and variables of the default program, prefixes of fields."""
    types = dict.fromkeys(op.optype for b in bench.program()[0].desc.blocks for op in b.ops)
    return [*types, *variables(bench, words), *(f"{field}:" for field in FIELDS)]


def roles(bench: Workbench, words: Words) -> Words:
    """The roles of operators."""
    from fluidnb.viz.program.model import ROLES  # pictures come with their first use

    return list(ROLES)


def folds(bench: Workbench, words: Words) -> Words:
    """The ways to fold a picture of a program."""
    from fluidnb.viz.program.collapse import FOLDS

    return list(FOLDS)


def training_runs(bench: Workbench, words: Words) -> Words:
    """The names of the training runs."""
    return [run.name for run in bench.runs]


def builder_words(bench: Workbench, words: Words) -> Words:
    """The recipes of the builder and their arguments."""
    from fluidnb_magics.session.builder import Site  # it imports all layers

    return Site(bench).completions(words)
