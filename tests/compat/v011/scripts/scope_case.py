"""Scopes and the numbers, tensors and networks in them."""

import unittest

import paddle.v2.fluid.core
from paddle.v2.fluid.default_scope_funcs import (
    enter_local_scope,
    find_var,
    get_cur_scope,
    leave_local_scope,
    scoped_function,
    var,
)

paddle_c = paddle.v2.fluid.core


class TestScope(unittest.TestCase):
    def test_parents_are_seen(self):
        scope = paddle_c.Scope()
        self.assertIsNone(scope.find_var("a"))
        a = scope.var("a")
        kid = scope.new_scope()
        self.assertTrue(kid.find_var("a") is a)
        self.assertIsNone(kid.find_var("b"))
        kid.var("b")
        self.assertIsNone(scope.find_var("b"))

    def test_kids_go(self):
        scope = paddle_c.Scope()
        kid = scope.new_scope()
        kid.var("inside")
        self.assertEqual(["inside"], kid.local_var_names())
        scope.drop_kids()
        self.assertEqual([], list(scope.kids))

    def test_numbers(self):
        scope = paddle_c.Scope()
        number = scope.var("number")
        self.assertFalse(number.is_int())
        number.set_int(10)
        self.assertTrue(number.is_int())
        self.assertEqual(10, number.get_int())
        other = scope.var("other")
        other.set_float(2.5)
        self.assertTrue(other.is_float())
        self.assertAlmostEqual(2.5, other.get_float())

    def test_a_variable_keeps_its_kind(self):
        held = paddle_c.Scope().var("x")
        held.get_tensor()
        self.assertRaises(paddle_c.EnforceNotMet, held.get_selected_rows)
        self.assertRaises(paddle_c.EnforceNotMet, held.get_net)

    def test_a_network_in_a_variable(self):
        held = paddle_c.Scope().new_var("net")
        net = held.get_net()
        net.complete_add_op(True)
        self.assertTrue(held.get_net() is net)
        self.assertEqual("plain_net", net.type())


class TestGlobalScope(unittest.TestCase):
    def test_its_old_name(self):
        from paddle.v2.fluid.executor import g_scope, global_scope

        self.assertTrue(g_scope is global_scope())
        self.assertRaises(AttributeError, getattr, paddle.v2.fluid.executor, "h_scope")


class TestDefaultScope(unittest.TestCase):
    def test_local_scopes(self):
        made = var("outer")
        enter_local_scope()
        self.assertTrue(find_var("outer") is made)
        var("inner")
        leave_local_scope()
        self.assertIsNone(get_cur_scope().find_var("inner"))

    def test_scoped_function(self):
        def inside():
            i = var("i")
            self.assertFalse(i.is_int())
            i.set_int(3)
            self.assertEqual(3, find_var("i").get_int())

        for _ in range(3):
            scoped_function(inside)
        self.assertIsNone(find_var("i"))


if __name__ == "__main__":
    unittest.main()
