"""Minimum cuts of networks, by Dinic's algorithm."""

from __future__ import annotations

from collections import deque

NEVER = 1 << 62  # the capacity of what no cut goes through


class Network:
    """A flow network."""

    __slots__ = ("_capacity", "_edges", "_target")

    def __init__(self, nodes: int) -> None:
        self._edges: list[list[int]] = [[] for _ in range(nodes)]
        self._target: list[int] = []  # of edge e; edge e ^ 1 goes back
        self._capacity: list[int] = []

    def edge(self, tail: int, head: int, capacity: int) -> None:
        """Add an edge."""
        e = len(self._target)
        self._target += (head, tail)
        self._capacity += (capacity, 0)
        self._edges[tail].append(e)
        self._edges[head].append(e + 1)

    def sink_side(self, source: int, sink: int) -> list[bool]:
        """For each node, whether it is on the sink's side of the minimum cut nearest to it."""
        levels = self._levels(source)
        while levels[sink] >= 0:
            nexts = [0] * len(self._edges)
            while self._augment(source, sink, levels, nexts):
                pass
            levels = self._levels(source)
        near = [False] * len(self._edges)
        near[sink] = True
        stack = [sink]
        while stack:
            for e in self._edges[stack.pop()]:
                tail = self._target[e]
                if not near[tail] and self._capacity[e ^ 1]:
                    near[tail] = True
                    stack.append(tail)
        return near

    def _levels(self, source: int) -> list[int]:
        """The distance of each node from the source by edges with capacity; -1 beyond reach."""
        levels = [-1] * len(self._edges)
        levels[source] = 0
        queue = deque([source])
        while queue:
            node = queue.popleft()
            for e in self._edges[node]:
                head = self._target[e]
                if levels[head] < 0 and self._capacity[e]:
                    levels[head] = levels[node] + 1
                    queue.append(head)
        return levels

    def _augment(self, source: int, sink: int, levels: list[int], nexts: list[int]) -> bool:
        """Push as much as goes along one shortest path; whether there was one."""
        path: list[int] = []
        node = source
        while node != sink:
            edges = self._edges[node]
            while nexts[node] < len(edges):
                e = edges[nexts[node]]
                head = self._target[e]
                if self._capacity[e] and levels[head] == levels[node] + 1:
                    break
                nexts[node] += 1
            else:  # a dead end
                if not path:
                    return False
                node = self._target[path.pop() ^ 1]
                nexts[node] += 1
                continue
            path.append(e)
            node = head
        push = min([self._capacity[e] for e in path])
        for e in path:
            self._capacity[e] -= push
            self._capacity[e ^ 1] += push
        return True
