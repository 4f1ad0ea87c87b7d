/*
 * events.zst, both sides: the recorded events of all runs of a session, with the stacks, files
 * and functions that they refer to. Format: docs/formats.md. Neither side knows BPF.
 *
 * Writing: events_writer_open → events_put_… → events_writer_close, from one thread. A frame is
 * closed every second of event time or 1 MiB of records, so that a torn tail loses one frame.
 * After the first failed write, or when max_bytes is reached, recording is over: puts are ignored
 * and counted, events_writer_failure tells. What a record refers to (stack, module, function, run)
 * must have been put before.
 *
 * Reading: events_reader_open → events_next … → events_reader_close. Memory does not depend on the
 * file's length. A damaged or torn file is read up to the last whole frame.
 */
#pragma once

#include "base/err.h"
#include "model/event.h"
#include "model/site.h"

struct events_writer;
struct events_reader;

/* Creates events.zst in dirfd, owned by uid:gid (-1 = leave). dir is the directory's name, for
 * messages. */
int events_writer_open(struct events_writer **ret, int dirfd, const char *dir, uid_t uid, gid_t gid,
		       int64_t max_bytes, struct err *err);

void events_put_run(struct events_writer *w, int64_t run_id, int64_t started_mono_ns);
void events_put_function(struct events_writer *w, uint16_t id, const char *name);
void events_put_module(struct events_writer *w, const struct module *m);
void events_put_stack(struct events_writer *w, uint32_t id, enum stack_quality quality,
		      const struct frame_ref *frames, uint32_t n);
/* Events come in order of t_ns, nearly: a small step back is allowed and costs bytes only. */
void events_put(struct events_writer *w, const struct event *ev);
/* count events of one ring were lost between two times. */
void events_put_loss(struct events_writer *w, int ring, int64_t from_ns, int64_t to_ns,
		     int64_t count);

/* To be called about once a second, so that what was put reaches the file. */
void events_flush(struct events_writer *w);

struct events_totals {
	int64_t events, stacks, bytes; /* bytes in the file */
	int64_t not_recorded;          /* events put after recording ended */
	int64_t encode_ns, write_ns;
};
struct events_totals events_writer_totals(const struct events_writer *w);

/* 0, or the negative errno and message of what ended the recording: -EFBIG = max_bytes. */
int events_writer_failure(const struct events_writer *w, struct err *err);
int events_writer_close(struct events_writer *w, struct err *err); /* NULL allowed */

enum events_type {
	EVENTS_RUN,
	EVENTS_FUNCTION,
	EVENTS_MODULE,
	EVENTS_STACK,
	EVENTS_EVENT,
	EVENTS_LOSS
};

/* One record; pointers are valid until the next call. */
struct events_record {
	enum events_type type;
	union {
		struct {
			int64_t run_id, started_mono_ns;
		} run;
		struct {
			uint16_t id;
			const char *name;
		} function;
		struct module module;
		struct {
			uint32_t id, depth;
			enum stack_quality quality;
			const struct frame_ref *frames;
		} stack;
		struct event event;
		struct {
			int ring;
			int64_t from_ns, to_ns, count;
		} loss;
	};
};

int events_reader_open(struct events_reader **ret, const char *path, struct err *err);
void events_reader_close(struct events_reader *r); /* NULL allowed */

/* 1: *ret is filled; 0: the end; negative: the file cannot be read further. */
int events_next(struct events_reader *r, struct events_record *ret, struct err *err);

/* True after the end when the last frame was torn: the recorder died. */
bool events_reader_is_truncated(const struct events_reader *r);
