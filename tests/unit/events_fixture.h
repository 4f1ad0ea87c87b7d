/*
 * A recording of events in a directory of its own, random events, and what reads a file whole.
 *
 * recording_begin -> events_put_... -> recording_finish -> look at the file -> recording_end.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/events.h"
#include "tests/unit/fake.h"

#define NO_MAX INT64_MAX

struct recording {
	struct fake *f;
	int dirfd;
	char path[300];
	struct events_writer *w;
};

struct recording recording_begin(int64_t max_bytes);
/* Closes the writer; the file stays. */
void recording_finish(struct recording *c);
void recording_end(struct recording *c);

uint8_t *slurp(const char *path, size_t *ret_len);
void spew(const char *path, const uint8_t *data, size_t len);

/* What reading a file to its end gave. */
struct read {
	int opened, result; /* 0 or negative */
	bool is_truncated;
	struct event *events; /* the caller's */
	size_t n_events, n_others;
	struct err err;
};

struct read read_all(const char *path);
/* Fails unless the events read are the first ones of these. */
void assert_prefix(const struct read *r, const struct event *events, size_t n);
/* Fails unless the file is whole and has these events. */
void assert_reads(const char *path, const struct event *events, size_t n);

uint64_t next_random(uint64_t *seed);
/* Any values at all in every field, most of them out of small sets, so that blocks are freed,
 * allocated twice, forgotten by exec and exit, and freed by others. */
struct event *random_events(uint64_t seed, size_t n);

/* The ends of all frames, the header's first. */
size_t frame_ends(const uint8_t *data, size_t len, size_t *ends, size_t most);
