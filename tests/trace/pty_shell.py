#!/usr/bin/env python3
"""pty_shell.py COMMAND…: runs an interactive shell on a terminal of its own and types stdin's lines.

A line is typed when the shell has printed its prompt, "$ ", again. Prints all that appeared; the
status is the command's, 124 when it did not end in time.
"""
import os
import pty
import select
import sys
import time

SECONDS = 60


def main():
    lines = sys.stdin.read().splitlines()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    seen, answered, end = b"", 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if ready:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # the terminal's other side is closed
                data = b""
            if not data:
                break
            seen += data
        if lines and seen.endswith(b"$ ") and len(seen) > answered:
            answered = len(seen) + len(lines[0])
            os.write(terminal, lines.pop(0).encode() + b"\n")
    sys.stdout.write(seen.decode(errors="replace").replace("\r", ""))
    if time.monotonic() >= end:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        return 124
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
