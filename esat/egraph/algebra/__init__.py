"""Complete algebra: equal expressions are recognised by their values in finite fields, not derived step by
step.

Rules work their way from form to form, and no local rule can tell where multiplying out pays. So between
rounds of rules a phase looks at the e-graph as a whole, in the order of the modules:

``reading``, ``coding``
    the e-nodes as vectors of numbers; which of them are ring operations;
``lengths``
    which axes have the same length (``forest``), and which are put together of others (``cuts``, ``pieces``)
    by joins, slices and writes to parts (``array_parts``);
``fingerprints``
    for each class one e-node, of the smallest tree (``smallest_trees``), and the values of e-nodes in two
    finite fields (``field_values``, ``modular``, ``fields``), those of exponentials and circular functions
    included (``transcendental``), and complex numbers twice, with either root of -1, where conjugates or
    parts matter;
``merges``
    classes of one value are one, and classes with the value of a small fraction are that constant;
``polynomials``, ``quotients``, ``normal_forms``
    sparse normal forms of those classes in which something could cancel (``promise``);
``outlines``
    what trees that are alike have in common, so that it is done once;
``factoring``, ``offers``, ``accuracy``
    forms with strictly fewer operations (``expressions``) that lose no digits;
``words``, ``matrix_sums``
    sums of products of matrices in less time, expanded where they cancel or with common factors taken out;
``additions``, ``phase``
    what was found is told to the engine, whose own rules go on from there, and to reports (``findings``,
    ``wording``).

What is found is never derived twice: each class is looked at again only where its tree became smaller, and a
form is offered only if it has strictly fewer operations than the tree there is. A class that is found to be a
constant loses its other forms (``core.egg``). Both keep the growth linear.

Values in finite fields are those of Schwartz, "Fast probabilistic algorithms for verification of polynomial
identities", 1980: two polynomials of degree d that differ are equal at a random point of a field of p
elements with a probability of at most d / p. What is no ring operation is a hash of itself and of its
operands' values, as in Gonnet, "Determining equivalence of expressions in random polynomial time", 1984.
"""
