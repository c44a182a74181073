"""The fewest candidates that explain all elements."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.graph.set_cover import smallest_cover


def alphabetical(candidate: str, remaining: object) -> str:
    return candidate


def test_the_candidate_that_covers_most_comes_first() -> None:
    candidates = {"a": {1}, "b": {1, 2, 3}, "c": {3, 4}}
    assert [one.candidate for one in smallest_cover([1, 2, 3, 4], candidates, alphabetical)] == ["b", "c"]
    assert [one.candidate for one in smallest_cover([1, 2, 3, 4], candidates, alphabetical, 2)] == ["b"]


def test_equal_candidates_are_named() -> None:
    (choice,) = smallest_cover([1, 2], {"b": {1, 2}, "a": {1, 2}, "c": {1}}, alphabetical)
    assert (choice.candidate, list(choice.covered)) == ("a", ["b", "a"])


def test_optional_elements_decide_between_equal_candidates() -> None:
    (choice,) = smallest_cover([1], {"a": {1}, "b": {1, 2}}, alphabetical, optional=[2])
    assert (choice.candidate, choice.explained) == ("b", frozenset({1, 2}))


def test_a_candidate_explains_more_than_it_covers() -> None:
    (choice,) = smallest_cover([1, 2], {"a": {1}, "b": {2}}, alphabetical, explains={"a": {1, 2}, "b": {2}})
    assert (choice.candidate, choice.explained) == ("a", frozenset({1, 2}))


@given(st.dictionaries(st.text("abc", min_size=1), st.sets(st.integers(0, 9))), st.sets(st.integers(0, 9)))
def test_all_elements_of_any_candidate_are_explained_once(candidates: dict[str, set[int]], elements: set[int]) -> None:
    explained = [one for choice in smallest_cover(elements, candidates, alphabetical) for one in choice.explained]
    assert sorted(explained) == sorted(elements.intersection(*[set().union(*candidates.values())]))
