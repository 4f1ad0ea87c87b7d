/*
 * Major faults from the kernel side's records to what is told of them: names of files, places of
 * instructions. Whose memory it was is the caller's to say.
 *
 * A record is kept from when it is read until it is its turn in order of time. Its names are found
 * at once, while the process is likely to be there still.
 *
 * Life: faults_new → faults_keep, faults_take … → faults_free. The reader's thread.
 */
#pragma once

#include "model/fault.h"
#include "tracer/modules.h"
#include "tracer/stacks.h"

struct faults;

int faults_new(struct faults **ret, struct modules *ms, struct stacks *stacks);
void faults_free(struct faults *f); /* NULL allowed */

/* A number for it until it is taken; 0 = no memory. */
uint64_t faults_keep(struct faults *f, const struct record_fault *r);

/* All but site; t_ns as the record has it. Strings live as long as f. */
struct fault faults_take(struct faults *f, uint64_t number);

/* Of all faults so far, by struct fault's place - 1. An instruction is where a return address
 * behind its first byte would be: names are those of offset - 1. */
size_t faults_places(const struct faults *f, const struct frame_ref **ret);
