"""Tests under compute-sanitizer, for gpu_check.py."""
import re

from gpu_process import Program, found_program


def sanitizer_program():
    return found_program("compute-sanitizer")


def first_report(lines):
    """Returns the first report of compute-sanitizer: the error, where it is, and the address."""
    told = []
    for line in lines:
        if not line.startswith("=========") or re.search("COMPUTE-SANITIZER|SUMMARY", line):
            continue
        text = line.strip("= ")
        if told and not text:
            break
        if text and not text.startswith(("Saved host backtrace", "Host Frame")):
            told.append(text)
    return ", ".join(told[:4])


def sanitized(tool, kind, program, names, deadline, env, log):
    """Runs tests under compute-sanitizer. Returns (verdict, how many tests ended, what it says)."""
    process = Program([tool, "--tool", kind, "--error-exitcode", "9", program, "--gtest_color=no", "--gtest_filter=" + ":".join(names)], deadline, env, log)
    text = list(process.lines())
    summary = next((line.strip("= ") for line in text if "SUMMARY" in line), "")
    done = sum(1 for line in text if re.match(r"\[ +(OK|FAILED) +\].*ms\)$", line))
    has_found = bool(re.search(r"SUMMARY: [1-9]", summary)) or process.code == 9 or bool(process.is_out_of_time and first_report(text))
    verdict = "DIFFERS" if has_found else "not run" if process.is_out_of_time else "same" if summary and done else "CRASHED"
    if verdict == "same":
        return verdict, done, summary
    return verdict, done, " | ".join(filter(None, (first_report(text), summary, process.how_it_ended())))
