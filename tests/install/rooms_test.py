#!/usr/bin/env python3
"""Files of fl_core/, clients/, scenarios/, study/ and net/ include their own room and those above it in the table of the folder's README.

Rooms of APART do not include each other either; those of BACK include one room below them. The files of WITHOUT_SOCKETS reach no connection and no package for sockets, whatever
headers lie between.

usage: rooms_test.py SOURCE_FOLDER
"""

import pathlib
import re
import sys

SOURCES = {".cpp", ".hpp", ".cu", ".cuh"}
APART = {("net", "server"): "peer"}  # a room of a folder, and a room above it that it does not include
BACK = {("clients", "learning"): "cuda"}  # a room of a folder, and a room below it that it includes

WITHOUT_SOCKETS = [f"net/server/{name}" for name in ("peers.hpp", "remote_cohort.hpp", "remote_clients.hpp", "measured_sums.hpp",
                                                      "reported_norms.hpp", "error_mirror.hpp", "opening_writer.hpp")]


def rooms_of(folder):
    """Returns the rooms in the order of the table in the folder's README."""
    return re.findall(r"^\| `(\w+)/` \|", (folder / "README.md").read_text(), re.MULTILINE)


def problems_of(source, name):
    rooms = rooms_of(source / name)
    problems = []
    for path in sorted((source / name).rglob("*")):
        if path.suffix not in SOURCES:
            continue
        file = path.relative_to(source).as_posix()
        room = path.relative_to(source / name).parts[0]
        if room not in rooms:
            problems.append(f"{file} lies in no room of {name}/README.md")
            continue
        for other in re.findall(rf'#include "{name}/(\w+)/', path.read_text()):
            if other not in rooms:
                problems.append(f"{file} includes {name}/{other}, which {name}/README.md does not list")
            elif rooms.index(other) > rooms.index(room) and BACK.get((name, room)) != other:
                problems.append(f"{file} includes {name}/{other}, which stands below {room} in {name}/README.md")
            elif APART.get((name, room)) == other:
                problems.append(f"{file} includes {name}/{other}, from which {room} is kept apart")
    return problems


def socket_problems_of(source):
    """Returns the ways by which a file of WITHOUT_SOCKETS includes a connection or Asio."""
    problems = []
    for root in WITHOUT_SOCKETS:
        ways = [[root]]
        seen = {root}
        while ways:
            way = ways.pop()
            for brackets, other in re.findall(r'^#include ([<"])([^>"]+)', (source / way[-1]).read_text(), re.MULTILINE):
                if other.startswith(("boost/", "net/transport/", "net/server/peer_hub")):
                    problems.append(" includes ".join([*way, other]))
                elif brackets == '"' and other not in seen and (source / other).is_file():
                    seen.add(other)
                    ways.append([*way, other])
    return problems


def main():
    source = pathlib.Path(sys.argv[1])
    problems = [problem for name in ("fl_core", "clients", "scenarios", "study", "net") for problem in problems_of(source, name)]
    problems += socket_problems_of(source)
    print("\n".join(problems) or "every file includes its own room and those above it")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
