"""Tensors: dims, memory, single elements, offsets, arrays of tensors."""

import unittest

import numpy
import paddle.v2.framework.core as core

place = core.CPUPlace()


class TestTensor(unittest.TestCase):
    def setUp(self):
        self.tensor = core.Scope().var("t").get_tensor()

    def test_int(self):
        self.tensor.set_dims([10, 7])
        self.tensor.alloc_int(place)
        array = numpy.array(self.tensor)
        self.assertEqual((10, 7), array.shape)
        self.assertEqual(core.DataType.INT32, self.tensor.dtype())
        array[3, 5] = 9
        self.tensor.set(array, place)
        self.assertEqual(9, numpy.array(self.tensor)[3, 5])

    def test_dims_before_and_after(self):
        self.assertFalse(self.tensor._is_initialized())
        self.tensor.set_dims([2, 3])
        self.assertEqual([2, 3], self.tensor.get_dims())
        self.tensor.alloc_float(place)
        self.assertEqual([2, 3], self.tensor.shape())
        self.tensor.set_dims([4, 5])
        self.tensor.alloc_float(place)
        self.assertEqual((4, 5), numpy.array(self.tensor).shape)

    def test_fewer_elements(self):
        self.tensor.set(numpy.arange(6), place)
        self.tensor.set_dims([0])
        self.assertEqual(0, numpy.array(self.tensor).size)

    def test_elements(self):
        self.tensor.set(numpy.zeros((2, 2), "float32"), place)
        self.tensor.set_float_element(3, 1.5)
        self.assertEqual(1.5, self.tensor.get_float_element(3))
        self.assertEqual(1.5, numpy.array(self.tensor)[1, 1])
        self.tensor.set(numpy.zeros((2, 2), "float64"), place)
        self.tensor.set_double_element(0, 0.1)
        self.assertEqual(0.1, self.tensor.get_double_element(0))
        self.assertRaises(core.EnforceNotMet, self.tensor.get_float_element, 0)

    def test_half_precision(self):
        halves = numpy.array([1.5, -2.0], "float16")
        self.tensor.set(halves.view("uint16"), place)
        self.assertEqual(core.DataType.FP16, self.tensor.dtype())
        self.assertTrue((numpy.array(self.tensor) == halves).all())

    def test_place(self):
        self.tensor.set(numpy.ones(1), place)
        self.assertEqual(str(place), str(self.tensor._place()))


class TestLoDTensor(unittest.TestCase):
    def test_offsets(self):
        tensor = core.LoDTensor()
        tensor.set(numpy.random.random((4, 4, 6)), place)
        self.assertEqual(0, len(tensor.lod()))
        tensor.set_lod([[0, 2, 4]])
        self.assertListEqual([[0, 2, 4]], tensor.lod())
        tensor.set_lod([[]])
        self.assertEqual(0, len(tensor.lod()))

    def test_a_lod_to_begin_with(self):
        tensor = core.LoDTensor([[0, 2, 3], [0, 2, 4, 5]])
        tensor.set_dims([5, 2])
        tensor.alloc_float(place)
        self.assertListEqual([[0, 2, 3], [0, 2, 4, 5]], tensor.lod())

    def test_offsets_that_count_rows_are_refused(self):
        rows = [[0, 2, 5], [0, 2, 4, 5]]
        self.assertRaises(ValueError, core.LoDTensor, rows)
        self.assertRaises(ValueError, core.LoDTensor().set_lod, rows)

    def test_nobody_counts_the_rows(self):
        tensor = core.LoDTensor()
        tensor.set(numpy.zeros((2, 3), "float32"), place)
        tensor.set_lod([[0, 1, 1]])
        self.assertListEqual([[0, 1, 1]], tensor.lod())

    def test_what_is_no_lod(self):
        tensor = core.LoDTensor()
        self.assertRaises(ValueError, tensor.set_lod, [[0, 3, 2]])


class TestLoDTensorArray(unittest.TestCase):
    def test_get_set(self):
        array = core.Scope().var("array").get_lod_tensor_array()
        self.assertEqual(0, len(array))
        for i in range(3):
            tensor = core.LoDTensor()
            tensor.set(numpy.array([[i]], "float32"), place)
            array.append(tensor)
        self.assertEqual(3, len(array))
        tensor = core.LoDTensor([[0, 1]])
        tensor.set(numpy.array([[7]], "float32"), place)
        array[1] = tensor
        self.assertEqual(7, numpy.array(array[1])[0, 0])
        self.assertListEqual([[0, 1]], array[1].lod())


if __name__ == "__main__":
    unittest.main()
