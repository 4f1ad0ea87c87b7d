#!/usr/bin/env python3
"""Runs 60-residency under analyzer and compares what it says of its memory with the scans.

    residency.py DIR yes|no ANALYZER... -o DIR .../60-residency MODE

Whenever the program stands still, waits for a scan that began after that, and lets it go on.
no: the kernel does not show the swap cache, its column must be NULL; with yes it must be as mincore
said. The status is the program's own, or 1.
"""

import argparse
import sqlite3
import subprocess
import sys
import time

COLUMNS = ("resident", "swapped", "swapcache", "cold", "returned", "thrashing")
WAIT_S = 120


def query(path, sql, *args):
    db = sqlite3.connect("file:%s/profile.db?mode=ro" % path, uri=True)
    try:
        return db.execute(sql, args).fetchone()
    finally:
        db.close()


def wait_for_scan(path, since_ns):
    """The time of the first scan of the process as it stands."""
    for _ in range(WAIT_S * 20):
        row = query(path, "SELECT min(t_ns) FROM scan WHERE t_ns +"
                    " (SELECT started_mono_ns FROM run) > ?", since_ns)
        if row[0] is not None:
            return row[0]
        time.sleep(0.05)
    sys.exit("not scanned in %d s" % WAIT_S)


def run(path, command):
    """Yields each standstill: its name, the scan's time, what the program said."""
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    sites, total = {}, None
    for line in p.stdout:
        word, *rest = line.split()
        if word == "site":
            sites[rest[0]] = [int(x) for x in rest[1:]]
        elif word == "total":
            total = [int(x) for x in rest]
        elif word == "still":
            yield rest[0], wait_for_scan(path, int(rest[1])), sites, total
            sites, total = {}, None
            p.stdin.write("\n")
            p.stdin.flush()
    p.stdin.close()
    if p.wait() != 0:
        sys.exit(p.returncode)


class Check:
    def __init__(self, path, swapcache):
        self.path, self.swapcache, self.bad = path, swapcache, 0

    def differ(self, *what):
        print(*what)
        self.bad += 1

    def site(self, still, t_ns, name, expected):
        *values, slack = expected
        db = sqlite3.connect("file:%s/profile.db?mode=ro" % self.path, uri=True)
        ids = db.execute("SELECT site_id FROM site_stack WHERE level = 0 AND function = ?",
                         (name,)).fetchall()
        if not ids:
            self.differ(still, name, "is no site")
        got = [0] * len(COLUMNS)
        for (i,) in ids:
            row = db.execute("SELECT " + ", ".join(c + "_bytes" for c in COLUMNS) +
                             " FROM site_sample WHERE site_id = ? AND t_ns <= ?"
                             " ORDER BY t_ns DESC LIMIT 1", (i, t_ns)).fetchone()
            if row:
                got = [a if b is None else a + b for a, b in zip(got, row)]
                if (row[2] is None) == (self.swapcache == "yes"):
                    self.differ(still, name, "swapcache is", row[2])
        for column, a, b in zip(COLUMNS, values, got):
            if column == "swapcache" and self.swapcache == "no":
                continue
            if abs(a - b) > slack:
                self.differ(still, name, column, "expected", a, "got", b, "+-", slack)

    def still(self, name, t_ns, sites, total):
        for site, expected in sites.items():
            self.site(name, t_ns, site, expected)
        got = query(self.path, "SELECT resident_bytes, swapped_bytes FROM scan WHERE t_ns = ?", t_ns)
        if total and list(got) != total:
            self.differ(name, "in all expected", total, "got", got)
        print("%s: %d sites, %d bytes in memory, %d swapped" % (name, len(sites), *got))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dir")
    parser.add_argument("swapcache", choices=("yes", "no"))
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    told = list(run(args.dir, args.command))
    check = Check(args.dir, args.swapcache)
    for still in told:
        check.still(*still)
    sys.exit(0 if told and not check.bad else 1)


main()
