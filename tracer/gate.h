/*
 * Nothing of the workload is executed or opened as a library before its allocators are probed.
 *
 * A fanotify group watches opens in the mount namespace of the workload (nobody else's): the
 * kernel holds the opener until we have looked at the file. ELF files with allocators get their
 * probes, then the open goes on; every other file is asked about once. Should analyzer die, the
 * kernel lets everybody go on. Invisible to the workload: no signals, no ptrace.
 *
 * Life: gate_open → gate_watch(pid) → … → gate_close. It has a thread of its own, since whoever
 * waits must not wait for the reader.
 */
#pragma once

#include "tracer/kernel.h"
#include "tracer/modules.h"

struct gate;

int gate_open(struct gate **ret, struct kernel *k, struct modules *ms, struct err *err);

/* Watches the mounts of that process's namespace, which must not be ours. */
int gate_watch(struct gate *g, pid_t pid, struct err *err);

/*
 * A process has executed a program. Where its file did not come through the gate, from a mount or
 * a mount namespace that the workload has made, the mounts of its namespace are watched from now
 * on, and what it has mapped is probed late. The reader's thread.
 */
void gate_follow(struct gate *g, pid_t pid);

/* Lets go of everybody and ends the thread; NULL allowed. */
void gate_close(struct gate *g);

/* Probes one file now, if it has allocators and was not seen before. */
int gate_probe(struct gate *g, int fd, const char *path, bool is_private, struct err *err);

/* What was found so far; valid until the next call of anything, after gate_close too… until
 * gate_free. */
size_t gate_coverage(struct gate *g, const struct coverage **ret);
void gate_free(struct gate *g);
