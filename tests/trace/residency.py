#!/usr/bin/env python3
"""Compares what 60-residency says of its memory with the scans of profile.db.

    residency.py DIR OUTPUT [--swapcache yes|no]

Of each standstill the last scan that ended within it counts. --swapcache no: the kernel does not
show the swap cache, its column must be NULL; with yes it must be as mincore said.
"""

import argparse
import sqlite3
import sys

COLUMNS = ("resident", "swapped", "swapcache", "cold", "returned", "thrashing")


def phases(path):
    sites, total, out = {}, None, []
    for line in open(path):
        word, *rest = line.split()
        if word == "start":
            sites, total = {}, None
        elif word == "site":
            sites[rest[0]] = [int(x) for x in rest[1:]]
        elif word == "total":
            total = [int(x) for x in rest]
        elif word == "phase":
            begin = int(rest[1])
        elif word == "end":
            out.append((rest[0], begin, int(rest[1]), sites, total))
            sites, total = {}, None
    return out


class Check:
    def __init__(self, db, swapcache):
        self.db, self.swapcache, self.bad = db, swapcache, 0

    def differ(self, *what):
        print(*what)
        self.bad += 1

    def site(self, phase, name, expected, t_ns):
        *values, slack = expected
        ids = self.db.execute(
            "SELECT site_id FROM site_stack WHERE level = 0 AND function = ?", (name,)).fetchall()
        if not ids:
            return self.differ(phase, name, "is no site")
        got = [0] * len(COLUMNS)
        for (i,) in ids:
            row = self.db.execute(
                "SELECT " + ", ".join(c + "_bytes" for c in COLUMNS) +
                " FROM site_sample WHERE site_id = ? AND t_ns <= ? ORDER BY t_ns DESC LIMIT 1",
                (i, t_ns)).fetchone()
            if row:
                got = [a if b is None else a + b for a, b in zip(got, row)]
                if (row[2] is None) == (self.swapcache == "yes"):
                    self.differ(phase, name, "swapcache is", row[2])
        for column, a, b in zip(COLUMNS, values, got):
            if column == "swapcache" and self.swapcache == "no":
                continue
            if abs(a - b) > slack:
                self.differ(phase, name, column, "expected", a, "got", b, "+-", slack)

    def phase(self, name, begin, end, sites, total, started):
        row = self.db.execute(
            "SELECT t_ns, resident_bytes, swapped_bytes FROM scan WHERE t_ns + ?1 > ?2 AND"
            " t_ns + ?1 + scan_ns < ?3 ORDER BY t_ns DESC LIMIT 1", (started, begin, end)).fetchone()
        if not row:
            return self.differ(name, "was not scanned")
        for site, expected in sites.items():
            self.site(name, site, expected, row[0])
        if total and list(row[1:]) != total:
            self.differ(name, "in all expected", total, "got", row[1:])
        print(name, len(sites), "sites,", row[1], "bytes in memory,", row[2], "swapped")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dir")
    parser.add_argument("output")
    parser.add_argument("--swapcache", choices=("yes", "no"), required=True)
    args = parser.parse_args()
    db = sqlite3.connect("file:%s/profile.db?mode=ro" % args.dir, uri=True)
    (started,) = db.execute("SELECT started_mono_ns FROM run").fetchone()
    check, told = Check(db, args.swapcache), phases(args.output)
    for phase in told:
        check.phase(*phase, started)
    sums = db.execute("SELECT count(*) FROM site AS s WHERE max_swapped_bytes IS NOT (SELECT"
                      " coalesce(max(swapped_bytes), 0) FROM site_sample AS x"
                      " WHERE x.site_id = s.site_id) AND max_swapped_bytes IS NOT NULL").fetchone()
    if sums[0]:
        check.differ(sums[0], "sites have a wrong max_swapped_bytes")
    sys.exit(0 if told and not check.bad else 1)


main()
