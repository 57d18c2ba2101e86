"""Random words: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011), and the streams of
fl_core/random/random.hpp, which say what a word is for.
"""

import math

import numpy as np


MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1


def philox(counter, key):
    """Philox4x32-10: four words of a counter of four and a key of two."""
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & MASK32, (p0 >> 32) ^ c[3] ^ k1, p0 & MASK32]
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return c


# Known answers that the authors publish with their library.
assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([MASK32] * 4, [MASK32] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
PI = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]
assert philox(PI[:4], PI[4:]) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def hash64(seed, salt):
    """SplitMix64's finaliser over (seed, purpose)."""
    z = (seed * 0x9E3779B97F4A7C15 + (salt + 1) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


MINIBATCH, COMPRESSOR, COIN = 4, 5, 7  # purposes
EVERYONE = MASK32  # the client of what all share


class Stream:
    """Words of one (key, client, round, step, layer), by index."""

    def __init__(self, key, client, round_, step=0, layer=0):
        self.key, self.tail = (key & MASK32, key >> 32), [client, round_, step << 16 | layer]

    def quad(self, i):
        return philox([i] + self.tail, self.key)

    def word(self, i):
        return self.quad(i // 4)[i % 4]

    def uniform(self, i):
        return self.word(i) * 2.0**-32

    def below(self, i, n):
        return self.word(i) * n >> 32

    def uniforms(self, first, n):
        return np.array([self.uniform(i) for i in range(first, first + n)])


class Words:
    """The words of a stream one after another."""

    def __init__(self, stream):
        self.stream, self.at = stream, 0

    def below(self, n):
        """Unbiased: the words whose product is among the first 2^32 mod n are skipped."""
        while True:
            product = self.stream.word(self.at) * n
            self.at += 1
            if product & MASK32 >= 2**32 % n:
                return product >> 32

    def shuffled(self, n):
        """0 .. n-1 in a random order: from the last place on, each takes one of those up to it."""
        order = list(range(n))
        for last in range(n - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


def normals(stream, n):
    """Box-Muller; each of 53-bit uniforms from two words, one after another."""
    words = [stream.word(i) for i in range(4 * n)]
    u = [((a >> 5) << 26 | b >> 6) * 2.0**-53 for a, b in zip(words[::2], words[1::2])]
    return np.array([math.sqrt(-2 * math.log1p(-a)) * math.cos(2 * math.pi * b) for a, b in zip(u[::2], u[1::2])])
