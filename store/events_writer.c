/*
 * The write side of events.zst. Definitions (functions, modules, stacks) are collected apart from
 * the events and written before them, so that a frame holds one batch however they alternate.
 */
#include "store/events.h"

#include "base/clock.h"
#include "store/events_columns.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <zstd.h>

#define LEVEL 3
/* Events are encoded in groups: reading the clock for each would cost as much as the work. */
#define PENDING_MAX 512
/* zstd has one table of codes per block: a column of its own size gets its own blocks. */
#define OWN_BLOCK_MIN 2048

struct events_writer {
	int fd;
	char path[512];
	int64_t max_bytes;
	ZSTD_CCtx *zstd;
	struct event pending[PENDING_MAX];
	size_t n_pending;
	/* The open frame: definitions, then events. */
	struct bytes records;
	struct batch_writer batch;
	struct bytes frame; /* compressed */
	struct events_totals totals;
	int64_t unwritten_events, unwritten_stacks; /* part of totals, not yet in the file */
	struct err failure;
};

/* Recording is over; what did not reach the file was not recorded. */
static void stop(struct events_writer *w)
{
	(void)err_hint(&w->failure, "what was recorded before is kept");
	w->totals.events -= w->unwritten_events;
	w->totals.not_recorded += w->unwritten_events;
	w->totals.stacks -= w->unwritten_stacks;
	w->n_pending = 0;
}

static void fail(struct events_writer *w, int code, const char *what)
{
	/* -EFBIG is for max_bytes: a limit of the system's is as good as a full disk. */
	(void)err_set(&w->failure, code == -EFBIG ? -ENOSPC : code, "cannot %s %s: %s", what,
		      w->path, strerror(-code));
	stop(w);
}

static void fail_max(struct events_writer *w)
{
	(void)err_set(&w->failure, -EFBIG, "%s has reached its largest size of %lld bytes", w->path,
		      (long long)w->max_bytes);
	stop(w);
}

static bool is_over(const struct events_writer *w)
{
	return w->failure.code != 0;
}

/* All or nothing: a part of a frame is taken away again, as far as the file system lets us. */
static int write_whole(struct events_writer *w, const uint8_t *data, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = write(w->fd, data + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int r = n < 0 ? -errno : -EIO;

			if (done > 0)
				(void)!ftruncate(w->fd, w->totals.bytes);
			return r;
		}
		done += (size_t)n;
	}
	w->totals.bytes += (int64_t)len;
	return 0;
}

/* -- frames ---------------------------------------------------------------------------------- */

static int compress_part(struct events_writer *w, const struct bytes *part, ZSTD_EndDirective how)
{
	ZSTD_inBuffer in = {.src = part->data, .size = part->len};
	ZSTD_outBuffer out = {.dst = w->frame.data, .size = w->frame.size, .pos = w->frame.len};
	size_t left = ZSTD_compressStream2(w->zstd, &out, &in, how);

	w->frame.len = out.pos;
	/* The buffer has room for the worst case. */
	return ZSTD_isError(left) || in.pos < in.size || (how != ZSTD_e_continue && left) ? -EIO
											  : 0;
}

/* records and the columns into frame. */
static int compress_frame(struct events_writer *w)
{
	const struct bytes *cols = w->batch.cols, nothing = {0};
	size_t total;
	int r = 0;

	if (w->batch.n_events && batch_put_head(&w->batch, &w->records) < 0)
		return -ENOMEM;
	total = w->records.len;
	for (int i = 0; i < COLS; i++)
		total += cols[i].len;
	w->frame.len = 0;
	if (bytes_reserve(&w->frame, ZSTD_compressBound(total) + 4096) < 0)
		return -ENOMEM;
	(void)ZSTD_CCtx_reset(w->zstd, ZSTD_reset_session_only);
	if (ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(w->zstd, total)))
		return -EIO;
	for (int i = -1; i < COLS && r == 0; i++) {
		const struct bytes *part = i < 0 ? &w->records : &cols[i];

		r = compress_part(w, part,
				  part->len < OWN_BLOCK_MIN ? ZSTD_e_continue : ZSTD_e_flush);
	}
	return r < 0 ? r : compress_part(w, &nothing, ZSTD_e_end);
}

static void write_frame(struct events_writer *w)
{
	int64_t written_events = w->batch.n_events, t0;
	int r;

	if (w->records.len == 0 && written_events == 0)
		return;
	r = compress_frame(w);
	if (r < 0)
		return fail(w, r, "compress what goes into");
	if (w->totals.bytes + (int64_t)w->frame.len > w->max_bytes)
		return fail_max(w);
	t0 = clock_mono_ns();
	r = write_whole(w, w->frame.data, w->frame.len);
	w->totals.write_ns += clock_mono_ns() - t0;
	if (r < 0)
		return fail(w, r, "write");
	w->records.len = 0;
	batch_reset(&w->batch);
	w->unwritten_events -= written_events;
	w->unwritten_stacks = 0;
}

static bool is_frame_full(const struct events_writer *w)
{
	return w->records.len + batch_size(&w->batch) >= FRAME_TARGET;
}

/* Times may be anything: no overflow. */
static bool is_second_over(const struct events_writer *w, const struct event *ev)
{
	return w->batch.n_events &&
	       (int64_t)((uint64_t)ev->t_ns - (uint64_t)w->batch.first_ns) >= NS_PER_S;
}

static void encode_pending(struct events_writer *w)
{
	for (size_t i = 0; i < w->n_pending; i++) { /* a failure makes it 0 */
		const struct event *ev = &w->pending[i];

		if (is_frame_full(w) || is_second_over(w, ev))
			write_frame(w);
		if (!is_over(w) && batch_add(&w->batch, ev) < 0)
			fail(w, -ENOMEM, "encode what goes into");
	}
	w->n_pending = 0;
}

/* Runs the work and books its time. */
static void timed(struct events_writer *w, bool with_frame)
{
	int64_t t0 = clock_mono_ns(), written = w->totals.write_ns;

	encode_pending(w);
	if (with_frame && !is_over(w))
		write_frame(w);
	w->totals.encode_ns += clock_mono_ns() - t0 - (w->totals.write_ns - written);
}

void events_flush(struct events_writer *w)
{
	if (!is_over(w))
		timed(w, true);
}

/* -- records --------------------------------------------------------------------------------- */

/* Begins a record of at most so many bytes; NULL when recording is over. */
static struct bytes *begin(struct events_writer *w, uint8_t type, size_t most, size_t *ret_at)
{
	if (is_over(w))
		return NULL;
	if (bytes_reserve(&w->records, RECORD_HEAD + most) < 0) {
		fail(w, -ENOMEM, "encode what goes into");
		return NULL;
	}
	*ret_at = w->records.len;
	put_byte(&w->records, type);
	w->records.len += 4;
	return &w->records;
}

static void end(struct events_writer *w, size_t at)
{
	store_le(w->records.data + at + 1, w->records.len - at - RECORD_HEAD, 4);
	if (is_frame_full(w))
		events_flush(w);
}

static size_t string_length(const char *s)
{
	return s ? strnlen(s, STRING_MAX) : 0;
}

static void put_data(struct bytes *b, const void *data, size_t len)
{
	put_varint(b, len);
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
}

void events_put_run(struct events_writer *w, int64_t run_id, int64_t started_mono_ns)
{
	struct bytes *b;
	size_t at;

	events_flush(w); /* what came before belongs to the run before */
	owners_done(&w->batch.live);
	b = begin(w, RECORD_RUN, 2 * VARINT_MAX, &at);
	if (!b)
		return;
	put_varint(b, zigzag((uint64_t)run_id));
	put_varint(b, zigzag((uint64_t)started_mono_ns));
	end(w, at);
}

void events_put_function(struct events_writer *w, uint16_t id, const char *name)
{
	size_t len = string_length(name), at;
	struct bytes *b = begin(w, RECORD_FUNCTION, 2 * VARINT_MAX + len, &at);

	if (!b)
		return;
	put_varint(b, id);
	put_data(b, name, len);
	end(w, at);
}

void events_put_module(struct events_writer *w, const struct module *m)
{
	size_t len = string_length(m->path), at;
	struct bytes *b = begin(w, RECORD_MODULE, 3 * VARINT_MAX + BUILD_ID_MAX + len, &at);

	if (!b)
		return;
	put_varint(b, m->id);
	put_data(b, m->build_id, (size_t)m->build_id_len);
	put_data(b, m->path, len);
	end(w, at);
}

void events_put_stack(struct events_writer *w, uint32_t id, enum stack_quality quality,
		      const struct frame_ref *frames, uint32_t n)
{
	uint32_t depth = MIN(n, (uint32_t)STACK_DEPTH_MAX);
	struct bytes *b;
	size_t at;

	b = begin(w, RECORD_STACK, (3 + 2 * (size_t)depth) * VARINT_MAX, &at);
	if (!b)
		return;
	put_varint(b, id);
	put_varint(b, depth < n ? STACK_CUT : quality);
	put_varint(b, depth);
	for (uint32_t i = 0; i < depth; i++) {
		put_varint(b, frames[i].module);
		put_varint(b, frames[i].offset);
	}
	w->totals.stacks++;
	w->unwritten_stacks++;
	end(w, at);
}

void events_put_loss(struct events_writer *w, int ring, int64_t from_ns, int64_t to_ns,
		     int64_t count)
{
	size_t at;
	struct bytes *b = begin(w, RECORD_LOSS, 4 * VARINT_MAX, &at);

	if (!b)
		return;
	put_varint(b, zigzag((uint64_t)(int64_t)ring));
	put_varint(b, zigzag((uint64_t)from_ns));
	put_varint(b, zigzag((uint64_t)to_ns));
	put_varint(b, zigzag((uint64_t)count));
	end(w, at);
}

void events_put(struct events_writer *w, const struct event *ev)
{
	if (is_over(w)) {
		w->totals.not_recorded++;
		return;
	}
	w->pending[w->n_pending++] = *ev;
	w->totals.events++;
	w->unwritten_events++;
	if (w->n_pending == PENDING_MAX)
		timed(w, false);
}

/* -- opening and closing --------------------------------------------------------------------- */

static int64_t wall_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts); /* always there */
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static int write_header(struct events_writer *w)
{
	uint8_t header[8 + HEADER_SIZE] = {0}, *at = header + 8;

	store_le(header, EVENTS_SKIPPABLE, 4);
	store_le(header + 4, HEADER_SIZE, 4);
	memcpy(at + HEADER_MAGIC, EVENTS_MAGIC, 8);
	store_le(at + HEADER_VERSION, EVENTS_VERSION, 2);
	store_le(at + HEADER_BYTE_ORDER, EVENTS_BYTE_ORDER, 4);
	store_le(at + HEADER_PAGE_SIZE, (uint64_t)sysconf(_SC_PAGESIZE), 4);
	store_le(at + HEADER_MONO_NS, (uint64_t)clock_mono_ns(), 8);
	store_le(at + HEADER_WALL_NS, (uint64_t)wall_ns(), 8);
	return write_whole(w, header, sizeof(header));
}

static void writer_free(struct events_writer *w)
{
	close_fd(&w->fd);
	(void)ZSTD_freeCCtx(w->zstd);
	bytes_done(&w->records);
	bytes_done(&w->frame);
	batch_writer_done(&w->batch);
	free(w);
}

static int create(struct events_writer *w, int dirfd, uid_t uid, gid_t gid, struct err *err)
{
	int r;

	w->zstd = ZSTD_createCCtx();
	if (!w->zstd ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_checksumFlag, 1)))
		return err_errno(err, -ENOMEM, "cannot set up the compression of %s", w->path);
	w->fd = openat(dirfd, "events.zst", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (w->fd < 0 || (uid != (uid_t)-1 && fchown(w->fd, uid, gid) < 0))
		return err_errno(err, -errno, "cannot create %s", w->path);
	r = write_header(w);
	return r < 0 ? err_errno(err, r, "cannot write %s", w->path) : 0;
}

int events_writer_open(struct events_writer **ret, int dirfd, const char *dir, uid_t uid, gid_t gid,
		       int64_t max_bytes, struct err *err)
{
	struct events_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_errno(err, -ENOMEM, "cannot create %s/events.zst", dir);
	w->fd = -1;
	w->max_bytes = max_bytes;
	(void)snprintf(w->path, sizeof(w->path), "%s/events.zst", dir);
	r = create(w, dirfd, uid, gid, err);
	if (r < 0) {
		writer_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

struct events_totals events_writer_totals(const struct events_writer *w)
{
	return w->totals;
}

int events_writer_failure(const struct events_writer *w, struct err *err)
{
	if (w->failure.code == 0)
		return 0;
	*err = w->failure;
	return w->failure.code;
}

int events_writer_close(struct events_writer *w, struct err *err)
{
	int r;

	if (!w)
		return 0;
	events_flush(w);
	/* Some file systems tell only here that they are full. */
	if (close(TAKE_FD(w->fd)) < 0 && !is_over(w))
		fail(w, -errno, "write");
	r = events_writer_failure(w, err);
	writer_free(w);
	return r;
}
