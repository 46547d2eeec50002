"""Pytrees: flattening, mapping, key paths, registration and what is said about mismatches."""

import collections
import copy
import dataclasses
import functools
import pickle
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import pyjx as jax
from pyjx import jaxlib_pytrees, tree
from pyjx import tree_util as tu
from pyjx.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

Point = namedtuple("Point", "x y")
Turned = namedtuple("Turned", "y x")


@tu.register_pytree_node_class
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def tree_flatten(self):
        return (self.a, self.b), "meta"

    @classmethod
    def tree_unflatten(cls, aux, children):
        assert aux == "meta"
        return cls(*children)

    def __eq__(self, other):
        return type(other) is Pair and (self.a, self.b) == (other.a, other.b)

    __hash__ = None


@tu.register_pytree_with_keys_class
class Named:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def tree_flatten_with_keys(self):
        return [(GetAttrKey("a"), self.a), ("free text", self.b)], None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


@tu.register_dataclass
@dataclasses.dataclass(frozen=True)
class Layer:
    weight: object
    bias: object = 0.0
    name: str = tree.static(default="layer")


TREES = [
    (5, [5], "PyTreeDef(*)"),
    (None, [], "PyTreeDef(None)"),
    ((), [], "PyTreeDef(())"),
    ((1, [2, (3,)]), [1, 2, 3], "PyTreeDef((*, [*, (*,)]))"),
    ({"b": 1, "a": [2, None]}, [2, 1], "PyTreeDef({'a': [*, None], 'b': *})"),
    (Point(1, (2,)), [1, 2], "PyTreeDef(CustomNode(namedtuple[Point], [*, (*,)]))"),
    (OrderedDict([("b", 1), ("a", 2)]), [1, 2],
     "PyTreeDef(CustomNode(OrderedDict[('b', 'a')], [*, *]))"),
    (defaultdict(list, b=1, a=2), [2, 1],
     "PyTreeDef(CustomNode(defaultdict[(<class 'list'>, ('a', 'b'))], [*, *]))"),
    (Pair(1, [2]), [1, 2], "PyTreeDef(CustomNode(Pair[meta], [*, [*]]))"),
    (Layer(1, (2, 3), "x"), [1, 2, 3], "PyTreeDef(CustomNode(Layer[('x',)], [*, (*, *)]))"),
    (collections.deque([1]), [collections.deque([1])], "PyTreeDef(*)"),
]


@pytest.mark.parametrize(("value", "leaves", "text"), TREES)
def test_flatten_and_unflatten(value, leaves, text):
    found, treedef = tu.tree_flatten(value)
    assert found == leaves
    assert str(treedef) == text
    rebuilt = tu.tree_unflatten(treedef, found)
    assert rebuilt == value
    assert type(rebuilt) is type(value)
    assert tu.tree_leaves(value) == leaves
    assert tu.tree_structure(value) == treedef
    assert hash(tu.tree_structure(value)) == hash(treedef)


def test_unflatten_keeps_the_order_and_the_factory_of_mappings():
    ordered = tu.tree_map(lambda x: -x, OrderedDict([("b", 1), ("a", 2)]))
    assert list(ordered.items()) == [("b", -1), ("a", -2)]
    assert tu.tree_map(lambda x: -x, defaultdict(list, a=1)).default_factory is list


def test_unflatten_takes_any_iterable_and_checks_the_count():
    treedef = tu.tree_structure([0, 0])
    assert tu.tree_unflatten(treedef, iter((1, 2))) == [1, 2]
    with pytest.raises(ValueError, match="Too few leaves for PyTreeDef; expected 2, got 1"):
        tu.tree_unflatten(treedef, [1])
    with pytest.raises(ValueError, match="Too many leaves for PyTreeDef; expected 2"):
        tu.tree_unflatten(treedef, [1, 2, 3])


def test_is_leaf_stops_the_descent():
    def is_pair(x):
        return isinstance(x, tuple)

    value = {"a": (1, 2), "b": None}
    assert tu.tree_leaves(value, is_leaf=is_pair) == [(1, 2)]
    assert tu.tree_leaves(value, is_leaf=lambda x: x is None) == [1, 2, None]
    assert tu.tree_map(len, value, is_leaf=is_pair) == {"a": 2, "b": None}


def test_dict_keys_that_cannot_be_sorted():
    with pytest.raises(ValueError, match="sorting pytree dictionary keys"):
        tu.tree_flatten({1: 0, "a": 0})


def test_map_over_several_trees_and_deeper_ones():
    assert tu.tree_map(lambda x, y, z: x + y * z, [1, (2,)], [3, (4,)], [5, (6,)]) == [16, (26,)]
    assert tu.tree_map(lambda x, y: (x, y), [1], [{"k": 2}]) == [(1, {"k": 2})]


def test_an_error_of_the_mapped_function_reaches_the_caller():
    def stop(x):
        raise StopIteration

    with pytest.raises(StopIteration):
        tu.tree_map(stop, [1, 2])
    with pytest.raises(ValueError, match="mine"):
        tu.tree_map(lambda x, y: (_ for _ in ()).throw(ValueError("mine")), [1], [2])


@pytest.mark.parametrize(
    ("a", "b", "what", "place", "details"),
    [
        ([1], (1,), "types", "tree", ["<class 'list'>", "<class 'tuple'>"]),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, "lengths of list", "tree['a']", ["2", "3"]),
        ({"a": 1}, {"b": 1}, "pytree metadata", "tree", ["('a',)", "('b',)"]),
        ({"a": 1, "b": 2}, {"b": 2, "c": 1, "d": 1}, "numbers of pytree children", "tree",
         ["Missing in the full tree: ['a']", "Only in the full tree: ['c'] ['d']"]),
        ([0, None], [0, 1], "types", "tree[1]", ["NoneType", "int"]),
        (Point(1, [2]), Point(1, 2), "types", "tree.y", ["list", "int"]),
        (Pair(1, [2]), Pair(1, (2,)), "types", "tree[<flat index 1>]", ["list", "tuple"]),
        (Layer(1, name="x"), Layer(1, name="y"), "pytree metadata", "tree", ["('x',)", "('y',)"]),
    ],
)
def test_mismatch_names_the_place_and_the_difference(a, b, what, place, details):
    with pytest.raises(ValueError, match="pytree structure error") as caught:
        tu.tree_map(lambda x, y: x, a, b)
    first, second, *rest = str(caught.value).splitlines()
    assert first == f"pytree structure error: different {what} at key path"
    assert second == f"    tree_map {place}"
    for part in details:
        assert part in "\n".join(rest)


def test_prefix_errors_lists_every_mismatch():
    makers = tu.prefix_errors({"a": [1], "b": (1,), "c": 0}, {"a": 1, "b": [1], "c": [1, 2]})
    places = [str(make("spec")).splitlines()[1].strip() for make in makers]
    assert places == ["spec['a']", "spec['b']"]
    assert tu.prefix_errors([1, None], [1, None]) == []
    assert tu.prefix_errors((None,), (1,), is_leaf=lambda x: x is None) == []


def test_other_keys_are_named_with_their_place():
    first, second = {"a": 1, "c": {"x": 1, "y": 2}}, {"a": 1, "c": {"x": 1, "z": 2}}
    with pytest.raises(ValueError, match="different pytree metadata at key path") as error:
        tree.map(lambda a, b: a, first, second)
    assert str(error.value).splitlines()[1:] == [
        "    tree_map tree['c']", "There tree_map tree has a node of type", "    <class 'dict'>",
        "with the keys", "    ('x', 'y')", "but the full tree has one with the keys",
        "    ('x', 'z')", "Missing in the full tree: ['y']", "Only in the full tree: ['z']",
        "The full tree is rest[0]."]


@pytest.mark.parametrize("call", [
    tu.tree_map, lambda f, a, b: jax.jvp(f, (a,), (b,)),
    lambda f, a, b: tu.tree_transpose(tree.structure(a), tree.structure([0, 0]), b),
    lambda f, a, b: jax.lax.scan(lambda c, x: (b, x), a, None, 1)])
@pytest.mark.parametrize("other", [2000, 1999])
def test_mismatches_of_large_trees_are_short(call, other):
    a, b = {f"a{i}": 0.0 for i in range(2000)}, {f"b{i}": 0.0 for i in range(other)}
    with pytest.raises((TypeError, ValueError)) as error:
        call(abs, a, b)
    assert len(str(error.value)) < 2000


def test_metadata_that_cannot_be_compared():
    @tu.register_static
    class Bad:
        def __init__(self, value):
            self.value = value

        def __eq__(self, other):
            return self.value == other.value  # an array

        __hash__ = object.__hash__

    bad, worse = Bad(np.zeros(2)), Bad(np.ones(2))
    with pytest.raises(ValueError, match="metadata of a node must be comparable"):
        tu.prefix_errors([bad], [worse])


def test_reduce():
    assert tu.tree_reduce(lambda a, b: a * 10 + b, {"a": 1, "b": [2, 3]}) == 123
    assert tu.tree_reduce(lambda a, b: a * 10 + b, [2, 3], 1) == 123
    assert tu.tree_reduce(lambda a, b: a, [], 7) == 7
    assert tu.tree_reduce(lambda a, b: (a, b), [1], None) == (None, 1)
    with pytest.raises(TypeError, match="empty"):
        tu.tree_reduce(lambda a, b: a, [])


def test_reduce_associative_is_balanced_and_keeps_the_order():
    def join(a, b):
        return f"({a}{b})"

    assert tu.tree_reduce_associative(join, list("abcde")) == "((ab)(c(de)))"
    assert tu.tree_reduce_associative(join, ["a"]) == "a"
    assert tu.tree_reduce_associative(join, [], identity="-") == "-"
    with pytest.raises(TypeError, match="identity"):
        tu.tree_reduce_associative(join, [])


def test_all_and_all_leaves():
    assert tu.tree_all([True, {"a": 1}])
    assert tu.tree_all([])
    assert not tu.tree_all([1, (0,)])
    assert tu.all_leaves([1, np.zeros(2)])
    assert not tu.all_leaves([None])
    assert not tu.all_leaves([[1]])
    assert tu.all_leaves([[1], 2], is_leaf=lambda x: isinstance(x, list))
    assert not tu.all_leaves([(1,)], is_leaf=lambda x: isinstance(x, list))


def test_broadcast():
    full = {"a": [1, 2], "b": (3, {"c": 4})}
    prefix = {"a": "x", "b": "y"}
    assert tu.tree_broadcast(prefix, full) == {"a": ["x", "x"], "b": ("y", {"c": "y"})}
    assert tu.broadcast_prefix(prefix, full) == ["x", "x", "y", "y"]
    assert tu.tree_broadcast([None], [(1, 2)], is_leaf=lambda x: x is None) == [(None, None)]
    with pytest.raises(ValueError, match=r"different types at key path\n    tree_broadcast prefix"):
        tu.tree_broadcast(None, [1])


def test_transpose():
    outer, inner = tu.tree_structure([0, 0, 0]), tu.tree_structure({"a": 0, "b": (0,)})
    value = [{"a": i, "b": (10 * i,)} for i in range(3)]
    expected = {"a": [0, 1, 2], "b": ([0, 10, 20],)}
    assert tu.tree_transpose(outer, inner, value) == expected
    assert tu.tree_transpose(outer, None, value) == expected
    assert tu.tree_transpose(tu.tree_structure([]), inner, []) == {"a": [], "b": ([],)}
    with pytest.raises(TypeError, match="Mismatch"):
        tu.tree_transpose(outer, inner, value[:2])
    with pytest.raises(TypeError, match="inner_treedef"):
        tu.tree_transpose(tu.tree_structure([]), None, [])


def test_treedefs():
    leaf, pair = tu.tree_structure(0), tu.tree_structure((0, [0]))
    assert tu.treedef_tuple([leaf, pair]) == tu.tree_structure((0, (0, [0])))
    assert tu.treedef_children(pair) == [leaf, tu.tree_structure([0])]
    assert tu.treedef_is_leaf(leaf)
    assert not tu.treedef_is_leaf(pair)
    none = tu.tree_structure(None)
    assert tu.treedef_is_leaf(none)
    assert pair.compose(pair).num_leaves == 4


def test_treedefs_of_classes_that_jaxlib_alone_knows():
    class Box:
        def __init__(self, x):
            self.x = x

    tu.default_registry.register_node(Box, lambda b: ((b.x,), None), lambda _, x: Box(*x), None)
    made = tu.tree_structure(Box(0)).compose(tu.tree_structure([0, 0]))
    assert jaxlib_pytrees.treedef_of(
        tu.default_registry, made.node_data(), made.children()) == made


@pytest.mark.parametrize("value", [[1, {"a": 2}], Pair(1, 2), Layer(1), OrderedDict(a=1)])
def test_treedefs_can_be_pickled_and_copied(value):
    treedef = tu.tree_structure(value)
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert copy.deepcopy(treedef) == treedef


def test_is_tree_node():
    for cls in (list, tuple, dict, type(None), Point, OrderedDict, Pair, Layer, tu.Partial):
        assert tu.is_tree_node(cls)
    for cls in (int, np.ndarray, functools.partial, [], 3):
        assert not tu.is_tree_node(cls)


def test_one_level():
    children, aux = tu.flatten_one_level({"b": 1, "a": [2]})
    assert (list(children), aux) == ([[2], 1], ("a", "b"))
    assert tuple(tu.flatten_one_level(None)[0]) == ()
    pairs, aux = tu.flatten_one_level_with_keys(Point(1, [2]))
    assert list(pairs) == [(GetAttrKey("x"), 1), (GetAttrKey("y"), [2])]
    assert aux is Point
    pairs, _ = tu.flatten_one_level_with_keys(Pair(1, 2))
    assert list(pairs) == [(FlattenedIndexKey(0), 1), (FlattenedIndexKey(1), 2)]
    for function in (tu.flatten_one_level, tu.flatten_one_level_with_keys):
        with pytest.raises(ValueError, match="can't tree-flatten type: <class 'int'>"):
            function(3)


PATHS = [
    ([5], (SequenceKey(0),), "[0]", "0"),
    ((0, {"a": 5}), (SequenceKey(1), DictKey("a")), "[1]['a']", "1/a"),
    (Point(0, 5), (GetAttrKey("y"),), ".y", "y"),
    (Pair(0, 5), (FlattenedIndexKey(1),), "[<flat index 1>]", "1"),
    (Named(0, [5]), ("free text", SequenceKey(0)), "free text[0]", "free text/0"),
    (Layer(0, 5), (GetAttrKey("bias"),), ".bias", "bias"),
    (OrderedDict(b=0, a=5), (DictKey("a"),), "['a']", "a"),
    (defaultdict(int, b=5, a=0), (DictKey("b"),), "['b']", "b"),
    (5, (), "", ""),
]


@pytest.mark.parametrize(("value", "path", "text", "simple"), PATHS)
def test_key_paths(value, path, text, simple):
    pairs, treedef = tu.tree_flatten_with_path(value)
    assert (path, 5) == pairs[-1]
    assert treedef == tu.tree_structure(value)
    assert tu.tree_leaves_with_path(value) == pairs
    assert tu.keystr(path) == text
    assert tu.keystr(path, simple=True, separator="/") == simple


def test_is_leaf_with_path():
    value = {"a": [1, (2, 3)], "b": None}
    pairs = tu.tree_leaves_with_path(
        value, is_leaf=lambda path, _: len(path) == 1, is_leaf_takes_path=True
    )
    assert pairs == [((DictKey("a"),), [1, (2, 3)]), ((DictKey("b"),), None)]
    assert tu.tree_leaves_with_path([None], is_leaf=lambda x: x is None) == [
        ((SequenceKey(0),), None)
    ]


def test_map_with_path():
    result = tu.tree_map_with_path(
        lambda path, x, y: (tu.keystr(path), x, y), {"a": [1], "b": 2}, {"a": [3], "b": 4}
    )
    assert result == {"a": [("['a'][0]", 1, 3)], "b": ("['b']", 2, 4)}
    assert tu.tree_map_with_path(lambda path, x: x + len(path), [1, [1]]) == [2, [3]]
    with pytest.raises(ValueError, match=r"tree_map_with_path tree\['a'\]"):
        tu.tree_map_with_path(lambda path, x, y: x, {"a": [1]}, {"a": [1, 2]})


def test_keys_are_values():
    assert DictKey("a") == DictKey("a") != DictKey("b")
    assert hash(SequenceKey(1)) == hash(SequenceKey(1))
    match GetAttrKey("w"):
        case GetAttrKey(name):
            assert name == "w"
    assert (DictKey(1).key, SequenceKey(2).idx, FlattenedIndexKey(3).key) == (1, 2, 3)


def test_registering_twice_is_an_error():
    for again in (
        lambda: tu.register_pytree_node(Pair, lambda p: ((), None), lambda a, c: Pair(1, 2)),
        lambda: tu.register_dataclass(Layer),
        lambda: tu.register_static(Named),
    ):
        with pytest.raises(ValueError, match=r"Duplicate custom .*PyTreeDef type registration"):
            again()


def test_subclasses_of_a_registered_class_are_leaves():
    class Sub(Pair):
        pass

    value = Sub(1, 2)
    assert tu.tree_leaves(value)[0] is value


def test_register_dataclass_with_given_fields():
    @functools.partial(tu.register_dataclass, data_fields=["w"], meta_fields=["k"])
    @dataclasses.dataclass
    class Given:
        k: int
        w: int

    leaves, treedef = tu.tree_flatten(Given(k=1, w=2))
    assert leaves == [2]
    assert tu.tree_unflatten(treedef, [5]) == Given(k=1, w=5)
    assert treedef != tu.tree_structure(Given(k=2, w=2))


def test_register_dataclass_drops_fields():
    @dataclasses.dataclass
    class Dropping:
        w: int
        cache: int = 7

    tu.register_dataclass(Dropping, ["w"], [], drop_fields=["cache"])
    assert tu.tree_leaves(Dropping(1, 2)) == [1]
    assert tu.tree_map(lambda x: x, Dropping(1, 2)) == Dropping(1, 7)


def test_register_dataclass_of_another_class():
    class Plain:
        def __init__(self, w):
            self.w = w

    assert tu.register_dataclass(Plain, ["w"], []) is Plain
    assert tu.tree_map(lambda x: x + 1, Plain(1)).w == 2


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ((["x"], None), TypeError, "must both be specified"),
        ((["x"], ["x"]), ValueError, "must not overlap. Overlapping fields: {'x'}"),
        ((["x"], []), ValueError, "Missing fields: {'y'}. Add them to drop_fields"),
        ((["x", "y", "z"], []), ValueError, "Unexpected fields: {'z'}"),
    ],
)
def test_register_dataclass_checks_the_fields(fields, error, text):
    @dataclasses.dataclass
    class Checked:
        x: int
        y: int

    with pytest.raises(error, match=text):
        tu.register_dataclass(Checked, *fields)


def test_register_dataclass_needs_fields_for_other_classes():
    class Plain:
        pass

    with pytest.raises(TypeError, match="required when nodetype is not a dataclass"):
        tu.register_dataclass(Plain)


def test_static_field():
    field = tree.static(default=3, metadata={"unit": "m"})
    assert field.default == 3
    assert dict(field.metadata) == {"static": True, "unit": "m"}


def test_register_static():
    @tu.register_static
    class Mode(str):
        pass

    leaves, treedef = tu.tree_flatten([Mode("a"), 1])
    assert leaves == [1]
    assert tu.tree_unflatten(treedef, [2]) == ["a", 2]
    assert treedef != tu.tree_structure([Mode("b"), 1])
    assert tu.tree_leaves_with_path(Mode("a")) == []


def collect(*args, **kwargs):
    return args, kwargs


def test_partial_is_a_node():
    partial = tu.Partial(collect, 1, [2], k=3)
    assert partial(4, j=5) == ((1, [2], 4), {"k": 3, "j": 5})
    assert tu.tree_leaves(partial) == [1, 2, 3]
    assert tu.tree_map(lambda x: -x, partial)() == ((-1, [-2]), {"k": -3})
    assert tu.tree_structure(partial) == tu.tree_structure(tu.Partial(collect, 9, [9], k=9))
    assert tu.tree_structure(partial) != tu.tree_structure(tu.Partial(len, 9, [9], k=9))
    assert pickle.loads(pickle.dumps(partial))() == partial()


def test_partial_of_a_partial_keeps_the_inner_one_whole():
    for inner in (functools.partial(collect, 1), tu.Partial(collect, 1)):
        outer = tu.Partial(inner, 2)
        assert tu.tree_leaves(outer) == [2]
        assert outer(3) == ((1, 2, 3), {})
        assert tu.tree_structure(outer) == tu.tree_structure(tu.Partial(inner, 5))


def test_partial_wants_a_callable():
    with pytest.raises(TypeError, match="callable"):
        tu.Partial(3)


def test_short_names_are_the_same_functions():
    for name in ("all", "broadcast", "flatten", "flatten_with_path", "leaves", "map", "reduce",
                 "leaves_with_path", "map_with_path", "reduce_associative", "structure",
                 "transpose", "unflatten"):
        assert getattr(tree, name) is getattr(tu, f"tree_{name}")


def test_the_function_of_a_partial_of_a_partial_is_equal_to_it():
    inner = functools.partial(max, 1)
    one, two = tu.Partial(inner, 2), tu.Partial(inner, 2)
    assert one.func == inner == one.func == two.func
    assert hash(one.func) == hash(inner)
    assert one.func != functools.partial(max, 1)  # as of partials themselves
    assert (one.func.args, one.func.func, one(3)) == ((1,), max, 3)
    assert tu.tree_structure(one) == tu.tree_structure(two)
    assert copy.copy(one.func) == inner


@pytest.mark.parametrize(("one", "other", "said"), [
    ((1, [2, 3]), [1, (2, 3)], True), ({"a": 1, "b": 2}, OrderedDict(a=1, b=2), True),
    (Point(1, (None, 2)), [1, [None, 2]], True),
    # What each of these would put at another place, or lose.
    ({"a": 1, "b": None}, {"a": None, "b": 2}, False), ((1, None), [None, 2], False),
    ({"a": (1, 2), "b": (3,)}, {"a": [1], "b": [2, 3]}, False), ((1, 2), {"b": 1, "a": 2}, False),
    ({"a": 1, "b": 2}, OrderedDict(b=2, a=1), False), (Point(1, 2), Turned(2, 1), False),
    (((1, 2), tu.Partial(abs, 1)), ([1, 2], tu.Partial(max, 1)), False), ((), None, False)])
def test_leaves_are_to_be_put_into_the_structure_where_all_are_at_the_same_place(one, other, said):
    with pytest.raises(ValueError, match="different") as error:
        tree.map(lambda a, b: a, one, other)
    assert ("jax.tree.unflatten" in str(error.value)) is said
