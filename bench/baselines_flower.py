#!/usr/bin/env python3
"""A simulated round of Flower beside ours: FedAvg with ten clients of McMahan's 2NN, one epoch of 600 images in batches of 10, on the same cores.

    taskset -c 0,1 PYTHON bench/baselines_flower.py build/bench [ROUNDS]

PYTHON is an interpreter with flwr[simulation] and torch. Flower runs its clients in processes of Ray, one core each. Each client is a loop of
PyTorch over rows by index, as in baselines_torch.py. A round of Flower is the median time between two aggregations, so that starting Ray does not
count. Ours uses as many threads as there are cores. FEDBITS_DATA names the folder with fashion-mnist/, which ours reads; Flower's images are
random numbers.
"""
import logging
import os
import statistics
import sys
import time

CLIENTS, ROWS, BATCH = 10, 600, 10


def network():
    from torch import nn
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))


def arrays_of(model):
    return [tensor.detach().numpy() for tensor in model.parameters()]


def client_app():
    import torch
    from flwr.client import ClientApp, NumPyClient

    class Client(NumPyClient):
        def fit(self, parameters, config):
            torch.set_num_threads(1)
            torch.manual_seed(1)
            images, labels = torch.rand(ROWS, 1, 28, 28), torch.randint(10, (ROWS,))
            model, loss = network(), torch.nn.CrossEntropyLoss()
            with torch.no_grad():
                for tensor, array in zip(model.parameters(), parameters):
                    tensor.copy_(torch.from_numpy(array.copy()))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
            for part in torch.randperm(ROWS).split(BATCH):
                optimizer.zero_grad()
                loss(model(images[part]), labels[part]).backward()
                optimizer.step()
            return arrays_of(model), ROWS, {}

    return ClientApp(client_fn=lambda context: Client().to_client())


def server_app(rounds, times):
    """Times receives the moment of each aggregation."""
    from flwr.common import ndarrays_to_parameters
    from flwr.server import ServerApp, ServerAppComponents, ServerConfig
    from flwr.server.strategy import FedAvg

    class Timed(FedAvg):
        def aggregate_fit(self, server_round, results, failures):
            answer = super().aggregate_fit(server_round, results, failures)
            times.append(time.perf_counter())
            if failures or len(results) != CLIENTS:
                sys.exit(f"round {server_round} of Flower has {len(results)} results and {len(failures)} failures")
            return answer

    def components(context):
        strategy = Timed(fraction_fit=1.0, fraction_evaluate=0.0, min_fit_clients=CLIENTS, min_available_clients=CLIENTS,
                         initial_parameters=ndarrays_to_parameters(arrays_of(network())))
        return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=rounds))

    return ServerApp(server_fn=components)


def seconds_of_flower(rounds):
    from flwr.simulation import run_simulation
    times = []
    run_simulation(server_app(rounds, times), client_app(), num_supernodes=CLIENTS, backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}})
    return statistics.median(after - before for before, after in zip(times, times[1:]))


def main():
    from baseline_turns import Ours
    folder, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    logging.getLogger("flwr").setLevel(logging.WARNING)
    threads = len(os.sched_getaffinity(0))
    ours = Ours(folder + "/federated_bench")
    ours.seconds("2NN", threads)
    own = statistics.median(ours.seconds("2NN", threads)[0] for _ in range(5))
    theirs = seconds_of_flower(rounds + 1)
    print(f"round 2NN   {threads} cores   ours {1e3 * own:.1f} ms   Flower's simulation {1e3 * theirs:.0f} ms   {theirs / own:.0f} times")


if __name__ == "__main__":
    main()
