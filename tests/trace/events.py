"""What a traced run and the oracle's logs have in common: events in order of time.

read_ndjson reads what `analyzer export ndjson` prints, read_oracle a directory that oracle.so
wrote; both give a Trace. replay() walks one, notes on each event what it was about, and returns
what contradicts itself: an allocation of what is live, a restore of what was not freed.

events.py ORACLE_DIR prints the oracle's logs as the tracer's export would: for tests of these tools.
"""
import glob
import json
import os
import struct
import sys

KINDS = ["alloc", "free", "restore", "failed", "mmap", "munmap", "brk"]
START, MODULE = 64, 65
FUNCTIONS = ["malloc", "calloc", "realloc", "reallocarray", "free", "posix_memalign",
             "aligned_alloc", "memalign", "valloc", "pvalloc", "mmap", "munmap", "mremap",
             "operator new", "operator delete"]
RECORD = struct.Struct("<IBBHIIqqQQII")  # struct record of oracle.c

# A probe sits on an address, under whichever of its names was found first.
ALIASES = {"cfree": "free", "tc_free": "free", "tc_malloc": "malloc", "aligned_alloc": "memalign",
           "mmap64": "mmap"}


def canonical(name):
    """The name that expectations use for a function."""
    name = name or "-"
    if name.startswith(("_Zn", "operator new")):
        return "new"
    if name.startswith(("_Zd", "operator delete")):
        return "delete"
    name = name[len("__libc_"):] if name.startswith("__libc_") else name.lstrip("_")
    return ALIASES.get(name, name)


class Event:
    """t: when it counts. begin, end: the bounds of the call, equal to t in a trace."""
    __slots__ = ("t", "begin", "end", "kind", "pid", "tid", "address", "size", "function",
                 "realloc", "shared_mm", "frames", "quality", "block")

    def __str__(self):
        return "%d/%d at %d: %s by %s, %#x, size %d%s, from %s" % (
            self.pid, self.tid, self.t, self.kind, self.function or "-", self.address, self.size,
            ", realloc" if self.realloc else "", show_frame(self.frames[0]) if self.frames
            else "nowhere")


class Trace:
    def __init__(self):
        self.events = []
        self.losses = []


def show_frame(frame):
    return "%s+%#x" % (os.path.basename(frame[0]) or "?", frame[1])


def real_paths():
    cache = {}

    def real(path):
        if path not in cache:
            cache[path] = os.path.realpath(path) if path.startswith("/") else (
                "[vdso]" if path.startswith("linux-vdso") else path)
        return cache[path]
    return real


def number(value):
    return int(value, 0) if isinstance(value, str) else int(value or 0)


def event_of_json(r, stacks):
    e = Event()
    e.t = e.begin = e.end = r["t_ns"]
    e.kind, e.pid, e.tid = r["kind"], r["pid"], r["tid"]
    e.address = number(r.get("child") or r.get("address"))
    e.size = number(r.get("size"))
    e.function = r.get("function") or ""
    e.realloc, e.shared_mm = bool(r.get("realloc")), bool(r.get("shared_mm"))
    e.frames, e.quality = stacks[r.get("stack") or 0]
    return e


def read_ndjson(path):
    trace, modules, stacks, real = Trace(), {0: ""}, {0: ((), "none")}, real_paths()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            r = json.loads(line)
            if r["type"] == "module":
                modules[r["id"]] = real(r["path"])
            elif r["type"] == "stack":
                frames = tuple((modules[m], number(o)) for m, o in r["frames"])
                stacks[r["id"]] = (frames, r["quality"])
            elif r["type"] == "loss":
                trace.losses.append(r)
            elif r["type"] == "event":
                trace.events.append(event_of_json(r, stacks))
    trace.events.sort(key=lambda e: e.t)
    return trace


def read_log(data, trace, real):
    at, modules = 0, {}
    while at + RECORD.size <= len(data):
        (length, kind, is_realloc, function, pid, tid, begin, end, address, size, depth,
         _) = RECORD.unpack_from(data, at)
        body = data[at + RECORD.size:at + length]
        at += length
        if kind == MODULE:
            modules[address] = real(body.split(b"\0")[0].decode())
        elif kind != START or address:
            e = Event()
            e.kind, e.function = "exec" if kind == START else KINDS[kind], FUNCTIONS[function]
            e.realloc = bool(is_realloc)
            e.begin, e.end = begin, end
            e.t = begin if e.kind in ("free", "munmap") else end
            e.pid, e.tid, e.address, e.size = pid, tid, address, size
            e.shared_mm, e.quality = False, "full"
            words = struct.unpack_from("<%dQ" % (2 * depth), body)
            e.frames = tuple((modules.get(m, ""), o) for m, o in zip(words[::2], words[1::2]))
            trace.events.append(e)


def read_oracle(directory):
    trace, real = Trace(), real_paths()
    for path in sorted(glob.glob(os.path.join(directory, "*.log"))):
        with open(path, "rb") as f:
            read_log(f.read(), trace, real)
    trace.events.sort(key=lambda e: e.t)
    return trace


class Ranges:
    """Mappings: [start, end) and whose they are. Few at a time, so a plain list."""

    def __init__(self, items=()):
        self.items = list(items)

    def unmap(self, start, size):
        """Returns the owners of what was there."""
        end, kept, owners = start + size, [], []
        for s, e, owner in self.items:
            if e <= start or s >= end:
                kept.append((s, e, owner))
                continue
            owners.append(owner)
            if s < start:
                kept.append((s, start, owner))
            if e > end:
                kept.append((end, e, owner))
        self.items = kept
        return owners

    def map(self, start, size, owner):
        self.unmap(start, size)
        self.items.append((start, start + size, owner))


class Memory:
    """One address space: its live blocks and mappings, each with the event that made it."""

    def __init__(self, other=None):
        self.blocks = dict(other.blocks) if other else {}
        self.ranges = Ranges(other.ranges.items if other else ())


class Replay:
    """problems: what cannot be. unknown: frees of blocks never seen. leaks: made, never freed."""

    def __init__(self, trace):
        self.memory, self.pending = {}, {}
        self.problems, self.unknown, self.leaks = [], [], []
        for e in trace.events:
            e.block = None
            getattr(self, "on_" + e.kind)(e, self.memory.setdefault(e.pid, Memory()))
        for pid in list(self.memory):
            self.end(pid)

    def problem(self, e, what):
        self.problems.append("%s: %s" % (what, e))

    def end(self, pid):
        memory = self.memory.pop(pid)
        if not any(m is memory for m in self.memory.values()):
            self.leaks += memory.blocks.values()

    def on_alloc(self, e, m):
        if e.address in m.blocks:
            self.problem(e, "allocation of a live block")
        m.blocks[e.address] = e

    def on_free(self, e, m):
        e.block = m.blocks.pop(e.address, None)
        if e.block is None:
            self.unknown.append(e)
        if e.realloc:
            self.pending[e.tid] = e

    def on_restore(self, e, m):
        freed = self.pending.pop(e.tid, None)
        if freed is None:
            self.problem(e, "nothing to restore")
        elif freed.kind == "munmap":
            for start, end, owner in freed.block or ():
                m.ranges.map(start, end - start, owner)
        elif freed.block:
            e.block = m.blocks[freed.address] = freed.block

    def on_failed(self, e, m):
        pass

    def on_mmap(self, e, m):
        if e.size % 4096 or e.address % 4096:
            self.problem(e, "not whole pages")
        m.ranges.map(e.address, e.size, e)

    def on_munmap(self, e, m):
        before = m.ranges.items
        m.ranges.unmap(e.address, e.size)
        e.block = [r for r in before if r[0] < e.address + e.size and r[1] > e.address]
        if e.realloc:
            self.pending[e.tid] = e

    def on_brk(self, e, m):
        pass

    def on_fork(self, e, m):
        self.memory[e.address] = m if e.shared_mm else Memory(m)

    def on_exec(self, e, _):
        self.end(e.pid)
        self.memory[e.pid] = Memory()

    def on_exit(self, e, _):
        self.end(e.pid)


def print_ndjson(trace):
    """As the tracer would have seen it, but for the oracle's own frames."""
    modules, stacks, functions = {}, {}, set()

    def put(**fields):
        print(json.dumps(fields))

    for e in trace.events:
        if e.function not in functions:
            functions.add(e.function)
            put(type="function", id=len(functions), name=e.function)
        for path, _ in e.frames:
            if path and path not in modules:
                modules[path] = len(modules) + 1
                put(type="module", id=modules[path], path=path, build_id="")
        if e.frames and e.frames not in stacks:
            stacks[e.frames] = len(stacks) + 1
            put(type="stack", id=stacks[e.frames], quality="full",
                frames=[[modules.get(path, 0), offset] for path, offset in e.frames])
        put(type="event", t_ns=e.t, kind=e.kind, pid=e.pid, tid=e.tid, address=hex(e.address),
            size=e.size, stack=stacks.get(e.frames, 0), function=e.function,
            **({"realloc": True} if e.realloc else {}))


if __name__ == "__main__":
    print_ndjson(read_oracle(sys.argv[1]))
