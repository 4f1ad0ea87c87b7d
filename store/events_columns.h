/*
 * A batch of events as columns: the content of one record of events.zst.
 *
 * Both sides zero-initialise, use, and call …_done. They keep what outlives a batch, the live
 * blocks that frees refer to, and so must see the batches of a file in their order.
 */
#pragma once

#include "store/events_format.h"
#include "store/events_owners.h"

struct batch_thread {
	uint32_t pid, tid;
	uint64_t last[EVENT_KINDS]; /* the addresses before */
};

struct batch_shape {
	uint8_t kind, flags, fields;
	uint16_t function;
};

struct batch_writer {
	struct owners live;
	struct map shape_ids, thread_ids; /* index + 1 */
	struct bytes shapes, threads;     /* the dictionaries as they will be written */
	struct bytes cols[COLS];
	struct batch_thread *last_threads;
	uint32_t last_thread, n_threads, threads_size;
	int64_t n_events, first_ns, last_ns;
};

/* -ENOMEM; the batch is then good for nothing but batch_writer_done. */
int batch_add(struct batch_writer *b, const struct event *ev);

/* Bytes so far, the dictionaries included. */
size_t batch_size(const struct batch_writer *b);

/* Appends the record up to its columns, which are to follow as they are. -ENOMEM. */
int batch_put_head(const struct batch_writer *b, struct bytes *out);

/* The next batch begins; live blocks stay. */
void batch_reset(struct batch_writer *b);
void batch_writer_done(struct batch_writer *b);

struct batch_reader {
	struct owners live;
	uint64_t n_left; /* events not yet read */
	struct cursor cols[COLS];
	struct batch_thread *threads; /* owned */
	struct batch_shape *shapes;   /* owned */
	size_t n_threads, n_shapes;
	int64_t last_ns;
};

/* The content of a record; it must stay in place while events are read. -EBADMSG, -ENOMEM. */
int batch_begin(struct batch_reader *b, struct cursor content);

/* The next of n_left events. -EBADMSG, -ENOMEM. */
int batch_next(struct batch_reader *b, struct event *ret);
void batch_reader_done(struct batch_reader *b);
