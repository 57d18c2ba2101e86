"""What a person who wishes ill may pass: damaged states, numbers and texts that C++ cannot hold, values in themselves, huge shapes, paths of no file.

Each is refused by name with an error of Python, and nothing crashes, hangs or takes the machine's memory.
"""
import os
import random
import resource

import numpy as np
import pytest

import fedbits
from studies import STUDY
from test_feedbacks import USES, make, name_of, play


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# ---- damaged states

def damaged_bytes(draw, data):
    """Returns bytes with a bit, a byte, a run of bytes or their end changed."""
    changed = bytearray(data)
    place = draw.randrange(len(changed))
    way = draw.randrange(5)
    if way == 0:
        changed[place] ^= 1 << draw.randrange(8)
    elif way == 1:
        changed[place] = (changed[place] + draw.randrange(1, 256)) % 256
    elif way == 2:
        del changed[place:]
    elif way == 3:
        changed[place:place] = bytes(draw.randrange(1, 9))
    else:
        changed[:] = changed[place:] + changed[:place] if place else changed + b"\0"
    return bytes(changed)


def damaged(draw, state):
    """Returns a copy of a state dict with an entry changed, removed or added."""
    state = dict(state)
    name = draw.choice(sorted(state))
    one = state[name]
    way = draw.randrange(10)
    if way == 0:
        del state[name]
    elif way == 1:
        state["more"] = one
    elif isinstance(one, bytes):
        state[name] = damaged_bytes(draw, one)
    elif isinstance(one, np.ndarray):
        state[name] = np.frombuffer(flipped(draw, one.tobytes()), one.dtype).copy()
    elif isinstance(one, str):
        state[name] = damaged_bytes(draw, one.encode()).decode("latin-1")
    else:
        state[name] = one ^ (1 << draw.randrange(31))
    return state


def flipped(draw, data):
    changed = bytearray(data)
    changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def is_same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) if isinstance(one[name], np.ndarray) else one[name] == other[name]
                                              for name in one)


@pytest.mark.parametrize("use", USES, ids=name_of)
def test_no_damaged_state_of_a_feedback_is_taken(use):
    one = make(use)
    for number in range(2):
        play(one, number)
    state, draw = one.state_dict(), random.Random(1)
    two = make(use)
    before = two.state_dict()
    for _ in range(310):
        wrong = damaged(draw, state)
        if is_same(wrong, state):
            continue
        with pytest.raises(ValueError, match="state"):
            two.load_state_dict(wrong)
    assert two.state_dict() == before
    two.load_state_dict(state)
    assert play(two, 2)[0] == play(one, 2)[0]


@pytest.mark.parametrize("compressor", [fedbits.TopK(ratio=0.1), fedbits.PowerSGD(rank=1), fedbits.DGCSampled()], ids=repr)
def test_no_damaged_state_of_a_memory_is_taken(compressor):
    matrix = np.random.default_rng(1).standard_normal((16, 8)).astype(np.float32)
    memory, draw = fedbits.Memory(), random.Random(2)
    compressor.compress(matrix, memory=memory)
    state, other = memory.state_dict(), fedbits.Memory()
    for _ in range(1000):
        wrong = damaged(draw, state)
        if is_same(wrong, state):
            continue
        with pytest.raises(ValueError, match="state"):
            other.load_state_dict(wrong)
    assert other.state_dict() == {} and other.round == 0
    other.load_state_dict(state)
    assert bytes(compressor.compress(matrix, memory=other)) == bytes(compressor.compress(matrix, memory=memory))


def test_states_without_a_checksum_are_refused_with_a_sentence():
    feedback, memory = make(USES[4]), fedbits.Memory()
    fedbits.TopK(k=1).compress(np.ones(4, np.float32), memory=memory)
    for part in (feedback, memory):
        old = part.state_dict()
        del old["checksum"]
        with pytest.raises(ValueError, match="no 'checksum': it is damaged, or a version of fedbits before checksums saved it"):
            part.load_state_dict(old)


# ---- numbers, texts and values in themselves

def in_itself():
    one = []
    one.append(one)
    return one


def in_itself_as_a_dict():
    one = {}
    one["kind"] = one
    return one


def deep(levels=10_000):
    one = []
    for _ in range(levels):
        one = [one]
    return one


def deep_dict(levels=10_000):
    one = {"kind": 1}
    for _ in range(levels):
        one = {"kind": one}
    return one


def in_many_lists(levels=60):
    """Sixty lists, which stand for 2^60 values."""
    one = [1]
    for _ in range(levels):
        one = [one, one]
    return one


HUGE, HALF, ZERO = 2**70, "\ud800", "a\0b"
VALUES = {"2**70": HUGE, "-2**63-1": -2**63 - 1, "10**5000": 10**5000, "half of a pair": HALF, "in itself": in_itself(),
          "dict in itself": in_itself_as_a_dict(), "deep": deep(), "deep dict": deep_dict()}
X = np.ones(64, np.float32)


@pytest.fixture(scope="module")
def small_store(tmp_path_factory):
    return fedbits.run(STUDY, out=tmp_path_factory.mktemp("small"), rounds=2, progress=False)


def options_of_all():
    """Yields (class, option) for each option of every compressor and feedback."""
    for name in sorted({**fedbits.compressors(), **fedbits.feedbacks()}):
        made = getattr(fedbits, name)
        for field in made._fields:
            yield made, fedbits.parts.as_argument(field["name"])


def arguments_that_name(made, option, value):
    others = {} if issubclass(made, fedbits.Compressor) else {"num_clients": 2, "P": 8}
    first = () if issubclass(made, fedbits.Compressor) else (fedbits.TopK(k=2),)
    return first, others | {option: value}


@pytest.mark.parametrize("what", sorted(VALUES))
def test_every_option_of_every_part_is_refused_by_name(what):
    tried = 0
    for made, option in options_of_all():
        first, named = arguments_that_name(made, option, VALUES[what])
        with pytest.raises((ValueError, TypeError, fedbits.ConfigError), match=option.removesuffix("_")) as raised:
            made(*first, **named)
        assert type(raised.value) is not RecursionError and len(str(raised.value)) < 1000
        tried += 1
    assert tried > 150


@pytest.mark.parametrize("what", sorted(VALUES))
@pytest.mark.parametrize("use", [
    lambda value: fedbits._core.check_options("compressor", "top_k", {"k": value}),
    lambda value: fedbits._core.Operator32("top_k", {"k": value}, [[4]], "model", 0),
    lambda value: fedbits._core.feedback_facts("ef21", {"k": value}),
    lambda value: fedbits._core.register_part("model", "k", "a model", [("k", value, "")]),
    lambda value: fedbits._core.first_run_of({"text": STUDY, "name": "k", "folder": "", "settings": [value, "k"]}),
    lambda value: fedbits._core.plan({"text": STUDY, "name": "k", "folder": "", "settings": [], "threads": value}, False),
    lambda value: fedbits._core.suggest({"k": 3.0, "measure": value}, False),
    lambda value: fedbits._core.compare("k", {"window": value}, "up", False),
    lambda value: fedbits._core.checksum([value]),
    lambda value: fedbits._core.hint(value, ["k"]) and None,
    lambda value: fedbits._core.describe(value, "k"),
    lambda value: fedbits._core.Feedback32("ef21", {}, [("", "top_k", {"k": value}, "model", 0)], [[4]], [1.0], None, 1),
])
def test_the_extension_module_refuses_what_it_cannot_hold(use, what):
    try:
        use(VALUES[what])
    except (ValueError, TypeError, OverflowError, fedbits.Error) as error:
        assert "bad_cast" not in str(error)


def run_with(model=None, **settings):
    alone = {"sweep": {"axis": [], "seeds": 1}, "rounds": 1}
    return fedbits.run(STUDY, out="out", progress=False, **alone | settings | ({} if model is None else {"model": {"kind": model}}))


def define_model(shapes=None, option=1, text=None):
    class Made(fedbits.Model, kind="hostile"):
        value = option

        def shapes(self, data):
            return shapes or {"w": (data.num_features,)}

        def loss_and_gradient(self, x, rows):
            if text is not None:
                raise RuntimeError(text)
            return 0.0, np.zeros_like(x)


def use_model(**how):
    define_model(**how)
    return run_with("hostile")


@pytest.mark.parametrize("name, use", [
    # compressors and feedbacks
    ("seed", lambda store: fedbits.TopK(k=2).compress(X, seed=10**5000)),
    ("client", lambda store: fedbits.TopK(k=2).compress(X, client=HUGE)),
    ("round", lambda store: fedbits.TopK(k=2).compress(X, round=HUGE)),
    ("step_size", lambda store: fedbits.TopK(k=2).compress(X, step_size=10**400)),
    ("shapes", lambda store: fedbits.TopK(k=2).compress(X, shapes=[HALF])),
    ("shapes", lambda store: fedbits.TopK(k=2).compress(X, shapes=in_itself())),
    ("shapes", lambda store: fedbits.TopK(k=2).compress(X, shapes=deep())),
    ("scope", lambda store: fedbits.TopK(k=2, scope=HALF)),
    ("scope", lambda store: fedbits.TopK(k=2, scope=in_itself())),
    ("bucket", lambda store: fedbits.TopK(k=2, scope="bucket", bucket=HUGE)),
    ("name of an option", lambda store: fedbits.TopK(**{HALF: 2})),
    ("dtype", lambda store: fedbits.TopK(k=2).contract(4, dtype=HALF)),
    ("dtype", lambda store: fedbits.TopK(k=2).contract(4, dtype=in_itself())),
    ("dtype", lambda store: fedbits.TopK(k=2).contract(4, dtype=deep())),
    ("unit", lambda store: fedbits.EF21(fedbits.TopK(k=2), num_clients=2, P=4, unit=HALF)),
    ("unit", lambda store: fedbits.EF21(fedbits.TopK(k=2), num_clients=2, P=4, unit=in_itself())),
    ("seed", lambda store: fedbits.EF21(fedbits.TopK(k=2), num_clients=2, P=4, seed=HUGE)),
    ("num_clients", lambda store: fedbits.EF21(fedbits.TopK(k=2), num_clients=HUGE, P=4)),
    ("num_clients", lambda store: fedbits.EF21(fedbits.TopK(k=2), num_clients=2**32, P=4)),
    ("weights", lambda store: fedbits.EF21(fedbits.TopK(k=2), num_clients=1, P=4, weights=[10**400])),
    ("weights", lambda store: fedbits.EF21(fedbits.TopK(k=2), num_clients=1, P=4, weights=in_itself())),
    ("channel", lambda store: fedbits.EF21({HALF: fedbits.TopK(k=2)}, num_clients=2, P=4)),
    # scenarios
    ("rounds", lambda store: run_with(rounds=HUGE)),
    ("rounds", lambda store: run_with(rounds=10**5000)),
    ("local.learning_rate", lambda store: run_with(local={"learning_rate": HALF})),
    ("a key", lambda store: run_with(**{HALF: 1})),
    ("a key of local", lambda store: run_with(local={HALF: 1})),
    ("compressor.up", lambda store: run_with(compressor={"up": {"kind": "schedule", "stages": in_itself()}})),
    ("local", lambda store: run_with(local=in_itself_as_a_dict())),
    ("compressor", lambda store: run_with(compressor={"up": deep()})),
    ("compressor.up", lambda store: run_with(compressor={"up": deep_dict()})),
    ("rounds", lambda store: fedbits.Scenario({"name": "x", "rounds": HUGE})),
    ("name", lambda store: fedbits.Scenario({"name": HALF})),
    ("data", lambda store: fedbits.Scenario({"data": in_itself_as_a_dict()})),
    ("data", lambda store: fedbits.Scenario({"data": deep_dict()})),
    ("text of the scenario", lambda store: fedbits.Scenario("name = '" + HALF + "'\n")),
    ("a key", lambda store: fedbits.Scenario(STUDY)[HALF]),
    ("rounds", lambda store: setattr(fedbits.Scenario(STUDY), "rounds", HUGE)),
    ("name", lambda store: setattr(fedbits.Scenario(STUDY), "name", HALF)),
    # commands
    ("threads", lambda store: fedbits.run(STUDY, threads=HUGE)),
    ("threads", lambda store: fedbits.run(STUDY, threads=10**5000)),
    ("device", lambda store: fedbits.run(STUDY, device=HALF)),
    ("state_memory", lambda store: fedbits.run(STUDY, state_memory=HALF)),
    ("checkpoint_rounds", lambda store: fedbits.run(STUDY, checkpoint_rounds=HUGE)),
    ("checkpoint_minutes", lambda store: fedbits.run(STUDY, checkpoint_minutes=10**400)),
    ("progress", lambda store: fedbits.run(STUDY, progress=10**5000)),
    ("shard", lambda store: fedbits.sweep(STUDY, shard=HALF)),
    ("memory", lambda store: fedbits.sweep(STUDY, memory=HALF)),
    ("jobs", lambda store: fedbits.plan(STUDY, jobs=HUGE)),
    ("most", lambda store: fedbits.plan(STUDY, most=HUGE)),
    ("k", lambda store: fedbits.suggest(k=10**400)),
    ("measure", lambda store: fedbits.suggest(STUDY, k=3, measure=HUGE)),
    ("name of a part", lambda store: fedbits.check(HALF)),
    ("only", lambda store: fedbits.check("top_k", only=[HALF])),
    ("ratio", lambda store: fedbits.check("top_k", ratio=HALF)),
    ("k", lambda store: fedbits.check("top_k", k=HUGE)),
    # stores
    ("bits", lambda store: store.comparison(bits=HALF)),
    ("baseline", lambda store: store.comparison(HALF)),
    ("measures", lambda store: store.comparison(measure=[HALF])),
    ("window", lambda store: store.comparison(window=10**400)),
    ("name", lambda store: store.study(HALF)),
    ("target", lambda store: store.report(target=10**400)),
    ("name of an option", lambda store: store.report(**{HALF: 1})),
    ("level", lambda store: store.chart_data(level=HALF)),
    # parts in Python
    ("value", lambda store: define_model(option=HUGE)),
    ("value", lambda store: define_model(option=HALF)),
    ("the name of a tensor", lambda store: use_model(shapes={HALF: (3,)})),
    ("shape of 'w'", lambda store: use_model(shapes={"w": (HUGE,)})),
    ("shape of 'w'", lambda store: use_model(shapes={"w": (2**62, 4)})),
    ("numbers together", lambda store: use_model(shapes=[(2**31,), (2**31,)])),
    ("", lambda store: use_model(text=HALF)),
    ("kind", lambda store: fedbits.Dataset(HALF, np.ones((4, 2)), [0, 1, 0, 1])),
    ("labels", lambda store: fedbits.Dataset("halves", np.ones((4, 2)), [HALF, "b", "a", "b"])),
])
def test_numbers_and_texts_that_cannot_be_held_are_named(small_store, name, use):
    with pytest.raises((ValueError, TypeError, OverflowError, RuntimeError)) as raised:
        use(small_store)
    assert not isinstance(raised.value, RecursionError)
    assert name in str(raised.value).replace("\ud800", "") and "bad_cast" not in str(raised.value) and len(str(raised.value)) < 1000


@pytest.mark.parametrize("name, use", [
    ("k", lambda value: fedbits.TopK(k=value)),
    ("stages", lambda value: fedbits.Schedule(stages=value)),
    ("momentum", lambda value: fedbits.EF21(fedbits.TopK(k=2), num_clients=2, P=4, momentum=value)),
    ("k", lambda value: fedbits._core.check_options("compressor", "top_k", {"k": value})),
    ("sweep", lambda value: fedbits.Scenario({"name": "x", "sweep": {"axis": value}})),
    ("compressor.up", lambda value: run_with(compressor={"up": {"kind": "schedule", "stages": value}})),
    ("k", lambda value: fedbits.check("top_k", k=value)),
])
def test_lists_that_stand_for_more_values_than_there_is_memory_are_refused(name, use):
    begun = resource.getrusage(resource.RUSAGE_SELF)
    with pytest.raises(ValueError, match=f"^{name}.* as a list that is in many lists$"):
        use(in_many_lists())
    ended = resource.getrusage(resource.RUSAGE_SELF)
    assert ended.ru_utime - begun.ru_utime < 60 and ended.ru_maxrss - begun.ru_maxrss < 2_000_000


def test_a_partitioner_whose_draws_is_no_truth_value_is_named():
    class Turns(fedbits.Partitioner, kind="turns"):
        draws = "no"

        def split(self, request):
            return [np.arange(client, request.num_rows, request.num_clients) for client in range(request.num_clients)]

    found = "\n".join(text for one in fedbits.check("turns") for text in one.findings)
    assert "Turns.draws is 'no'; it must be True or False" in found and "bad_cast" not in found


@pytest.mark.parametrize("name, use", [
    ("path of the scenario", lambda store, path: fedbits.run(path)),
    ("path of the scenario", lambda store, path: fedbits.Scenario(path)),
    ("out", lambda store, path: fedbits.run(STUDY, out=path)),
    ("out", lambda store, path: fedbits.sweep(STUDY, out=path)),
    ("data_folder", lambda store, path: fedbits.run(STUDY, data_folder=path)),
    ("data_folder", lambda store, path: fedbits.plan(STUDY, data_folder=path)),
    ("data_folder", lambda store, path: fedbits.suggest(STUDY, k=3, data_folder=path)),
    ("save_model", lambda store, path: fedbits.run(STUDY, save_model=path)),
    ("state_folder", lambda store, path: fedbits.run(STUDY, state_folder=path, state_memory="1M")),
    ("folder", lambda store, path: fedbits.Store(path)),
    ("data_folder", lambda store, path: store.report(data_folder=path)),
    ("data_folder", lambda store, path: store.chart_data(splits=True, data_folder=path)),
    ("path", lambda store, path: fedbits.store.Report("page").save(path)),
    ("folder", lambda store, path: fedbits.export.csv(store, path)),
    ("folder", lambda store, path: fedbits.export.csv(path, "tables")),
    ("folder", lambda store, path: fedbits.export.parquet(store, path)),
    ("folder", lambda store, path: fedbits.export.tensorboard(store, path)),
    ("folder", lambda store, path: fedbits.export.wandb(store, path)),
    ("tracking_uri", lambda store, path: fedbits.export.mlflow(store, path)),
    ("a path of save", lambda store, path: fedbits.plot.save(None, path)),
    ("data_folder", lambda store, path: fedbits.plot.splits(store, data_folder=path)),
])
@pytest.mark.parametrize("path", [ZERO, HALF, os.path.join("folder", "\0")], ids=["byte 0", "half of a pair", "byte 0 at the end"])
def test_paths_that_name_no_file_are_refused_by_name(small_store, name, use, path):
    with pytest.raises(ValueError, match=f"^(the )?{name} is .*(a path cannot contain a byte 0|is no text)"):
        use(small_store, path)
    assert os.listdir(".") == []


# ---- shapes

LARGE = [2**31, (2**31,), (2**16, 2**15), (1, 2**31), (2**31, 1), [2**32 - 1]]
OPTIONS = {"PermK": {"clients": 4}, "RankRSVD": {"rank": 2}}


@pytest.mark.parametrize("name", sorted(fedbits.compressors()))
def test_contracts_of_large_shapes_cost_nothing(name):
    """No operator reads or makes a vector for its contract. It was 120 s for Accordion, and 100 GB."""
    compressor = getattr(fedbits, name)(**OPTIONS.get(name, {}))
    before = resource.getrusage(resource.RUSAGE_SELF)
    for shape in LARGE:
        try:
            assert isinstance(compressor.contract(shape), fedbits.Contract)
        except fedbits.ConfigError as error:
            assert "matrices" in str(error) or name == "PermK"
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_utime - before.ru_utime < 20 and after.ru_maxrss - before.ru_maxrss < 2_000_000


TOO_LARGE = [2**32, [2**62, 4], [2**63, 2], [2**64], [2**33, 2**31], [0, 2**62, 4], [2**70], [10**5000], [1] * 100 + [2**32]]


@pytest.mark.parametrize("shape", TOO_LARGE, ids=[str(place) for place in range(len(TOO_LARGE))])
def test_shapes_of_more_numbers_than_positions_are_refused_by_name(shape):
    top_k, many = fedbits.TopK(k=2), [shape if isinstance(shape, list) else [shape]]
    for name, use in [("shape", lambda: top_k.contract(shape)), ("shape", lambda: top_k.decode(b"", shape)),
                      ("shapes", lambda: top_k.compress(X, shapes=many)), ("shapes", lambda: top_k.decode(b"", 4, shapes=many)),
                      ("shapes", lambda: fedbits.EF21(top_k, num_clients=2, shapes=many))]:
        with pytest.raises(ValueError, match=f"^{name}.* (at most|from 0 to) 4294967295( numbers)?$") as raised:
            use()
        assert len(str(raised.value)) < 1000
    if shape[0:1] != [0] if isinstance(shape, list) else True:
        with pytest.raises((ValueError, TypeError), match="P is"):
            fedbits.EF21(top_k, num_clients=2, P=shape[0] * 2**33 if isinstance(shape, list) else shape)


def test_the_extension_module_refuses_shapes_that_overflow():
    for tensors in ([[2**62, 4]], [[2**32]], [[2**63, 2]], [[2**31], [2**31]], [[1, 2**33, 2**31]]):
        with pytest.raises(fedbits.ConfigError, match="more than 4294967295 numbers"):
            fedbits._core.Operator32("top_k", {"k": 2}, tensors, "model", 0)
        with pytest.raises(fedbits.ConfigError, match="more than 4294967295 numbers"):
            fedbits._core.Feedback32("ef21", {}, [("", "top_k", {"k": 2}, "model", 0)], tensors, [1.0], None, 1)


def test_shapes_together_have_at_most_as_many_numbers():
    with pytest.raises(ValueError, match="shapes have 4294967296 numbers together"):
        fedbits.EF21(fedbits.TopK(k=2), num_clients=2, shapes=[(2**31,), (2**31,)])


def test_buckets_that_take_more_memory_than_their_vector_are_refused():
    with pytest.raises(fedbits.ConfigError, match="bucket is 1, and 2147483648 numbers would have 2147483648 buckets"):
        fedbits.EFSign(scope="bucket", bucket=1).contract(2**31)
    with pytest.raises(fedbits.ConfigError, match="bucket is 2, and"):
        fedbits.EF14(fedbits.EFSign(scope="bucket", bucket=2), num_clients=2, P=2**31)


def test_a_server_that_does_not_fit_into_memory_is_refused():
    free = 1024 * int(next(line for line in open("/proc/meminfo") if line.startswith("MemTotal")).split()[1])
    if free > 8 * 2**32:
        pytest.skip("this machine has memory for such a server")
    with pytest.raises(fedbits.ConfigError, match="a server with vectors of 4294967295 numbers needs .* GB"):
        fedbits.EF21(fedbits.TopK(k=2), num_clients=2, P=2**32 - 1)
