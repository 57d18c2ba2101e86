#!/usr/bin/env python3
"""Steps of AdamW as the publication writes them, for tests/clients/local_optimizer_test.cpp. Needs nothing but Python.

I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", ICLR 2019, Algorithm 2, with the decay multiplied by the step size as in
PyTorch's AdamW. The gradients are those of the test's quadratic f(y) = sum_j (j + 1) (y_j - c_j)^2 / 2, plus waves that change from step to step.

    python3 adamw.py > adamw.txt          writes the steps
    python3 adamw.py --check adamw.txt    compares; exit code 1 if they differ

A case is a line "case BETA1 BETA2 EPSILON DECAY GAMMA", then a line "g NUMBERS" and a line "y NUMBERS" for each step.
"""
import math
import pathlib
import sys

STEPS, SIZE = 25, 7
CASES = ((0.9, 0.999, 1e-8, 0.01, 0.05), (0.9, 0.999, 1e-8, 0.0, 0.001), (0.0, 0.5, 1e-3, 0.3, 0.2), (0.95, 0.9, 1e-6, 0.1, 0.01))


def gradient(y, step):
    return [(j + 1) * (y[j] - math.cos(j)) + math.sin(3 * step + j) for j in range(SIZE)]


def steps(beta1, beta2, epsilon, decay, gamma):
    y, m, v = [0.5 * (-1) ** j * (j + 1) for j in range(SIZE)], [0.0] * SIZE, [0.0] * SIZE
    for t in range(1, STEPS + 1):
        g = gradient(y, t)
        for j in range(SIZE):
            m[j] = beta1 * m[j] + (1 - beta1) * g[j]
            v[j] = beta2 * v[j] + (1 - beta2) * g[j] ** 2
            m_hat, v_hat = m[j] / (1 - beta1**t), v[j] / (1 - beta2**t)
            y[j] = y[j] - gamma * (m_hat / (math.sqrt(v_hat) + epsilon) + decay * y[j])
        yield g, list(y)


def text():
    lines = []
    for case in CASES:
        lines.append("case " + " ".join(repr(number) for number in case))
        for g, y in steps(*case):
            lines.append("g " + " ".join(repr(number) for number in g))
            lines.append("y " + " ".join(repr(number) for number in y))
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:2] != ["--check"]:
        sys.stdout.write(text())
        return 0
    if pathlib.Path(sys.argv[2]).read_text() == text():
        return 0
    print(f"{sys.argv[2]} is not what adamw.py writes")
    return 1


if __name__ == "__main__":
    sys.exit(main())
