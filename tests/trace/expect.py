#!/usr/bin/env python3
"""expect.py [--oracle] [--tag TAG] SOURCE TRACE: exact counts, worked out by hand.

The test program's source says in comments what it does:
  EXPECT KIND FUNCTION SIZE x COUNT [in MODULE]   exactly so many such events, over all processes
                                                  FUNCTION * for any function
  ALLOW KIND FUNCTION SIZE                        any number of them; SIZE may be * for all that
                                                  nothing is expected of
  IGNORE KIND MODULE                              the same for calls from a module (innermost
                                                  frame), with what later frees or unmaps them
  LIVE SIZE x COUNT                               blocks never freed when their process ended
  UNKNOWN x COUNT                                 frees of blocks that the trace never saw made;
                                                  * for any number
  NOORACLE                                        not all of it goes through dynamic symbols
EXPECT[TAG] and so on hold only with --tag TAG, and then in place of the untagged ones of that word.
A free's and a restore's size is that of the block. fork, exec and exit are counted only where
some EXPECT names the kind. Everything else that was traced is a difference: status 1.
"""
import argparse
import collections
import re
import sys

import events as tr

LINE = re.compile(r"^\s*\*\s+(EXPECT|ALLOW|IGNORE|LIVE|UNKNOWN|NOORACLE)(?:\[(\w+)\])?\s*(.*)$")
OPTIONAL_KINDS = ("fork", "exec", "exit")


def rules(path, tag):
    """{word: [[field, …], …]}"""
    plain, tagged = collections.defaultdict(list), collections.defaultdict(list)
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            m = LINE.match(line)
            if m and not m.group(2):
                plain[m.group(1)].append(m.group(3).split())
            elif m and m.group(2) == tag:
                tagged[m.group(1)].append(m.group(3).split())
    return collections.defaultdict(list, {**plain, **tagged})


def counts(fields):
    """EXPECT's fields as ((kind, function, size, module), count)"""
    at = fields.index("x")
    module = fields[fields.index("in") + 1] if "in" in fields else ""
    return tuple(fields[:at]), int(fields[at + 1].replace(",", "")), module


class Check:
    def __init__(self, path, tag, is_oracle):
        self.rules = rules(path, tag)
        if is_oracle and "NOORACLE" in self.rules:
            print("skipped: NOORACLE")
            sys.exit(0)
        self.expected, self.seen = collections.Counter(), collections.Counter()
        self.modules = {}
        for fields in self.rules["EXPECT"]:
            key, n, module = counts(fields)
            key = (key[0], tr.canonical(key[1])) + key[2:]
            self.expected[key + (module,)] += n
            self.modules.setdefault(key, []).append(module)
        self.ignored = [(kind, module) for kind, module in self.rules["IGNORE"]]
        self.allowed = {(k, tr.canonical(f), s) for k, f, s in self.rules["ALLOW"]}
        self.kinds = {k[0] for k in self.expected}

    def is_ignored(self, e):
        if e.kind in ("free", "restore"):
            return e.block is not None and self.is_ignored(e.block)
        if e.kind == "munmap":
            return all(self.is_ignored(owner) for _, _, owner in e.block)
        return bool(e.frames) and any(k == e.kind and m in e.frames[0][0]
                                      for k, m in self.ignored)

    def count(self, e):
        if e.kind in OPTIONAL_KINDS:
            size = "-"
            if e.kind not in self.kinds:
                return
        elif e.kind in ("free", "restore"):
            size = str(e.block.size) if e.block else "?"
        else:
            size = str(e.size)
        key = (e.kind, "-" if e.kind in OPTIONAL_KINDS else tr.canonical(e.function), size)
        if key not in self.modules and (e.kind, "*", size) in self.modules:
            key = (e.kind, "*", size)
        is_allowed = key in self.allowed or key[:2] + ("*",) in self.allowed
        if (is_allowed and key not in self.modules) or self.is_ignored(e):
            return
        for module in self.modules.get(key, ()):
            if module and e.frames and module in e.frames[0][0]:
                self.seen[key + (module,)] += 1
                return
        self.seen[key + ("",)] += 1

    def against(self, trace):
        replay = tr.Replay(trace)
        for e in trace.events:
            self.count(e)
        wrong = replay.problems[:10]
        for key in sorted(set(self.expected) | set(self.seen)):
            if self.seen[key] != self.expected[key]:
                wrong.append("%s: %d, expected %d" % (" ".join(key).strip(), self.seen[key],
                                                      self.expected[key]))
        if self.rules["LIVE"]:
            live = collections.Counter(str(e.size) for e in replay.leaks if not self.is_ignored(e))
            expected = {f[0]: int(f[2]) for f in self.rules["LIVE"]}
            for size in sorted(set(live) | set(expected)):
                if live[size] != expected.get(size, 0):
                    wrong.append("live at the end, size %s: %d, expected %d" % (
                        size, live[size], expected.get(size, 0)))
        unknown = self.rules["UNKNOWN"][0][1] if self.rules["UNKNOWN"] else "0"
        if unknown not in ("*", str(len(replay.unknown))):
            wrong.append("frees of unknown blocks: %d, expected %s; the first: %s" % (
                len(replay.unknown), unknown, replay.unknown[0] if replay.unknown else "-"))
        wrong += ["lost: %s" % loss for loss in trace.losses]
        return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--oracle", action="store_true")
    parser.add_argument("--tag")
    parser.add_argument("source")
    parser.add_argument("trace")
    args = parser.parse_args()
    check = Check(args.source, args.tag, args.oracle)
    trace = (tr.read_oracle if args.oracle else tr.read_ndjson)(args.trace)
    wrong = check.against(trace)
    print("%d events, %d expected in %d kinds" % (
        len(trace.events), sum(check.expected.values()), len(check.expected)))
    for line in wrong[:30]:
        print(line)
    if wrong:
        for e in trace.events[:20]:
            print("   ", e)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
