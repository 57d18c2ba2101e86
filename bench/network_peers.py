#!/usr/bin/env python3
"""What peers that do nothing useful cost a server: time of a run under slow peers, and memory for idle ones.

  bench/network_peers.py BINARY [--slow 10000] [--idle 5000] [--rounds 3000] [--repeats 3]

slow   Half of the connections send nothing, the others one byte of a hello in each second. All come back when they are closed. The time of a
       run beside them is divided by its time without them; runs of both kinds take turns, and the median of the ratios is printed.
idle   Peers that host one client each, are ready, send a heartbeat every 5 s, and wait for a run that does not begin.

The limit of open files (ulimit -n) has to allow the larger of the two numbers, and 100 more, to this process and to the server.
"""

import argparse
import os
import re
import resource
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

SCENARIO = """
name = "peers"
rounds = {rounds}
[data]
name = "mushrooms"
test_fraction = 0.2
[partition]
kind = "shuffled"
clients = {clients}
[model]
kind = "logistic_regression"
l2 = "L/1e4"
[local]
kind = "gradient"
batch = 1
learning_rate = "1/(L+l2)"
[compressor.up]
kind = "top_k"
k = 10
[feedback.up]
kind = "ef14"
[evaluate]
every = 100
"""


# ---- the encoding of Protocol Buffers, as far as a peer needs it (net/proto/wire.proto)

def varint(number):
    out = bytearray()
    while True:
        out.append(number & 127 | (128 if number > 127 else 0))
        number >>= 7
        if number == 0:
            return bytes(out)


def number_field(field, value):
    return varint(field << 3) + varint(value)


def bytes_field(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def frame(header):
    return struct.pack("<Q", len(header)) + header


def hello(build, first, last):
    clients = number_field(1, first) + number_field(2, last)
    return frame(bytes_field(1, number_field(1, 1) + bytes_field(2, build.encode()) + bytes_field(3, clients)))


def fields(message):
    """Returns the first value of each field: numbers, 8 bytes, or bytes."""
    found, at = {}, 0

    def read_varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = read_varint()
        if key & 7 == 0:
            value = read_varint()
        elif key & 7 == 1:
            value, at = message[at:at + 8], at + 8
        else:
            size = read_varint()
            value, at = message[at:at + size], at + size
        found.setdefault(key >> 3, value)
    return found


def read_exactly(connection, size):
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError("the server has closed the connection")
        data += piece
    return data


def read_frame(connection):
    word = struct.unpack("<Q", read_exactly(connection, 8))[0]
    header = fields(read_exactly(connection, word & 0xFFFFFF))
    read_exactly(connection, word >> 24)
    return header


HEARTBEAT = frame(bytes_field(15, b""))


# ---- processes

class Server:
    def __init__(self, binary, folder, rounds, clients):
        os.makedirs(folder)
        scenario = os.path.join(folder, "scenario.toml")
        with open(scenario, "w", encoding="ascii") as file:
            file.write(SCENARIO.format(rounds=rounds, clients=clients))
        command = [binary, "serve", scenario, "--listen", "127.0.0.1:0", "--insecure", "--out", os.path.join(folder, "out"), "-q"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        self.port = int(line.rsplit(":", 1)[1])

    def resident_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s*(\d+) kB", status.read()).group(1)) / 1024

    def stop(self):
        self.process.terminate()
        self.process.wait()


def build_of(port):
    """Returns the server's build, which it tells to a peer of another one."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(hello("another", 0, 0))
        while True:
            header = read_frame(connection)
            if 11 in header:
                return re.search(r"the server is (.*?)\), so", fields(header[11])[1].decode()).group(1)


def run_seconds(binary, folder, rounds, before_joining):
    server = Server(binary, folder, rounds, 20)
    stop = before_joining(server.port)
    begun = time.monotonic()
    peers = [subprocess.Popen([binary, "join", f"127.0.0.1:{server.port}", "--clients", ids, "--insecure", "-q"]) for ids in ("0-9", "10-19")]
    status = server.process.wait()
    seconds = time.monotonic() - begun
    told = stop()
    for peer in peers:
        peer.wait()
    if status != 0:
        sys.exit(f"the server ended with {status}")
    return seconds, told


# ---- slow peers

class SlowPeers:
    """Keeps a number of connections open: every second one sends a byte of a hello now and then, and the others send nothing."""

    def __init__(self, port, number):
        self.port, self.number = port, number
        self.opened = self.closed = self.sent = 0
        self.ends = False
        self.selector = selectors.DefaultSelector()
        self.connections = []
        for i in range(number):
            self.connections.append(None)
            self.open(i)
        self.thread = threading.Thread(target=self.live, daemon=True)
        self.thread.start()

    def open(self, i):
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(("127.0.0.1", self.port))
        self.selector.register(connection, selectors.EVENT_READ, i)
        self.connections[i] = [connection, 0]
        self.opened += 1
        if self.opened % 500 == 0:
            time.sleep(0.05)  # the queue of connections that the server has not accepted is finite

    def live(self):
        text = hello("x" * 200, 0, 0)
        turn, pieces = 0, 20
        while not self.ends:
            until = time.monotonic() + 1.0 / pieces
            for i in range(turn, self.number, pieces):
                if i % 2 == 1:
                    self.send_byte(i, text)
            turn = (turn + 1) % pieces
            while (left := until - time.monotonic()) > 0:
                for key, _ in self.selector.select(left):
                    self.look_at(key)

    def send_byte(self, i, text):
        connection, at = self.connections[i]
        try:
            self.sent += connection.send(text[at:at + 1])
            self.connections[i][1] = at + 1
        except OSError:
            pass

    def look_at(self, key):
        try:
            if key.fileobj.recv(4096):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.selector.unregister(key.fileobj)
        key.fileobj.close()
        self.closed += 1
        self.open(key.data)

    def stop(self):
        self.ends = True
        self.thread.join()
        for connection, _ in self.connections:
            connection.close()
        return f"{self.opened} connections, {self.closed} closed by the server, {self.sent} bytes sent"


def slow(binary, folder, number, rounds, repeats):
    ratios = []
    for i in range(repeats):
        alone, _ = run_seconds(binary, f"{folder}/alone{i}", rounds, lambda port: lambda: "")

        def come(port):
            peers = SlowPeers(port, number)
            time.sleep(3)
            return peers.stop

        beside, told = run_seconds(binary, f"{folder}/beside{i}", rounds, come)
        ratios.append(beside / alone)
        print(f"slow: {rounds} rounds alone {alone:.2f} s, beside {number} slow peers {beside:.2f} s, ratio {beside / alone:.3f} ({told})", flush=True)
    print(f"slow: median ratio {statistics.median(ratios):.3f}")


# ---- idle peers

def idle(binary, folder, number):
    server = Server(binary, f"{folder}/idle", 1, number + 1)
    build = build_of(server.port)
    empty = server.resident_mb()
    peers = []
    for i in range(number):
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(hello(build, i, i))
        peers.append(connection)
    for connection in peers:
        while 2 not in (header := read_frame(connection)):
            if 11 in header:
                sys.exit(f"a peer was refused: {fields(header[11])[1].decode()}")
        assignment = fields(header[2])
        connection.sendall(frame(bytes_field(3, varint(1 << 3 | 1) + assignment[1] + varint(2 << 3 | 1) + assignment[2])))
    most = 0.0
    for _ in range(5):
        time.sleep(5)
        for connection in peers:
            connection.sendall(HEARTBEAT)
        most = max(most, server.resident_mb())
    print(f"idle: {number} peers, resident memory of the server {empty:.0f} MB before them, {most:.0f} MB with them "
          f"({1024 * (most - empty) / number:.1f} KB each)")
    server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--slow", type=int, default=10000)
    parser.add_argument("--idle", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.idle > 0:
            idle(arguments.binary, folder, arguments.idle)
        if arguments.slow > 0:
            slow(arguments.binary, folder, arguments.slow, arguments.rounds, arguments.repeats)


if __name__ == "__main__":
    main()
