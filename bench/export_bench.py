#!/usr/bin/env python3
"""Exports of a store beside the least that each tool needs for the same values, in one process.

    FEDBITS_DATA=DIR PYTHON bench/export_bench.py [REPEATS]

PYTHON has fedbits, tensorboardX, wandb, mlflow-skinny, sqlalchemy and alembic; a tool that is missing is left out. The store has 60 runs of 200 rounds with 28
values each. Beside an export stands the tool alone, which gets ready values: TensorBoard one event per round, Weights & Biases one log() per round without
the facts about machine and packages, MLflow log_batch() of 1000 metrics. Reading the store is part of the export, and so are the tables of a new database.
Printed are medians of processor seconds, of this process and those that the tool starts, and of the ratios.
"""
import contextlib
import importlib.util
import os
import pathlib
import statistics
import sys
import tempfile

import fedbits
from fedbits import export

STUDY = """
name = "exported"
rounds = 200
data = { name = "mushrooms", test_fraction = 0.2 }
partition = { kind = "dirichlet_client", alpha = 1.0, clients = 8 }
model = { kind = "logistic_regression", l2 = 0.01 }
local = { kind = "gradient", batch = 16, learning_rate = 0.5 }
evaluate.every = 1
feedback.up = { kind = "ef14" }
[sweep]
seeds = 20
[[sweep.axis]]
key = "compressor.up"
values = [{ label = "none", kind = "identity" }, { label = "top-5%", kind = "top_k", ratio = 0.05 }, { label = "qsgd", kind = "qsgd", levels = 4, scaled = true }]
"""


def tensorboard_alone(runs, folder):
    import tensorboardX
    from tensorboardX.proto.summary_pb2 import Summary

    for run in runs:
        with tensorboardX.SummaryWriter(f"{folder}/{run.hash}", max_queue=1000) as writer:
            for number, values in run.rounds:
                writer.file_writer.add_summary(Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]), number)


def wandb_alone(runs, folder):
    import wandb

    settings = wandb.Settings(**export._WANDB_SETTINGS)
    for run in runs:
        with wandb.init(mode="offline", dir=folder, project="alone", id=run.hash, settings=settings) as logged:
            for number, values in run.rounds:
                logged.log(values, step=number)
    wandb.teardown()


def mlflow_alone(runs, address):
    import mlflow
    from mlflow.entities import Metric

    client = mlflow.MlflowClient(tracking_uri=address)
    experiment = client.create_experiment("alone")
    for run in runs:
        logged = client.create_run(experiment)
        metrics = [Metric(name, value, number, number) for name, value, number in run.rows()]
        for begin in range(0, len(metrics), 1000):
            client.log_batch(logged.info.run_id, metrics=metrics[begin:begin + 1000])
        client.set_terminated(logged.info.run_id)


# The package, the export, the tool alone, and the place in a folder.
TOOLS = {"TensorBoard": ("tensorboardX", export.tensorboard, tensorboard_alone, "{}/logs"),
         "Weights & Biases": ("wandb", export.wandb, wandb_alone, "{}"),
         "MLflow, folder": ("mlflow", export.mlflow, mlflow_alone, "file://{}/mlruns"),
         "MLflow, SQLite": ("sqlalchemy", export.mlflow, mlflow_alone, "sqlite:///{}/mlflow.db")}


def seconds(work, first, place):
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(None):
        begin = sum(os.times()[:4])
        work(first, place.format(folder))
        return sum(os.times()[:4]) - begin


def main(repeats):
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    with tempfile.TemporaryDirectory() as folder:
        store = fedbits.run(STUDY, out=pathlib.Path(folder) / "store", progress=False)
        runs = list(export._Runs(store))
        print(f"{len(runs)} runs, {sum(len(values) for run in runs for _, values in run.rounds)} values")
        for name, (package, ours, alone, place) in TOOLS.items():
            if importlib.util.find_spec(package) is None:
                print(f"{name:18s} left out: no {package} here")
                continue
            importlib.import_module(package)
            times = [(seconds(lambda store, place: ours(store, place, progress=False), store, place), seconds(alone, runs, place)) for _ in range(repeats)]
            mine, least = (statistics.median(column) for column in zip(*times))
            print(f"{name:18s} {mine:6.2f} s, the tool alone {least:6.2f} s, ratio {statistics.median(a / b for a, b in times):.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
