"""Programs, blocks and operators; copies, roles and texts."""

import unittest

import paddle.compat as cpt
import paddle.fluid as fluid
import paddle.fluid.core as core
import paddle.fluid.framework as framework
import paddle.fluid.layers as layers
from decorators import prog_scope
from paddle.fluid.framework import Program, default_main_program, default_startup_program, program_guard

OpRole = core.op_proto_and_checker_maker.OpRole


class TestBlocks(unittest.TestCase):
    def test_nesting(self):
        program = Program()
        first = program._create_block()
        second = program._create_block()
        self.assertEqual((first.parent_idx, second.parent_idx), (0, 1))
        program._rollback()
        self.assertEqual(program.current_block().idx, 1)
        third = program._create_block(parent_idx=0)
        self.assertEqual((third.idx, third.parent_idx, program.num_blocks), (3, 0, 4))
        third._set_forward_block_idx(1)
        self.assertEqual(third.forward_block_idx, 1)
        program._sync_with_cpp()
        third._sync_with_cpp()

    def test_operators_come_and_go(self):
        block = Program().global_block()
        x = block.create_var(name="x", shape=[2], dtype="float32")
        ops = [block.append_op(type="scale", inputs={"X": x}, outputs={"Out": x}, attrs={"scale": 2.0})]
        block._prepend_op(type="relu", inputs={"X": x}, outputs={"Out": x})
        block._insert_op(1, type="tanh", inputs={"X": x}, outputs={"Out": x})
        self.assertEqual([op.type for op in block.ops], ["relu", "tanh", "scale"])
        self.assertEqual([op.type for op in block._slice_ops(0, 2)], ["relu", "tanh"])
        block._remove_op(1)
        self.assertEqual(block.ops[1], ops[0])
        self.assertEqual((ops[0].idx, x.op), (1, ops[0]))

    def test_variables_are_found_and_renamed(self):
        program = Program()
        outer = program.global_block()
        x = outer.create_var(name="x", shape=[2], dtype="float32")
        op = outer.append_op(type="relu", inputs={"X": x}, outputs={"Out": "y"})
        inner = program._create_block()
        self.assertIs(inner._var_recursive("x"), x)
        self.assertIsNone(inner._find_var_recursive("z"))
        with self.assertRaises(ValueError):
            inner.var("x")
        outer._rename_var("y", "z")
        self.assertEqual(op.output("Out"), ["z"])
        outer._remove_var("z")
        self.assertFalse(outer.has_var("z"))


class TestOperators(unittest.TestCase):
    def test_attributes(self):
        block = Program().global_block()
        x = block.create_var(name="x", shape=[5, 10], dtype="float32")
        w = block.create_var(name="w", shape=[10, 8], dtype="float32")
        out = block.create_var(name="out", shape=[5, 8], dtype="float32")
        op = block.append_op(type="mul", inputs={"X": [x], "Y": w}, outputs={"Out": [out]}, attrs={"x_num_col_dims": 1})
        self.assertEqual((op.input_names, op.input("Y"), op.output_arg_names), (["X", "Y"], ["w"], ["out"]))
        self.assertTrue(op.has_attr("y_num_col_dims"))
        self.assertEqual(op.attr_type("y_num_col_dims"), core.AttrType.INT)
        op._set_attr("x_num_col_dims", 2)
        self.assertEqual(op.all_attrs()["x_num_col_dims"], 2)
        op._rename_input("w", "v")
        op._rename_output("out", "product")
        self.assertEqual((op.input("Y"), op.output("Out")), (["v"], ["product"]))
        self.assertTrue(op.has_kernel("mul"))

    def test_errors_in_fluids_words(self):
        block = Program().global_block()
        with self.assertRaises(ValueError) as caught:
            block.append_op(type="no_such_op")
        self.assertEqual(
            cpt.get_exception_message(caught.exception), 'Operator "no_such_op" has not been registered.'
        )
        with self.assertRaises(ValueError):
            block.append_op()

    @prog_scope()
    def test_a_block_in_an_attribute(self):
        i = layers.fill_constant(shape=[1], dtype="int64", value=0)
        n = layers.fill_constant(shape=[1], dtype="int64", value=3)
        cond = layers.less_than(x=i, y=n)
        loop = layers.While(cond=cond)
        with loop.block():
            layers.increment(x=i)
            layers.less_than(x=i, y=n, cond=cond)
        op = default_main_program().global_block().ops[-1]
        self.assertEqual((op.type, op._block_attr_id("sub_block")), ("while", 1))
        self.assertIs(op._block_attr("sub_block"), default_main_program().block(1))

    def test_protos(self):
        proto = framework.OpProtoHolder.instance().get_op_proto("mul")
        self.assertEqual([slot.name for slot in proto.inputs], ["X", "Y"])
        self.assertTrue(all(each.IsInitialized() for each in framework.get_all_op_protos()))
        with self.assertRaises(ValueError):
            framework.OpProtoHolder.instance().get_op_proto("no_such_op")


class TestCopies(unittest.TestCase):
    def net(self):
        x = layers.data(name="x", shape=[4], dtype="float32")
        hidden = layers.dropout(layers.fc(input=x, size=8, param_attr=fluid.ParamAttr(learning_rate=0.5)), 0.5)
        return x, hidden, layers.mean(layers.fc(input=hidden, size=1))

    @prog_scope()
    def test_clone_for_test(self):
        _, _, loss = self.net()
        test = default_main_program().clone(for_test=True)
        fluid.optimizer.SGD(learning_rate=0.1).minimize(loss)
        dropout = [op for op in test.global_block().ops if op.type == "dropout"]
        self.assertTrue(dropout[0].attr("is_test"))
        self.assertNotIn("sgd", [op.type for op in test.global_block().ops])
        parameters = test.global_block().all_parameters()
        self.assertEqual(parameters[0].optimize_attr["learning_rate"], 0.5)

    @prog_scope()
    def test_facts_of_parameters_are_copied(self):
        self.net()
        main = default_main_program()
        again = Program.parse_from_string(main.desc.serialize_to_string())
        again._copy_param_info_from(main)
        again._copy_data_info_from(main)
        self.assertEqual(again.global_block().all_parameters()[0].optimize_attr["learning_rate"], 0.5)
        self.assertTrue(again.global_block().var("x").is_data)

    @prog_scope()
    def test_prune(self):
        _, hidden, loss = self.net()
        pruned = default_main_program()._prune([hidden])
        self.assertEqual(pruned.global_block().ops[-1].type, "dropout")
        ops = default_main_program().global_block().ops
        desc = core.prune(default_main_program().desc, [[0, len(ops) - 1]])
        self.assertEqual(desc.block(0).op_size(), len(ops))
        self.assertLess(len(default_main_program()._inference_optimize().global_block().ops), len(ops) + 1)
        self.assertEqual(core.inference_optimize(default_main_program().desc).num_blocks(), 1)

    @prog_scope()
    def test_texts(self):
        _, _, loss = self.net()
        main = default_main_program()
        brief, full = main.to_string(throw_on_error=True), main.to_string(True, with_details=True)
        self.assertIn('type: "dropout"', brief)
        self.assertIn(loss.name, full)
        self.assertEqual(str(main), main.to_string(False))
        self.assertIn(f'name: "{loss.name}"', loss.to_string(True, with_details=True))
        self.assertIn("stop_gradient: False", loss.to_string(True, with_details=True))
        weight = main.global_block().all_parameters()[0].to_string(True, with_details=True)
        self.assertIn("optimize_attr: {'learning_rate': 0.5}", weight)
        self.assertNotIn("optimize_attr", main.global_block().all_parameters()[0].to_string(True))
        self.assertIn("dropout", main.global_block().to_string(True))
        self.assertIn("mean", main.global_block().ops[-1].to_string(True))
        unfinished = core.ProgramDesc()
        unfinished.block(0).append_op()
        with self.assertRaises(ValueError):
            unfinished.serialize_to_string()


class TestRoles(unittest.TestCase):
    def test_guards(self):
        program = Program()
        block = program.global_block()
        x = block.create_var(name="x", shape=[1], dtype="float32")

        def roles():
            block.append_op(type="relu", inputs={"X": x}, outputs={"Out": x})
            maker = core.op_proto_and_checker_maker
            op = block.ops[-1]
            has = op.has_attr(maker.kOpRoleVarAttrName())
            return op.attr(maker.kOpRoleAttrName()), op.attr(maker.kOpRoleVarAttrName()) if has else []

        self.assertEqual(roles(), (OpRole.Forward, []))
        with program._optimized_guard([x, "x@GRAD"]):
            self.assertEqual(roles(), (OpRole.Optimize, ["x", "x@GRAD"]))
            self.assertEqual(program._op_role_var, ["x", "x@GRAD"])
        with program._lr_schedule_guard():
            self.assertEqual(roles(), (OpRole.LRSched, []))
        program._op_role = OpRole.Backward
        self.assertEqual(roles(), (OpRole.Backward, []))
        program.set_op_role_var(["x"])
        self.assertEqual(roles()[1], ["x"])

    @prog_scope()
    def test_name_scopes(self):
        x = layers.data(name="x", shape=[1], dtype="float32")
        with fluid.name_scope("outer"):
            layers.relu(x)
            with fluid.name_scope("inner"):
                layers.tanh(x)
        with fluid.name_scope("outer"):
            layers.relu(x)
        attr = core.op_proto_and_checker_maker.kOpNameScopeAttrName()
        found = [op.attr(attr) for op in default_main_program().global_block().ops]
        self.assertEqual(found, ["/outer/", "/outer/inner/", "/outer_1/"])


class TestDefaults(unittest.TestCase):
    def test_programs_are_switched(self):
        main, startup = Program(), Program()
        before = framework.switch_main_program(main), framework.switch_startup_program(startup)
        try:
            self.assertIs(default_main_program(), main)
            self.assertIs(framework._startup_program_, startup)
            self.assertIs(default_startup_program(), startup)
        finally:
            framework.switch_main_program(before[0])
            framework.switch_startup_program(before[1])
        with program_guard(main_program=main, startup_program=startup):
            x = layers.data(name="x", shape=[2])
        self.assertIs(framework.get_var("x", main), x)
        self.assertFalse(fluid.in_dygraph_mode())

    def test_seeds(self):
        program = Program()
        program.random_seed = 90
        with self.assertRaises(ValueError):
            program.random_seed = "ninety"
        self.assertEqual((program.random_seed, program.clone().random_seed), (90, 90))

    def test_constants(self):
        self.assertEqual(framework.grad_var_name("x"), "x" + framework.GRAD_VAR_SUFFIX)
        self.assertEqual(core.empty_var_name(), framework.EMPTY_VAR_NAME)
        self.assertEqual((framework.TEMP_VAR_NAME, framework.ZERO_VAR_SUFFIX), ("@TEMP@", "@ZERO"))
        self.assertTrue(framework.dtype_is_floating(framework.convert_np_dtype_to_dtype_("float16")))
        self.assertEqual(framework.cpu_places(2)[1], fluid.CPUPlace())


if __name__ == "__main__":
    unittest.main()
