"""Third-party packages with kernels, which importing this module imports; why it is a module, `all_kernels` says."""

from importlib.metadata import entry_points

from fluidnb.values import kernel_packages

for _point in entry_points(group=kernel_packages.GROUP):
    if _point.value.partition(":")[0] != "fluidnb_kernels":
        _point.load()
