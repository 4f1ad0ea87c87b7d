#!/usr/bin/env python3
"""compare.py [--heap-only] [--min-equal SHARE] TRACE.ndjson ORACLE_DIR

Holds a trace against the oracle's logs of the same run, event for event: per process and thread
the same kinds, addresses and sizes, each traced event within the time that its call took (so the
order is the same wherever one call ended before the other began). Then the stacks: the same list of
(file, offset) for every allocation, oracle.so's own frame left out. Where a signal came in the
middle of an allocator call the oracle meets the kernel's trampoline in place of that call's return
address and can see no further: such a stack is compared up to there ("hidden").

What libc maps for itself (thread stacks) and what a preloaded allocator takes from itself does not
go through a dynamic symbol: the oracle cannot see it, so that is left out. Prints counts and the first
differences; status 1 if there are any.
"""
import argparse
import collections
import sys

import events as ev

SLACK_NS = 20000  # the kernel's fast clock may step by this against the one processes read
SYSTEM = ("/libc.so.6", "/ld-linux-x86-64.so.2", "/libc-2.", "/ld-2.")
ALLOCATORS = ("/libtcmalloc", "/libjemalloc", "/libmimalloc")
SHOWN = 8


def is_own(frame):
    return frame[0].endswith("/oracle.so")


def is_system(e):
    return bool(e.frames) and any(s in e.frames[0][0] for s in SYSTEM)


def outer(frames):
    """Frames from the oracle's caller outwards."""
    n = 0
    while n < len(frames) and is_own(frames[n]):
        n += 1
    return frames[n:]


def is_inner(e):
    frames = outer(e.frames)
    return bool(frames) and any(a in frames[0][0] for a in ALLOCATORS)


def comparable(trace, kinds):
    """Events the oracle can have seen. What libraries do for themselves goes, and its end too."""
    ev.Replay(trace)
    kept = []
    for e in trace.events:
        if e.kind not in kinds or (e.kind == "mmap" and is_system(e)):
            continue
        if e.kind == "munmap" and all(is_system(owner) for _, _, owner in e.block or ()):
            continue
        if is_inner(e) or (e.kind == "free" and e.block and is_inner(e.block)):
            continue
        kept.append(e)
    return kept


class Stacks:
    def __init__(self):
        self.stacks = self.equal = self.hidden = self.frames = self.frames_equal = 0
        self.quality = collections.Counter()
        self.wrong = []

    def compare(self, traced, told):
        got, want = outer(traced.frames), outer(told.frames)
        hidden = [i for i, (path, _) in enumerate(want) if not path]
        if hidden:
            self.hidden += 1
            want = want[:hidden[0]]
            got = got[:hidden[0]]
        self.stacks += 1
        self.quality[traced.quality] += 1
        same = 0
        while same < min(len(got), len(want)) and got[same] == want[same]:
            same += 1
        self.frames += len(want)
        self.frames_equal += same
        if got == want:
            self.equal += 1
        else:
            self.wrong.append((same, got, want, traced))

    def show(self):
        for same, got, want, e in self.wrong[:SHOWN]:
            print("stack differs from level %d (%d traced, %d true, %s) in %s" % (
                same, len(got), len(want), e.quality, e))
            for i in range(max(0, same - 1), same + 3):
                print("   level %d: traced %s, true %s" % (i, *(
                    ev.show_frame(f[i]) if i < len(f) else "none" for f in (got, want))))


def key(e):
    """What a free gives up and a restore takes back was told when it was made."""
    if e.kind == "restore":
        return e.kind, 0, 0
    return e.kind, e.address, 0 if e.kind == "free" else e.size


def match(traced, told, stacks, wrong):
    """Pairs the events of one thread; what finds no partner is a difference."""
    waiting = collections.defaultdict(collections.deque)
    for e in told:
        waiting[key(e)].append(e)
    paired = 0
    for e in traced:
        queue = waiting[key(e)]
        while queue and queue[0].end + SLACK_NS < e.t:
            wrong.append("only by the oracle: %s" % queue.popleft())
        if not queue and e.kind == "free" and e.block is None:
            continue  # libc's own: the cache of a thread that ends, allocated without malloc
        if not queue or e.t < queue[0].begin - SLACK_NS:
            wrong.append("only traced: %s" % e)
            continue
        partner = queue.popleft()
        paired += 1
        if e.kind in ("alloc", "failed", "mmap"):
            stacks.compare(e, partner)
    for queue in waiting.values():
        wrong.extend("only by the oracle: %s" % e for e in queue)
    return paired


def by_thread(events):
    threads = collections.defaultdict(list)
    for e in events:
        threads[e.pid, e.tid].append(e)
    return threads


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--heap-only", action="store_true")
    parser.add_argument("--min-equal", type=float, default=1.0,
                        help="least share of stacks that are equal")
    parser.add_argument("trace")
    parser.add_argument("oracle")
    args = parser.parse_args()
    kinds = ("alloc", "free", "restore", "failed") + (() if args.heap_only else ("mmap", "munmap"))
    told = ev.read_oracle(args.oracle)
    traced = ev.read_ndjson(args.trace)
    told_threads = by_thread(comparable(told, kinds))
    traced_threads = by_thread(comparable(traced, kinds))
    # Processes that never loaded the oracle (static ones, shells' set-up) cannot be compared.
    pids = {pid for pid, _ in told_threads}
    stacks, wrong, paired = Stacks(), [], 0
    for thread in sorted(set(told_threads) | {t for t in traced_threads if t[0] in pids}):
        paired += match(traced_threads.get(thread, []), told_threads.get(thread, []), stacks,
                        wrong)
    print("%d processes, %d threads; events: %d by the oracle, %d equal, %d differ" % (
        len(pids), len(told_threads), sum(map(len, told_threads.values())), paired, len(wrong)))
    print("stacks: %d of %d equal, %d partly hidden; frames: %d of %d equal; quality %s" % (
        stacks.equal, stacks.stacks, stacks.hidden, stacks.frames_equal, stacks.frames,
        dict(stacks.quality)))
    for line in wrong[:SHOWN]:
        print(line)
    stacks.show()
    enough = stacks.equal >= args.min_equal * stacks.stacks
    return 0 if pids and paired and not wrong and not traced.losses and enough else 1


if __name__ == "__main__":
    sys.exit(main())
