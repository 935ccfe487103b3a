"""Programs as C source code that needs neither Python nor fluidnb."""

from fluidnb.code_generator.generator import CodeGenerator

__all__ = ["CodeGenerator"]
