"""LoDTensor: values in and out, LoD, errors, and what bound programs are told."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from fluidnb import memory
from fluidnb.errors import EnforceNotMet, FluidError, OpTypeError, OpValueError
from fluidnb.values import CPUPlace, CUDAPinnedPlace, LoDTensor, LoDTensorArray, VarType
from fluidnb.values import invalidation as epoch

CPU = CPUPlace()


def filled(*shape: int, dtype: str = "float32") -> LoDTensor:
    """A tensor that counts up."""
    t = LoDTensor()
    t.set(np.arange(int(np.prod(shape))).reshape(shape).astype(dtype), CPU)
    return t


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int16", "int8", "uint8", "bool", "float16"])
def test_set_copies_into_the_pool(dtype: str) -> None:
    source = np.arange(6).reshape(2, 3).astype(dtype)
    t = LoDTensor()
    t.set(source, CPU)
    assert t.shape() == t.get_dims() == [2, 3]
    assert t._dtype() is VarType[{"bool": "BOOL", "uint8": "UINT8"}.get(dtype, dtype.upper().replace("FLOAT", "FP"))]
    assert memory.contains(CPU, np.asarray(t).ctypes.data)
    expected = source.copy()
    source[...] = 0
    assert (np.array(t) == expected).all()


def test_uint16_is_float16_bits() -> None:
    t = LoDTensor()
    t.set(np.array([0x3C00, 0xC000], "uint16"), CPU)
    assert np.array(t).tolist() == [1.0, -2.0] and t._dtype() is VarType.FP16


def test_set_keeps_the_buffer_while_shape_dtype_and_place_stay() -> None:
    t = filled(2, 3)
    buffer = t.array
    t.set(np.ones((2, 3), "float32"), CPU)
    assert t.array is buffer and (buffer == 1).all()
    for other in (np.ones((3, 2), "float32"), np.ones((3, 2), "float64")):
        t.set(other, CPU)
        assert t.array is not buffer and t.array.dtype == other.dtype
        buffer = t.array
    t.set(np.ones((3, 2)), CUDAPinnedPlace())
    assert t.array is not buffer and t._place() is CUDAPinnedPlace()


def test_asarray_shares_and_array_copies() -> None:
    t = filled(4)
    shared, copied = np.asarray(t), np.array(t)
    shared[0] = 7
    assert np.array(t)[0] == 7 and copied[0] == 0
    assert np.asarray(t, "float64").dtype == "float64"
    with pytest.raises(ValueError, match="copy"):
        np.asarray(t, "float64", copy=False)


def test_a_users_array_outlives_the_tensor() -> None:
    t = filled(100)
    view = np.asarray(t)[10:]
    t.set(np.zeros(5), CPU)
    del t
    others = [filled(100) for _ in range(5)]
    assert (view == np.arange(10, 100)).all() and others


def test_slicing_shares_rows() -> None:
    t = filled(4, 2)
    part = t[1:3]
    assert part.shape() == [2, 2] and np.array(t[0]).tolist() == [0, 1] and np.array(t[-1, 1]) == 7
    np.asarray(part)[...] = -1
    assert np.array(t)[1:3].tolist() == [[-1, -1], [-1, -1]]
    assert t._slice(1, 3).shape() == [2, 2]
    with pytest.raises(OpValueError, match="start row index must be lesser than the end row index"):
        t._slice(2, 2)
    with pytest.raises(OpValueError, match=r"expected: *rows 0\.\.4"):
        t._slice(1, 5)
    with pytest.raises(OpValueError, match="Cannot index"):
        t[9]


def test_rows_can_be_gone_through() -> None:
    assert [np.array(row).tolist() for row in filled(3, 2)] == [[0, 1], [2, 3], [4, 5]]


def test_tensors_are_copied_and_pickled_by_value() -> None:
    t = filled(3, 1)
    t.set_lod([[0, 1, 3]])
    for again in (copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        again.array[...] = 9
        assert again.lod() == [[0, 1, 3]] and again._place() is CPU and np.array(t).tolist() == [[0], [1], [2]]


def test_a_tensor_without_value_names_the_variable_and_the_way_out() -> None:
    t = LoDTensor(name="fc_0.w_0")
    assert not t._is_initialized() and t.shape() == [0] and repr(t) == str(t) == "LoDTensor(no value)"
    for use in (np.array, lambda t: t[0], lambda t: t._dtype(), lambda t: t._copy()):
        with pytest.raises(EnforceNotMet, match='Variable "fc_0.w_0" holds no memory') as e:
            use(t)
        assert "startup program" in str(e.value)
    with pytest.raises(EnforceNotMet, match="The tensor holds no memory"):
        np.array(LoDTensor())


@pytest.mark.parametrize(
    "wrong", [["a", "b"], [object()], np.array([1, 2], "uint32"), "text", None, {"a": 1}, np.array([1, "x"], object)]
)
def test_what_is_no_array_of_numbers_is_refused_and_changes_nothing(wrong: object) -> None:
    t = filled(3)
    t.name = "x"
    with pytest.raises(OpTypeError, match='value of variable "x" is not an array of numbers'):
        t.set(wrong, CPU)
    assert np.array(t).tolist() == [0, 1, 2]


def test_a_place_that_is_none_is_refused() -> None:
    with pytest.raises(OpTypeError, match="should be a Place"):
        LoDTensor().set(np.ones(3), "cpu")  # type: ignore[arg-type]


def test_lod_by_offsets_and_by_lengths() -> None:
    t = filled(5, 1)
    t.set_lod([[0, 1, 2], [0, 2, 5]])
    assert t.lod() == [[0, 1, 2], [0, 2, 5]] and t.recursive_sequence_lengths() == [[1, 1], [2, 3]]
    t.set_recursive_sequence_lengths([[4, 1]])
    assert t.lod() == [[0, 4, 5]] and t.lod_ == ((0, 4, 5),)
    t.set_lod([0, 5])
    assert t.lod() == [[0, 5]]
    t.set_lod([])
    assert t.lod() == [] and t.lod_ == ()


def test_lod_must_fit_the_rows() -> None:
    t = filled(5, 1)
    t.name = "words"
    t.set_lod([[0, 5]])
    with pytest.raises(OpValueError, match="LoD of words is invalid: the last level ends at 4, but the tensor has 5"):
        t.set_lod([[0, 4]])
    with pytest.raises(OpValueError, match="invalid"):
        t.set_recursive_sequence_lengths([[2, 2]])
    assert t.lod() == [[0, 5]]
    t.set(np.zeros((3, 1)), CPU)
    assert not t.has_valid_recursive_sequence_lengths()
    t.set_lod([[0, 1, 3]])
    assert t.has_valid_recursive_sequence_lengths()


def test_the_guides_two_level_lod() -> None:
    absolute = [[0, 5, 8, 10, 14], [0, 2, 3, 5, 7, 8, 10, 13, 14]]
    t = filled(14, 1)
    with pytest.raises(OpValueError) as e:
        t.set_lod(absolute)
    assert "[[0, 3, 5, 6, 8], [0, 2, 3, 5, 7, 8, 10, 13, 14]]" in str(e.value)
    t.set_lod(absolute, absolute=True)
    assert t.lod().to_absolute() == absolute


def test_lod_may_come_before_the_value() -> None:
    t = LoDTensor()
    t.set_lod([[0, 2, 3]])
    t.set(np.zeros((3, 1)), CPU)
    assert t.has_valid_recursive_sequence_lengths()


def test_dims_and_elements_as_gradient_checkers_use_them() -> None:
    t = LoDTensor()
    t.set_dims([2, 3])
    assert t.shape() == [2, 3] and not t._is_initialized()
    for alloc, dtype in ((t.alloc_int, "int32"), (t.alloc_double, "float64"), (t.alloc_float, "float32")):
        alloc(CPU)
        assert t.array.dtype == dtype and t.shape() == [2, 3]
    np.asarray(t)[...] = 0
    t._set_float_element(4, 1.5)
    assert t._get_float_element(4) == 1.5 and np.array(t)[1, 1] == 1.5
    with pytest.raises(EnforceNotMet, match="holds the wrong type: the tensor holds float32"):
        t._get_double_element(0)
    d = filled(3, dtype="float64")
    d._set_double_element(1, 9.0)
    assert d._get_double_element(1) == 9.0
    t.set_dims([6])
    assert t.shape() == [6] and t.numel() == 6
    t.set_dims([2, 2])  # of more elements the first ones stay
    assert np.array(t).tolist() == [[0, 0], [0, 0]]
    t.set_dims([5])  # a value that is too small goes
    assert t.shape() == [5] and not t._is_initialized()
    with pytest.raises(EnforceNotMet, match="holds no memory"):
        np.array(t)
    t.alloc_float(CPU)
    assert np.array(t).shape == (5,)


def test_a_lod_can_come_first() -> None:
    t = LoDTensor([[0, 2, 5], [0, 2, 4, 5, 5, 6]])
    assert t.lod() == [[0, 2, 5], [0, 2, 4, 5, 5, 6]] and not t._is_initialized()
    t.set(np.zeros((6, 2), "float32"), CPU)
    assert t.has_valid_recursive_sequence_lengths()
    with pytest.raises(OpValueError, match="The provided LoD is invalid"):
        LoDTensor([[0, 2, 1]])


def test_elements_by_the_names_of_version_0_11() -> None:
    t = filled(3)
    t.set_float_element(2, 4.5)
    assert t.get_float_element(2) == 4.5 and t.dtype() == t._dtype()
    d = filled(3, dtype="float64")
    d.set_double_element(1, 9.0)
    assert d.get_double_element(1) == 9.0


def test_elements_of_a_transposed_memory_count_row_major() -> None:
    t = LoDTensor(memory.empty(CPU, (2, 3), "float32", order=(1, 0)))
    np.asarray(t)[...] = [[0, 1, 2], [3, 4, 5]]
    assert [t._get_float_element(i) for i in range(6)] == [0, 1, 2, 3, 4, 5]


def test_sharing_and_copying() -> None:
    a, b = filled(4), LoDTensor()
    a.set_lod([[0, 4]])
    b._share_data_with(a)
    c = a._copy()
    a._set_float_element(0, 5)
    assert b._get_float_element(0) == 5 and b.lod() == []
    assert c._get_float_element(0) == 0 and c.lod() == [[0, 4]]


def test_bound_tensors_report_replacements_only() -> None:
    t = filled(2, 3)
    before = epoch.value
    t.set(np.ones((9, 9)), CPU)
    assert epoch.value == before  # nobody remembers it
    t.set(np.ones((2, 3), "float32"), CPU)
    t.bound = True
    t.set(np.zeros((2, 3), "float32"), CPU)
    t.set_lod([])
    assert epoch.value == before
    for k, change in enumerate(
        [
            lambda: t.set(np.zeros((4, 3), "float32"), CPU),
            lambda: t.set_lod([[0, 1, 4]]),
            lambda: t.set_recursive_sequence_lengths([[2, 2]]),
            lambda: t.set_dims([2, 6]),
            lambda: t.alloc_float(CPU),
            lambda: t._share_data_with(filled(3)),
        ],
        start=1,
    ):
        change()
        assert epoch.value == before + k


def test_repr_is_short_and_str_has_values() -> None:
    t = filled(1000, 10)
    t.set_lod([[0, 400, 1000]])
    assert repr(t) == "LoDTensor(shape=[1000, 10], dtype=float32, lod=[[0, 400, 1000]], place=CPUPlace)"
    assert "[[" in str(t) and len(str(t)) < 1000
    assert len(t) == 1000


def test_array_of_tensors() -> None:
    t = filled(2)
    array = LoDTensorArray()
    array.append(t)
    assert len(array) == array.size() == 1 and array[0] is t
    array.write(3, np.ones(2, "float32"))
    assert array.size() == 4 and not array[2]._is_initialized() and array.read(3).shape() == [2]
    for i in (4, -1):
        with pytest.raises(EnforceNotMet, match=f"Cannot read index {i} of a LoDTensorArray of size 4"):
            array.read(i)
    with pytest.raises(OpValueError, match="Cannot write at index -1"):
        array.write(-1, t)
    for put in (
        array.append,
        lambda v: array.__setitem__(0, v),
        lambda v: array.write(9, v),
        lambda v: array.insert(0, v),
        lambda v: array.extend([t, v]),
        lambda v: array.__setitem__(slice(0, 1), [v]),
    ):
        with pytest.raises(OpTypeError, match="holds LoDTensors"):
            put([1, 2])
    assert array.size() == 4
    array.insert(0, np.ones(1))
    array.extend([t])
    array[1:3] = [t]
    assert array.size() == 5 and array[0].shape() == [1] and array[-1] is t is array[1]
    assert "LoDTensorArray([" in repr(array) and repr(LoDTensorArray([t] * 20)) == "LoDTensorArray(20 tensors)"


def test_stack_and_unstack_undo_each_other() -> None:
    rows = LoDTensorArray.unstack(filled(3, 2))
    assert [np.array(r).tolist() for r in rows] == [[0, 1], [2, 3], [4, 5]]
    assert (np.array(rows.stack()) == np.array(filled(3, 2))).all()
    rows.append(np.ones(7, "float32"))
    with pytest.raises(OpValueError, match="Cannot stack") as e:
        rows.stack()
    assert "[7]" in str(e.value)


def test_offsets_of_one_level_need_no_list_around_them() -> None:
    assert LoDTensor(np.ones(2), lod_=(0, 1, 2)).lod() == [[0, 1, 2]]


def test_an_array_takes_numpy_indices_and_stays_an_array() -> None:
    array = LoDTensorArray([np.zeros(2), np.ones(2)])
    array[np.int64(0)] = np.full(2, 5.0)
    assert np.asarray(array[0]).tolist() == [5, 5]
    array[0:2:2] = [np.ones(1)]
    array += [np.zeros(3)]
    assert all(isinstance(t, LoDTensor) for t in array)
    for other in (array + [np.ones(4)], array.copy()):
        assert isinstance(other, LoDTensorArray) and other[1] is array[1] and isinstance(other[-1], LoDTensor)
    assert array.copy() is not array and len(array) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.__setitem__(5, np.ones(1)), "size 1 with 5"),
        (lambda a: a.__setitem__("a", np.ones(1)), "with 'a'"),
        (lambda a: a.__setitem__(slice(0, 1), 5), "list of values"),
        (lambda a: a.__setitem__(slice(0, 2, 2), [np.ones(1), np.ones(1)]), "with slice"),
        (lambda a: a.insert("a", np.ones(1)), "with 'a'"),
        (lambda a: a[5], "size 1 with 5"),
        (lambda a: a[-2], "size 1 with -2"),
        (lambda a: a["a"], "with 'a'"),
        (lambda a: a + 5, "list of values"),
    ],
)
def test_an_array_refuses_other_indices(change: object, message: str) -> None:
    with pytest.raises(FluidError, match=message):
        change(LoDTensorArray([np.zeros(1)]))  # type: ignore[operator]


def test_an_element_outside_of_an_array_is_an_index_error() -> None:
    array = LoDTensorArray([np.zeros(1), np.ones(1)])
    with pytest.raises(IndexError, match="size 2 with 2"):
        array[2]
    assert [np.asarray(t).item() for t in array] == [0, 1]
    assert array[:1] == [array[0]] and array[9:] == []


def test_lists_of_unequal_lengths() -> None:
    with pytest.raises(OpTypeError, match="not an array of numbers"):
        LoDTensor().set([[1, 2], [3]])


@pytest.mark.parametrize("call", [len, bool, list, lambda t: t._slice(0, 1)])
def test_a_single_value_has_no_rows(call: object) -> None:
    t = LoDTensor()
    t.set(3.0)
    with pytest.raises(OpTypeError, match="a single value, which has no rows"):
        call(t)  # type: ignore[operator]


@pytest.mark.parametrize("index", [[[1], [2, 3]], slice(None, "a"), slice(0, 1, 0)])
def test_other_indices_of_a_tensor(index: object) -> None:
    with pytest.raises(FluidError, match="Cannot index the tensor"):
        filled(3, 2)[index]


def test_sizes_whose_product_is_too_large() -> None:
    with pytest.raises(OpValueError, match="cannot have so many elements"):
        LoDTensor().set_dims([0, 2**62])
