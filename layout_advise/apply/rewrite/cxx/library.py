"""Functions of the standard library that the new types can be used with as the record's own."""

from __future__ import annotations

ALGORITHMS = {
    "accumulate", "adjacent_find", "advance", "all_of", "any_of", "begin", "binary_search", "cbegin", "cend", "copy",
    "copy_if", "copy_n", "count_if", "distance", "end", "fill", "fill_n", "find_if", "find_if_not", "for_each",
    "for_each_n", "generate", "generate_n", "inner_product", "is_sorted", "iter_swap", "lower_bound", "max_element",
    "merge", "min_element", "minmax_element", "move", "next", "none_of", "nth_element", "partial_sort", "partition",
    "prev", "reduce", "remove_if", "reverse", "rotate", "size", "sort", "stable_partition", "stable_sort", "swap",
    "transform", "transform_reduce", "unique", "upper_bound",
}  # fmt: skip
"""Functions of the standard library that go through elements by their iterators alone."""
CONTAINED = {
    "assign", "at", "back", "begin", "capacity", "cbegin", "cend", "clear", "data", "emplace_back", "empty", "end",
    "erase", "front", "insert", "max_size", "operator*", "operator+", "operator++", "operator+=", "operator-",
    "operator--", "operator-=", "operator->", "operator=", "operator==", "operator!=", "operator<", "operator[]",
    "pop_back", "push_back", "rbegin", "rend", "reserve", "resize", "shrink_to_fit", "size", "swap", "base",
}  # fmt: skip
"""Members of std::vector and of its iterators that the new types have."""
