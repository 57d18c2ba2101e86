#!/usr/bin/env python3
"""Seconds of a training step of ResNet-18 in two processes, with the hooks of fedbits beside those of PyTorch.

    python3 bench/torch_hooks.py loopback                     both processes on this machine's loopback
    sudo python3 bench/torch_hooks.py 100mbit 1gbit           each in a network namespace, joined by a link of this rate (Linux, needs ip and tc)

It needs fedbits and PyTorch, and prints a table as bench/results/python.md has it. All ways train a model of their own in the same two processes and take
turns step by step, so that what else the machine does meets them alike; each number is the median of the steps after the first two, in which
DistributedDataParallel forms its buckets and PowerSGD of PyTorch sends everything. Every process has one thread. Rates are those of tbf, of both
directions each.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import fedbits
import fedbits.torch

nn = torch.nn
SKIPPED_STEPS = 2
ADDRESSES = ("10.77.7.1", "10.77.7.2")


class Block(nn.Module):
    """A basic block of ResNet."""

    def __init__(self, width: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
                                  nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        self.beside = nn.Identity() if stride == 1 and width == out else nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.beside(x))


def resnet18() -> nn.Module:
    """Returns ResNet-18 for images of 32 x 32, with 11.2 million parameters."""
    torch.manual_seed(1)
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    width = 64
    for out, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(width, out, stride))
        width = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def threshold_of(model: nn.Module, batch) -> float:
    """Returns the magnitude that one entry of a hundred of the first gradient exceeds."""
    nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
    magnitudes = torch.cat([one.grad.abs().reshape(-1) for one in model.parameters()])
    return float(magnitudes.kthvalue(int(0.99 * len(magnitudes))).values)


def ways(batch) -> dict[str, object]:
    """Returns functions that register a hook with a model, by name."""
    def ours(compressor, **options):
        return lambda model: fedbits.torch.ddp_hook(compressor, **options).register(model)

    def powersgd(model):
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)

    threshold = torch.tensor(threshold_of(resnet18(), batch), dtype=torch.float64)
    dist.broadcast(threshold, 0)
    hard = fedbits.HardThreshold(threshold=float(threshold))
    found = {"DistributedDataParallel alone": lambda model: None,
             "PyTorch's fp16_compress_hook": lambda model: model.register_comm_hook(None, default_hooks.fp16_compress_hook),
             "PyTorch's powerSGD_hook, rank 2": powersgd}
    for name, compressor, options in (("Identity", fedbits.Identity(), {}), ("Identity, fp16", fedbits.Identity(format="fp16"), {}),
                                      ("top-1%", fedbits.TopK(ratio=0.01), {}), ("hard threshold", hard, {}),
                                      ("PowerSGD, rank 2", fedbits.PowerSGD(rank=2, scope="tensor"), {})):
        found[name] = ours(compressor, **options)
        found[name + ", per bucket"] = ours(compressor, per_bucket=True, **options)
    return found


def work(rank: int, meeting: str, steps: int, batch_size: int, only: str) -> None:
    """Takes the steps of all ways in turn, and prints their medians and bits."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    generator = torch.Generator().manual_seed(rank)
    batch = torch.randn(batch_size, 3, 32, 32, generator=generator), torch.randint(0, 10, (batch_size,), generator=generator)
    runs = {}
    for name, register in ways(batch).items():
        if only and not any(one in name for one in only.split(";")) and runs:
            continue
        model = DistributedDataParallel(resnet18())
        runs[name] = model, register(model), torch.optim.SGD(model.parameters(), lr=0.01), []
    for step in range(SKIPPED_STEPS + steps):
        for name, (model, _, optimizer, seconds) in runs.items():
            dist.barrier()
            begin = time.perf_counter()
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
            optimizer.step()
            dist.barrier()
            seconds.append(time.perf_counter() - begin)
    if rank == 0:
        found = {name: {"s": statistics.median(seconds[SKIPPED_STEPS:]),
                        "bits": hook.bits / hook.rounds if isinstance(hook, fedbits.torch.DdpHook) else None}
                 for name, (_, hook, _, seconds) in runs.items()}
        print(json.dumps(found), flush=True)
    dist.barrier()
    os._exit(0)


def namespaces(rate: str) -> list[list[str]]:
    """Makes two namespaces that are joined by a link, and returns what runs a command in each."""
    for rank in range(2):
        subprocess.run(["ip", "netns", "del", f"fedbits{rank}"], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "netns", "add", f"fedbits{rank}"], check=True)
    subprocess.run("ip link add fedbits0 type veth peer name fedbits1".split(), check=True)
    for rank in range(2):
        inside = ["ip", "-n", f"fedbits{rank}"]
        subprocess.run(["ip", "link", "set", f"fedbits{rank}", "netns", f"fedbits{rank}"], check=True)
        subprocess.run([*inside, "addr", "add", f"{ADDRESSES[rank]}/24", "dev", f"fedbits{rank}"], check=True)
        subprocess.run([*inside, "link", "set", f"fedbits{rank}", "up"], check=True)
        subprocess.run([*inside, "link", "set", "lo", "up"], check=True)
        shaping = f"tc qdisc add dev fedbits{rank} root tbf rate {rate} burst 256kb latency 50ms"
        subprocess.run(["ip", "netns", "exec", f"fedbits{rank}", *shaping.split()], check=True)
    return [["ip", "netns", "exec", f"fedbits{rank}"] for rank in range(2)]


def measure(network: str, steps: int, batch: int, only: str) -> dict[str, dict[str, float]]:
    """Returns the medians of all ways over a network: "loopback", or a rate of tc."""
    shaped = network != "loopback"
    before = namespaces(network) if shaped else [[], []]
    with tempfile.TemporaryDirectory() as folder:
        meeting = f"tcp://{ADDRESSES[0]}:29500" if shaped else f"file://{folder}/meeting"
        processes = []
        for rank in range(2):
            interface = {"GLOO_SOCKET_IFNAME": f"fedbits{rank}"} if shaped else {}
            command = [*before[rank], sys.executable, str(pathlib.Path(__file__).resolve()), "--worker", str(rank), "--meeting", meeting, "--steps", str(steps),
                       "--batch", str(batch), "--only", only]
            processes.append(subprocess.Popen(command, env=os.environ | interface, stdout=subprocess.PIPE, text=True))
        text, _ = processes[0].communicate()
        processes[1].wait()
    if shaped:
        for rank in range(2):
            subprocess.run(["ip", "netns", "del", f"fedbits{rank}"])
    if not text.strip():
        raise SystemExit(f"a process ended without a result, with the exit codes {[one.returncode for one in processes]}; its error stands above")
    return json.loads(text.splitlines()[-1])


def table_of(network: str, found: dict[str, dict[str, float]]) -> str:
    """Returns a table: bits of a process and seconds of a step, and the ratio of those to DistributedDataParallel alone."""
    lines = [f"| {network} | bits a step | seconds a step | ratio |", "|---|---|---|---|"]
    alone = next(iter(found.values()))["s"]
    for name, one in found.items():
        bits = f"{one['bits'] / 1e6:.1f} M" if one["bits"] else ""
        lines.append(f"| {name} | {bits} | {one['s']:.2f} | {one['s'] / alone:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("network", nargs="*", default=["loopback"], help='"loopback", or rates of tc as 100mbit')
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32, help="images in each process")
    parser.add_argument("--only", default="", help="parts of names, with ; between them")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--meeting", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        return work(options.worker, options.meeting, options.steps, options.batch, options.only)
    for network in options.network:
        print(table_of(network, measure(network, options.steps, options.batch, options.only)), flush=True)


main()
