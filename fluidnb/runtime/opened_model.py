"""``fluid.open``: a saved model with its parameters, ready to run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidnb.arguments import checked
from fluidnb.errors import EnforceNotMet, FluidError, NotBuiltYet, NotFound, OpTypeError, OpValueError, near
from fluidnb.files.atomic_write import atomic_write
from fluidnb.files.safetensors import write_safetensors
from fluidnb.op import all_ops, get_op, has_op, infer_compile
from fluidnb.program import Program, Variable
from fluidnb.program.sub_blocks import each_op
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.model_edits import PASSES, extracted, renamed, without_ends
from fluidnb.runtime.model_files import CONFIGS, MODEL, PARAMS, ModelFiles, find_config, find_model, read_program
from fluidnb.runtime.parameter_files import load_parameters
from fluidnb.runtime.save_load import is_persistable, path_of, save_vars
from fluidnb.runtime.scope import Scope, scope_guard
from fluidnb.utils.representations import repr_html
from fluidnb.values import CPUPlace, VarType, dtypes

if TYPE_CHECKING:
    from fluidnb.data.processing import ProcessingConfig

#: Format -> its files.
FORMATS = {
    "pdmodel": ("{}.pdmodel", "{}.pdiparams"), "programdesc": (MODEL, PARAMS), "safetensors": ("{}.safetensors",),
    "onnx": ("{}.onnx",),
}  # fmt: skip


#: Operators that differ between training and inference.
_TRAINED = ("batch_norm", "dropout")


class OpenedModel:
    """A saved model: its program, its parameters, what is fed and what is fetched.

    Attributes:
        path: file of the program.
        program: the program; what is edited runs.
        scope: the parameters.
        feeds: the variables that are fed.
        fetches: the variables that are computed.
        unknown: operators that are not here, with their counts; the program is shown, and cannot run.
        unconverted: operations of Paddle 3, or nodes of ONNX, that have no counterpart, with their counts.
        dropped: attributes of Paddle 3's operations without a counterpart, with their counts.
        config_file: the file beside it that describes the processing of images; None where there is none, and for a
            part of a model.
    """

    def __init__(self, files: ModelFiles, place: Any = None) -> None:
        saved = read_program(files)
        self.path, self.program, self.dropped = files.program, saved.program, saved.dropped
        self.unconverted = saved.unknown
        block = saved.program.global_block()
        self.feeds: list[Variable] = [block.var(name) for name in saved.feeds]
        self.fetches: list[Variable] = [block.var(name) for name in saved.fetches]
        self.unknown = Counter(op.optype for _, _, op in each_op(saved.program.desc) if not has_op(op.optype))
        self.scope = Scope()
        self.executor = Executor(CPUPlace() if place is None else place)
        self.config_file = find_config(self.path)
        self._processing: ProcessingConfig | None = None  # read late: importing fluidnb.data takes time
        self.parameters: list[Variable] = [v for v in saved.program.list_vars() if is_persistable(v)]
        with scope_guard(self.scope):
            if saved.parameters is None:
                load_parameters(self.executor, files, self.parameters)
            else:
                for key, value in saved.parameters.items():
                    self.scope.var(key).get_tensor().set(value, self.executor.place)
        _check_order(self.program, self.scope, files)

    @checked
    def run(self, feed: Any, fetch_list: Any = None) -> list[np.ndarray]:
        """Runs the model.

        Args:
            feed: array for each feed, by name; for a model with one feed, the array.
            fetch_list: variables to return, or their names; default `fetches`.

        Returns:
            An array for each variable.

        Raises:
            NotBuiltYet: the program has operators that are not here, or operations without a counterpart.
            OpValueError: a name, shape or dtype that the program does not take.
        """
        if not isinstance(feed, Mapping):
            if len(self.feeds) != 1:
                names = ", ".join(v.name for v in self.feeds)
                raise OpTypeError(
                    f"The model takes {len(self.feeds)} arrays.", expected=f"a dict with {names}",
                    received=type(feed).__name__, hint=f'run({{"{names.split(", ")[0]}": …}}).',
                )  # fmt: skip
            feed = {self.feeds[0].name: feed}
        if not self.unknown:  # else the executor names the operator and its line
            self._require_converted()
        wanted = self.fetches if fetch_list is None else fetch_list
        return self.executor.run(self.program, feed=dict(feed), fetch_list=wanted, scope=self.scope)

    @property
    def processing(self) -> ProcessingConfig:
        """Processing of images and results, by the file beside the model: ``inference.yml``, ``infer_cfg.yml``, ….

        Raises:
            NotFound: there is no such file.
            MissingPackage: PyYAML is not installed.
            EnforceNotMet: the file is damaged, or is about something else.
        """
        if self.config_file is None:
            raise NotFound(
                f"There is no description of images beside {self.path}.", expected=", ".join(CONFIGS),
                hint="model.run takes arrays that are prepared.",
            )  # fmt: skip
        if self._processing is None:
            from fluidnb.data.processing import read_config

            self._processing = read_config(self.config_file)
        return self._processing

    @checked
    def preprocess(self, image: Any) -> dict[str, np.ndarray]:
        """Prepares images as the file beside the model says: resized, cropped, normalized, channels first.

        Args:
            image: path of an image, or uint8 of (height, width, 3) with red, green and blue; or a list of them.

        Returns:
            An array for each feed, for `run`.

        Raises:
            NotFound: there is no such file.
            NotBuiltYet: it has a step that is not here.
            OpValueError: the model takes something else too, or images have different sizes.

        Example:
            >>> import os, tempfile
            >>> y = fluid.layers.reduce_mean(fluid.layers.data("x", [3, 2, 2]), [2, 3])
            >>> exe = fluid.Executor(fluid.CPUPlace()); folder = tempfile.mkdtemp()
            >>> names = fluid.io.save_inference_model(folder, ["x"], [y], exe)
            >>> with open(os.path.join(folder, "inference.yml"), "w") as file:
            ...     length = file.write("PreProcess: {transform_ops: [{ResizeImage: {size: 2}}]}\\n"
            ...                         "PostProcess: {Topk: {topk: 1, label_list: [red, green, blue]}}")
            >>> model = fluid.open(folder)
            >>> feed = model.preprocess(np.full((4, 4, 3), [10, 60, 30], "uint8")); feed["x"].shape
            (1, 3, 2, 2)
            >>> print(model.postprocess(model.run(feed))[0][0])
            60.0000  1  green
        """
        from fluidnb.data.processing import preprocess

        config, names = self.processing, [v.name for v in self.feeds]
        arrays = preprocess(config, image)
        of_images = [v.name for v in self.feeds if len(v.shape) == 4]
        if "image" not in names and len(of_images) == 1:
            arrays[of_images[0]] = arrays.pop("image")
        missing = [name for name in names if name not in arrays]
        if missing:
            raise OpValueError(
                f"{config.path} does not say how to compute {', '.join(missing)}.", expected=", ".join(names),
                received=", ".join(arrays), hint="prepare the arrays yourself, and use model.run.",
            )  # fmt: skip
        return {v.name: arrays[v.name].astype(dtypes.np_dtype(v.dtype), copy=False) for v in self.feeds}

    @checked
    def postprocess(self, arrays: Sequence[np.ndarray], images: Any = None) -> list[Any]:
        """Reads results as the file beside the model says: the best classes with names, characters, boxes, text.

        Args:
            arrays: what `run` returned for `fetches`.
            images: the images, as `preprocess` takes them: corners of regions of text are then in their pixels, else in
                those of the map that the model computed.

        Returns:
            For each image a list of labels, boxes or regions of text, a text, or an int array with a class for each
            pixel.

        Raises:
            NotFound: there is no such file.
            NotBuiltYet: its step is not here.
            EnforceNotMet: the results do not fit the file.
        """
        from fluidnb.data.processing import postprocess

        return postprocess(self.processing, arrays, images)

    @checked
    def extract(self, fetches: Sequence[str], feeds: Sequence[str] | None = None) -> OpenedModel:
        """A part of the model: what it takes to compute some variables from some others.

        Args:
            fetches: names of the variables that it computes; `computed` lists them.
            feeds: names of the variables that it is fed; default those of this model that it needs.

        Returns:
            A model with its own program; parameters have the same memory.

        Raises:
            NotFound: there is no such variable.
            OpValueError: the fetches need something else too.

        Example:
            >>> import tempfile
            >>> h = fluid.layers.relu(fluid.layers.data("x", [2])); y = fluid.layers.scale(h, 2.0)
            >>> exe = fluid.Executor(fluid.CPUPlace()); folder = tempfile.mkdtemp()
            >>> names = fluid.io.save_inference_model(folder, ["x"], [y], exe)
            >>> part = fluid.open(folder).extract(["scale_0.tmp_0"], ["relu_0.tmp_0"])
            >>> part.run(np.array([[1.0, -2.0]], "float32"))[0]
            array([[ 2., -4.]], dtype=float32)
        """
        return extracted(self, [v.name for v in self.feeds] if feeds is None else list(feeds), list(fetches))

    @checked
    def rename(self, names: Mapping[str, str]) -> OpenedModel:
        """The model with other names of variables: feeds, fetches, parameters or any others.

        Args:
            names: old name -> new name.

        Raises:
            NotFound: there is no variable of an old name.
            OpValueError: there is one of a new name.
        """
        return renamed(self, names)

    @checked
    def apply(self, *passes: str) -> OpenedModel:
        """The model after passes, one after the other; `fluidnb.passes.diff.diff` of the two programs shows them.

        Args:
            *passes: ``fold_constants``: what depends on parameters alone becomes a parameter; ``fold_batch_norm``:
                batch normalization becomes part of the convolution before it.

        Raises:
            OpValueError: there is no such pass.
        """
        model = self
        for name in passes:
            if name not in PASSES:
                raise OpValueError(
                    f"There is no pass {name}.", expected=", ".join(PASSES), received=name, hint=near(name, PASSES)
                )
            model = PASSES[name](model)
        return model

    @checked
    def training_program(self, batch_norm: bool = False) -> Program:
        """A copy of the program to append a loss and an optimizer to; it has the same parameters.

        `run` and `save` are about `program`, which stays: after training they have the new values.

        Args:
            batch_norm: whether batch_norm and dropout are as in training: statistics of each batch, which update the
                running ones; else they are as in inference.

        Example:
            >>> import tempfile
            >>> y = fluid.layers.fc(fluid.layers.data("x", [2]), 1)
            >>> exe = fluid.Executor(fluid.CPUPlace()); out = exe.run(fluid.default_startup_program())
            >>> folder = tempfile.mkdtemp(); names = fluid.io.save_inference_model(folder, ["x"], [y], exe)
            >>> model = fluid.open(folder); startup = fluid.Program()
            >>> with fluid.program_guard(model.training_program(), startup), fluid.scope_guard(model.scope):
            ...     y = fluid.default_main_program().global_block().var(model.fetches[0].name)
            ...     loss = fluid.layers.mean(fluid.layers.square(y))
            ...     out = fluid.optimizer.SGD(0.1).minimize(loss, startup, model.training_program().all_parameters())
            ...     out = exe.run(startup)
            ...     losses = [exe.run(feed={"x": np.ones((1, 2), "float32")}, fetch_list=[loss])[0] for _ in range(2)]
            >>> bool(losses[1] < losses[0])
            True
        """
        program = without_ends(self.program)
        block = program.desc.blocks[0]
        written = {name for _, _, op in each_op(program.desc) for name in op.output_arg_names()}
        for name, var in block.vars.items():  # Paddle 2 does not mark parameters
            if var.persistable() and var.type() == VarType.LOD_TENSOR:
                var.set_is_parameter(name not in written)
        for _, _, op in each_op(program.desc) if batch_norm else ():
            for name in ("is_test", "use_global_stats"):
                if op.optype in _TRAINED and name in get_op(op.optype).attrs:
                    op.set_attr(name, False)
        for home, _, op in each_op(program.desc):
            _add_intermediate(home, op)
        return program

    def computed(self) -> list[str]:
        """Names of the variables that every run of the main block computes, in order; all may be fetched.

        Example:
            >>> import tempfile
            >>> y = fluid.layers.scale(fluid.layers.relu(fluid.layers.data("x", [2])), 2.0)
            >>> exe = fluid.Executor(fluid.CPUPlace()); folder = tempfile.mkdtemp()
            >>> names = fluid.io.save_inference_model(folder, ["x"], [y], exe)
            >>> fluid.open(folder).computed()
            ['relu_0.tmp_0', 'scale_0.tmp_0']
        """
        block = self.program.desc.blocks[0]
        names: dict[str, None] = {}
        for op in block.ops:
            if op.optype in ("feed", "fetch", "conditional_block"):  # a block that is not run computes nothing
                continue
            slots = get_op(op.optype).outputs if has_op(op.optype) else {}
            for slot, listed in op.outs.items():
                if slot not in slots or not slots[slot].intermediate:
                    names |= dict.fromkeys(listed)
        found = {name: block.find_var(name) for name in names}
        return [n for n, v in found.items() if v is not None and not v.persistable() and v.type() == VarType.LOD_TENSOR]

    @checked
    def save(self, dirname: str, to: str = "pdmodel", name: str = "inference", opset: int = 17) -> list[str]:
        """Saves the model for Paddle or ONNX, or its parameters alone.

        Args:
            dirname: the folder; created where it is missing.
            to: ``pdmodel``: ``inference.pdmodel`` and ``inference.pdiparams``, which Paddle 2 and 3 run;
                ``programdesc``: Fluid's ``__model__`` and ``__params__``; ``onnx``: an ONNX model, in which a feed
                ``x`` of sequences is a batch [batch, time, …] and ``x.lengths``; ``safetensors``: the parameters.
            name: what the files are called, without their endings.
            opset: the set of ONNX's operators, from 13 on; newer ones have more operators.

        Returns:
            The files; of an ONNX model over 2 GB also ``NAME.onnx.data``, which has its large tensors.

        Raises:
            NotBuiltYet: the program has operations that have no counterpart in Paddle 2, or in ONNX.
            OpValueError: another format or opset.
            EnforceNotMet: a file cannot be written.
        """
        if to not in FORMATS:
            raise OpValueError(
                f"There is no format {to}.", expected=", ".join(FORMATS), received=to, hint=near(to, FORMATS)
            )
        names = [file.format(name) for file in FORMATS[to]]
        if to == "safetensors":
            values = {v.name: np.asarray(self.scope.var(v.name).get_tensor()) for v in self.parameters}
            write_safetensors(path_of(dirname, names[0]), values)
            return [path_of(dirname, names[0])]
        self._require_converted()
        if to == "onnx":
            return self._save_onnx(path_of(dirname, names[0]), opset)
        with scope_guard(self.scope):
            save_vars(self.executor, dirname, self.program, vars=self.parameters, filename=names[1])
        data = self.program.desc.serialize_to_string()
        with atomic_write(path_of(dirname, names[0]), parents=True, size=len(data)) as file:
            file.write(data)
        return [os.path.join(dirname, n) for n in names]

    def _require_converted(self) -> None:
        """Raises where an operation of Paddle 3 has no counterpart, or one that would compute something else."""
        if self.unconverted:
            listed = ", ".join(f"{n} {kind}" for kind, n in self.unconverted.most_common())
            raise NotBuiltYet(
                f"{self.path} cannot be converted: it has {listed}.", expected="operations with a counterpart",
                received=listed, hint="model.program shows the others; model.save(…, to=\"safetensors\") works.",
            )  # fmt: skip

    def _save_onnx(self, path: str, opset: int) -> list[str]:
        """Writes an ONNX model; its files."""
        from fluidnb.onnx import exporter

        values = {v.name: np.asarray(self.scope.var(v.name).get_tensor()) for v in self.parameters}
        names = [[v.name for v in listed] for listed in (self.feeds, self.fetches)]
        return exporter.save(exporter.export(self.program, names[0], names[1], values, opset), path)

    def __str__(self) -> str:
        return "\n".join("  ".join((f"{title:8}", text)).rstrip() for title, text in self.facts())

    def __repr__(self) -> str:
        return f"<OpenedModel {self.path}: {self.facts()[1][1]}>"

    def facts(self) -> list[tuple[str, str]]:
        """Facts of the model, as rows of a title and a text."""
        count = sum(1 for _ in each_op(self.program.desc))
        numbers = sum(int(np.prod(v.shape)) for v in self.parameters)
        size = sum(int(np.prod(v.shape)) * dtypes.np_dtype(v.dtype).itemsize for v in self.parameters)
        blocks = len(self.program.desc.blocks)
        rows = [
            ("model", self.path),
            ("program", f"{count} operators in {blocks} block{'s' * (blocks > 1)}, "
             f"{len(self.parameters)} parameters of {numbers:,} numbers ({size / 1e6:.2f} MB)"),
            *(("feed", _declared(v)) for v in self.feeds), *(("fetch", _declared(v)) for v in self.fetches),
        ]  # fmt: skip
        if self.unknown:
            known = [definition.type for definition in all_ops()]
            hints = {kind: near(kind, known) for kind in self.unknown}
            texts = (f"{n} {kind}" + f" ({hints[kind]})" * bool(hints[kind]) for kind, n in self.unknown.most_common())
            rows.append(("unknown", ", ".join(texts)))
        if self.unconverted:
            rows.append(("unmatched", ", ".join(f"{n} {name}" for name, n in self.unconverted.most_common())))
        if self.dropped:
            rows.append(("dropped", ", ".join(f"{n} {name}" for name, n in self.dropped.most_common())))
        return rows + processing_facts(self.config_file)

    def _repr_html_(self) -> str | None:
        return repr_html(self)


def _check_order(program: Program, scope: Scope, files: ModelFiles) -> None:
    """Refuse variances below 0: files of parameters by order have no names that would show a swap."""
    for _, _, op in each_op(program.desc):
        for name in op.ins.get("Variance", []) if op.optype == "batch_norm" else ():
            variable = scope.find_var(name)
            value = None if variable is None else np.asarray(variable.get_tensor())
            if value is not None and value.size and float(value.min()) < 0:
                raise EnforceNotMet(
                    f'"{name}" is a variance, and has {value.min():.3g}: the parameters are in another order.',
                    op=op.label(), expected="0 or more", received=f"{value.min():.3g}",
                    hint=f"use the parameters that were saved with {files.program}.",
                )  # fmt: skip


def processing_facts(path: str | None) -> list[tuple[str, str]]:
    """The processing that a file beside a model describes, as rows of a title and a text; none without a file."""
    if path is None:
        return []
    from fluidnb.data.processing import read_config

    try:
        return [("images", path), *read_config(path).facts()]
    except FluidError as error:  # the model runs without it
        return [("images", f"{path} is not read. {error.summary}" + f" {error.hint}" * bool(error.hint))]


def _add_intermediate(block: BlockDesc, op: OpDesc) -> None:
    """Declare the results that an inference model leaves out and that the gradient of an operator reads."""
    definition = get_op(op.optype) if has_op(op.optype) else None
    if definition is None or definition.grad is None:
        return
    left_out = [n for n, slot in definition.outputs.items() if slot.intermediate and not op.outs.get(n)]
    if not left_out or definition.infer is None:
        return
    for slot in left_out:
        name = f"{op.output_arg_names()[0]}.{slot}"
        block.add_var(VarDesc(name))
        op.set_output(slot, [name])
    infer_compile(definition, op, block)


def _declared(var: Variable) -> str:
    return f"{var.name}: {dtypes.dtype_name(var.dtype)}{list(var.shape)}"


@checked
def open_model(
    path: str, place: Any = None, model_filename: str | None = None, params_filename: str | None = None
) -> OpenedModel:
    """Open a saved model: Fluid's folder, Paddle 2's ``.pdmodel``, Paddle 3's ``.json``, or an ONNX model.

    ``fluid.open`` is its name in the package. Operators that are not here are listed in ``unknown``. A file with all
    parameters (``.pdiparams``, ``__params__``) has their shapes and dtypes by order, and no names: tensors of one shape
    that are swapped in it are not noticed, but for a variance that gets negative numbers.

    Args:
        path: a folder, the files' common beginning (``saved/inference``), or one of the files.
        place: where it runs; default ``CPUPlace()``.
        model_filename: file of the program in the folder, where it has another name.
        params_filename: the one file of all parameters, where it has another name.

    Returns:
        The model: ``program``, ``feeds``, ``fetches``, ``scope``, ``run(feed)``.

    Raises:
        EnforceNotMet: there is no model, or a file is cut off, damaged, or does not belong to the program.

    Example:
        >>> import tempfile
        >>> y = fluid.layers.scale(fluid.layers.data("x", [2]), 2.0)
        >>> exe = fluid.Executor(fluid.CPUPlace()); folder = tempfile.mkdtemp()
        >>> names = fluid.io.save_inference_model(folder, ["x"], [y], exe)
        >>> model = fluid.open(folder); [v.name for v in model.feeds]
        ['x']
        >>> model.run(np.array([[1.0, 2.0]], "float32"))[0]
        array([[2., 4.]], dtype=float32)
    """
    return OpenedModel(find_model(path, model_filename, params_filename), place)
