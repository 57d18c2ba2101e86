#!/usr/bin/env python3
"""Everything that needs a GPU, in one table: do both devices give the same, is a run the same every time, how fast is it. bench/gpu_check.sh starts
it; docs/gpu.md explains its stages and plans. Each stage has a time limit, prints its rows as they come, and outlives crashes and hangs of the
others. Rows that are wrong are repeated at the end. Needs Python 3.8 and nothing else.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import signal
import sys
import time

import gpu_logs
import gpu_plans
import gpu_process
from gpu_process import FIRST, Program, output_of
from gpu_suites import WRONG, suite_of

HERE = pathlib.Path(__file__).resolve().parent
COMPARING = ("kernels", "runs", "determinism", "sanitizer")  # what goes wrong in the other stages is said and is no failure
# Of the wrong rows at the end: a machine may give back the last 12,000 characters of what is printed.
MOST_REPEATED, ROW_CHARACTERS, REPEATED_CHARACTERS = 40, 400, 10_500


def available_cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Check:
    """The table, and what the stages share."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.build = pathlib.Path(arguments.build).resolve()  # "." as well
        self.rows, self.stages = [], {}
        self.stage, self.deadline, self.why_no_gpu = "", 0.0, ""
        self.logs = gpu_logs.Logs(arguments.json)
        self.known_ms = {}  # of tests, from an earlier table
        if arguments.after:
            rows = json.loads(pathlib.Path(arguments.after).read_text())["rows"]
            self.known_ms = {row["name"]: row["value"] for row in rows if row["stage"] in ("kernels", "runs") and row.get("unit") == "ms"}
        self.env = dict(os.environ)
        data = HERE.parent / "data"
        if "FEDBITS_DATA" not in self.env and (data / "CUT.txt").exists():  # the bundle's own
            self.env["FEDBITS_DATA"] = str(data)

    def program(self, name):
        """Returns the path of a program of the build, or None."""
        for path in (self.build / name, self.build / "bench" / name):
            if os.access(path, os.X_OK):
                return str(path)
        return None

    def say(self, name, verdict, value=None, unit="", stage="", **more):
        """Adds a row, prints it and returns it. `more`: note, goal, share, floor_bytes, predicted_ms and others that the JSON file carries."""
        row = {"stage": stage or self.stage, "name": name, "verdict": verdict}
        if value is not None:
            row.update(value=value, unit=unit)
        row.update({key: told for key, told in more.items() if told not in (None, "")})
        self.rows.append(row)
        shown = "" if value is None else f"{value:.4g} {unit}"
        extra = "".join(f"  {key} {row[key]:.3g}" for key in ("share", "goal", "predicted_ms", "predicted") if key in row)
        note = row.get("note", "")
        print(f"{row['stage']:<12} {name:<62} {verdict:<9} {shown:<22}{extra}{'  ' + note if note else ''}".rstrip(), flush=True)
        return row

    def wants(self, name):
        return self.arguments.only in name

    def left(self):
        return max(0.0, self.deadline - time.monotonic())

    def run_stage(self, stage, deadline):
        """Runs a stage; what goes wrong in it is a row."""
        self.stage, start, self.deadline = stage.stage_of_rows, time.monotonic(), deadline
        print(f"\n---- {stage.name}, at most {self.left():.0f} s", flush=True)
        try:
            if self.why_no_gpu and self.stage not in ("device", "kernels"):
                self.say(stage.name, "not run", note=self.why_no_gpu)
            else:
                stage.work(self)
        except Exception as error:  # the stages behind it run in any case
            self.say(stage.name, "FAILED", note=f"{type(error).__name__}: {error}")
        finally:
            gpu_process.end_all()
        self.stages[stage.name] = {"seconds": round(time.monotonic() - start, 2), "limit_s": stage.limit_s * self.arguments.patience, "rows": self.stage}
        self.write()

    def run_all(self, stages, limit_s=None):
        """Runs stages. In a plan (limit_s) a stage may also take the time that those before it have left."""
        patience = self.arguments.patience
        end = time.monotonic() + (limit_s or 0) * patience
        for i, stage in enumerate(stages):
            later = sum(one.limit_s for one in stages[i + 1:]) * patience
            self.run_stage(stage, end - later if limit_s else time.monotonic() + stage.limit_s * patience)

    def write(self):
        """Writes the JSON file, whole or not at all."""
        if not self.arguments.json:
            return
        table = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "device": self.device(), "scale": self.arguments.scale,
                 "plan": self.arguments.plan, "stages": self.stages, "rows": self.rows}
        fresh = pathlib.Path(self.arguments.json + ".new")
        fresh.write_text(json.dumps(table, indent=1) + "\n")
        fresh.replace(self.arguments.json)

    def device(self):
        return next((row.get("note", "") for row in self.rows if row["name"] == "GPU"), "")

    def take_lines(self, command, limit_s, name):
        """Runs a program that prints rows as lines of JSON; returns how many came."""
        taken = 0
        deadline = min(self.deadline, time.monotonic() + limit_s * self.arguments.patience)
        process = Program(command, deadline, self.env, self.logs.log(f"{self.stage} {name}"))
        for line in process.lines():
            try:
                row = json.loads(line) if line.startswith("{") else None
            except ValueError:
                row = None
            if not isinstance(row, dict) or "name" not in row:
                continue
            taken += 1
            told = {key: value for key, value in row.items() if key not in ("stage", "name", "value", "unit", "why")}
            told["part"] = row.get("stage")  # of gpu_bench
            if not self.wants(row["name"]):
                continue
            if "value" in row:
                self.say(row["name"], "measured", row["value"], row.get("unit", ""), **told)
            else:
                why = row.get("why", "")
                self.say(row["name"], "skipped" if why.startswith("No module named") else "not run", note=why, **told)
        ended = process.how_it_ended()
        if ended or taken == 0:
            said = " | ".join(line for line in process.tail[-3:] if not line.startswith("{"))
            self.say(name, "HUNG" if process.is_out_of_time else "FAILED" if ended else "skipped", note=": ".join(filter(None, (ended, said[:400]))))
        return taken

    def list_operators(self):
        """Says which operators there are, and on which devices, where there is no GPU."""
        lines, ended = output_of([self.program("fedbits"), "list", "compressors"], 20)
        for line in lines:
            operator = re.match(r"  ([a-z]\S*)\s+\[([^]]*)\]", line)
            if operator and self.wants(operator.group(1)):
                self.say(operator.group(1), "not run", note="on " + operator.group(2))
        if ended:
            self.say("list of operators", "FAILED", note=ended)

    def wrong_rows(self):
        """Returns the rows that are wrong: comparisons first and, of those, one of each suite first."""
        seen, found = {}, []
        for row in self.rows:
            if row["verdict"] in WRONG:
                group = (row["stage"], suite_of(row["name"]))
                seen[group] = seen.get(group, 0) + 1
                found.append((row["stage"] not in COMPARING, seen[group] > 1, len(found), row))
        return [row for *_, row in sorted(found, key=lambda one: one[:3])]

    def print_counts(self):
        for stage in dict.fromkeys(row["stage"] for row in self.rows):
            verdicts = [row["verdict"] for row in self.rows if row["stage"] == stage]
            seconds = sum(one["seconds"] for one in self.stages.values() if one["rows"] == stage)
            counted = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
            print(f"{stage:<12} {seconds:6.1f} s  {counted}")

    def repeat_wrong_rows(self):
        """Prints the wrong rows again, shortened, as the last lines: the first difference whole, or the beginning of other notes."""
        wrong = self.wrong_rows()
        if not wrong:
            return
        print(f"\n{len(wrong)} wrong rows:")
        room = REPEATED_CHARACTERS
        for i, row in enumerate(wrong):
            head, note = f"{row['stage']} {row['name']} {row['verdict']}  ", row.get("note", "")
            line = head + note.split(" | ")[0] if note.startswith(FIRST) else (head + note)[:ROW_CHARACTERS].rstrip()
            if i == MOST_REPEATED or len(line) > room:
                print(f"and {len(wrong) - i} more: see the rows above" + (f" and {self.arguments.json}" if self.arguments.json else ""))
                break
            room -= len(line) + 1
            print(line)
        sys.stdout.flush()

    def exit_code(self):
        is_wrong = any(row["verdict"] in WRONG for row in self.rows if row["stage"] in COMPARING or row["name"] == "a kernel")
        return 1 if is_wrong else 3 if self.why_no_gpu else 0


def parsed():
    parser = argparse.ArgumentParser(prog="gpu_check.sh", description=__doc__.split("\n\n")[0])
    parser.add_argument("build", help="folder with fedbits, fedbits_gpu_parity and gpu_bench")
    parser.add_argument("--plan", default="", choices=["", *gpu_plans.PLANS], help="one of the three short runs of docs/gpu.md")
    parser.add_argument("--dry-run", "--print", action="store_true", help="print what the plan does, and run nothing")
    parser.add_argument("--after", default="", metavar="FILE", help="table of plan A: plan B runs the tests again that it does not call the same")
    parser.add_argument("--stage", action="append", choices=list(gpu_plans.STAGES), help="run this stage alone (repeatable); the device is always looked at")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows and tests whose name contains TEXT")
    parser.add_argument("--json", default="", metavar="FILE", help="write the table there, too, after every stage, and whole outputs beside it")
    parser.add_argument("--shards", type=int, default=min(4, available_cores()), metavar="N", help="test programs at a time (default: cores, at most 4)")
    parser.add_argument("--scale", type=float, default=1, help="size of the benchmarks (default 1; less on an emulator)")
    parser.add_argument("--patience", type=float, default=1, help="factor of all time limits")
    parser.add_argument("--test-limit", type=float, default=60, metavar="SECONDS", help="a test that takes longer hangs (default 60)")
    parser.add_argument("--baselines", nargs=2, default=[], metavar=("CLIENTS", "STEPS"), help="size of the baselines (default 256 5)")
    parser.add_argument("--python", default=sys.executable, help="Python with torch or jax, for the baselines")
    arguments = parser.parse_args()
    if arguments.plan and arguments.stage:
        parser.error("--plan has its own stages: leave --stage out")
    if arguments.dry_run and not arguments.plan:
        parser.error("--dry-run needs --plan")
    if arguments.after and not os.path.exists(arguments.after):
        parser.error(f"--after: there is no file {arguments.after}; give the table that plan A has written")
    if arguments.shards < 1:
        parser.error("--shards: at least 1")
    return arguments


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = parsed()
    if arguments.dry_run:
        print(gpu_plans.text_of(arguments.plan))
        return 0
    check = Check(arguments)
    missing = [name for name in ("fedbits", "fedbits_gpu_parity") if not check.program(name)]
    if missing:
        print(f"{check.build} holds no {' and no '.join(missing)}; build the preset cuda there", file=sys.stderr)
        return 2
    try:
        if arguments.plan:
            plan = gpu_plans.PLANS[arguments.plan]
            check.run_all(plan.stages, plan.limit_s - gpu_plans.START_S)
        else:
            asked = arguments.stage or list(gpu_plans.STAGES)
            check.run_all([stage for name, stage in gpu_plans.STAGES.items() if name == "device" or name in asked])
    finally:
        gpu_process.end_all()
        check.write()
        check.logs.pack()
    print()
    check.print_counts()
    check.repeat_wrong_rows()
    return check.exit_code()


if __name__ == "__main__":
    sys.exit(main())
