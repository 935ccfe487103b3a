"""Descriptions of operators, blocks, variables and programs, and their bytes."""

import unittest

import paddle.fluid.core as core
import paddle.fluid.proto.framework_pb2 as framework_pb2
from paddle.fluid.framework import Program


class TestOpDesc(unittest.TestCase):
    def test_slots_and_attributes(self):
        block = core.ProgramDesc().block(0)
        op = block.append_op()
        op.set_type("anything")
        op.set_input("X", ["a", b"b"])
        op.set_output("Out", ["c"])
        self.assertEqual(op.input("X"), ["a", "b"])
        self.assertEqual((op.input_names(), op.output_arg_names()), (["X"], ["c"]))
        for name, value, kind in (
            ("one", 1, core.AttrType.INT),
            ("half", 0.5, core.AttrType.FLOAT),
            ("word", "w", core.AttrType.STRING),
            ("yes", True, core.AttrType.BOOL),
            ("ones", [1, 1], core.AttrType.INTS),
            ("halves", [0.5, 0.25], core.AttrType.FLOATS),
            ("words", ["v", "w"], core.AttrType.STRINGS),
            ("answers", [True, False], core.AttrType.BOOLS),
            ("far", 2 ** 40, core.AttrType.LONG),
        ):
            op._set_attr(name, value)
            self.assertEqual((op.attr(name), op.attr_type(name)), (value, kind))
            self.assertTrue(op.has_attr(name))
        self.assertEqual(len(op.attr_names()), 9)

    def test_blocks_in_attributes(self):
        program = core.ProgramDesc()
        inner = program.append_block(program.block(0))
        op = program.block(0).append_op()
        op.set_type("while")
        op.set_block_attr("sub_block", inner)
        op.set_blocks_attr("others", [program.block(0), inner])
        self.assertEqual(op._block_attr_id("sub_block"), 1)
        self.assertEqual(op._blocks_attr_ids("others"), [0, 1])

    def test_renaming(self):
        op = core.ProgramDesc().block(0).append_op()
        op.set_type("sum")
        op.set_input("X", ["a", "b"])
        op.set_output("Out", ["c"])
        op._rename_input("a", "d")
        op._rename_output("c", "e")
        self.assertEqual((op.input_arg_names(), op.output_arg_names()), (["d", "b"], ["e"]))

    def test_defaults_come_with_the_check(self):
        op = core.ProgramDesc().block(0).append_op()
        op.set_type("mul")
        self.assertFalse(op.has_attr("y_num_col_dims"))
        op.check_attrs()
        self.assertEqual((op.attr("x_num_col_dims"), op.attr("y_num_col_dims")), (1, 1))
        op._set_attr("x_num_col_dims", "two")
        with self.assertRaises((TypeError, ValueError)):
            op.check_attrs()


class TestInfer(unittest.TestCase):
    def tensor(self, block, name, shape=None):
        var = block.var(name)
        var.set_type(core.VarDesc.VarType.LOD_TENSOR)
        if shape is not None:
            var.set_shape(shape)
        return var

    def test_shape_of_a_product(self):
        block = core.ProgramDesc().block(0)
        self.tensor(block, b"x", [-1, 13])
        self.tensor(block, b"w", [13, 4])
        out = self.tensor(block, b"out")
        op = block.append_op()
        op.set_type("mul")
        op.set_input("X", ["x"])
        op.set_input("Y", ["w"])
        op.set_output("Out", ["out"])
        op.check_attrs()
        op.infer_shape(block)
        self.assertEqual(out.shape(), [-1, 4])

    def test_type_of_a_sparse_gradient(self):
        block = core.ProgramDesc().block(0)
        for name, shape in (("w", [50, 4]), ("ids", [-1, 1]), ("out@GRAD", [-1, 4])):
            self.tensor(block, name, shape).set_dtype(core.VarDesc.VarType.FP32)
        block.var("ids").set_dtype(core.VarDesc.VarType.INT64)
        grad = self.tensor(block, "w@GRAD")
        op = block.append_op()
        op.set_type("lookup_table_grad")
        for slot, name in (("W", "w"), ("Ids", "ids"), ("Out@GRAD", "out@GRAD")):
            op.set_input(slot, [name])
        op.set_output("W@GRAD", ["w@GRAD"])
        op._set_attr("is_sparse", True)
        op.infer_var_type(block)
        self.assertEqual(grad.type(), core.VarDesc.VarType.SELECTED_ROWS)


class TestBlockDesc(unittest.TestCase):
    def test_operators(self):
        block = core.ProgramDesc().block(0)
        second, third = block.append_op(), block.append_op()
        first = block._prepend_op()
        between = block._insert_op(2)
        self.assertEqual([block.op(i) for i in range(block.op_size())], [first, second, between, third])
        block._remove_op(1, 3)
        self.assertEqual([block.op(i) for i in range(block.op_size())], [first, third])

    def test_variables(self):
        program = core.ProgramDesc()
        block = program.block(0)
        inner = program.append_block(block)
        names = [b"u", "v", b"w"]
        made = [block.var(name) for name in names]
        self.assertEqual(set(block.all_vars()), set(made))
        self.assertIs(block.find_var(b"v"), made[1])
        self.assertIs(inner.find_var_recursive(b"v"), made[1])
        self.assertTrue(inner.has_var_recursive(b"u"))
        self.assertFalse(inner.has_var(b"u"))
        block._rename_var(b"u", b"t")
        self.assertEqual(made[0].name(), "t")
        block._remove_var(b"w")
        self.assertIsNone(block.find_var("w"))

    def test_forward_block(self):
        program = core.ProgramDesc()
        forward = program.append_block(program.block(0))
        backward = program.append_block(program.block(0))
        backward._set_forward_block_idx(forward.id)
        self.assertEqual(backward.get_forward_block_idx(), 1)
        self.assertEqual((backward.parent, backward.id), (0, 2))


class TestVarDesc(unittest.TestCase):
    def test_a_tensor(self):
        var = core.ProgramDesc().block(0).var(b"rows")
        var.set_type(core.VarDesc.VarType.SELECTED_ROWS)
        var.set_shape([3, 2])
        var.set_dtype(core.VarDesc.VarType.INT32)
        var.set_persistable(True)
        self.assertEqual((var.shape(), var.dtype(), var.persistable()), ([3, 2], core.VarDesc.VarType.INT32, True))

    def test_a_reader(self):
        var = core.ProgramDesc().block(0).var(b"reader")
        var.set_type(core.VarDesc.VarType.READER)
        var.set_shapes([[2, 3], [4]])
        var.set_dtypes([core.VarDesc.VarType.FP32, core.VarDesc.VarType.INT64])
        var.set_lod_levels([2, 0])
        self.assertEqual(var.shapes(), [[2, 3], [4]])
        self.assertEqual(var.dtypes(), [core.VarDesc.VarType.FP32, core.VarDesc.VarType.INT64])
        self.assertEqual(var.lod_levels(), [2, 0])


class TestBytes(unittest.TestCase):
    def program(self):
        program = Program()
        block = program.global_block()
        x = block.create_var(name="x", shape=[-1, 3], dtype="float32")
        y = block.create_var(name="y", dtype="float32")
        block.append_op(type="relu", inputs={"X": [x]}, outputs={"Out": [y]})
        return program

    def test_messages_read_what_descs_write(self):
        program = self.program()
        message = framework_pb2.ProgramDesc.FromString(program.desc.serialize_to_string())
        self.assertTrue(message.IsInitialized())
        self.assertEqual([v.name for v in message.blocks[0].vars], ["x", "y"])
        op = framework_pb2.OpDesc.FromString(program.desc.block(0).op(0).serialize_to_string())
        self.assertTrue(op.IsInitialized())
        self.assertEqual(op.type, "relu")
        self.assertFalse(framework_pb2.OpDesc().IsInitialized())
        block = framework_pb2.BlockDesc.FromString(program.desc.block(0).serialize_to_string())
        var = framework_pb2.VarDesc.FromString(program.desc.block(0).find_var(b"y").serialize_to_string())
        self.assertEqual((block.idx, list(var.type.lod_tensor.tensor.dims)), (0, [-1, 3]))

    def test_a_desc_is_filled_from_bytes(self):
        data = self.program().desc.serialize_to_string()
        made, filled = core.ProgramDesc(data), core.ProgramDesc()
        filled.append_block(filled.block(0))
        filled.parse_from_string(data)
        filled.flush()
        self.assertEqual(filled.num_blocks(), 1)
        self.assertEqual(made.serialize_to_string(), filled.serialize_to_string())
        with self.assertRaises(ValueError):
            core.ProgramDesc(b"no program")

    def test_ends_of_a_program(self):
        program = self.program()
        block = program.global_block()
        feed = block.create_var(name="feed", type=core.VarDesc.VarType.FEED_MINIBATCH, persistable=True)
        fetch = block.create_var(name="fetch", type=core.VarDesc.VarType.FETCH_LIST, persistable=True)
        block._prepend_op(type="feed", inputs={"X": [feed]}, outputs={"Out": ["x"]}, attrs={"col": 0})
        block.append_op(type="fetch", inputs={"X": ["y"]}, outputs={"Out": [fetch]}, attrs={"col": 0})
        self.assertEqual(program.desc.get_feed_target_names(), ["x"])
        self.assertEqual(program.desc.get_fetch_target_names(), ["y"])


if __name__ == "__main__":
    unittest.main()
