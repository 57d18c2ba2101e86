"""What scripts/pack_bundle.py packs: sets that are cut as far as the limit asks, which fedbits reads and which say that they are cut. The tracked
files of a checkout and an archive of the default size are under 60 MiB together.

    python3 tests/install/pack_bundle_test.py BINARY SOURCE
"""
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile

BINARY, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "scripts"))
import pack_bundle  # noqa: E402  (it lies in scripts/)

RECORD = 3073
MOST_BYTES = 60 << 20  # of the tree and the archive, which travel to a GPU together
failed = []


def expect(condition, text):
    if not condition:
        failed.append(text)


def fits_beside_the_tree():
    """Adds up the tracked files of a checkout; an exported tree has no list of them."""
    listed = subprocess.run(["git", "-C", str(SOURCE), "ls-files", "-z"], capture_output=True, text=True) if shutil.which("git") else None
    if listed is None or listed.returncode != 0:
        print("this is no checkout of git: the size of the tree is not known")
        return
    files = [SOURCE / name for name in listed.stdout.split("\0") if name]
    tree = sum(file.lstat().st_size for file in files if file.is_symlink() or file.exists())
    archive = pack_bundle.LIMIT_MB * 1e6
    print(f"tree {tree / 2**20:.1f} MiB, archive at most {archive / 2**20:.1f} MiB, of {MOST_BYTES >> 20} MiB")
    expect(tree > 2**20, f"the tracked files have only {tree} bytes")
    expect(tree + archive < MOST_BYTES, f"the tree has {tree} bytes and the archive may have {archive:.0f}, together not under {MOST_BYTES}")


def make_data(folder):
    """Writes small sets of random pictures: 10,300 and 50 of 2 x 2, 100 and 1,010 of 3 x 32 x 32."""
    draw = random.Random(1)
    grey, colour = folder / "fashion-mnist", folder / "cifar10"
    grey.mkdir(parents=True)
    colour.mkdir()
    for name, rows in (("train", 10300), ("t10k", 50)):
        (grey / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, rows, 2, 2) + draw.randbytes(4 * rows))
        (grey / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, rows) + bytes(i % 10 for i in range(rows)))
    for name, rows in (("data_batch_1", 60), ("data_batch_2", 40), ("test_batch", 1010)):
        (colour / f"{name}.bin").write_bytes(b"".join(bytes([i % 10]) + draw.randbytes(RECORD - 1) for i in range(rows)))
    (folder / "libsvm").mkdir()
    (folder / "libsvm" / "mushrooms").write_text("1 3:1\n2 4:1\n")
    (colour / "batches.meta.txt").write_text("".join(f"kind {i}\n" for i in range(10)))


def pack(folder, out, limit_mb):
    command = [sys.executable, "-B", str(SOURCE / "scripts" / "pack_bundle.py"), "/bin/true", str(out), "--data", str(folder), "--limit-mb", str(limit_mb)]
    return subprocess.run(command, capture_output=True, text=True)


def ended(folder, *words):
    """Returns (exit code, output) of fedbits with the packed data."""
    done = subprocess.run([str(BINARY), *words], capture_output=True, text=True, cwd=folder)
    return done.returncode, done.stdout + done.stderr


STUDY = """name = 'cut'
rounds = 1
[data]
name = '{}'
[partition]
kind = 'shuffled'
clients = 4
[model]
kind = 'logistic_regression'
[local]
kind = 'sgd'
batch = 4
steps = 1
learning_rate = 0.1
[evaluate]
gradient = 'never'
optimum = false
"""

fits_beside_the_tree()
if not all(shutil.which(tool) for tool in ("strip", "tar", "xz")):
    print("TOOL MISSING: strip, tar and xz", *failed, sep="\n")
    sys.exit(1 if failed else 77)
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    make_data(folder / "data")
    first = pack(folder / "data", folder / "a.tar.xz", 3.4)
    expect(first.returncode == 0, f"it is not packed: {first.stdout}{first.stderr}")
    expect((folder / "a.tar.xz").stat().st_size <= 3_400_000, "the archive is larger than its limit")
    pack(folder / "data", folder / "b.tar.xz", 3.4)
    expect((folder / "a.tar.xz").read_bytes() == (folder / "b.tar.xz").read_bytes(), "the same files give another archive")
    refused = pack(folder / "data", folder / "c.tar.xz", 0.1)
    expect(refused.returncode != 0 and not (folder / "c.tar.xz").exists(), "an archive above its limit is written")

    # By tar and by Python alone: the same files.
    (folder / "tar").mkdir()
    subprocess.run(["tar", "-xJf", folder / "a.tar.xz", "-C", folder / "tar"], check=True)
    with tarfile.open(folder / "a.tar.xz") as archive:
        archive.extractall(folder / "python")
    subprocess.run(["diff", "-r", folder / "tar", folder / "python"], check=True)
    top = folder / "tar" / "fedbits-gpu"
    for program in ("fedbits", "fedbits_gpu_parity", "gpu_bench"):
        expect(subprocess.run([top / program], check=False).returncode == 0, f"{program} is not the program")
    told = subprocess.run(["bash", top / "bench" / "gpu_check.sh", "--plan", "A", "--dry-run"], capture_output=True, text=True,
                          env={**os.environ, "FEDBITS_PYTHON": sys.executable})
    expect(told.returncode == 0 and "plan A" in told.stdout, f"the check is missing, or a file of it: {told.stdout}{told.stderr}")

    data = top / "data"
    images = (data / "fashion-mnist" / "train-images-idx3-ubyte").read_bytes()
    expect(images == struct.pack(">4I", 0x803, 10240, 2, 2) + (folder / "data/fashion-mnist/train-images-idx3-ubyte").read_bytes()[16:16 + 4 * 10240],
           "the training images of Fashion-MNIST are not the first 10,240")
    batches = [data / "cifar10" / f"data_batch_{i}.bin" for i in (1, 2)]
    bytes_kept = sum(batch.stat().st_size for batch in batches if batch.exists())
    expect(0 < bytes_kept < 100 * RECORD and bytes_kept % RECORD == 0, f"{bytes_kept} bytes of CIFAR-10's training set are kept")
    whole = (folder / "data/cifar10/test_batch.bin").read_bytes()
    expect((data / "cifar10" / "test_batch.bin").read_bytes() == whole[:1000 * RECORD], "the test set of CIFAR-10 is not its first 1,000 rows")
    expect((data / "libsvm" / "mushrooms").exists(), "mushrooms, which a test reads, is not packed")
    told = (data / "CUT.txt").read_text()
    expect("train-images-idx3-ubyte: first 10240 rows of 10300" in told and "test_batch.bin: first 1000 rows of 1010" in told and "data_batch_5.bin: left out" in told,
           f"CUT.txt does not say what was cut:\n{told}")

    for set_name in ("fashion-mnist", "cifar10"):
        (folder / "study.toml").write_text(STUDY.format(set_name))
        code, text = ended(folder, "run", "study.toml", "--data", str(data), "--out", str(folder / set_name), "-q")
        expect(code == 0, f"fedbits does not read the cut {set_name}: {text}")
    code, text = ended(folder, "data", "--verify", "--data", str(data))
    expect(code != 0 and "checksum" in text, f"fedbits data --verify does not say that the sets are not the published ones: {code}\n{text}")
for line in failed:
    print(f"FAILED: {line}")
print(f"{len(failed)} failed")
sys.exit(1 if failed else 0)
