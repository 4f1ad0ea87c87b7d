/*
 * What both sides of events.zst agree on: the header, the kinds of records, the columns of a batch
 * and how numbers are written. docs/formats.md describes it byte by byte.
 */
#pragma once

#include "base/base.h"
#include "model/event.h"

#include <errno.h>
#include <string.h>

/* The header is a skippable frame of zstd: this number, the length of the rest, the rest. */
#define EVENTS_SKIPPABLE 0x184D2A55u
#define EVENTS_MAGIC "ALLOCEVT"
#define EVENTS_VERSION 1
#define EVENTS_BYTE_ORDER 0x01020304u

enum {
	HEADER_MAGIC = 0,
	HEADER_VERSION = 8,
	HEADER_BYTE_ORDER = 12,
	HEADER_PAGE_SIZE = 16,
	HEADER_MONO_NS = 24,
	HEADER_WALL_NS = 32,
	HEADER_SIZE = 40
};

/* A record: a byte of type, four of length, the content. */
enum {
	RECORD_RUN = 1,
	RECORD_FUNCTION,
	RECORD_MODULE,
	RECORD_STACK,
	RECORD_BATCH,
	RECORD_LOSS,
};
#define RECORD_HEAD 5

/* A frame is closed beyond the first; no honest one exceeds the second. */
#define FRAME_TARGET (1 << 20)
#define FRAME_MAX (16 << 20)
/* Keep a single record far below FRAME_MAX: what is longer is cut. */
#define STACK_DEPTH_MAX 65536
#define STRING_MAX 65536

/* One stream of bytes per column: alike bytes side by side compress well. */
enum {
	COL_TIME_LOW, /* a byte per event: noise, kept apart from what can be compressed */
	COL_TIME_MID, /* a byte per event: microseconds; the rest is nearly always 0 */
	COL_TIME_HIGH,
	COL_SHAPE,
	COL_THREAD,
	COL_ADDRESS,
	COL_REF,
	COL_SIZE,
	COL_STACK,
	COLS
};

/* Which columns an event has a value in; where it has none the value is 0. */
enum { FIELD_ADDRESS = 1, FIELD_REF = 2, FIELD_SIZE = 4, FIELD_STACK = 8, FIELDS_ALL = 15 };

/* -- writing: a buffer that grows; a varint needs 10 bytes of room ----------------------------- */

#define VARINT_MAX 10

struct bytes {
	uint8_t *data; /* owned */
	size_t len, size;
};

/* Makes room for so many bytes more. */
static inline int bytes_reserve(struct bytes *b, size_t more)
{
	size_t size = MAX(b->size, (size_t)4096);
	uint8_t *grown;

	if (b->size - b->len >= more)
		return 0;
	while (size - b->len < more)
		size *= 2;
	grown = realloc(b->data, size);
	if (!grown)
		return -ENOMEM;
	b->data = grown;
	b->size = size;
	return 0;
}

static inline void bytes_done(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){0};
}

static inline void put_byte(struct bytes *b, uint8_t v)
{
	b->data[b->len++] = v;
}

static inline void put_varint(struct bytes *b, uint64_t v)
{
	while (v >= 0x80) {
		put_byte(b, (uint8_t)(v | 0x80));
		v >>= 7;
	}
	put_byte(b, (uint8_t)v);
}

/* 0, -1, 1, -2 … become 0, 1, 2, 3 … */
static inline uint64_t zigzag(uint64_t v)
{
	return v << 1 ^ -(v >> 63);
}

static inline uint64_t unzigzag(uint64_t v)
{
	return v >> 1 ^ -(v & 1);
}

static inline void store_le(uint8_t *at, uint64_t v, int n_bytes)
{
	for (int i = 0; i < n_bytes; i++)
		at[i] = (uint8_t)(v >> 8 * i);
}

/* -- reading: never beyond the end; a failure is remembered and yields 0 ------------------------
 */

struct cursor {
	const uint8_t *p, *end;
	bool failed;
};

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

static inline uint8_t get_byte(struct cursor *c)
{
	if (c->p < c->end)
		return *c->p++;
	c->failed = true;
	return 0;
}

static inline uint64_t get_varint(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; c->p < c->end && shift < 64; shift += 7) {
		uint8_t b = *c->p++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80)
			return v;
	}
	c->failed = true;
	return 0;
}

static inline int64_t get_signed(struct cursor *c)
{
	return (int64_t)unzigzag(get_varint(c));
}

/* A varint that must not exceed max. */
static inline uint64_t get_max(struct cursor *c, uint64_t max)
{
	uint64_t v = get_varint(c);

	if (v <= max)
		return v;
	c->failed = true;
	return 0;
}

/* The next n bytes as a cursor of their own; empty when there are not as many. */
static inline struct cursor get_part(struct cursor *c, uint64_t n)
{
	struct cursor part = {.p = c->p, .end = c->p};

	if (n > cursor_left(c)) {
		c->failed = true;
		return part;
	}
	c->p += n;
	part.end = c->p;
	return part;
}

static inline uint64_t load_le(const uint8_t *at, int n_bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < n_bytes; i++)
		v |= (uint64_t)at[i] << 8 * i;
	return v;
}
