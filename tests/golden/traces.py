#!/usr/bin/env python3
"""Goldens of every operator and feedback method, from their published equations in NumPy: three rounds each on a small example.

    python3 tests/golden/traces.py > tests/golden/traces.txt        numpy_traces_test.cpp holds the library against the numbers
    python3 tests/golden/traces.py --check tests/golden/traces.txt  ends with 1 where the file says something else

The equations are in published/. They were written from the publications as the heads of compressors/*.cpp restate them, not from the
library's code; random words come from a Philox of their own. What no publication says is taken from the library: which word serves which
draw (fl_core/random/random.hpp, and the index that the functions name). Every trace of one input differs from every other, and an example in
which a method's condition always or never holds is refused: where that happens, change the example.

Lines of the output, by their first word:
    key NUMBER                            of the operators' random words
    input NAME                            then "x ROUND CLIENT numbers": the vectors that operators are given
    operator NAME LABEL                   then "of INPUT SCOPE", "options TABLE", and "c ROUND CLIENT numbers", C(x); of an operator of
                                          several phases "mean ROUND numbers", the mean of the clients' C(x)
    data LINE                             of the feedback methods' data file
    feedback NAME LABEL                   then "toml LINE" of the scenario, and after each round "model ROUND numbers", "client SLOT ROUND
                                          CLIENT numbers", "shared SLOT ROUND numbers"
"""

import io
import sys
from types import SimpleNamespace

import numpy as np

sys.dont_write_bytecode = True
from published.cases import CLIENTS, FEEDBACK_CASES, INPUTS, KEY, OPERATOR_CASES, SCOPES  # noqa: E402
from published.feedbacks import FEEDBACKS, L2, N, ROWS, SEED, Run  # noqa: E402
from published.operators import OF_ALL_CLIENTS, OPERATORS, compress, options  # noqa: E402
from published.words import EVERYONE  # noqa: E402


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    return repr(value)


def scenario(case):
    """The lines of a scenario but for data.path, which the test adds."""
    lines = ['name = "trace"', "rounds = 3", f"seed = {SEED}", 'precision = "float64"']
    lines += [f'partition = {{ kind = "contiguous", clients = {N} }}']
    lines += [f"model = {toml({'kind': 'linear_regression', 'bias': False, 'l2': L2})}", 'start = { kind = "zero", shift = 0.5 }']
    lines += [f"local = {toml(case['local'])}", f"feedback.up = {toml(case['feedback'])}"]
    lines += [f"compressor.up = {toml({**case['up'], **case.get('channels', {})})}"]
    lines += [f"compressor.down = {toml(case['down'])}"] if "down" in case else []
    return lines + [f"{key} = {toml(case[key])}" for key in ("participation", "server") if key in case]


def numbers(values):
    return " ".join(format(float(v) + 0.0, ".17g") for v in np.ravel(values))  # + 0.0: no -0


def operator_trace(case):
    """[(first words of a line, numbers)] of three rounds."""
    scope, o, rows = SCOPES[case["scope"]], options(case["part"]), []
    memory = {client: {} for client in (*CLIENTS, EVERYONE)}
    for r, vectors in enumerate(INPUTS[case["input"]], start=1):
        context = lambda client: SimpleNamespace(key=KEY, client=client, round=r, scope=scope, memory=memory[client])
        X = np.array(vectors)
        if OPERATORS[o.kind] in OF_ALL_CLIENTS:
            rows.append((f"mean {r}", OPERATORS[o.kind](X, o, context(EVERYONE), scope)))
        else:
            rows += [(f"c {r} {client}", compress(case["part"], x, context(client))) for client, x in zip(CLIENTS, X)]
    return rows


def feedback_trace(case):
    run, rows = Run(case), []
    for r, (x, clients, shared) in enumerate(FEEDBACKS[case["feedback"]["kind"]](run), start=1):
        rows.append((f"model {r}", x))
        rows += [(f"client {slot} {r} {i}", v[i].copy()) for slot, v in clients.items() for i in range(N)]
        rows += [(f"shared {slot} {r}", v) for slot, v in shared.items()]
    one_sided = [what for what, seen in run.seen.items() if len(seen) == 1]
    if one_sided:
        name = f"{case['feedback']['kind']} {case['label']}"
        sys.exit(f"traces.py: feedback {name}: always or never {', '.join(one_sided)}: change the example")
    return rows


def differ(names, traces):
    """No two cases have the same numbers: the examples tell every method from every other."""
    flat = [np.concatenate([np.ravel(values) for words, values in rows if words.split()[0] != "client"]) for rows in traces]
    for a in range(len(flat)):
        for b in range(a):
            if len(flat[a]) == len(flat[b]) and np.max(np.abs(flat[a] - flat[b])) < 1e-6:
                sys.exit(f"traces.py: {names[a]} and {names[b]} have the same trace: change one of the examples")


def checked_traces(cases, trace, name):
    """[(name, case, trace)], of which no two of the same input have the same numbers."""
    made = [(f"{case[name]['kind']} {case['label']}", case, trace(case)) for case in cases]
    for input_ in {case.get("input") for case in cases}:
        chosen = [one for one in made if one[1].get("input") == input_]
        differ([one[0] for one in chosen], [one[2] for one in chosen])
    return made


def write(out):
    say = lambda *words: print(*words, file=out)
    say("# Written by tests/golden/traces.py, where the format is described.")
    say("key", KEY)
    for name, rounds in INPUTS.items():
        say("input", name)
        for r, vectors in enumerate(rounds, start=1):
            for client, x in zip(CLIENTS, vectors):
                say("x", r, client, numbers(x))
    for name, case, rows in checked_traces(OPERATOR_CASES, operator_trace, "part"):
        say(f"operator {name}\nof {case['input']} {case['scope']}\noptions {toml(case['part'])}")
        for words, values in rows:
            say(words, numbers(values))
    for row in ROWS:
        say("data", format(row[-1], "g"), " ".join(f"{j}:{v:g}" for j, v in enumerate(row[:-1], start=1)))
    for name, case, rows in checked_traces(FEEDBACK_CASES, feedback_trace, "feedback"):
        say("feedback", name)
        for line in scenario(case):
            say("toml", line)
        for words, values in rows:
            say(words, numbers(values))


def same(ours, theirs):
    """Lines of the same words, whose numbers differ by the rounding of another machine's NumPy at most."""
    num_words = {"x": 3, "c": 3, "mean": 2, "model": 2, "client": 4, "shared": 3}
    a, b = ours.split(), theirs.split()
    if a[0] not in num_words or len(a) != len(b):
        return ours == theirs
    first = num_words[a[0]]
    x, y = np.array(a[first:], dtype=float), np.array(b[first:], dtype=float)
    return a[:first] == b[:first] and np.max(np.abs(x - y)) <= 1e-13 * np.max(np.abs(x))


def check(path):
    out = io.StringIO()
    write(out)
    ours, theirs = out.getvalue().splitlines(), open(path, encoding="utf-8").read().splitlines()
    for line, (a, b) in enumerate(zip(ours, theirs), start=1):
        if not same(a, b):
            sys.exit(f"{path}:{line} is stale: python3 tests/golden/traces.py > tests/golden/traces.txt\n  is        {b}\n  should be {a}")
    if len(ours) != len(theirs):
        sys.exit(f"{path} has {len(theirs)} lines and should have {len(ours)}")
    print(f"{path}: {len(ours)} lines, as NumPy {np.__version__} makes them")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"] and len(sys.argv) == 3:
        check(sys.argv[2])
    elif len(sys.argv) == 1:
        write(sys.stdout)
    else:
        sys.exit("usage: traces.py [--check FILE]")
