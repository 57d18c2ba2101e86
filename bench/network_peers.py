#!/usr/bin/env python3
"""What peers that do nothing useful cost a server: time of a run under slow peers, and memory for idle ones.

  bench/network_peers.py BINARY [--slow 10000] [--idle 5000] [--tls] [--rounds 1000] [--repeats 9] [--run-cores 0] [--slow-cores 1]

slow   Half of the connections send nothing, the others one byte of a hello in each second. All come back when they are closed. A run beside
       them takes turns with a run beside the same connections to another process, which accepts and reads them; the median of the ratios
       of the times is printed, and the processor time of the server in both. Slow peers have a process and cores of their own, because on
       other machines than the server's they would not take its cores either. The server and its honest peers share the cores of the run.
idle   Peers that host one client each, are ready, send a heartbeat every 5 s, and wait for a run that does not begin.

The limit of open files (ulimit -n) has to allow the larger of the two numbers, and 100 more, to this process and to the server.
"""

import argparse
import multiprocessing
import os
import re
import resource
import selectors
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import tempfile
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


# ---- the encoding of Protocol Buffers, as far as a peer needs it (net/wire/wire.proto)

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


def xxh64(data):
    """Returns the XXH64 of bytes, with seed 0 (Yann Collet's specification)."""
    first, second, third, fourth, fifth = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
    mask = 2**64 - 1

    def rotated(value, bits):
        return (value << bits | value >> (64 - bits)) & mask

    def mixed(lane, word):
        return rotated((lane + word * second) & mask, 31) * first & mask
    at, total = 0, len(data)
    if total >= 32:
        lanes = [(first + second) & mask, second, 0, -first & mask]
        for at in range(0, total - 31, 32):
            lanes = [mixed(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at))]
        at = total // 32 * 32
        value = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & mask
        for lane in lanes:
            value = ((value ^ mixed(0, lane)) * first + fourth) & mask
    else:
        value = fifth
    value = (value + total) & mask
    for at in range(at, total - 7, 8):
        value = (rotated(value ^ mixed(0, struct.unpack_from("<Q", data, at)[0]), 27) * first + fourth) & mask
    at = total // 8 * 8
    if total - at >= 4:
        value = (rotated(value ^ struct.unpack_from("<I", data, at)[0] * first & mask, 23) * second + third) & mask
        at += 4
    for byte in data[at:]:
        value = rotated(value ^ byte * fifth & mask, 11) * first & mask
    for shift, factor in ((33, second), (29, third), (32, 1)):
        value = (value ^ value >> shift) * factor & mask
    return value


def frame(header):
    """Returns a frame without a payload, with its checksums (net/wire/frame.hpp)."""
    checked = struct.pack("<QQ", len(header), xxh64(header + struct.pack("<Q", xxh64(b""))))
    return checked + struct.pack("<I", xxh64(checked) & 0xFFFFFFFF) + header


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
    word = struct.unpack("<Q", read_exactly(connection, 20)[:8])[0]
    header = fields(read_exactly(connection, word & 0xFFFFFF))
    read_exactly(connection, word >> 24)
    return header


HEARTBEAT = frame(bytes_field(15, b""))


# ---- processes

class Server:
    def __init__(self, binary, folder, rounds, clients, protection=("--insecure",)):
        os.makedirs(folder)
        scenario = os.path.join(folder, "scenario.toml")
        with open(scenario, "w", encoding="ascii") as file:
            file.write(SCENARIO.format(rounds=rounds, clients=clients))
        command = [binary, "serve", scenario, "--listen", "127.0.0.1:0", *protection, "--out", os.path.join(folder, "out"), "-q"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        self.port = int(line.rsplit(":", 1)[1])

    def wait(self):
        """Waits for the end of the run and returns the processor time of the server in seconds."""
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode != 0:
            sys.exit(f"the server ended with {self.process.returncode}")
        return usage.ru_utime + usage.ru_stime

    def resident_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s*(\d+) kB", status.read()).group(1)) / 1024

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Process:
    """A part of this program that runs on cores of its own until it is stopped."""

    def __init__(self, cores, work, *arguments):
        self.here, there = multiprocessing.Pipe()

        def run():
            os.sched_setaffinity(0, cores)
            work(there, *arguments)

        self.process = multiprocessing.Process(target=run, daemon=True)
        self.process.start()

    def stop(self):
        """Returns what the process has told after it was asked to end."""
        self.here.send(None)
        told = self.here.recv()
        self.process.join()
        return told


def sink(pipe):
    """Accepts all connections, reads what they send, and does nothing else."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listener.setblocking(False)
    pipe.send(listener.getsockname()[1])
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while not pipe.poll():
        for key, _ in selector.select(0.05):
            try:
                if key.fileobj is listener:
                    selector.register(listener.accept()[0], selectors.EVENT_READ)
                elif not key.fileobj.recv(4096):
                    raise ConnectionError
            except BlockingIOError:
                pass
            except OSError:
                selector.unregister(key.fileobj)
                key.fileobj.close()
    pipe.send("")


def join(binary, port, ids):
    command = [binary, "join", f"127.0.0.1:{port}", "--clients", ids, "--insecure", "-v"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_until_ready(peer):
    line = ""
    for line in peer.stdout:
        if " begins, with clients " in line:
            return
    sys.exit(f"a peer was refused: {line}")


def run_seconds(binary, folder, arguments, slow_peers_of):
    """Plays a run beside slow peers of the port that `slow_peers_of` returns. Returns its time, the server's processor time, and facts."""
    os.sched_setaffinity(0, arguments.run_cores)
    server = Server(binary, folder, arguments.rounds, 20)
    slow_peers = Process(arguments.slow_cores, live_as_slow_peers, slow_peers_of(server.port), arguments.slow)
    time.sleep(4)
    begun = time.monotonic()
    peers = [join(binary, server.port, ids) for ids in ("0-9", "10-19")]
    for peer in peers:
        wait_until_ready(peer)
    hosted = time.monotonic()
    processor = server.wait()
    end = time.monotonic()
    told = slow_peers.stop()
    for peer in peers:
        if peer.wait() != 0:
            sys.exit("a peer was refused")
    return end - hosted, processor, f"{told}, honest peers there after {hosted - begun:.1f} s"


# ---- slow peers

class SlowPeers:
    """Keeps a number of connections open: every second one sends a byte of a hello now and then, and the others send nothing."""

    def __init__(self, port, number):
        self.port, self.number = port, number
        self.opened = self.closed = self.sent = 0
        self.selector = selectors.DefaultSelector()
        self.connections = [None] * number
        for i in range(number):
            self.open(i)
            if i % 500 == 499:
                time.sleep(0.05)  # the queue of connections that the server has not accepted is finite

    def open(self, i):
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(("127.0.0.1", self.port))
        self.selector.register(connection, selectors.EVENT_READ, i)
        self.connections[i] = [connection, 0]
        self.opened += 1

    def live(self, pipe):
        text = hello("x" * 200, 0, 0)
        turn, pieces = 0, 20
        while not pipe.poll():
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


def live_as_slow_peers(pipe, port, number):
    peers = SlowPeers(port, number)
    peers.live(pipe)
    pipe.send(f"{peers.opened} connections, {peers.closed} closed by the server, {peers.sent} bytes sent")


def slow(binary, folder, arguments):
    drain = Process(arguments.slow_cores, sink)
    drain_port = drain.here.recv()
    ratios = []
    for i in range(arguments.repeats):
        base, base_processor, base_told = run_seconds(binary, f"{folder}/base{i}", arguments, lambda _: drain_port)
        beside, processor, told = run_seconds(binary, f"{folder}/beside{i}", arguments, lambda port: port)
        ratios.append(beside / base)
        print(f"slow: {arguments.rounds} rounds, slow peers elsewhere: {base:.2f} s, processor of the server {base_processor:.2f} s ({base_told})\n"
              f"      beside {arguments.slow} slow peers: {beside:.2f} s, processor {processor:.2f} s ({told}), ratio {ratios[-1]:.3f}",
              flush=True)
    drain.stop()
    print(f"slow: median ratio {statistics.median(ratios):.3f} of {len(ratios)}")


# ---- idle peers

def build_of(binary, folder):
    """Returns the server's build, which it tells to a peer of another one."""
    server = Server(binary, f"{folder}/build", 1, 1)
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(hello("another", 0, 0))
        while True:
            header = read_frame(connection)
            if 11 in header:
                server.stop()
                return re.search(r"the server is (.*?)\), so", fields(header[11])[1].decode()).group(1)


def connect(port, certificates, i):
    connection = socket.create_connection(("127.0.0.1", port))
    if certificates is None:
        return connection
    context = ssl.create_default_context(cafile=f"{certificates}/ca.pem")
    context.load_cert_chain(f"{certificates}/client-{i}.pem", f"{certificates}/client-{i}.key")
    return context.wrap_socket(connection, server_hostname="127.0.0.1")


def protection_of(binary, folder, number):
    """Returns the options of a server with certificates, and their folder."""
    certificates = f"{folder}/certs"
    command = [binary, "certs", "init", certificates, "--clients", str(number), "--server", "127.0.0.1"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return ("--certs", certificates), certificates


def idle(binary, folder, number, is_tls):
    protection, certificates = protection_of(binary, folder, number + 1) if is_tls else (("--insecure",), None)
    server = Server(binary, f"{folder}/idle", 1, number + 1, protection)
    build = build_of(binary, folder)
    empty = server.resident_mb()
    peers = []
    beaten = time.monotonic()
    for i in range(number):
        connection = connect(server.port, certificates, i)
        connection.sendall(hello(build, i, i))
        while 2 not in (header := read_frame(connection)):
            if 11 in header:
                sys.exit(f"a peer was refused: {fields(header[11])[1].decode()}")
        assignment = fields(header[2])
        connection.sendall(frame(bytes_field(3, varint(1 << 3 | 1) + assignment[1] + varint(2 << 3 | 1) + assignment[2])))
        peers.append(connection)
        if time.monotonic() - beaten > 5:
            beaten = time.monotonic()
            for earlier in peers:
                earlier.sendall(HEARTBEAT)
    most = 0.0
    for _ in range(5):
        time.sleep(5)
        for connection in peers:
            connection.sendall(HEARTBEAT)
        most = max(most, server.resident_mb())
    print(f"idle: {number} peers over {'TLS' if is_tls else 'plain TCP'}, resident memory of the server {empty:.0f} MB before them, "
          f"{most:.0f} MB with them ({1024 * (most - empty) / number:.1f} KB each)")
    server.stop()


def cores(text):
    return {int(core) for core in text.split(",")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--slow", type=int, default=10000)
    parser.add_argument("--idle", type=int, default=5000)
    parser.add_argument("--tls", action="store_true", help="idle peers have certificates")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--run-cores", type=cores, default={0}, help="of the server and honest peers, as 0,1")
    parser.add_argument("--slow-cores", type=cores, default={1}, help="of slow peers")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.idle > 0:
            idle(arguments.binary, folder, arguments.idle, arguments.tls)
        if arguments.slow > 0:
            slow(arguments.binary, folder, arguments)


if __name__ == "__main__":
    main()
