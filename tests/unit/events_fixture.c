/* A recording of events in a directory of its own; see events_fixture.h. */
#include "tests/unit/events_fixture.h"

#include <fcntl.h>
#include <zstd.h>

struct recording recording_begin(int64_t max_bytes)
{
	struct recording c = {.f = fake_new()};
	struct err err;

	c.dirfd = open(fake_path(c.f), O_RDONLY | O_DIRECTORY);
	(void)snprintf(c.path, sizeof(c.path), "%s/events.zst", fake_path(c.f));
	assert_int_equal(events_writer_open(&c.w, c.dirfd, fake_path(c.f), -1, -1, max_bytes, &err),
			 0);
	return c;
}

void recording_finish(struct recording *c)
{
	struct err err;

	assert_int_equal(events_writer_close(TAKE_PTR(c->w), &err), 0);
}

void recording_end(struct recording *c)
{
	close(c->dirfd);
	fake_free(c->f);
}

uint8_t *slurp(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "r");
	uint8_t *data = malloc(64 << 20);

	assert_non_null(f);
	assert_non_null(data);
	*ret_len = fread(data, 1, 64 << 20, f);
	assert_int_equal(ferror(f), 0);
	(void)fclose(f);
	return data;
}

void spew(const char *path, const uint8_t *data, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

struct read read_all(const char *path)
{
	struct read r = {0};
	struct events_reader *reader;
	struct events_record rec;
	size_t size = 0;

	r.opened = r.result = events_reader_open(&reader, path, &r.err);
	if (r.opened < 0)
		return r;
	while ((r.result = events_next(reader, &rec, &r.err)) > 0) {
		if (rec.type != EVENTS_EVENT) {
			r.n_others++;
			continue;
		}
		if (r.n_events == size) {
			size = MAX(size * 2, (size_t)1024);
			r.events = reallocarray(r.events, size, sizeof(*r.events));
			assert_non_null(r.events);
		}
		r.events[r.n_events++] = rec.event;
	}
	r.is_truncated = events_reader_is_truncated(reader);
	events_reader_close(reader);
	return r;
}

/* struct event has no padding: equal bytes are equal events. */
_Static_assert(sizeof(struct event) == 40, "struct event");

void assert_prefix(const struct read *r, const struct event *events, size_t n)
{
	assert_true(r->n_events <= n);
	for (size_t i = 0; i < r->n_events; i++)
		assert_memory_equal(&r->events[i], &events[i], sizeof(*events));
}

void assert_reads(const char *path, const struct event *events, size_t n)
{
	struct read r = read_all(path);

	assert_int_equal(r.result, 0);
	assert_false(r.is_truncated);
	assert_int_equal(r.n_events, n);
	assert_prefix(&r, events, n);
	free(r.events);
}

uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

struct event *random_events(uint64_t seed, size_t n)
{
	struct event *events = calloc(n, sizeof(*events));
	int64_t t = (int64_t)(next_random(&seed) >> 20);

	assert_non_null(events);
	for (size_t i = 0; i < n; i++) {
		struct event *ev = &events[i];

		t += (int64_t)(next_random(&seed) % 30000) - 1000;
		*ev = (struct event){
			.t_ns = t,
			.pid = 1 + (uint32_t)(next_random(&seed) % 3),
			.tid = (uint32_t)(next_random(&seed) % 5),
			.address = 0x7f0000001000 + next_random(&seed) % 40 * 16,
			.size = next_random(&seed) % 3
					? 24
					: next_random(&seed) >> next_random(&seed) % 64,
			.stack = (uint32_t)(next_random(&seed) % 8),
			.function = (uint16_t)(next_random(&seed) % 4),
			.kind = (uint8_t)(next_random(&seed) % 2),
		};
		if (next_random(&seed) % 50 == 0)
			ev->kind = (uint8_t)(next_random(&seed) % EVENT_KINDS);
		if (next_random(&seed) % 50 == 0)
			ev->flags = (uint8_t)next_random(&seed);
		if (next_random(&seed) % 100 == 0)
			ev->address = next_random(&seed) >> next_random(&seed) % 65 % 64;
		if (next_random(&seed) % 100 == 0)
			ev->address = 0;
		if (next_random(&seed) % 500 == 0) {
			ev->t_ns = t = (int64_t)next_random(&seed) >> 2;
			ev->pid = (uint32_t)next_random(&seed);
			ev->stack = UINT32_MAX;
			ev->function = UINT16_MAX;
			ev->size = UINT64_MAX;
		}
	}
	return events;
}

size_t frame_ends(const uint8_t *data, size_t len, size_t *ends, size_t most)
{
	size_t n = 0, at = 0;

	while (at < len) {
		size_t size = ZSTD_findFrameCompressedSize(data + at, len - at);

		assert_false(ZSTD_isError(size));
		assert_true(n < most);
		ends[n++] = at += size;
	}
	return n;
}
