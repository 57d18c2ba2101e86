"""The secondary end points of first/plan.md that need whole curves: swing, oscillation, refused updates, and bits to a target.

They are taken out of a block's store and of its tuning runs, and what is kept are means of each cell, first/results/BLOCK/secondary.csv."""
import csv
import math
import sqlite3
import statistics
import tomllib

from conjecture_study import results

WINDOW = 0.2
PARTNERS = {"hard": "top-k", "rounding": "three-lc"}
CELL = (*results.FACTORS.values(), "partition.percent", "compressor.up")
COLUMNS = (*CELL, "runs", "diverged", "swing", "oscillating", "updates", "refused", "target", "arrived", "median_bits")


# ---- one curve: lists of the bits that all clients have sent after each round, and of the gap ----

def pieces(curve, start, end):
    """Returns (length, gap) of the constant pieces of the gap, a step function of the bits, between two places."""
    bits, gaps = curve
    found = []
    for i, gap in enumerate(gaps):
        low, high = max(bits[i], start), min(bits[i + 1], end) if i + 1 < len(bits) else end
        if high > low:
            found.append((high - low, gap))
    return found


def mean_of(found):
    return sum(length * gap for length, gap in found) / sum(length for length, _ in found)


def end_point(curve):
    """Returns the mean gap over the last fifth of the bits that a run sent."""
    end = curve[0][-1]
    return mean_of(pieces(curve, (1 - WINDOW) * end, end))


def deviation(curve):
    """Returns the standard deviation of the gap over the same bits."""
    end = curve[0][-1]
    found = pieces(curve, (1 - WINDOW) * end, end)
    mean = mean_of(found)
    return math.sqrt(mean_of([(length, (gap - mean) ** 2) for length, gap in found]))


def oscillates(curve):
    """Returns whether a run oscillates at its end, by the rule of scenarios/results/end_point.hpp: the gap changes sides of its mean at three quarters
    of the steps, more often than independent values would, and swings more than it progresses."""
    bits, gaps = curve
    end = bits[-1]
    start, middle = (1 - WINDOW) * end, (1 - WINDOW / 2) * end
    inside = [gap for i, gap in enumerate(gaps) if bits[i] >= start * (1 - 1e-12) and (i + 1 == len(bits) or bits[i + 1] > bits[i])]
    if len(inside) < 5:
        return False
    mean, steps = sum(inside) / len(inside), len(inside) - 1
    sides = [gap > mean for gap in inside if gap != mean]
    changes = sum(one != other for one, other in zip(sides, sides[1:]))
    progress = abs(mean_of(pieces(curve, middle, end)) - mean_of(pieces(curve, start, middle)))
    return changes >= max(0.75 * steps, steps / 2 + math.sqrt(steps)) and deviation(curve) > progress


def arrival(curve, target):
    """Returns the bits after which the gap is first measured at the target or below; None if it never is."""
    return next((bits for bits, gap in zip(*curve) if gap <= target), None)


def median_to_target(arrivals, ends):
    """Returns the median of the Kaplan-Meier estimate, infinite if it is not reached. `arrivals` has None for a run that ended before, at `ends`."""
    remaining = 1.0
    for time in sorted({bits for bits in arrivals if bits is not None}):
        at_risk = sum((end if bits is None else bits) >= time for bits, end in zip(arrivals, ends))
        remaining *= 1 - sum(bits == time for bits in arrivals) / at_risk
        if remaining <= 0.5 + 1e-12:
            return time
    return math.inf


# ---- stores ----

def opened(store):
    return sqlite3.connect(f"file:{store / 'results.sqlite'}?mode=ro", uri=True)


def curve_of(rows):
    """Returns the curve of rows of (bits of the round, gap, ...)."""
    bits, total = [], 0
    for row in rows:
        total += row[0]
        bits.append(total)
    return bits, [math.inf if row[1] is None else row[1] for row in rows]


def rows_of(connection, run_id):
    return connection.execute("SELECT bits_up, f_gap, refused, clients FROM rounds WHERE run_id = ? ORDER BY round", (run_id,)).fetchall()


def number_at(tables, path):
    """Returns what a scenario's nested tables have at a dotted path, as text; "" if they have nothing there."""
    for part in path.split("."):
        tables = tables.get(part, {}) if isinstance(tables, dict) else {}
    return "" if tables == {} else str(tables)


def same(a, b):
    try:
        return math.isclose(float(a), float(b), rel_tol=1e-12)
    except ValueError:
        return a == b


CHOSEN = "local.learning_rate", "feedback.up.eta", "stop.bits_up"


def targets(tuning, chosen):
    """Returns for each cell of a contraction operator the median, over the tuning seeds, of the end point of the values that tuning chose there.
    `chosen` is one run of the study for each cell."""
    ends = {}
    with opened(tuning) as connection:
        for run_id, status, scenario in connection.execute("SELECT id, status, scenario FROM runs ORDER BY id").fetchall():
            labels = dict(connection.execute("SELECT key, label FROM axes WHERE run_id = ?", (run_id,)))
            cell = tuple(labels[key] for key in CELL)
            if cell in chosen and labels["compressor.up"] in PARTNERS.values():
                tables = tomllib.loads(scenario)
                if all(same(number_at(tables, key), chosen[cell].get(key, "")) for key in CHOSEN):
                    gap = end_point(curve_of(rows_of(connection, run_id))) if status == "done" else math.inf
                    ends.setdefault(cell, []).append(gap)
    unknown = [cell for cell in chosen if cell[-1] in PARTNERS.values() and cell not in ends]
    if unknown:
        raise ValueError(f"{tuning} has no run with the values that were chosen for {', '.join(unknown[0])}")
    return {cell: statistics.median(found) for cell, found in ends.items()}


def line_of(cell, curves, statuses, refusals, target):
    """Returns the line of a cell."""
    done = [curve for curve, status in zip(curves, statuses) if status == "done"]
    arrivals = [arrival(curve, target) if status == "done" else None for curve, status in zip(curves, statuses)]
    ends = [curve[0][-1] if status == "done" else math.inf for curve, status in zip(curves, statuses)]
    swings = [deviation(curve) / end_point(curve) for curve in done]
    numbers = {"runs": len(curves), "diverged": len(curves) - len(done), "swing": f"{statistics.median(swings):.4g}" if swings else "",
               "oscillating": sum(map(oscillates, done)), "updates": sum(updates for _, updates in refusals), "refused": sum(count for count, _ in refusals),
               "target": target, "arrived": sum(bits is not None for bits in arrivals), "median_bits": median_to_target(arrivals, ends)}
    return {**dict(zip(CELL, cell)), **numbers}


def table_of(store, runs):
    """Returns the lines of a block from its store, the lines of its runs.csv, and the store's tuning runs."""
    cells = {}
    for run in sorted(runs, key=lambda run: int(run["seed"])):
        cells.setdefault(tuple(run[key] for key in CELL), []).append(run)
    target = targets(store / "tuning", {cell: members[0] for cell, members in cells.items()})
    with opened(store) as connection:
        ids = dict(connection.execute("SELECT run, id FROM runs"))
        for cell, members in sorted(cells.items()):
            rows = [rows_of(connection, ids[run["run"]]) for run in members]
            refusals = [(sum(row[2] for row in of_run), sum(row[3] for row in of_run)) for of_run in rows]
            of_partner = (*cell[:-1], PARTNERS.get(cell[-1], cell[-1]))
            yield line_of(cell, list(map(curve_of, rows)), [run["status"] for run in members], refusals, target[of_partner])


def export_block(store, folder):
    """Writes the table of a block whose other tables are in the folder. Raises ValueError if the store has no tuning runs."""
    if not (store / "tuning" / "results.sqlite").exists():
        raise ValueError(f"{store}/tuning has no runs, so no target is known")
    lines = list(table_of(store, results.read_table(folder / "runs.csv.xz")))
    with open(folder / "secondary.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
