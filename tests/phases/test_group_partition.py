import random

import networkx as nx

from esat.phases.fusing.group_partition import AcyclicPartition


def test_a_merge_that_would_close_a_circle_is_refused() -> None:
    # 0 -> 1 -> 2 and 0 -> 2: merging 0 and 2 leaves 1 between them
    partition = AcyclicPartition([[], [0], [0, 1]])
    assert partition.merge(0, 2) is None
    middle = partition.merge(0, 1)
    assert middle is not None
    assert partition.merge(partition.find(0), partition.find(2)) is not None
    assert partition.groups() == [partition.find(0)]


def test_unrelated_groups_merge_unless_a_path_joins_them() -> None:
    # 0 -> 1 -> 2, and 3 alone
    partition = AcyclicPartition([[], [0], [1], []])
    assert partition.merge(0, 2) is None
    assert partition.merge(0, 3) is not None
    assert partition.merge(partition.find(3), 2) is None


def test_random_merges_never_make_a_circle() -> None:
    random.seed(3)
    for _ in range(60):
        count = 25
        feeding = [random.sample(range(node), min(node, random.randint(0, 3))) for node in range(count)]
        partition = AcyclicPartition(feeding)
        for _ in range(40):
            first, second = partition.find(random.randrange(count)), partition.find(random.randrange(count))
            if first == second:
                continue
            together = nx.DiGraph()
            for node, sources in enumerate(feeding):
                for source in sources:
                    ends = [
                        first if partition.find(end) == second else partition.find(end)
                        for end in (source, node)
                    ]
                    if ends[0] != ends[1]:
                        together.add_edge(*ends)
            possible = nx.is_directed_acyclic_graph(together)
            assert (partition.merge(first, second) is not None) == possible
        order = {group: place for place, group in enumerate(partition.groups())}
        for node, sources in enumerate(feeding):
            for source in sources:
                ends = partition.find(source), partition.find(node)
                assert ends[0] == ends[1] or order[ends[0]] < order[ends[1]]


def test_what_lies_between_two_groups_is_on_paths_from_one_to_the_other() -> None:
    # 0 -> 1 -> 2 -> 4 and 0 -> 3; 5 alone
    partition = AcyclicPartition([[], [0], [1], [0], [2], []])
    assert partition.between(0, 4) == [1, 2]
    assert partition.between(0, 1) == []
    assert partition.between(3, 5) == []
