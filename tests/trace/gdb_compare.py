#!/usr/bin/env python3
"""gdb_compare.py [--source oracle|tracer] [--allocator FILE] [--at N] [--last N] DIR COMMAND…

Runs COMMAND twice without address space randomisation: once recorded by the source, once under
gdb, which stops in the allocator's malloc at some chosen calls and walks the stack by its own
unwinder. Compares the stacks of the same calls, as lists of (file, offset), and prints the share of
frames that are equal; status 1 below --least. Only the main thread counts, and only calls that come
down to malloc: malloc itself, operator new, in libc also realloc of NULL. COMMAND must do the same each time.

DIR is for its files. The tracer is $ANALYZER.
"""
import argparse
import json
import os
import struct
import subprocess
import sys

import events as ev

HERE = os.path.dirname(os.path.abspath(__file__))
ORACLE = os.path.join(os.environ.get("TOP", os.path.join(HERE, "../..")), "build/trace/oracle.so")
# Runs inside gdb: counts calls in the main thread, writes the addresses of the stacks asked for.
IN_GDB = """
import gdb, json
wanted, allocator, out = %r, %r, open(%r, "w")
class Malloc(gdb.Breakpoint):
    calls = 0
    def stop(self):
        frame = gdb.newest_frame()
        library = gdb.solib_name(frame.pc()) or ""
        if gdb.selected_thread().num != 1 or allocator not in library:
            return False
        Malloc.calls += 1
        if Malloc.calls not in wanted:
            return False
        pcs, newer, older = [], frame, frame.older()
        while older is not None:
            if older.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                # Where a signal came: told as if it were a return address.
                pcs.append(older.pc() + (newer.type() == gdb.SIGTRAMP_FRAME))
            newer, older = older, older.older()
        maps = open("/proc/%%d/maps" %% gdb.selected_inferior().pid).read()
        out.write(json.dumps([Malloc.calls, pcs, maps]) + "\\n")
        return Malloc.calls == max(wanted)
for command in ("set pagination off", "set confirm off", "set startup-with-shell off",
                "set backtrace past-main on", "set backtrace limit unlimited",
                "set breakpoint pending on", "set disable-randomization on",
                "set debuginfod enabled off", "set auto-load safe-path /",
                "handle all nostop noprint pass", "unset environment LINES",
                "unset environment COLUMNS"):
    gdb.execute(command)
Malloc("malloc", internal=True)
gdb.execute("run")
out.close()
if gdb.selected_inferior().pid:
    gdb.execute("kill")
"""


def segments(path, cache={}):
    """PT_LOADs of a 64-bit ELF file: (offset, size in file, address)."""
    if path not in cache:
        with open(path, "rb") as f:
            data = f.read(1 << 16)
        start, = struct.unpack_from("<Q", data, 32)
        size, n = struct.unpack_from("<HH", data, 54)
        heads = [struct.unpack_from("<IIQQQQ", data, start + i * size) for i in range(n)]
        cache[path] = [(offset, filesz, vaddr) for kind, _, offset, vaddr, _, filesz in heads
                       if kind == 1]
    return cache[path]


def place(pc, maps):
    """(file, ELF address) of a code address."""
    for line in maps.splitlines():
        fields = line.split(None, 5)
        start, end = (int(x, 16) for x in fields[0].split("-"))
        if start <= pc < end and len(fields) == 6 and fields[5].startswith("/"):
            path, at = os.path.realpath(fields[5]), pc - start + int(fields[2], 16)
            for offset, size, vaddr in segments(path):
                if offset <= at < offset + size:
                    return path, at - offset + vaddr
    return "", pc


class OracleSource:
    """The oracle's log; gdb's run has the oracle too, so that both have the same environment."""

    def __init__(self, directory):
        self.dir = os.path.join(directory, "oracle")
        os.mkdir(self.dir)
        self.env = {"LD_PRELOAD": ORACLE, "ORACLE_DIR": self.dir}

    def run(self, command):
        run_plain(["setarch", "-R"] + command, self.env)
        return ev.read_oracle(self.dir)

    def gdb_env(self):
        return dict(self.env, ORACLE_DIR=os.path.join(os.path.dirname(self.dir), "unused"))


class TracerSource:
    def __init__(self, directory):
        self.dir, self.analyzer = os.path.join(directory, "traced"), os.environ["ANALYZER"]

    def run(self, command):
        run_plain([self.analyzer, "-q", "-t", "alloc", "-o", self.dir, "setarch", "-R"] + command,
                  {})
        lines = self.dir + ".ndjson"
        with open(lines, "wb") as out:
            subprocess.run([self.analyzer, "export", "ndjson", "--events", self.dir], check=True,
                           stdout=out)
        return ev.read_ndjson(lines)

    def gdb_env(self):
        return {}


def run_plain(command, env):
    """The same files for all runs: programs look at them."""
    subprocess.run(command, env=dict(os.environ, **env), stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120, check=False)


def mallocs(trace, command, is_libc):
    """The stacks of the main thread's calls that reached malloc, of the process that made most."""
    calls, released = {}, {}
    for e in trace.events:
        if e.kind == "exec":
            calls.pop(e.pid, None)
        if e.pid != e.tid:
            continue
        name, after_free = ev.canonical(e.function), released.pop(e.tid, False)
        if e.kind == "free" and e.realloc:
            released[e.tid] = True
        if e.kind in ("alloc", "failed") and (
                name in ("malloc", "new") or (name == "realloc" and is_libc and not after_free)):
            frames = [f for f in e.frames if not f[0].endswith("/oracle.so")]
            calls.setdefault(e.pid, []).append((name, frames))
    if not calls:
        sys.exit("no allocations were recorded of %s" % " ".join(command))
    return max(calls.values(), key=len)


def gdb_stacks(directory, command, env, wanted, allocator):
    """{n: frames outside the allocator}"""
    script, out = (os.path.join(directory, name) for name in ("gdb.py", "gdb.json"))
    with open(script, "w", encoding="utf-8") as f:
        f.write(IN_GDB % (wanted, allocator, out))
    settings = [x for k, v in env.items() for x in ("-ex", "set environment %s %s" % (k, v))]
    run_plain(["gdb", "-nx", "-batch"] + settings + ["-x", script, "--args"] + command, {})
    stacks = {}
    with open(out, encoding="utf-8") as lines:
        for line in lines:
            n, pcs, maps = json.loads(line)
            frames = [place(pc, maps) for pc in pcs]
            while frames and not frames[-1][0]:  # gdb goes on past ld.so's first frame
                frames.pop()
            stacks[n] = [f for f in frames if not f[0].endswith("/oracle.so")]
    return stacks


def compare(recorded, told, wanted):
    """Equal frames, frames, and what to show of the first differences."""
    equal = total = 0
    shown = []
    for n in wanted:
        name, got = recorded[n - 1]
        want = told.get(n, [])
        if name == "new":  # the recorded call is the operator, gdb stands further in
            want = want[max(0, len(want) - len(got)):]
        elif name == "realloc":
            want = want[1:] if len(want) > len(got) else want
        same = sum(a == b for a, b in zip(got, want))
        equal, total = equal + same, total + max(len(got), len(want))
        if got != want and len(shown) < 3:
            shown.append("call %d (%s), recorded and gdb:" % (n, name))
            for i in range(max(len(got), len(want))):
                shown.append("   %-40s %s" % tuple(ev.show_frame(f[i]) if i < len(f) else "none"
                                                   for f in (got, want)))
    return equal, total, shown


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", choices=("oracle", "tracer"), default="tracer")
    parser.add_argument("--allocator", default="/libc.so.6")
    parser.add_argument("--at", type=int, default=20, help="how many calls to compare")
    parser.add_argument("--last", type=int, default=2000,
                        help="the last call looked at; gdb takes about a millisecond for each")
    parser.add_argument("--least", type=float, default=0.995)
    parser.add_argument("dir")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    source = (OracleSource if args.source == "oracle" else TracerSource)(os.path.abspath(args.dir))
    recorded = mallocs(source.run(args.command), args.command, "/libc.so" in args.allocator)
    last = min(len(recorded), args.last)
    wanted = sorted({1 + i * (last - 1) // max(1, args.at - 1) for i in range(args.at)})
    told = gdb_stacks(args.dir, args.command, source.gdb_env(), wanted, args.allocator)
    equal, total, shown = compare(recorded, told, wanted)
    print("%d calls, %d of them compared: %d of %d frames equal" % (len(recorded), len(told),
                                                                    equal, total))
    print("\n".join(shown))
    return 0 if told and len(told) == len(wanted) and equal >= args.least * total else 1


if __name__ == "__main__":
    sys.exit(main())
