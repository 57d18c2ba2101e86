"""Compressors in Python: bytes, bits, memory, contracts, and errors of wrong arguments."""
import concurrent.futures
import csv
import os
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import fedbits

RANDOM = np.random.default_rng(1)
MATRIX = RANDOM.standard_normal((48, 32)).astype(np.float32)


# What a run tells an operator, and has to be given outside of one.
OF_A_RUN = {"PermK": {"clients": 4}}


@pytest.fixture(params=sorted(fedbits.compressors()))
def compressor(request):
    return getattr(fedbits, request.param)(**OF_A_RUN.get(request.param, {}))


def test_a_permutation_is_dealt_out_to_clients():
    dealt = fedbits.PermK(clients=4)
    messages = [dealt.compress(MATRIX, client=client) for client in range(4)]
    np.testing.assert_allclose(sum(message.decode() for message in messages) / 4, MATRIX, rtol=1e-6)
    assert {message.bits for message in messages} == {32 * MATRIX.size // 4 + 8}
    with pytest.raises(fedbits.ConfigError, match="has to be given"):
        fedbits.PermK().compress(MATRIX)


def test_bits_are_the_length_of_the_bytes(compressor):
    message = compressor.compress(MATRIX)
    assert message.bits == 8 * message.nbytes == 8 * len(bytes(message)) > 0


def test_the_memory_is_what_was_not_sent(compressor):
    memory, error = fedbits.Memory(), np.zeros(MATRIX.size, np.float32)
    for number in range(1, 4):
        sent = compressor.compress(MATRIX, client=2, round=number, memory=memory).decode()
        error += MATRIX.ravel() - sent.ravel()
        np.testing.assert_allclose(memory.error, error, rtol=1e-5, atol=1e-4)
        error = memory.error.copy()


def test_equal_keys_give_equal_bytes(compressor):
    one, two = (bytes(compressor.compress(MATRIX, seed=5, client=3, round=7)) for _ in range(2))
    assert one == two


def test_a_decoded_message_has_the_shape_and_type_of_its_vector(compressor):
    for dtype in (np.float32, np.float64):
        decoded = compressor.compress(MATRIX.astype(dtype)).decode()
        assert decoded.shape == MATRIX.shape and decoded.dtype == dtype


def test_a_contract_holds(compressor):
    contract = compressor.contract(MATRIX.shape)
    error = np.linalg.norm(compressor.compress(MATRIX).decode().astype(float) - MATRIX)
    if contract.kappa is not None and not contract.domain and not contract.kappa_in_expectation:
        assert error <= contract.kappa * (1 + 1e-6)
    if contract.delta is not None and not contract.domain and not contract.delta_in_expectation:
        assert error**2 <= (1 - contract.delta) * np.linalg.norm(MATRIX.astype(float)) ** 2 * (1 + 1e-6)


def test_top_k_keeps_the_largest():
    x = RANDOM.standard_normal(10_000).astype(np.float32)
    message = fedbits.TopK(k=100).compress(x)
    kept = np.flatnonzero(message.decode())
    assert message.elements == 100 and set(kept) == set(np.argsort(-np.abs(x))[:100])
    np.testing.assert_array_equal(message.decode()[kept], x[kept])


def test_random_numbers_depend_on_seed_client_and_round():
    draw = lambda **key: bytes(fedbits.QSGD().compress(MATRIX, **key))
    assert len({draw(), draw(seed=2), draw(client=1), draw(round=2)}) == 4


def test_power_sgd_keeps_what_both_sides_share():
    memory, operator = fedbits.Memory(), fedbits.PowerSGD(rank=2)
    low_rank = (RANDOM.standard_normal((48, 2)) @ RANDOM.standard_normal((2, 32))).astype(np.float32)
    errors = [np.linalg.norm(operator.compress(low_rank, round=r, memory=memory).decode() - low_rank) for r in (1, 2)]
    assert errors[1] < 1e-3 * np.linalg.norm(low_rank)
    assert set(memory.state_dict()) == {"error", "shared", "round", "checksum"}


def test_a_memory_can_be_saved_and_restored():
    one, two = fedbits.Memory(), fedbits.Memory()
    fedbits.TopK(k=3).compress(MATRIX, memory=one)
    two.load_state_dict(one.state_dict())
    first, second = (bytes(fedbits.TopK(k=3).compress(MATRIX, round=2, memory=memory)) for memory in (one, two))
    assert first == second


def test_a_memory_counts_rounds():
    """Without round= every call draws anew, the message names its round for the receiver, and a restored memory goes on counting."""
    operator, memory, seen = fedbits.RandomK(k=10), fedbits.Memory(), set()
    x = RANDOM.standard_normal(200).astype(np.float32)
    for number in range(1, 101):
        message = operator.compress(x, memory=memory)
        assert message.round == memory.round == number
        np.testing.assert_array_equal(operator.decode(bytes(message), x.shape, round=message.round), message.decode())
        seen |= set(np.flatnonzero(message.decode()).tolist())
    assert len(seen) > 190  # of 200, where 10 of them would come up again and again
    restored = fedbits.Memory()
    restored.load_state_dict(memory.state_dict())
    assert bytes(operator.compress(x, memory=restored)) == bytes(operator.compress(x, memory=memory)) and memory.round == 101
    assert operator.compress(x, round=7, memory=memory).round == memory.round == 7
    assert operator.compress(x).round == 1
    with pytest.raises(ValueError, match="the round of this state"):
        restored.load_state_dict(memory.state_dict() | {"round": np.array([-1])})
    with pytest.raises(fedbits.Error):
        operator.compress(np.full(200, np.nan, np.float32), memory=memory)
    assert memory.round == 7


def test_a_tensor_of_one_number_is_sent_by_terngrad():
    memory, sent = fedbits.Memory(), 0.0
    for _ in range(200):
        sent += fedbits.TernGrad().compress(np.array([0.7], np.float32), memory=memory).decode()[0]
    assert sent == pytest.approx(140, rel=1e-5) and abs(memory.error[0]) < 1e-5


def test_tensors_are_compressed_one_by_one():
    x = np.concatenate([np.full(100, 5.0, np.float32), np.arange(1, 101, dtype=np.float32) / 1000])
    sent = fedbits.TopK(k=2, scope="tensor").compress(x, shapes=[(10, 10), (100,)]).decode()
    assert np.count_nonzero(sent[:100]) == np.count_nonzero(sent[100:]) == 2


def test_arrays_are_not_copied_and_not_changed():
    x = MATRIX.copy()
    x.flags.writeable = False
    fedbits.HardThreshold(threshold=0.1).compress(x)
    np.testing.assert_array_equal(x, MATRIX)


def test_a_compressor_inside_another_one_is_an_argument():
    names = [name for name in fedbits.compressors() if any(field["type"] == "part" for field in getattr(fedbits, name)._fields)]
    message = fedbits.Induced(biased=fedbits.TopK(k=4), unbiased=fedbits.Natural()).compress(MATRIX) if "Induced" in fedbits.compressors() else None
    assert message is not None and message.bits > 0, names


def memory_of_float32_with(vector):
    memory = fedbits.Memory()
    for one in (vector.astype(np.float32), vector):
        fedbits.TopK(k=5).compress(one, memory=memory)


@pytest.mark.parametrize("wrong, error, text", [
    (lambda: fedbits.TopK(ratoi=0.1), fedbits.ConfigError, "did you mean 'ratio'"),
    (lambda: fedbits.TopK(ratio=2.0), fedbits.ConfigError, "must be > 0, <= 1"),
    (lambda: fedbits.TopK(k=5, scope="layer"), ValueError, "'model', 'tensor' or 'bucket'"),
    (lambda: fedbits.TopK(k=5, bucket=4), ValueError, "belongs to it alone"),
    (lambda: fedbits.TopK(k=5).compress(MATRIX[:, ::2]), ValueError, "not contiguous"),
    (lambda: fedbits.TopK(k=5).compress(MATRIX.astype(np.float16)), TypeError, 'float16; float32 and float64 can be compressed, and x.astype("float32") conv'),
    (lambda: fedbits.TopK(k=5).compress(np.arange(9)), TypeError, 'int64; float32 and float64 can be compressed, and x.astype("float32") converts it'),
    (lambda: memory_of_float32_with(np.ones(9)), ValueError, "not 9 of float64; convert the vector to float32, or begin another fedbits.Memory()"),
    (lambda: fedbits.EFSign().decode(bytes(fedbits.EFSign().compress(np.ones(9))), 9), fedbits.Error, 'they are read as of dtype="float32", and shape, dtype, '),
    (lambda: fedbits.TopK(k=5).compress([1.0, 2.0]), TypeError, "got list"),
    (lambda: fedbits.TopK(k=5).compress(np.zeros(0, np.float32)), ValueError, "empty"),
    (lambda: fedbits.TopK(k=5).compress(np.zeros(3, np.float32)), fedbits.ConfigError, "more than the 3 parameters"),
    (lambda: fedbits.TopK(k=1).compress(np.array([1, np.nan], np.float32)), fedbits.Error, "not finite at place 1"),
    (lambda: fedbits.TopK(k=1).compress(MATRIX, client=-1), ValueError, "client is -1"),
    (lambda: fedbits.TopK(k=1).compress(MATRIX, shapes=[(3, 3)]), ValueError, "the shapes have 9 numbers"),
    (lambda: fedbits.Compressor(), TypeError, "base of all kinds"),
    (lambda: fedbits.TopQ, AttributeError, "no 'TopQ'; did you mean 'TopK'"),
    (lambda: fedbits.topk, AttributeError, "did you mean 'TopK'"),
    (lambda: fedbits.Zzzzzzz, AttributeError, "list the parts"),
    (lambda: fedbits.TopK(0.01), TypeError, "takes options by their names, as TopK(k=...)"),
    (lambda: fedbits.TopK(k=5, scope="bucket", bucket="512"), TypeError, "bucket is '512'; it must be a whole number"),
    (lambda: fedbits.TopK(k=1).compress(MATRIX, client="a"), TypeError, "client is 'a'; it must be a whole number"),
    (lambda: fedbits.TopK(k=1).compress(MATRIX, round=1.5), TypeError, "round is 1.5; it must be a whole number"),
    (lambda: fedbits.TopK(k=1).compress(MATRIX, seed=None), TypeError, "seed is None; it must be a whole number"),
    (lambda: fedbits.TopK(k=1).compress(MATRIX, step_size="a"), TypeError, "step_size is 'a'; it must be a number"),
    (lambda: fedbits.TopK(k=1).compress(MATRIX, step_size=np.nan), ValueError, "step_size is nan; it must be above 0 and finite"),
    (lambda: fedbits.TopK(k=1).compress(MATRIX, memory=np.zeros(3)), TypeError, "memory is of type ndarray; it must be a fedbits.Memory"),
    (lambda: fedbits.TopK(k=1).compress(MATRIX, shapes=[1536]), TypeError, "must be the shape of a tensor, as (1536,)"),
    (lambda: fedbits.TopK(k=1).compress(MATRIX, shapes=[(-48, -32)]), ValueError, "is -48; it must be at least 0"),
    (lambda: fedbits.TopK(k=1).decode("text", 10), TypeError, "the message is of type str; it must be bytes"),
    (lambda: fedbits.TopK(k=1).decode(5, 10), TypeError, "the message is of type int; it must be bytes"),
    (lambda: fedbits.TopK(k=1).decode(b"", 10, dtype="int32"), TypeError, "dtype is int32; it must be float32 or float64"),
    (lambda: fedbits.TopK(k=1).contract(10.5), TypeError, "shape is 10.5; it must be a whole number or a list of them"),
    (lambda: fedbits.Memory().load_state_dict(None), ValueError, "the state is None; it must be a dict of state_dict()"),
    (lambda: fedbits.Memory().load_state_dict({"eror": MATRIX}), ValueError, "has no 'eror'; it has 'error'"),
    (lambda: fedbits.Memory().load_state_dict({"error": [1.0]}), TypeError, "is of type list; it must be an array of NumPy"),
])
def test_wrong_arguments_are_named(wrong, error, text):
    with pytest.raises(error, match=re.escape(text)):
        wrong()


def test_the_package_says_what_it_has():
    done = subprocess.run([sys.executable, "-m", "fedbits"], capture_output=True, text=True, check=True)
    assert f"{len(fedbits.compressors())} compressors" in done.stdout
    wrong = subprocess.run([sys.executable, "-m", "fedbits", "run"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "no command 'run'" in wrong.stderr


def wrong_vectors(vector):
    """Yields the vector with one number that is not finite, and its place."""
    for place in (0, vector.size // 2, vector.size - 1):
        for number in (np.nan, np.inf, -np.inf):
            wrong = vector.copy()
            wrong.flat[place] = number
            yield wrong, place


def require_refusals(compressor, vector):
    """Sends, and in between tries vectors that are not finite: they have to be refused, and to change nothing."""
    memory, other = fedbits.Memory(), fedbits.Memory()
    for wrong, place in wrong_vectors(vector):
        with pytest.raises(fedbits.Error, match=f"^the vector is not finite at place {place}$") as raised:
            compressor.compress(wrong, memory=memory)
        assert not isinstance(raised.value, fedbits.MessageOverflow)
    for number in (1, 2, 3):
        sent, expected = (bytes(compressor.compress(vector, round=number, memory=one)) for one in (memory, other))
        assert sent == expected
        before = memory.state_dict()
        for wrong, place in wrong_vectors(vector):
            with pytest.raises(fedbits.Error, match=f"^the vector is not finite at place {place}$"):
                compressor.compress(wrong, round=number + 1, memory=memory)
            after = memory.state_dict()
            assert after.keys() == before.keys() and all(after[name].tobytes() == before[name].tobytes() for name in before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_vector_that_is_not_finite_is_refused_and_changes_nothing(compressor, dtype):
    require_refusals(compressor, MATRIX.astype(dtype))


@pytest.mark.parametrize("large", [fedbits.TopK(ratio=0.01), fedbits.TopK(ratio=0.01, value_format="fp16"), fedbits.TopK(k=1), fedbits.TopK(ratio=0.4),
                                   fedbits.HardThreshold(threshold=2.0), fedbits.RandomK(ratio=0.01), fedbits.Natural(), fedbits.EFSign(),
                                   fedbits.EFSign(scope="bucket", bucket=2048), fedbits.QSGD(scaled=False), fedbits.QSGD(norm="max"),
                                   fedbits.QSGD(scope="bucket", bucket=512)], ids=repr)
def test_a_large_vector_that_is_not_finite_is_refused_and_changes_nothing(large):
    require_refusals(large, RANDOM.standard_normal(70_001).astype(np.float32))


def test_a_vector_that_is_known_to_be_finite_is_compressed_alike(compressor):
    one, two = fedbits.Memory(), fedbits.Memory()
    for number in (1, 2):
        assert bytes(compressor.compress(MATRIX, round=number, memory=one)) == bytes(compressor.compress(MATRIX, round=number, memory=two, check=False))
    np.testing.assert_array_equal(one.error, two.error)


def test_an_overflow_empties_the_memory():
    memory = fedbits.Memory()
    with pytest.raises(fedbits.MessageOverflow, match="overflows"):
        fedbits.TopK(k=4, value_format="fp16").compress(MATRIX * np.float32(1e30), memory=memory)
    assert memory.error is None


def test_a_scope_inside_another_compressor_is_refused():
    with pytest.raises(ValueError, match="whose scope counts"):
        fedbits.Induced(biased=fedbits.TopK(k=4, scope="tensor"), unbiased=fedbits.Natural())


@pytest.mark.parametrize("operator", [fedbits.TopK(k=1), fedbits.TopK(ratio=0.1), fedbits.Qsparse(ratio=0.1), fedbits.SketchML(), fedbits.SZ()])
def test_a_thread_that_writes_to_the_array_does_no_harm(operator):
    array, numbers = np.ones(3000, np.float32), RANDOM.standard_normal(3000).astype(np.float32)
    is_over = threading.Event()

    def write():
        while not is_over.is_set():
            for other in (numbers, np.nan, 1, numbers[::-1]):
                array[:] = other

    writer = threading.Thread(target=write)
    writer.start()
    try:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            for check in (True, False):
                try:
                    assert operator.compress(array, check=check).bits > 0
                except fedbits.Error:
                    pass
    finally:
        is_over.set()
        writer.join()


def test_threads_that_share_a_compressor_take_turns():
    operator = fedbits.QSGD()
    alone = [bytes(operator.compress(MATRIX, client=client)) for client in range(64)]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda client: bytes(operator.compress(MATRIX, client=client)), range(64))) == alone


SCENARIO = """
name = "one-round"
rounds = 1
seed = 5
data = {{ name = "mushrooms", rows = 400, test = "none" }}
partition = {{ kind = "contiguous", clients = 1 }}
model = {{ kind = "logistic_regression" }}
local = {{ kind = "gradient", learning_rate = 0.5 }}
feedback.up = {{ kind = "none" }}
compressor.up = {{ kind = "{kind}", unit = "step" }}
evaluate = {{ optimum = false }}
"""


def one_round(kind, folder):
    """Returns the model after one round of the command line, from zero, and the bits that went up."""
    program = os.environ["FEDBITS"]
    (folder / f"{kind}.toml").write_text(SCENARIO.format(kind=kind))
    subprocess.run([program, "run", folder / f"{kind}.toml", "--out", folder / kind, "--save-model", folder / "models" / kind, "--model-format", "npy",
                    "--quiet"], check=True)
    subprocess.run([program, "export", folder / kind, "--runs", folder / f"{kind}.csv"], check=True, stdout=subprocess.DEVNULL)
    with open(folder / f"{kind}.csv", newline="") as file:
        bits = int(next(csv.DictReader(file))["bits_up"])
    return np.load(next((folder / "models" / kind).glob("*.npy"))).ravel(), bits


@pytest.mark.skipif("FEDBITS" not in os.environ, reason="TOOL MISSING: FEDBITS names no program, so messages were NOT COMPARED with those of a run")
@pytest.mark.parametrize("kind", ["top_k", "qsgd", "natural", "random_k", "terngrad", "drive", "three_lc", "stochastic_rounding"])
def test_messages_are_those_of_a_run(kind, tmp_path):
    dense, _ = one_round("identity", tmp_path)
    model, bits = one_round(kind, tmp_path)
    operator = {made.kind: made for made in map(lambda name: getattr(fedbits, name), fedbits.compressors())}[kind]()
    message = operator.compress(-dense, client=0, round=1, seed=5, step_size=0.5)
    np.testing.assert_array_equal(-message.decode(), model)
    assert message.bits == bits


def test_tensors_of_pytorch_come_back_as_such():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its tensors were NOT TESTED")
    tensor = torch.nn.Parameter(torch.from_numpy(MATRIX.copy()))
    sent = fedbits.TopK(k=5).compress(tensor).decode()
    assert isinstance(sent, torch.Tensor) and sent.shape == tensor.shape and torch.count_nonzero(sent) == 5
    for wrong, text in ((tensor.half(), "float16"), (tensor.t(), "contiguous"), (tensor.to("meta"), "lies on meta")):
        with pytest.raises((TypeError, ValueError), match=text):
            fedbits.TopK(k=5).compress(wrong)


class OnAnotherDevice:
    def __dlpack__(self, **_):
        raise BufferError("it lies on a GPU")

    def __dlpack_device__(self):
        return 2, 0


def test_an_array_of_another_device_is_refused():
    with pytest.raises(TypeError, match="OnAnotherDevice cannot be read here .*an array on the CPU can"):
        fedbits.TopK(k=5).compress(OnAnotherDevice())


def test_a_memory_of_another_vector_is_refused():
    memory = fedbits.Memory()
    fedbits.TopK(k=1).compress(MATRIX, memory=memory)
    with pytest.raises(ValueError, match="of a vector with 1536 numbers"):
        fedbits.TopK(k=1).compress(MATRIX[:2], memory=memory)


@pytest.mark.parametrize("place", [0, 2**20 - 1, 2**20, 2 * 2**20 + 4, 2 * 2**20 + 5 + 2**19])
def test_a_nan_anywhere_in_a_long_vector_is_refused_before_the_memory_moves(place):
    size = 2 * 2**20 + 6 + 2**19  # is read in pieces of 2**20 numbers
    memory, vector = fedbits.Memory(), np.ones(size, np.float32)
    fedbits.TopK(ratio=0.01).compress(vector, memory=memory)
    before = memory.error.copy()
    vector[place] = np.nan
    with pytest.raises(fedbits.Error, match=f"not finite at place {place}$"):
        fedbits.TopK(ratio=0.01).compress(vector, memory=memory)
    assert np.array_equal(memory.error, before)
