/* events.zst damaged in every way, and by files that make no sense; the end of the disk. */
#include "store/events_format.h"
#include "tests/unit/events_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zstd.h>

/* -- damage ----------------------------------------------------------------------------------- */

#define SMALL 60

/* Three frames of 20 events. */
static struct event *small_file(struct recording *c)
{
	struct event *events = random_events(11, SMALL);

	*c = recording_begin(NO_MAX);
	for (size_t i = 0; i < SMALL; i++) {
		events[i].t_ns = (int64_t)i;
		events_put(c->w, &events[i]);
		if (i % 20 == 19)
			events_flush(c->w);
	}
	recording_finish(c);
	return events;
}

static void every_truncation(void **state)
{
	struct recording c;
	_cleanup_free_ struct event *events = small_file(&c);
	size_t len, ends[8];
	_cleanup_free_ uint8_t *data = slurp(c.path, &len);

	(void)state;
	assert_int_equal(frame_ends(data, len, ends, 8), 4);
	for (size_t n = 0; n <= len; n++) {
		size_t whole = (n >= ends[1]) + (n >= ends[2]) + (n >= ends[3]);
		bool is_whole = n == ends[0] || n == ends[1] || n == ends[2] || n == ends[3];
		struct read r;

		spew(c.path, data, n);
		r = read_all(c.path);
		if (n < ends[0]) {
			assert_int_equal(r.opened, -EINVAL);
			continue;
		}
		assert_int_equal(r.result, 0);
		assert_int_equal(r.n_events, whole * 20);
		assert_prefix(&r, events, SMALL);
		assert_int_equal(r.is_truncated, !is_whole);
		free(r.events);
	}
	recording_end(&c);
}

static void every_bit_flip(void **state)
{
	struct recording c;
	_cleanup_free_ struct event *events = small_file(&c);
	size_t len, refused = 0;
	_cleanup_free_ uint8_t *data = slurp(c.path, &len);

	(void)state;
	for (size_t i = 0; i < len * 8; i++) {
		struct read r;

		data[i / 8] ^= (uint8_t)(1 << i % 8);
		spew(c.path, data, len);
		data[i / 8] ^= (uint8_t)(1 << i % 8);
		r = read_all(c.path);
		assert_true(r.result <= 0);
		assert_prefix(&r, events, SMALL);
		assert_true(r.n_events % 20 == 0);
		refused += r.result < 0 || r.is_truncated;
		free(r.events);
	}
	/* All but what the header does not protect: page size, clocks, room left. */
	assert_true(refused >= (len - 8 - HEADER_SIZE + 16) * 8 - 16);
	recording_end(&c);
}

/* -- files made by hand ----------------------------------------------------------------------- */

static const uint8_t good_header[] = {
	0x55, 0x2a, 0x4d, 0x18, 40, 0, 0, 0, 'A', 'L', 'L', 'O', 'C', 'E', 'V', 'T',
	1,    0,    0,    0,    4,  3, 2, 1, 0,   16,  0,   0,   0,   0,   0,   0,
	0,    0,    0,    0,    0,  0, 0, 0, 0,   0,   0,   0,   0,   0,   0,   0,
};

/* The header and one frame of this content. */
static struct read read_made(const uint8_t *content, size_t len)
{
	struct fake *f = fake_new();
	size_t bound = ZSTD_compressBound(len), n;
	_cleanup_free_ uint8_t *file = malloc(sizeof(good_header) + bound);
	char path[300];
	struct read r;

	assert_non_null(file);
	memcpy(file, good_header, sizeof(good_header));
	n = ZSTD_compress(file + sizeof(good_header), bound, content, len, 1);
	assert_false(ZSTD_isError(n));
	(void)snprintf(path, sizeof(path), "%s/events.zst", fake_path(f));
	spew(path, file, sizeof(good_header) + n);
	r = read_all(path);
	fake_free(f);
	return r;
}

#define READ_MADE(...)                                    \
	({                                                \
		const uint8_t content_[] = {__VA_ARGS__}; \
		read_made(content_, sizeof(content_));    \
	})

static void assert_damaged(struct read r)
{
	assert_int_equal(r.result, -EBADMSG);
	assert_int_equal(r.n_events, 0);
	free(r.events);
}

/* One alloc at 8 of 1 byte by pid 2, tid 3: 22 bytes; parts of it are then spoilt. */
#define BATCH_HEAD 1, 0x14, 1, 0, 0, 5, 1, 1, 2, 3
#define BATCH_LENGTHS 1, 1, 1, 1, 1, 1, 0, 1, 0
#define BATCH_COLS 0, 0, 0, 0, 0, 16, 1
#define LE4(n) (n), 0, 0, 0

static void made_by_hand(void **state)
{
	struct event expected = {
		.t_ns = 10, .pid = 2, .tid = 3, .address = 8, .size = 1, .function = 1};
	struct read r = READ_MADE(5, LE4(26), BATCH_HEAD, BATCH_LENGTHS, BATCH_COLS);

	(void)state;
	assert_int_equal(r.result, 0);
	assert_int_equal(r.n_events, 1);
	assert_prefix(&r, &expected, 1);
	free(r.events);

	/* A record of a type to come, and more bytes at the end of a known one: both skipped. */
	r = READ_MADE(200, LE4(3), 1, 2, 3, 1, LE4(4), 2, 2, 77, 77, 5, LE4(26), BATCH_HEAD,
		      BATCH_LENGTHS, BATCH_COLS);
	assert_int_equal(r.result, 0);
	assert_int_equal(r.n_others, 1);
	assert_int_equal(r.n_events, 1);
	free(r.events);
}

static void senseless_records(void **state)
{
	(void)state;
	assert_damaged(READ_MADE(1));                                /* half a head */
	assert_damaged(READ_MADE(1, 255, 255, 255, 255, 2, 2));      /* longer than the frame */
	assert_damaged(READ_MADE(1, LE4(1), 2));                     /* run: a number is missing */
	assert_damaged(READ_MADE(2, LE4(3), 1, 9, 'x'));             /* name longer than it all */
	assert_damaged(READ_MADE(2, LE4(5), 0x80, 0x80, 4, 1, 'x')); /* function 65536 */
	assert_damaged(READ_MADE(3, LE4(24), 1, 21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
				 0, 0, 0, 0, 0, 0));   /* a build id of 21 bytes */
	assert_damaged(READ_MADE(4, LE4(3), 1, 4, 0)); /* no such quality */
	assert_damaged(READ_MADE(4, LE4(7), 1, 0, 255, 255, 255, 255, 15)); /* 4 G frames */
	/* a varint without an end */
	assert_damaged(
		READ_MADE(1, LE4(12), 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255));
}

static void senseless_batches(void **state)
{
	(void)state;
	/* two events claimed, one there */
	assert_damaged(
		READ_MADE(5, LE4(26), 2, 0x14, 1, 0, 0, 5, 1, 1, 2, 3, BATCH_LENGTHS, BATCH_COLS));
	/* 2^63 of everything */
	assert_damaged(
		READ_MADE(5, LE4(12), 1, 0x14, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1));
	/* kind 11; fields 16; a reference of an mmap; of an alloc without address */
	assert_damaged(
		READ_MADE(5, LE4(26), 1, 0x14, 1, 11, 0, 5, 1, 1, 2, 3, BATCH_LENGTHS, BATCH_COLS));
	assert_damaged(
		READ_MADE(5, LE4(26), 1, 0x14, 1, 0, 0, 21, 1, 1, 2, 3, BATCH_LENGTHS, BATCH_COLS));
	assert_damaged(READ_MADE(5, LE4(26), 1, 0x14, 1, 4, 0, 3, 1, 1, 2, 3, 1, 1, 1, 1, 1, 1, 1,
				 0, 0, BATCH_COLS));
	assert_damaged(READ_MADE(5, LE4(26), 1, 0x14, 1, 0, 0, 6, 1, 1, 2, 3, 1, 1, 1, 1, 1, 0, 1,
				 1, 0, BATCH_COLS));
	/* shape 1 of 1; thread 1 of 1; no thread at all; a column too short; too long */
	assert_damaged(READ_MADE(5, LE4(26), BATCH_HEAD, BATCH_LENGTHS, 0, 0, 0, 1, 0, 16, 1));
	assert_damaged(READ_MADE(5, LE4(26), BATCH_HEAD, BATCH_LENGTHS, 0, 0, 0, 0, 1, 16, 1));
	assert_damaged(READ_MADE(5, LE4(24), 1, 0x14, 1, 0, 0, 5, 1, 0, BATCH_LENGTHS, BATCH_COLS));
	assert_damaged(READ_MADE(5, LE4(26), BATCH_HEAD, 1, 1, 1, 1, 1, 1, 0, 0, 0, BATCH_COLS));
	assert_damaged(READ_MADE(5, LE4(26), BATCH_HEAD, 1, 1, 1, 1, 1, 1, 0, 2, 0, BATCH_COLS));
	/* a free of a block that was never allocated */
	assert_damaged(READ_MADE(5, LE4(26), 1, 0x14, 1, 1, 0, 2, 1, 1, 2, 3, 1, 1, 1, 1, 1, 0, 1,
				 0, 1, BATCH_COLS));
}

#define FREE_LAST \
	5, LE4(26), 1, 0x14, 1, 1, 0, 2, 1, 1, 2, 3, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0

/* A reference reaches into earlier batches, but not into an earlier run. */
static void references(void **state)
{
	struct read r = READ_MADE(5, LE4(26), BATCH_HEAD, BATCH_LENGTHS, BATCH_COLS, FREE_LAST);

	(void)state;
	assert_int_equal(r.result, 0);
	assert_int_equal(r.n_events, 2);
	assert_int_equal(r.events[1].kind, EVENT_FREE);
	assert_int_equal(r.events[1].address, 8);
	free(r.events);
	r = READ_MADE(5, LE4(26), BATCH_HEAD, BATCH_LENGTHS, BATCH_COLS, 1, LE4(2), 4, 4,
		      FREE_LAST);
	assert_int_equal(r.result, -EBADMSG);
	assert_int_equal(r.n_events, 1);
	free(r.events);
}

/* 64 MiB of zeros in some kilobytes. */
static void bomb(void **state)
{
	struct fake *f = fake_new();
	size_t len = 64 << 20, bound = 1 << 20, n;
	uint8_t *zeros = calloc(1, len);
	_cleanup_free_ uint8_t *file = malloc(bound);
	char path[300];
	struct read r;

	(void)state;
	assert_non_null(zeros);
	assert_non_null(file);
	memcpy(file, good_header, sizeof(good_header));
	n = ZSTD_compress(file + sizeof(good_header), bound - sizeof(good_header), zeros, len, 1);
	assert_false(ZSTD_isError(n));
	free(zeros);
	(void)snprintf(path, sizeof(path), "%s/events.zst", fake_path(f));
	spew(path, file, sizeof(good_header) + n);
	r = read_all(path);
	assert_int_equal(r.result, -EBADMSG);
	assert_non_null(strstr(r.err.msg, "too large"));
	fake_free(f);
}

static void headers(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
		int result;
		const char *message;
	} cases[] = {
		{0, 0x56, -EINVAL, "does not begin as"},
		{4, 39, -EINVAL, "does not begin as"},
		{8, 'a', -EINVAL, "does not begin as"},
		{16, 2, -EPROTO, "has format version 2"},
		{17, 1, -EPROTO, "has format version 257"},
		{20, 1, -EPROTO, "byte order"},
		{18, 1, 0, NULL}, /* room left for later */
	};
	struct fake *f = fake_new();
	char path[300];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/events.zst", fake_path(f));
	assert_int_equal(read_all(path).opened, -ENOENT);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t h[sizeof(good_header)];
		struct read r;

		memcpy(h, good_header, sizeof(h));
		h[cases[i].at] = cases[i].value;
		spew(path, h, sizeof(h));
		r = read_all(path);
		assert_int_equal(r.opened, cases[i].result);
		if (cases[i].message)
			assert_non_null(strstr(r.err.msg, cases[i].message));
	}
	fake_free(f);
}

/* -- the end of the disk ---------------------------------------------------------------------- */

/* Puts events, a frame per 100, until recording is over; half a frame more is ignored. */
static void put_until_over(struct recording *c, struct event *events, size_t n)
{
	struct events_totals t;
	struct stat st;
	struct err err;
	size_t i;

	for (i = 0; i < n && events_writer_failure(c->w, &err) == 0; i++) {
		events_put(c->w, &events[i]);
		if (i % 100 == 99)
			events_flush(c->w);
	}
	assert_true(i > 200 && i < n);
	for (size_t k = 0; k < 50; k++)
		events_put(c->w, &events[i]);
	events_flush(c->w);
	t = events_writer_totals(c->w);
	assert_int_equal(t.events, i - 100); /* the last frame did not get in */
	assert_int_equal(t.not_recorded, 100 + 50);
	assert_int_equal(fstatat(c->dirfd, "events.zst", &st, 0), 0);
	assert_int_equal(t.bytes, st.st_size); /* no part of a frame is left */
	assert_reads(c->path, events, i - 100);
}

static void max_bytes(void **state)
{
	size_t n = 20000;
	_cleanup_free_ struct event *events = random_events(5, n);
	struct recording c = recording_begin(50000);
	struct events_totals t;
	struct err err;

	(void)state;
	put_until_over(&c, events, n);
	t = events_writer_totals(c.w);
	assert_true(t.bytes <= 50000 && t.bytes > 48000);
	assert_int_equal(events_writer_failure(c.w, &err), -EFBIG);
	assert_non_null(strstr(err.msg, "largest size of 50000 bytes"));
	assert_int_equal(events_writer_close(c.w, &err), -EFBIG);
	recording_end(&c);
}

static void disk_full(void **state)
{
	size_t n = 20000;
	_cleanup_free_ struct event *events = random_events(6, n);
	struct recording c = recording_begin(NO_MAX);
	struct rlimit old, small;
	struct err err;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){.rlim_cur = 50001, .rlim_max = old.rlim_max};
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	put_until_over(&c, events, n);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	(void)signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(events_writer_failure(c.w, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, c.path));
	assert_int_equal(events_writer_close(c.w, &err), -ENOSPC);
	recording_end(&c);
}

static void recorder_killed(void **state)
{
	size_t n = 100000;
	_cleanup_free_ struct event *events = random_events(8, n);
	struct recording c = recording_begin(NO_MAX);
	struct read r;
	int fds[2];
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		for (size_t i = 0;; i++) {
			if (i < n)
				events_put(c.w, &events[i]);
			if (i == 1000 || i % 977 == 0)
				events_flush(c.w);
			if (i == 5000)
				(void)!write(fds[1], "x", 1);
		}
	}
	assert_int_equal(read(fds[0], &byte, 1), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(fds[0]);
	close(fds[1]);
	r = read_all(c.path);
	assert_int_equal(r.result, 0);
	assert_true(r.n_events >= 977 * 5 + 1);
	assert_prefix(&r, events, n);
	free(r.events);
	(void)events_writer_close(c.w, &r.err); /* ours of fork's two; nothing was put */
	recording_end(&c);
}

static void existing_file(void **state)
{
	struct recording c = recording_begin(NO_MAX);
	struct events_writer *second;
	struct err err;

	(void)state;
	assert_int_equal(events_writer_open(&second, c.dirfd, fake_path(c.f), -1, -1, NO_MAX, &err),
			 -EEXIST);
	recording_finish(&c);
	assert_reads(c.path, NULL, 0);
	assert_int_equal(events_writer_close(NULL, &err), 0);
	events_reader_close(NULL);
	recording_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_truncation),
		cmocka_unit_test(every_bit_flip),
		cmocka_unit_test(made_by_hand),
		cmocka_unit_test(senseless_records),
		cmocka_unit_test(senseless_batches),
		cmocka_unit_test(references),
		cmocka_unit_test(bomb),
		cmocka_unit_test(headers),
		cmocka_unit_test(max_bytes),
		cmocka_unit_test(disk_full),
		cmocka_unit_test(recorder_killed),
		cmocka_unit_test(existing_file),
	};

	return cmocka_run_group_tests_name("events_damage", tests, NULL, NULL);
}
