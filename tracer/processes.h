/*
 * The processes of a traced run, as table `process` has them. The reader's thread.
 */
#pragma once

#include "bpf/events.h"
#include "model/site.h"

struct processes;

int processes_new(struct processes **ret);
void processes_free(struct processes *p); /* NULL allowed */

/* Times are from now on told since t0. */
void processes_start(struct processes *p, int64_t t0_mono_ns);
void processes_note(struct processes *p, const struct record_process *r);
size_t processes_list(const struct processes *p, const struct process_info **ret);
