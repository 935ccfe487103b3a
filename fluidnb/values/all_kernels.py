"""All kernel packages, which importing this module imports.

It is a module for what Python does with one: other threads wait until it is complete, the thread that imports it goes
on when a kernel looks up an operator while it is defined, and after an error the next import tries again.
"""

from fluidnb.values import kernel_packages

kernel_packages.import_all_own()
kernel_packages.load_others()
