#!/usr/bin/env python3
"""Packs the program of the bundle, the GPU check, the workbench and data into one .tar.xz. tar with xz or `python3 -m tarfile -e` unpacks it.

    pack_bundle.py PROGRAM OUT [--data DIR] [--limit-mb 40]

The default limit leaves room for the source tree beside the archive: together they stay under 60 MiB (tests/install/pack_bundle_test.py).
Whole are the test set of Fashion-MNIST, and libsvm/mushrooms if it is there. Other sets are cut to their first rows, in their publishers'
formats: the training set of Fashion-MNIST to the rows that the benchmarks read, the test set of CIFAR-10 to 1,000, and its training set to those
for which the limit leaves room. data/CUT.txt says so, with checksums. The archive consists of one xz stream for each kind of contents, since
pictures and machine code want other filters; their concatenation is one tar file.
"""
import argparse
import concurrent.futures
import hashlib
import lzma
import pathlib
import re
import struct
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOP = "fedbits-gpu"
LIMIT_MB = 40
SCRIPTS = ("bench/gpu_check.sh", "bench/baselines_gpu.py", *(f"bench/gpu_{part}.py" for part in (
    "check", "plans", "suites", "measures", "tools", "sanitizer", "process", "logs")))
NAMES = ("fedbits", "fedbits_gpu_parity", "gpu_bench")  # what the program can be called
FASHION_ROWS = 10240  # bench/gpu_bench.cpp: 40 rows for each of 256 clients
CIFAR_TEST_ROWS = 1000  # the benchmarks evaluate nothing: the room is for users' images
WORKBENCH = "bench/workbench"
CIFAR_RECORD = 1 + 3 * 32 * 32  # bytes: a label and three planes

LZMA = {"id": lzma.FILTER_LZMA2, "preset": 6}
PIXELS = {"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 4, "pb": 0}
CODE = [{"id": lzma.FILTER_X86}, LZMA]
TEXT = [LZMA]
GREY = [PIXELS]
COLOUR = [{"id": lzma.FILTER_DELTA, "dist": 1}, {"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "pb": 0}]


def member(name, data, mode=0o644, link=""):
    """Returns the blocks of one file in a tar file; equal input gives equal bytes."""
    info = tarfile.TarInfo(f"{TOP}/{name}")
    info.size, info.mode = len(data), mode
    if link:
        info.type, info.linkname = tarfile.SYMTYPE, link
    return info.tobuf(tarfile.USTAR_FORMAT) + data + b"\0" * (-len(data) % 512)


def pressed(blocks, filters):
    return lzma.compress(blocks, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=filters)


def first_of_idx(data, rows):
    """Returns an IDX file with the first rows of another."""
    dimensions = data[3]
    sizes = struct.unpack(f">{dimensions}I", data[4:4 + 4 * dimensions])
    rows = min(rows, sizes[0])
    row_bytes = 1
    for size in sizes[1:]:
        row_bytes *= size
    begin = 4 + 4 * dimensions
    return data[:4] + struct.pack(f">{dimensions}I", rows, *sizes[1:]) + data[begin:begin + rows * row_bytes]


class Cut:
    """The lines of data/CUT.txt."""

    def __init__(self):
        self.lines = [
            "Data for trying and measuring the GPU engine. Files that were cut have the first rows of the published ones, in the published format;",
            "fedbits reads them as they are. `fedbits data --verify` says of them that their checksum is not the published one, which is so.",
            "Accuracies and curves of runs on cut training sets are not those of the published sets.", "",
        ]

    def add(self, name, data, rows, of, source):
        what = "whole" if data == source else f"first {rows} rows of {of}; sha256 of the uncut file: {hashlib.sha256(source).hexdigest()}"
        self.lines.append(f"{name}: {what}; sha256 here: {hashlib.sha256(data).hexdigest()}")

    def text(self):
        return ("\n".join(self.lines) + "\n").encode()


def fashion(folder, cut):
    """Returns the tar blocks of Fashion-MNIST."""
    blocks = b""
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        source = (folder / name).read_bytes()
        of = struct.unpack(">I", source[4:8])[0]
        data = first_of_idx(source, FASHION_ROWS) if name.startswith("train") else source
        cut.add(f"fashion-mnist/{name}", data, min(FASHION_ROWS, of), of, source)
        blocks += member(f"data/fashion-mnist/{name}", data)
    return blocks


def cifar_training(folder, room, bytes_per_row, cut):
    """Returns the tar blocks of as many training records of CIFAR-10 as fit into `room` packed bytes, at least one."""
    rows, blocks = max(1, int(room / (1.03 * bytes_per_row))), b""
    for i in range(1, 6):
        file = folder / f"data_batch_{i}.bin"
        if not file.exists() or rows == 0:
            cut.lines.append(f"cifar10/{file.name}: left out")
            continue
        source = file.read_bytes()
        data = source[:rows * CIFAR_RECORD]
        taken = len(data) // CIFAR_RECORD
        cut.add(f"cifar10/{file.name}", data, taken, len(source) // CIFAR_RECORD, source)
        blocks += member(f"data/cifar10/{file.name}", data)
        rows -= taken
    return blocks


def workbench_files():
    """Returns the files of the workbench and all that they include, as names below ROOT."""
    folder = ROOT / WORKBENCH
    remaining = [f"{WORKBENCH}/{path.name}" for path in folder.iterdir() if path.suffix in (".sh", ".txt", ".cu", ".cuh")]
    remaining += (folder / "sources.txt").read_text().split()
    found = set()
    while remaining:
        name = remaining.pop()
        if name not in found:
            found.add(name)
            remaining += re.findall(r'^\s*#\s*include "([^"]+)"', (ROOT / name).read_text(), re.MULTILINE)
    return sorted(found)


def stripped(program):
    """Returns the program without symbols."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "program"
        subprocess.run(["strip", "-o", out, program], check=True)
        return out.read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--limit-mb", type=float, default=LIMIT_MB)
    arguments = parser.parse_args()
    limit = int(arguments.limit_mb * 1e6)

    code = stripped(arguments.program)
    program = member(NAMES[0], code, 0o755) + b"".join(member(name, b"", link=NAMES[0]) for name in NAMES[1:])
    scripts = b"".join(member(name, (ROOT / name).read_bytes(), 0o755) for name in SCRIPTS)
    scripts += b"".join(member(name, (ROOT / name).read_bytes(), 0o755 if name.endswith(".sh") else 0o644) for name in workbench_files())
    texts = b"".join(member(name, (ROOT / name).read_bytes()) for name in ("LICENSE", "docs/gpu.md") if (ROOT / name).exists())

    cut, sizes, streams = Cut(), {}, []

    def take(name, blocks, packed):
        sizes[name] = (len(blocks), len(packed))
        streams.append(packed)

    def room():
        return limit - sum(packed for _, packed in sizes.values()) - 100_000

    with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:  # lzma lets go of the interpreter
        tasks = [("program", program, pool.submit(pressed, program, CODE)), ("scripts and pages", scripts + texts, pool.submit(pressed, scripts + texts, TEXT))]
        if arguments.data:
            grey = fashion(arguments.data / "fashion-mnist", cut)
            source = (arguments.data / "cifar10" / "test_batch.bin").read_bytes()
            test = source[:CIFAR_TEST_ROWS * CIFAR_RECORD]
            test_rows = len(test) // CIFAR_RECORD
            cut.add("cifar10/test_batch.bin", test, test_rows, len(source) // CIFAR_RECORD, source)
            blocks = member("data/cifar10/test_batch.bin", test)
            tasks += [("Fashion-MNIST", grey, pool.submit(pressed, grey, GREY)), ("CIFAR-10, test", blocks, pool.submit(pressed, blocks, COLOUR))]
        for name, blocks, packed in tasks:
            take(name, blocks, packed.result())
    if arguments.data:
        names = (arguments.data / "cifar10" / "batches.meta.txt").read_bytes()
        blocks = cifar_training(arguments.data / "cifar10", room(), sizes["CIFAR-10, test"][1] / test_rows, cut)
        blocks += member("data/cifar10/batches.meta.txt", names)
        take("CIFAR-10, training", blocks, pressed(blocks, COLOUR))
        blocks = b""
        mushrooms = arguments.data / "libsvm" / "mushrooms"  # the tests of sweeps read it
        if mushrooms.exists():
            cut.add("libsvm/mushrooms", mushrooms.read_bytes(), 0, 0, mushrooms.read_bytes())
            blocks = member("data/libsvm/mushrooms", mushrooms.read_bytes())
        blocks += member("data/CUT.txt", cut.text())
        take("mushrooms, CUT.txt", blocks, pressed(blocks, TEXT))
        print(cut.text().decode())
    streams.append(pressed(b"\0" * 1024, TEXT))  # the end of a tar file

    whole = b"".join(streams)
    for name, (plain, packed) in sizes.items():
        print(f"{name:<20} {plain / 1e6:8.2f} MB, packed {packed / 1e6:6.2f} MB")
    print(f"{arguments.out}: {len(whole) / 1e6:.2f} MB of at most {arguments.limit_mb:g} MB")
    if len(whole) > limit:
        sys.exit(f"{arguments.out} would have {len(whole)} bytes, more than the limit of {limit}; it is not written")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_bytes(whole)


if __name__ == "__main__":
    main()
