"""The example of the document on graph structures that compiles: the clients of each Variable."""

import esat


def test_clients_of_a_compiled_graph():
    v = esat.vector()
    f = esat.compile(esat.Graph([v], (v + 1).sum()), mode="fast_compile")
    esat.debugprint(f, file="str")
    # Sorted list of all nodes in the compiled graph.
    topo = f.graph.toposort()

    # An internal variable
    var = topo[0].outputs[0]
    client = var.clients[0]
    assert type(client[0]) is esat.Apply
    assert client[0].inputs[client[1]] is var

    # An output of the graph
    var = topo[-1].outputs[0]
    client = var.clients[0]
    assert client == ("output", 0)
    assert f.graph.outputs[client[1]] is var
