#!/usr/bin/env python3
"""cases.py REPORT LIST: fails when a conformance case failed that is not in the list of those out of scope.

A listed case that passes is named too, so that the list shrinks.
"""
import json
import sys
from pathlib import Path


def main(report, listed):
    cases = json.loads(Path(report).read_text(encoding="utf-8"))
    lines = (line.split("#")[0].strip() for line in Path(listed).read_text(encoding="utf-8").splitlines())
    reasons = dict(line.split(" ", 1) for line in lines if line)
    failed = [case for case in cases if case["status"] == "FAIL"]
    bad = [case for case in failed if case["id"] not in reasons]
    for case in failed:
        if case["id"] in reasons:
            print(f"out of scope: {case['name']}: {reasons[case['id']]}")
    for case in cases:
        if case["status"] == "PASS" and case["id"] in reasons:
            print(f"passes, take it off the list: {case['name']}")
    for case in bad:
        print(f"FAILED in scope: {case['name']}: {case['message']}")
    print(f"{len(cases) - len(failed)} of {len(cases)} cases did not fail, {len(bad)} failed in scope")
    return 1 if bad or not cases else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
