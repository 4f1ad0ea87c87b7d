/*
 * The reading side of one BPF ring buffer, record by record, with its positions: what libbpf's
 * own reader does not give, and what bounded reading and ordering by time need.
 *
 * Used from one thread. Borrowed pointers are valid until ring_release.
 */
#pragma once

#include "base/err.h"

struct ring {
	int fd; /* borrowed */
	size_t size;
	uint64_t *consumer; /* mapped, ours to write */
	const uint64_t *producer;
	const uint8_t *data; /* mapped twice in a row: a record never wraps */
	uint64_t at;         /* where we are; *consumer follows at ring_release */
};

int ring_open(struct ring *r, int fd, size_t size, struct err *err);
void ring_close(struct ring *r);

/* The next record and its length; NULL: there is none that is complete. */
const void *ring_next(struct ring *r, uint32_t *ret_len);

/* What ring_next has returned so far may be overwritten. */
void ring_release(struct ring *r);

/* The positions up to which records have been reserved, and released. Any thread. */
uint64_t ring_produced(const struct ring *r);
uint64_t ring_consumed(const struct ring *r);
