"""Messages: a vector arrives bit for bit in the smaller form, and sums go up a tree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dotadd.cluster.engine import Message, Replies, joined, tree

numbers = st.one_of(st.just(0.0), st.just(-0.0), st.floats(-100, 100, width=32), st.just(np.nan), st.just(np.inf))
vectors = st.sampled_from([np.float32, np.float64]).flatmap(lambda t: arrays(t, st.integers(0, 40), elements=numbers))


def bits(vector):
    return vector.view(f"u{vector.itemsize}")


@given(vectors)
def test_what_arrives_has_the_bits_of_what_was_sent_in_no_more_bytes_than_either_form(vector):
    message = Message.of(vector)
    np.testing.assert_array_equal(bits(message.vector()), bits(vector))
    assert message.vector().dtype == vector.dtype
    nonzero = int(np.count_nonzero(bits(vector)))
    assert message.nbytes == min(vector.nbytes, nonzero * (4 + vector.itemsize))


@pytest.mark.parametrize("filled", [0, 3, 900])
def test_whoever_adds_the_same_message_has_the_same_bits(filled):
    rng = np.random.default_rng(0)
    vector, w = np.zeros(1000, np.float32), rng.normal(size=1000).astype(np.float32)
    vector[rng.permutation(1000)[:filled]] = rng.normal(size=filled)
    added = w.copy()
    Message.of(vector).add_to(added)
    np.testing.assert_array_equal(bits(added), bits(w + vector))


@given(st.integers(1, 9), st.integers(0, 30), st.floats(0, 1), st.integers(0, 1000))
def test_a_sum_of_messages_is_the_sum_of_their_vectors_in_the_order_of_the_tree(parts, dim, density, seed):
    rng = np.random.default_rng(seed)
    given = (rng.normal(size=(parts, dim)) * (rng.random((parts, dim)) < density)).astype(np.float32)
    replies = joined([Replies([part], [Message.of(vector.copy())]) for part, vector in enumerate(given)])
    (total,) = replies.vectors
    assert replies.told == list(range(parts))
    expected = given.copy()
    for level in tree(parts):
        for receiver, sender in level:
            expected[receiver] += expected[sender]
    np.testing.assert_array_equal(total.vector(), expected[0])
    assert total.nbytes <= max(4 * dim, 0)


def test_a_sum_leaves_what_was_added_alone():
    sent = [np.ones(5), np.arange(5.0)]
    joined([Replies([None], [Message.of(vector)]) for vector in sent])
    np.testing.assert_array_equal(sent, [np.ones(5), np.arange(5.0)])


@pytest.mark.parametrize("parts", [*range(1, 20), 64, 100])
def test_the_tree_brings_every_part_to_the_first_one_in_the_fewest_levels(parts):
    levels, holds = tree(parts), [{part} for part in range(parts)]
    for level in levels:
        members = [part for pair in level for part in pair]
        assert len(members) == len(set(members))  # nobody does two things at once
        for receiver, sender in level:
            holds[receiver] |= holds[sender]
            holds[sender] = set()
    assert holds[0] == set(range(parts))
    assert len(levels) == (parts - 1).bit_length()
