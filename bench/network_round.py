"""Seconds per round of 100 clients in 4 processes, beside the simulated round and beside Flower's.

    FEDBITS_DATA=DIR python3 bench/network_round.py build/fedbits [--flower PYTHON] [--cores 0,1] [--certs]

The work is LR-MNIST: softmax regression, 100 clients of 60 images each, all of them in every round, one local epoch in batches of 10, dense
messages both ways. All processes of a row share the same cores. A round's time is the difference between a long and a short run by the
difference of their rounds, so that starting up does not count; each is the best of --repeats runs. Flower's row is its gRPC server with the
same clients, 25 in each of 4 processes, each a NumPy client that does the same steps (PYTHON is an interpreter with flwr and NumPy).
"""
import argparse
import gzip
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time

CLIENTS, PROCESSES, IMAGES, BATCH = 100, 4, 60, 10

SCENARIO = f"""
name = "network-round"
rounds = 10
data = {{ name = "mnist", rows = {CLIENTS * IMAGES}, normalise = "standard" }}
partition = {{ kind = "shuffled", clients = {CLIENTS} }}
model = {{ kind = "mlp", hidden = [] }}
local = {{ kind = "sgd", epochs = 1, batch = {BATCH}, learning_rate = 0.03 }}
evaluate = {{ every = 1000000, train_loss = false, gradient = "never", optimum = false }}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def on_cores(cores, command):
    return ["taskset", "-c", cores, *map(str, command)]


def seconds_of(command, beside=()):
    """Runs a command with others beside it, and returns its seconds. Each has to end well."""
    start = time.perf_counter()
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    others = [subprocess.Popen(other, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for other in beside]
    _, errors = first.communicate()
    seconds = time.perf_counter() - start
    for other in others:
        other.wait()
    if first.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{errors}")
    return seconds


def ranges():
    each = CLIENTS // PROCESSES
    return [(k * each, (k + 1) * each - 1) for k in range(PROCESSES)]


def simulated(options, folder, rounds):
    return seconds_of(on_cores(options.cores, [options.fedbits, "run", folder / "round.toml", "--set", f"rounds={rounds}", "--threads", len(
        options.cores.split(",")), "--again", "--out", folder / "simulated", "--quiet"]))


def networked(options, folder, rounds, security):
    port = free_port()
    serve = [options.fedbits, "serve", folder / "round.toml", "--set", f"rounds={rounds}", "--listen", f"127.0.0.1:{port}", "--again", "--out",
             folder / "served", *security]
    joins = [[options.fedbits, "join", f"127.0.0.1:{port}", "--clients", f"{first}-{last}", *security] for first, last in ranges()]
    return seconds_of(on_cores(options.cores, serve), [on_cores(options.cores, join) for join in joins])


def flower(options, rounds):
    port = free_port()
    me = pathlib.Path(__file__).resolve()
    server = [options.flower, me, "--as-server", port, rounds]
    peers = [[options.flower, me, "--as-clients", port, first, last] for first, last in ranges()]
    return seconds_of(on_cores(options.cores, server), [on_cores(options.cores, peer) for peer in peers])


def per_round(run, few, many, repeats):
    best = [min(run(rounds) for _ in range(repeats)) for rounds in (few, many)]
    return (best[1] - best[0]) / (many - few)


# ---- Flower's side


def mnist_rows():
    import numpy

    def read(name):
        folder = pathlib.Path(os.environ["FEDBITS_DATA"]) / "mnist"
        plain = folder / name
        raw = plain.read_bytes() if plain.exists() else gzip.open(folder / (name + ".gz")).read()
        dimensions = raw[3]
        shape = struct.unpack(">" + "I" * dimensions, raw[4:4 + 4 * dimensions])
        return numpy.frombuffer(raw, numpy.uint8, offset=4 + 4 * dimensions).reshape(shape)

    images = read("train-images-idx3-ubyte")[:CLIENTS * IMAGES].reshape(-1, 784).astype(numpy.float32) / 255
    return (images - 0.1307) / 0.3081, read("train-labels-idx1-ubyte")[:CLIENTS * IMAGES]


def flower_server(port, rounds):
    import flwr
    strategy = flwr.server.strategy.FedAvg(fraction_fit=1.0, fraction_evaluate=0.0, min_fit_clients=CLIENTS, min_available_clients=CLIENTS,
                                           initial_parameters=flwr.common.ndarrays_to_parameters(initial_model()))
    flwr.server.start_server(server_address=f"127.0.0.1:{port}", config=flwr.server.ServerConfig(num_rounds=rounds), strategy=strategy)


def initial_model():
    import numpy
    return [numpy.zeros((784, 10), numpy.float32), numpy.zeros(10, numpy.float32)]


def flower_clients(port, first, last):
    import threading

    import numpy
    from flwr.client import NumPyClient
    from flwr.compat.client.app import start_client
    images, labels = mnist_rows()

    class Client(NumPyClient):
        def __init__(self, number):
            self.images = images[number * IMAGES:(number + 1) * IMAGES]
            self.target = numpy.eye(10, dtype=numpy.float32)[labels[number * IMAGES:(number + 1) * IMAGES]]
            self.random = numpy.random.default_rng(number)

        def get_parameters(self, config):
            return initial_model()

        def fit(self, parameters, config):
            weights, bias = (array.copy() for array in parameters)
            order = self.random.permutation(IMAGES)
            for begin in range(0, IMAGES, BATCH):
                rows = order[begin:begin + BATCH]
                scores = self.images[rows] @ weights + bias
                scores = numpy.exp(scores - scores.max(axis=1, keepdims=True))
                slope = (scores / scores.sum(axis=1, keepdims=True) - self.target[rows]) / BATCH
                weights -= 0.03 * (self.images[rows].T @ slope)
                bias -= 0.03 * slope.sum(axis=0)
            return [weights, bias], IMAGES, {}

    # Flower wants to set handlers of signals, which only a main thread may.
    import signal
    signal.signal = lambda *_: None
    threads = [threading.Thread(target=start_client, kwargs={"server_address": f"127.0.0.1:{port}", "client": Client(k).to_client(),
                                                             "insecure": True}) for k in range(first, last + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--as-server":
        return flower_server(*map(int, sys.argv[2:4]))
    if len(sys.argv) > 1 and sys.argv[1] == "--as-clients":
        return flower_clients(*map(int, sys.argv[2:5]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fedbits", type=pathlib.Path)
    parser.add_argument("--flower", help="a Python interpreter with flwr")
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    options.fedbits = options.fedbits.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "round.toml").write_text(SCENARIO)
        subprocess.run([options.fedbits, "certs", "init", folder / "certs", "--clients", str(CLIENTS), "--per-peer",
                        str(CLIENTS // PROCESSES)], check=True, stdout=subprocess.DEVNULL)
        limit = per_round(lambda rounds: simulated(options, folder, rounds), 20, 220, options.repeats)
        print(f"simulated    {1e3 * limit:9.2f} ms a round")
        for label, security in (("TCP", ["--insecure"]), ("TLS", ["--certs", folder / "certs"])):
            ours = per_round(lambda rounds: networked(options, folder, rounds, security), 20, 220, options.repeats)
            print(f"fedbits {label}  {1e3 * ours:9.2f} ms a round   {ours / limit:6.2f} of the simulated round", flush=True)
            if label == "TCP":
                tcp = ours
        if options.flower:
            rival = per_round(lambda rounds: flower(options, rounds), 2, 12, 1)
            print(f"Flower gRPC  {1e3 * rival:9.2f} ms a round   {rival / tcp:6.1f} times the round of fedbits over TCP")


if __name__ == "__main__":
    main()
