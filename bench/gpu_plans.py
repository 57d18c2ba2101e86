"""Lists the stages of gpu_check.py with their time limits, and three plans for a rented GPU. Each plan is one short run."""
import dataclasses
import typing

import gpu_measures
import gpu_suites
import gpu_tools


@dataclasses.dataclass(frozen=True)
class Stage:
    name: str
    work: typing.Callable
    limit_s: float
    what: str
    rows: str = ""  # `stage` of its rows; the name if empty

    @property
    def stage_of_rows(self):
        return self.rows or self.name


@dataclasses.dataclass(frozen=True)
class Plan:
    limit_s: float  # of the whole run, the unpacking of the archive included
    what: str
    stages: tuple


# Of a plan's limit: for unpacking the archive before, and for packing the logs after.
START_S = 12

OPERATORS = (("latency", 10), ("operators", 25), ("training", 20), ("aggregation", 15), ("rounds", 30))
# More than the stage has, since earlier stages leave some of theirs; what matters most comes first. On an H200 PyTorch and JAX took 5 s to start.
RIVALS = (("bmm", 12), ("vmap", 20), ("jax", 25), ("loop", 18), ("fused", 12), ("drjax", 20))

STAGES = {stage.name: stage for stage in (
    Stage("device", gpu_measures.device, 40, "the GPU, a kernel, the speed of a copy, matrix products by PyTorch"),
    Stage("kernels", gpu_suites.kernels, 100, "each kernel against its reference on the CPU, in shards"),
    Stage("runs", gpu_suites.runs, 90, "training steps and whole runs against the CPU, in shards"),
    Stage("determinism", gpu_measures.determinism, 45, "ten repeats of four runs, a process each"),
    Stage("benchmarks", gpu_measures.benchmark(*OPERATORS), 100, "all parts of gpu_bench"),
    Stage("baselines", gpu_measures.baseline(("loop", 15), ("vmap", 15), ("compile", 25), ("jax", 20), ("bmm", 10)), 75, "PyTorch and JAX"),
    Stage("sanitizer", gpu_tools.sanitizer, 60, "memcheck, racecheck and initcheck on some tests, each block of memory an allocation of its own"),
    Stage("times", gpu_tools.times, 30, "the time of every kernel in the benchmarks, measured by the engine"),
    Stage("counters", gpu_tools.counters, 25, "ncu's counters of the ten dearest kernels"),
)}

PLANS = {
    "A": Plan(180, "is it right, and how fast is it", (
        Stage("gpu", gpu_measures.gpu, 15, "the GPU, one kernel, the speed of a copy", "device"),
        Stage("suites", gpu_suites.suites, 86, "all GPU tests in shards, then those that measure free memory, then again what crashed", "kernels"),
        Stage("operators", gpu_measures.benchmark(("operators", 60)), 22, "gpu_bench operators", "benchmarks"),
        Stage("training", gpu_measures.benchmark(("training", 60)), 16, "gpu_bench training", "benchmarks"),
        Stage("aggregation", gpu_measures.benchmark(("aggregation", 60)), 14, "gpu_bench aggregation", "benchmarks"),
        Stage("ceilings", gpu_measures.ceilings, 15, "matrix products by PyTorch", "device"),
    )),
    "B": Plan(150, "after repairs: what failed, whole rounds, and rivals", (
        Stage("gpu", gpu_measures.gpu, 10, "the GPU, one kernel, the speed of a copy", "device"),
        Stage("suites again", gpu_suites.suites_again, 32,
              "tests that the table of plan A (--after) does not call the same: with CUDA_LAUNCH_BLOCKING=1, then as they are", "kernels"),
        Stage("rounds", gpu_measures.benchmark(("rounds", 34), ("latency", 8)), 33, "gpu_bench rounds and latency", "benchmarks"),
        Stage("rivals", gpu_measures.baseline(*RIVALS), 63,
              "PyTorch one client after another, torch.func.vmap, torch.bmm at our shapes, jax.vmap, map and reduce as in DrJAX, fused sums of a server",
              "baselines"),
    )),
    "C": Plan(120, "what an emulator cannot show: orders of streams, memory, counters", (
        Stage("gpu", gpu_measures.gpu, 8, "the GPU, one kernel, the speed of a copy", "device"),
        Stage("determinism", gpu_measures.delayed, 28, "repeated runs with FEDBITS_CUDA_DELAY=1, a random wait before each launch"),
        Stage("sanitizer", gpu_tools.sanitizer, 38, "memcheck, racecheck and initcheck side by side, with FEDBITS_CUDA_POOL=off"),
        Stage("times", gpu_tools.times, 14, "the time of every kernel in the benchmarks, measured by the engine"),
        Stage("counters", gpu_tools.counters, 20, "ncu's counters of one launch of each kernel, at full size and with --clock-control none"),
    )),
}


def text_of(name):
    """Returns what a plan does, for --dry-run."""
    plan = PLANS[name]
    lines = [f"plan {name}, at most {plan.limit_s:g} s: {plan.what}", f"  {'unpack and pack':<16} {START_S:>4} s  the archive before, the logs after"]
    lines += [f"  {stage.name:<16} {stage.limit_s:>4} s  {stage.what}" for stage in plan.stages]
    return "\n".join(lines)
