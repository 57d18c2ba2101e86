#!/usr/bin/env python3
"""Registers, shared memory, stacks and occupancy of every kernel of a CUDA build, without a GPU.

    scripts/gpu_resources.py build-cuda [--arch sm_90] [--all] [--cuobjdump PROGRAM]
    scripts/gpu_resources.py build-cuda --products [--arch sm_90]

Reads what `cuobjdump --dump-resource-usage` says of the object files below the folder, and the block size of each launch from the sources
where it is a constant. A row is a kernel; of its instances it shows the one that takes the most, and with --all each of them. Bytes of the
stack are registers that were spilled, or arrays of a thread that are indexed by numbers unknown to the compiler: both lie in local memory.
Occupancy is the share of the 64 warps of a multiprocessor that registers and static shared memory leave room for; memory that a launch asks
for as it starts is not in it. Kernels whose block size is no constant have none.

With --products it reads the machine code instead, and shows for each kernel of matrix products the share of the peak that its inner loop allows
(scripts/gpu_machine_code.py). That needs nvdisasm beside cuobjdump. Both come with the CUDA toolkit, and on PyPI as the packages
nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import gpu_machine_code

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("fl_core", "clients", "server", "compressors")
WARP = 32
MOST_WARPS, MOST_BLOCKS, REGISTERS = 64, 32, 65536  # of a multiprocessor, sm_80 and sm_90
SHARED = {"sm_80": 164 * 1024, "sm_90": 228 * 1024}
RESERVED = 1024  # bytes of shared memory that each block takes for the system


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.cu*")):
            yield path.read_text()


def constants(texts):
    """Values of `constexpr ... kName = number` that are the same everywhere."""
    found = {}
    for text in texts:
        for name, value in re.findall(r"constexpr [\w: ]*?\b(k\w+) = (\d+)[,;]", text):
            found.setdefault(name, set()).add(int(value))
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


def arguments(text, begin):
    """The arguments of a call whose parenthesis opens before `begin`, and where it ends."""
    depth, last, parts, in_string = 1, begin, [], False
    for i in range(begin, len(text)):
        if text[i] == '"':
            in_string = not in_string
        elif in_string:
            continue
        elif text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
            if depth == 0:
                return parts + [text[last:i].strip()], i + 1
        elif text[i] == "," and depth == 1:
            parts.append(text[last:i].strip())
            last = i + 1
    return parts, len(text)


def block_sizes(texts):
    """Threads of a block by kernel, 0 where they are no constant or differ between launches."""
    known = constants(texts)
    default = known["kBlockThreads"]
    sizes = {}
    for text in texts:
        for match in re.finditer(r"\bLaunch\(", text):
            given, end = arguments(text, match.end())
            kernel = re.match(r"(?:\s*\.with_shared\([^;]*?\))?\s*\(\s*(?:\w+::)*(\w+)", text[end:])
            if kernel is None or len(given) < 3:
                continue
            size = default
            if len(given) > 3:
                word = re.sub(r"static_cast<int>\((\w+)\)", r"\1", given[3]).split("::")[-1]
                size = int(word) if word.isdigit() else known.get(word, 0)
            sizes.setdefault(kernel.group(1), set()).add(size)
    return {kernel: found.pop() if len(found) == 1 else 0 for kernel, found in sizes.items()}


def occupancy(registers, shared, threads, arch):
    warps = -(-threads // WARP)
    per_warp = -(-registers * WARP // 256) * 256
    by_registers = REGISTERS // per_warp // warps if per_warp else MOST_BLOCKS
    blocks = min(MOST_BLOCKS, MOST_WARPS // warps, by_registers, SHARED[arch] // (shared + RESERVED))
    return blocks * warps / MOST_WARPS


def instances(folder, program, arch):
    """(kernel, instance, registers, stack, shared) of every object file."""
    objects = sorted(folder.rglob("*.cu.o"))
    if not objects:
        sys.exit(f"{folder} holds no object files of CUDA (*.cu.o): build the preset cuda there")
    for path in objects:
        said = subprocess.run([program, "--dump-resource-usage", str(path)], check=True, capture_output=True, text=True).stdout
        parts = re.split(r"arch = (sm_\d+)", said)
        for of, text in zip(parts[1::2], parts[2::2]):
            if of != arch:
                continue
            for name, registers, stack, shared, local in re.findall(
                r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", text
            ):
                yield name, int(registers), int(stack) + int(local), int(shared)


def names_of(mangled):
    said = subprocess.run(["c++filt"], input="\n".join(mangled), check=True, capture_output=True, text=True).stdout.splitlines()
    for name in said:
        short = re.sub(r"\(anonymous namespace\)::|_GLOBAL__N__\w+::", "", name)
        plain = short
        while re.search(r"<[^<>]*>", plain):  # without templates' arguments, the innermost first
            plain = re.sub(r"<[^<>]*>", "", plain)
        yield re.search(r"(\w+)\(", plain.split(" ", 1)[-1] if plain.startswith("void ") else plain).group(1), short


def disassembler():
    """Returns the path of cuobjdump: on the PATH, of PyPI's packages, or of the toolkit."""
    of_wheels = sorted((pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia").glob("cu*/bin/cuobjdump"))
    return shutil.which("cuobjdump") or (str(of_wheels[-1]) if of_wheels else "/usr/local/cuda/bin/cuobjdump")


def show_products(folder, program, arch):
    """Prints a line for each kind of product kernel: the template, its tile and number, and what the inner loops of its instances allow."""
    rows = list(gpu_machine_code.products(folder, program, arch))
    if not rows:
        sys.exit(f"no kernel below {folder} multiplies matrices in a loop, or none is compiled for {arch}")
    groups = {}
    for (kernel, full), (_, kind, useful, issued, share, most) in zip(names_of([name for name, *_ in rows]), rows):
        tile = re.search(r"(\d+)u(?:, (\d+)u)?", full.partition("<")[2])
        label = f"{kernel} {'x'.join(filter(None, tile.groups()))}" if tile else kernel
        groups.setdefault((kind, label), []).append((share, most, useful, issued, full))
    print(f"{'kind':<10} {'kernel and rows of its tile':<34} {'instances':>9} {'useful':>7} {'issued':>12} {'share':>13} {'most':>6}")
    for (kind, label), found in sorted(groups.items()):
        shares, issued = [one[0] for one in found], [one[3] for one in found]
        print(f"{kind:<10} {label:<34} {len(found):>9} {found[0][2]:>7} {min(issued):>5} - {max(issued):<5}{min(shares):>6.3f} - {max(shares):.3f}"
              f" {max(one[1] for one in found):>6.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--arch", default="sm_90", choices=sorted(SHARED))
    parser.add_argument("--all", action="store_true", help="every instance that has a stack, instead of the largest of each kernel")
    parser.add_argument("--products", action="store_true", help="the share of the peak that the inner loops of matrix products allow")
    parser.add_argument("--cuobjdump", default=disassembler())
    asked = parser.parse_args()
    if shutil.which(asked.cuobjdump) is None:
        sys.exit(f"{asked.cuobjdump} is not there: it comes with the CUDA toolkit and PyPI's nvidia-cuda-cuobjdump; say where with --cuobjdump")
    if asked.products:
        show_products(asked.folder, asked.cuobjdump, asked.arch)
        return
    found = list(instances(asked.folder, asked.cuobjdump, asked.arch))
    if not found:
        sys.exit(f"no kernel below {asked.folder} is compiled for {asked.arch}")
    sizes = block_sizes(list(sources()))
    kernels = {}
    for (kernel, full), numbers in zip(names_of([name for name, *_ in found]), (rest for _, *rest in found)):
        kernels.setdefault(kernel, []).append((*numbers, full))
    print(f"{'kernel':<26} {'instances':>9} {'registers':>9} {'stack':>6} {'shared':>7} {'threads':>7} {'occupancy':>9}")
    for kernel, all_of in sorted(kernels.items()):
        registers, stack, shared = (max(one[i] for one in all_of) for i in range(3))
        threads = sizes.get(kernel, 0)
        least = f"{min(occupancy(r, s, threads, asked.arch) for r, _, s, _ in all_of):9.2f}" if threads else f"{'-':>9}"
        print(f"{kernel:<26} {len(all_of):>9} {registers:>9} {stack:>6} {shared:>7} {threads or '-':>7} {least}")
        if asked.all:
            for r, bytes_of_stack, s, full in all_of:
                if bytes_of_stack:
                    print(f"    {r} registers, {bytes_of_stack} bytes of stack: {full[:160]}")
    spilled = [one for all_of in kernels.values() for one in all_of if one[1] > 0]
    largest = max((one[1] for one in spilled), default=0)
    print(f"{len(found)} instances of {len(kernels)} kernels, {len(spilled)} with a stack, the largest {largest} bytes")


if __name__ == "__main__":
    main()
