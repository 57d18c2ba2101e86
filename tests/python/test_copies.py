"""Compressors, memories and feedbacks are pickled and copied whole, and their options are attributes that cannot be set."""
import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import fedbits
from test_compressors import OF_A_RUN
from test_feedbacks import CLIENTS, ROUNDS, USES, make, name_of, play

VECTOR = np.random.default_rng(1).standard_normal((48, 32)).astype(np.float32)


def copies(thing):
    return pickle.loads(pickle.dumps(thing)), copy.deepcopy(thing), copy.copy(thing)


@pytest.mark.parametrize("name", sorted(fedbits.compressors()))
def test_copies_of_a_compressor_send_its_bytes(name):
    compressor = getattr(fedbits, name)(scope="tensor", **OF_A_RUN.get(name, {}))
    for one in copies(compressor):
        assert type(one) is type(compressor) and repr(one) == repr(compressor)
        assert bytes(one.compress(VECTOR)) == bytes(compressor.compress(VECTOR))


def test_a_compressor_inside_another_one_is_copied_too():
    schedule = fedbits.Schedule(stages=[fedbits.TopK(k=2), fedbits.Natural()], from_=[1, 3], scope="bucket", bucket=64)
    for one in copies(schedule):
        assert repr(one) == repr(schedule) and one.stages[0].k == 2


def bytes_of(compressor):
    return bytes(compressor.compress(VECTOR, round=3))


def test_a_compressor_goes_to_other_processes():
    operators = [fedbits.TopK(ratio=0.1), fedbits.QSGD(levels=4)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(bytes_of, operators) == list(map(bytes_of, operators))


@pytest.mark.parametrize("name", ["TopK", "PowerSGD", "DGCSampled"])
def test_copies_of_a_memory_go_on_alike(name):
    compressor, memory = getattr(fedbits, name)(), fedbits.Memory()
    assert "empty" in repr(memory) and all(one.error is None for one in copies(memory))
    compressor.compress(VECTOR, memory=memory)
    assert f"error: {VECTOR.size} numbers of float32" in repr(memory)
    pickled, deep, shallow = copies(memory)
    wanted = bytes(compressor.compress(VECTOR, round=2, memory=memory))
    for one in (pickled, deep, shallow):
        assert one.error.ctypes.data % 64 == 0
        assert bytes(compressor.compress(VECTOR, round=2, memory=one)) == wanted
        np.testing.assert_array_equal(one.error, memory.error)


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_message_says_what_to_send_instead(take):
    with pytest.raises(TypeError, match=r"send bytes\(message\)"):
        take(fedbits.TopK(k=2).compress(VECTOR))


@pytest.mark.parametrize("use", USES, ids=name_of)
def test_copies_of_a_feedback_go_on_with_its_bytes(use):
    feedback = make(use, weights=[3, 1, 1, 2][:CLIENTS])
    for number in range(ROUNDS):
        for one in copies(feedback):
            (theirs, their_estimate), (mine, estimate) = play(one, number), play(copy.deepcopy(feedback), number)
            assert theirs == mine and one.round == feedback.round + 1
            np.testing.assert_array_equal(their_estimate, estimate)
        play(feedback, number)


def test_a_feedback_within_a_round_cannot_be_copied():
    feedback = fedbits.EF21(fedbits.TopK(k=2), num_clients=2, P=5)
    feedback.send(0, np.ones(5, np.float32))
    with pytest.raises(fedbits.Error, match=r"round 1 is open; receive\(\) closes it"):
        copy.deepcopy(feedback)


def test_options_are_attributes_with_their_defaults():
    top_k = fedbits.TopK(ratio=0.25)
    assert (top_k.ratio, top_k.k, top_k.ties, top_k.scope, dict(top_k.options)) == (0.25, 0, "lowest_index", "model", {"ratio": 0.25})
    assert fedbits.Schedule(from_=[1]).from_ == [1] and isinstance(fedbits.Induced().biased, fedbits.TopK)
    assert fedbits.EF21(top_k, num_clients=2, P=8).momentum == 1.0 and {"ratio", "ties", "compress"} <= set(dir(top_k))
    with pytest.raises(AttributeError, match="TopK has no 'ratoi'; did you mean 'ratio'"):
        top_k.ratoi


@pytest.mark.parametrize("part", [fedbits.TopK(ratio=0.25), fedbits.EF21(fedbits.TopK(ratio=0.25), num_clients=2, P=8)])
def test_options_cannot_be_set(part):
    for name in ("scope", "ratio") if isinstance(part, fedbits.Compressor) else ("momentum", "seed"):
        with pytest.raises(AttributeError, match=f"{name} of .* cannot be set; make another one, as {type(part).__name__}"):
            setattr(part, name, 1)
    with pytest.raises(AttributeError, match="has no 'ratoi'"):
        part.ratoi = 1
    with pytest.raises(TypeError):
        part.options["ratio"] = 0.5
