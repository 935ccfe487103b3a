"""Arrays of tensors, rank tables, branches by masks and a step of a beam search, in scopes and in programs."""

import unittest

import numpy
import paddle.v2.fluid.core as core
import paddle.v2.fluid.layers as layers
from paddle.v2.fluid.executor import Executor
from paddle.v2.fluid.framework import Program, program_guard
from paddle.v2.fluid.op import Operator


class TestArrays(unittest.TestCase):
    def test_by_operators(self):
        scope, place = core.Scope(), core.CPUPlace()
        for i in range(2):
            scope.var("i").get_tensor().set(numpy.array([i], "int64"), place)
            scope.var("x").get_tensor().set(numpy.full((2, 1), i, "float32"), place)
            scope.var("array").get_lod_tensor_array()
            Operator("write_to_array", X="x", I="i", Out="array").run(scope, place)
        array = scope.find_var("array").get_lod_tensor_array()
        self.assertEqual([0.0, 1.0], [numpy.array(each)[0, 0] for each in array])
        Operator("lod_array_length", X="array", Out="n").run(scope, place)
        self.assertEqual(2, numpy.array(scope.find_var("n").get_tensor())[0])
        Operator("read_from_array", X="array", I="i", Out="y").run(scope, place)
        self.assertEqual(1.0, numpy.array(scope.find_var("y").get_tensor())[0, 0])


class TestRankTable(unittest.TestCase):
    def test_of_a_level(self):
        """Neither the shape of x nor its levels are what its declaration says."""
        program = Program()
        with program_guard(program):
            x = layers.data(name="x", shape=[100])
            table = layers.lod_rank_table(x=x, level=1)
            table.persistable = True
        tensor = core.LoDTensor()
        tensor.set(numpy.random.random(size=(9, 2)), core.CPUPlace())
        tensor.set_lod([[0, 2, 3], [0, 1, 5, 6], [0, 1, 2, 4, 6, 7, 9]])
        scope = core.Scope()
        Executor(core.CPUPlace()).run(program, scope=scope, feed={"x": tensor})
        self.assertEqual([(1, 4), (0, 1), (2, 1)], scope.find_var(table.name).get_lod_rank_table().items())

    def test_by_an_operator(self):
        scope, place = core.Scope(), core.CPUPlace()
        tensor = scope.var("x").get_tensor()
        tensor.set(numpy.arange(6).reshape(6, 1).astype("float32"), place)
        tensor.set_lod([[0, 2, 5, 6]])
        table = scope.var("table").get_lod_rank_table()
        Operator("lod_rank_table", X="x", Out="table", level=0).run(scope, place)
        self.assertEqual([(1, 3), (0, 2), (2, 1)], table.items())
        scope.var("steps").get_lod_tensor_array()
        Operator("lod_tensor_to_array", X="x", RankTable="table", Out="steps").run(scope, place)
        steps = [numpy.array(step).ravel().tolist() for step in scope.find_var("steps").get_lod_tensor_array()]
        self.assertEqual([[2, 0, 5], [3, 1], [4]], steps)

    def test_split_and_merge(self):
        program = Program()
        x = layers.data(name="x", shape=[1], main_program=program)
        mask = layers.data(name="mask", shape=[1], main_program=program)
        yes, no = layers.split_lod_tensor(input=x, mask=mask, level=0, main_program=program)
        out = layers.merge_lod_tensor(in_true=yes, in_false=no, mask=mask, x=x, level=0, main_program=program)
        values = numpy.arange(4).reshape(4, 1).astype("int32")
        chosen = numpy.array([[0], [1], [1], [0]]).astype("bool")
        found = Executor(core.CPUPlace()).run(program, feed={"x": values, "mask": chosen}, fetch_list=[yes, no, out])
        self.assertEqual([[1, 2], [0, 3], [0, 1, 2, 3]], [each.ravel().tolist() for each in found])


class TestBeamSearch(unittest.TestCase):
    def test_a_step(self):
        scope, place = core.Scope(), core.CPUPlace()
        lod = [[0, 1, 2], [0, 1, 2]]
        for name, value in (("pre_ids", numpy.array([[1], [2]], "int64")),
                            ("pre_scores", numpy.array([[0.1], [0.2]], "float32")),
                            ("ids", numpy.array([[4, 2, 5], [2, 1, 3]], "int64")),
                            ("scores", numpy.array([[0.5, 0.3, 0.2], [0.6, 0.7, 0.1]], "float32"))):  # fmt: skip
            tensor = scope.var(name).get_tensor()
            tensor.set(value, place)
            tensor.set_lod(lod)
        op = Operator("beam_search", pre_ids="pre_ids", pre_scores="pre_scores", ids="ids", scores="scores",
                      selected_ids="selected_ids", selected_scores="selected_scores", level=0, beam_size=2,
                      end_id=0)  # fmt: skip
        op.run(scope, place)
        chosen = scope.find_var("selected_ids").get_tensor()
        self.assertEqual([4, 2, 1, 2], sorted(numpy.array(chosen).ravel()[:2].tolist(), reverse=True)
                         + sorted(numpy.array(chosen).ravel()[2:].tolist()))  # fmt: skip
        self.assertEqual([0, 2, 4], chosen.lod()[1])


    def test_a_step_without_the_scores_so_far(self):
        scope, place = core.Scope(), core.CPUPlace()
        lod = [[0, 1, 2], [0, 1, 2]]
        for name, value in (("pre_ids", numpy.array([[1], [0]], "int64")),
                            ("ids", numpy.array([[4, 2, 5], [2, 1, 3]], "int64")),
                            ("scores", numpy.array([[0.5, 0.3, 0.2], [0.6, 0.7, 0.1]], "float32"))):  # fmt: skip
            tensor = scope.var(name).get_tensor()
            tensor.set(value, place)
            tensor.set_lod(lod)
        for name in ("selected_ids", "selected_scores"):
            scope.var(name)
        op = Operator("beam_search", pre_ids="pre_ids", ids="ids", scores="scores", selected_ids="selected_ids",
                      selected_scores="selected_scores", level=0, beam_size=2, end_id=0)  # fmt: skip
        op.run(scope, place)
        chosen = scope.find_var("selected_ids").get_tensor()
        self.assertEqual([2, 4], numpy.array(chosen).ravel().tolist())
        self.assertEqual([[0, 1, 2], [0, 2, 2]], chosen.lod())


if __name__ == "__main__":
    unittest.main()
