"""The examples of the document on graph structures that need no compiler."""

import esat as T
from esat import Apply, TensorType, Variable, add, dmatrix, dscalar, mul


def test_diagram():
    x = dmatrix("x")
    y = dmatrix("y")
    z = x + y
    assert x.owner is None
    assert y.owner is None
    assert z.owner.outputs[0] is z
    assert z.owner.inputs == [x, y]


def test_short_example():
    # create 3 Variables with owner = None
    x = T.matrix("x")
    y = T.matrix("y")
    z = T.matrix("z")

    # create 2 Variables (one for 'e', one intermediate for y*z)
    # create 2 Apply instances (one for '+', one for '*')
    e = x + y * z
    assert e.owner.op == add
    assert e.owner.inputs[1].owner.op == mul


def test_long_example():
    # Instantiate a type that represents a matrix of doubles
    float64_matrix = TensorType(
        dtype="float64",  # double
        broadcastable=(False, False),  # matrix
    )

    # We make the Variable instances we need.
    x = Variable(type=float64_matrix, name="x")
    y = Variable(type=float64_matrix, name="y")
    z = Variable(type=float64_matrix, name="z")

    # This is the Variable that we want to symbolically represents y*z
    mul_variable = Variable(type=float64_matrix)
    assert mul_variable.owner is None

    # Instantiate a symbolic multiplication
    node_mul = Apply(op=mul, inputs=[y, z], outputs=[mul_variable])
    # Fields 'owner' and 'index' are set by Apply
    assert mul_variable.owner is node_mul
    # 'index' is the position of mul_variable in mode_mul's outputs
    assert mul_variable.index == 0

    # This is the Variable that we want to symbolically represents x+(y*z)
    add_variable = Variable(type=float64_matrix)
    assert add_variable.owner is None

    # Instantiate a symbolic addition
    node_add = Apply(op=add, inputs=[x, mul_variable], outputs=[add_variable])
    # Fields 'owner' and 'index' are set by Apply
    assert add_variable.owner is node_add
    assert add_variable.index == 0

    e = add_variable

    # We have access to x, y and z through pointers
    assert e.owner.inputs[0] is x
    assert e.owner.inputs[1] is mul_variable
    assert e.owner.inputs[1].owner.inputs[0] is y
    assert e.owner.inputs[1].owner.inputs[1] is z


def test_automatic_wrapping():
    e = dscalar("x") + 1
    node = e.owner
    assert node.op == add
    assert node.inputs[0].name == "x"
    assert node.inputs[0].type == dscalar
    assert isinstance(node.inputs[1], T.Constant)
    assert node.inputs[1].data == 1
    assert node.outputs[0].type == dscalar


def test_types():
    x = T.ivector()
    y = -x
    assert isinstance(x, Variable)
    assert isinstance(y, Variable)
    assert x.type == y.type == T.ivector
    assert T.irow.broadcastable == (True, False)
    assert T.irow.dtype == "int32"
