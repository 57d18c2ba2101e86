"""How much of a GPU's peak the machine code of matrix products allows, for scripts/gpu_resources.py --products.

A multiprocessor has four schedulers, and each starts one instruction in a cycle at most. In the inner loop of a product

    share = cycles that the multipliers are busy at their peak / instructions that are started

is an upper bound of the part of the peak that the kernel reaches: loads, stores, addresses and conversions take the other cycles. The inner loop
is, of the loops that hold no other loop, the one whose useful instructions keep the multipliers busy longest; a loop in double precision counts
only in kernels that have no other (those in single precision call exp() in double precision). All instructions of the loop are counted, also those
behind branches that are not always taken. `most` leaves out everything that a branch can skip and keeps the useful instructions: no pass of the
loop can be shorter.
"""
import os
import pathlib
import re
import subprocess

# Useful instructions, and cycles of a scheduler's multipliers for each: lanes of FP32 and FP64, and multiplications in a cycle of tensor cores.
LANES = {"FFMA": 1, "DFMA": 2}
PER_CYCLE = {"BF16": 512, "F16": 512, "TF32": 256}  # sm_90, dense
INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,6})\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);")


def busy_cycles(operation):
    """Returns the cycles that an instruction keeps the multipliers of a scheduler busy; 0 if it does not multiply matrices."""
    name = operation.split(".")[0]
    if name in LANES:
        return LANES[name]
    product = re.match(r"HMMA\.(16)(8)(\d+)\.F32\.(\w+)", operation)
    if not product or product.group(4) not in PER_CYCLE:
        return 0
    rows, columns, depth = (int(product.group(i)) for i in (1, 2, 3))
    return rows * columns * depth / PER_CYCLE[product.group(4)]


def functions(path, program, arch):
    """Yields (mangled name, [(address, is conditional, operation, operands)]) of an object file. cuobjdump looks for nvdisasm on the PATH."""
    folder = str(pathlib.Path(program).resolve().parent)
    env = {**os.environ, "PATH": f"{folder}:{os.environ.get('PATH', '')}"}
    said = subprocess.run([program, "-sass", "-arch", arch, str(path)], check=True, capture_output=True, text=True, env=env).stdout
    for part in re.split(r"\n\s*Function : ", said)[1:]:
        name, _, text = part.partition("\n")
        yield name.strip(), [(int(address, 16), bool(condition), operation, operands) for address, condition, operation, operands in INSTRUCTION.findall(text)]


def target(operation, operands):
    """Returns where a branch leads, or None."""
    found = re.search(r"0x([0-9a-f]+)", operands) if operation.startswith("BRA") else None
    return int(found.group(1), 16) if found else None


def inner_loop(code):
    """Returns the instructions of the loop, without another one inside, that keeps the multipliers busy longest; [] if none does."""
    ends = [(target(operation, operands), address) for address, _, operation, operands in code]
    loops = [(begin, end) for begin, end in ends if begin is not None and begin < end]
    inner = [one for one in loops if not any(one[0] <= other[0] and other[1] <= one[1] and other != one for other in loops)]
    bodies = [[line for line in code if begin <= line[0] <= end] for begin, end in inner]
    products = [body for body in bodies if busy(body)]
    single = [body for body in products if not any(operation.startswith("DFMA") for _, _, operation, _ in body)]
    return max(single or products, key=lambda body: (busy(body), -len(body)), default=[])


def busy(body):
    return sum(busy_cycles(operation) for _, _, operation, _ in body)


def shortest_pass(body):
    """Returns the least number of instructions of a pass through a loop that does all of its useful ones."""
    place = {line[0]: i for i, line in enumerate(body)}
    useful = 10**6  # more than instructions could outweigh: a way around useful ones is never the best
    least = [0] + [float("inf")] * len(body)
    for i, (_, is_conditional, operation, operands) in enumerate(body):
        cost = least[i] + 1 - (useful if busy_cycles(operation) else 0)
        to = place.get(target(operation, operands))
        if to is not None and to > i:
            least[to] = min(least[to], cost)
            if not is_conditional:
                continue
        least[i + 1] = min(least[i + 1], cost)
    return least[-1] + useful * sum(1 for _, _, operation, _ in body if busy_cycles(operation))


def products(folder, program, arch):
    """Yields (mangled name, kind, useful instructions, instructions, share, most) of every kernel of a folder's object files with such a loop."""
    for path in sorted(folder.rglob("*.cu.o")):
        for name, code in functions(path, program, arch):
            body = inner_loop(code)
            if not body:
                continue
            useful = [operation for _, _, operation, _ in body if busy_cycles(operation)]
            kinds = {operation.split(".")[0] if operation[0] != "H" else operation.split(".")[-1] for operation in useful}
            cycles = busy(body)
            yield name, "/".join(sorted(kinds)), len(useful), len(body), cycles / len(body), min(1.0, cycles / shortest_pass(body))
