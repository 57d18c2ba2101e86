"""Whole outputs of the programs that gpu_check.py runs: a file for each shard and each program in a folder, which becomes one archive at the end."""
import contextlib
import pathlib
import re
import shutil
import tarfile

MOST_BYTES = 3 << 20  # of a file; packed, all of them together stay below 16 MiB


class Log:
    """One file. Keeps its first MOST_BYTES."""

    def __init__(self, path):
        self._file = open(path, "ab")
        self._left = MOST_BYTES

    def write(self, data):
        if self._left <= 0 or self._file.closed:
            return
        self._file.write(data[:self._left])
        self._left -= len(data)
        if self._left <= 0:
            self._file.write(b"\n[the rest is not kept]\n")
        self._file.flush()

    def close(self):
        self._file.close()


class Logs:
    """The folder FILE.logs beside FILE.json; without a file nothing is written."""

    def __init__(self, json_file):
        self._logs = {}
        self.folder = self.archive = None
        if json_file:
            path = pathlib.Path(json_file)
            self.folder = path.with_name((path.stem if path.suffix == ".json" else path.name) + ".logs")
            self.archive = self.folder.with_name(self.folder.name + ".tar.xz")
            shutil.rmtree(self.folder, ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                self.archive.unlink()

    def log(self, name):
        """Returns the log of that name, or None."""
        if self.folder is None:
            return None
        if name not in self._logs:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._logs[name] = Log(self.folder / (re.sub(r"[^A-Za-z0-9._-]+", "-", name) + ".txt"))
        return self._logs[name]

    def pack(self):
        """Turns the folder into an archive; if that fails, the folder stays."""
        for log in self._logs.values():
            log.close()
        self._logs = {}
        if self.folder is None or not self.folder.exists():
            return
        fresh = self.archive.with_name(self.archive.name + ".new")
        with tarfile.open(fresh, "w:xz", preset=2) as archive:
            archive.add(self.folder, self.folder.name)
        fresh.replace(self.archive)
        shutil.rmtree(self.folder)
