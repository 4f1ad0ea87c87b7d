/* events.zst: what is put comes out, whatever happens to the file in between. */
#include "base/clock.h"
#include "store/events_columns.h"
#include "tests/unit/events_fixture.h"

#include <zstd.h>

static void round_trip(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		size_t n = seed == 1 ? 300000 : 20000;
		_cleanup_free_ struct event *events = random_events(seed, n);
		struct recording c = recording_begin(NO_MAX);
		struct events_totals t;
		uint64_t s = seed;

		for (size_t i = 0; i < n; i++) {
			events_put(c.w, &events[i]);
			if (next_random(&s) % 3000 == 0)
				events_flush(c.w);
			if (next_random(&s) % 3000 == 0)
				events_put_run(c.w, (int64_t)i, events[i].t_ns);
		}
		events_flush(c.w);
		t = events_writer_totals(c.w);
		assert_int_equal(t.events, n);
		assert_int_equal(t.not_recorded, 0);
		recording_finish(&c);
		assert_reads(c.path, events, n);
		recording_end(&c);
	}
}

/* The extremes of every record, each behind events, in the order of what they refer to. */
static void definitions(void **state)
{
	struct frame_ref frames[2] = {{0, UINT64_MAX}, {UINT32_MAX, 0}};
	struct module m = {.id = UINT32_MAX, .path = "/a \xff\"", .build_id_len = BUILD_ID_MAX};
	struct event ev = {.t_ns = 5, .pid = 1, .tid = 1, .address = 16, .size = 1};
	struct recording c = recording_begin(NO_MAX);
	struct events_reader *r;
	struct events_record rec;
	struct err err;

	(void)state;
	memset(m.build_id, 0xfe, sizeof(m.build_id));
	events_put(c.w, &ev);
	events_put_run(c.w, -3, INT64_MIN);
	events_put_function(c.w, UINT16_MAX, "");
	events_put_module(c.w, &m);
	events_put_stack(c.w, UINT32_MAX, STACK_NONE, frames, 2);
	events_put_stack(c.w, 1, STACK_GUESSED, NULL, 0);
	events_put_loss(c.w, -1, INT64_MIN, INT64_MAX, 7);
	recording_finish(&c);
	assert_int_equal(events_reader_open(&r, c.path, &err), 0);

	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_int_equal(rec.type, EVENTS_EVENT); /* of the run before: it stays before */
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_int_equal(rec.type, EVENTS_RUN);
	assert_true(rec.run.run_id == -3 && rec.run.started_mono_ns == INT64_MIN);
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_int_equal(rec.type, EVENTS_FUNCTION);
	assert_int_equal(rec.function.id, UINT16_MAX);
	assert_string_equal(rec.function.name, "");
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_int_equal(rec.type, EVENTS_MODULE);
	assert_true(rec.module.id == UINT32_MAX && rec.module.build_id_len == BUILD_ID_MAX);
	assert_memory_equal(rec.module.build_id, m.build_id, BUILD_ID_MAX);
	assert_string_equal(rec.module.path, m.path);
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_int_equal(rec.type, EVENTS_STACK);
	assert_true(rec.stack.id == UINT32_MAX && rec.stack.quality == STACK_NONE);
	assert_int_equal(rec.stack.depth, 2);
	assert_true(rec.stack.frames[0].module == 0 && rec.stack.frames[0].offset == UINT64_MAX);
	assert_true(rec.stack.frames[1].module == UINT32_MAX && rec.stack.frames[1].offset == 0);
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_true(rec.type == EVENTS_STACK && rec.stack.depth == 0);
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_int_equal(rec.type, EVENTS_LOSS);
	assert_true(rec.loss.ring == -1 && rec.loss.from_ns == INT64_MIN);
	assert_true(rec.loss.to_ns == INT64_MAX && rec.loss.count == 7);
	assert_int_equal(events_next(r, &rec, &err), 0);
	assert_false(events_reader_is_truncated(r));
	events_reader_close(r);
	recording_end(&c);
}

/* A stack comes before the events that have it, though events were put before the stack. */
static void definitions_come_first(void **state)
{
	struct recording c = recording_begin(NO_MAX);
	struct events_reader *r;
	struct events_record rec;
	uint32_t known = 0, seen = 0;
	struct err err;

	(void)state;
	for (uint32_t i = 1; i <= 5000; i++) {
		events_put_stack(c.w, i, STACK_FULL, &(struct frame_ref){1, i}, 1);
		events_put(c.w, &(struct event){.t_ns = i * NS_PER_MS, .stack = i});
	}
	recording_finish(&c);
	assert_int_equal(events_reader_open(&r, c.path, &err), 0);
	while (events_next(r, &rec, &err) > 0) {
		if (rec.type == EVENTS_STACK)
			assert_int_equal(rec.stack.id, ++known);
		else
			assert_int_equal(rec.event.stack, ++seen);
		assert_true(seen <= known);
	}
	assert_int_equal(seen, 5000);
	events_reader_close(r);
	recording_end(&c);
}

/* Pairs of malloc and free, 1 to 30 us apart, of 6 sizes by 40 callers: 3.5 bytes an event. */
static void price(void **state)
{
	static const uint64_t sizes[] = {24, 32, 64, 120, 552, 4096};
	struct recording c = recording_begin(NO_MAX);
	struct events_totals t;
	uint64_t seed = 7, held[8] = {0}, place;
	int64_t now = NS_PER_S;
	size_t n = 200000;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		struct event ev = {.pid = 5, .tid = 5};
		uint32_t caller = (uint32_t)(next_random(&seed) % 40);

		now += 1000 + (int64_t)(next_random(&seed) % 29000);
		ev.t_ns = now;
		place = i / 2 % ARRAY_SIZE(held);
		if (i % 2 == 0 && held[place]) {
			ev.kind = EVENT_FREE;
			ev.function = 2;
			ev.address = held[place];
			held[place] = 0;
		} else {
			ev.function = 1;
			ev.stack = caller + 1;
			ev.size = sizes[caller % ARRAY_SIZE(sizes)];
			ev.address = held[place] = 0x555500000000 + caller * 4096 + place * 16;
		}
		events_put(c.w, &ev);
	}
	events_flush(c.w);
	t = events_writer_totals(c.w);
	print_message("%.2f bytes an event\n", (double)t.bytes / (double)n);
	assert_true(t.bytes <= (int64_t)(n * 7 / 2));
	recording_finish(&c);
	recording_end(&c);
}

/* -- frames ----------------------------------------------------------------------------------- */

static size_t count_frames(const char *path)
{
	size_t len, n, ends[100];
	_cleanup_free_ uint8_t *data = slurp(path, &len);

	n = frame_ends(data, len, ends, ARRAY_SIZE(ends));
	return n - 1;
}

static void frame_per_second(void **state)
{
	struct recording c = recording_begin(NO_MAX);

	(void)state;
	/* 0.0, 0.4, 0.8 | 1.2, 1.6, 2.0 | 2.4 s */
	for (int64_t i = 0; i < 7; i++)
		events_put(c.w, &(struct event){.t_ns = i * 400 * NS_PER_MS, .address = 1});
	recording_finish(&c);
	assert_int_equal(count_frames(c.path), 3);
	recording_end(&c);
}

static void frame_per_mebibyte(void **state)
{
	struct recording c = recording_begin(NO_MAX);
	uint64_t seed = 3;

	(void)state;
	/* Random addresses and sizes take 9 or 10 bytes each: 26 with the other columns. 100000 are
	 * 2.5 MiB. */
	for (int i = 0; i < 100000; i++)
		events_put(c.w, &(struct event){.address = next_random(&seed) | UINT64_C(1) << 63,
						.size = next_random(&seed) | UINT64_C(1) << 63});
	recording_finish(&c);
	assert_int_equal(count_frames(c.path), 3);
	recording_end(&c);
}

/* What is not yet there is read when it has come. */
static void growing_file(void **state)
{
	struct event ev = {.t_ns = 1, .pid = 1, .address = 4096};
	struct recording c = recording_begin(NO_MAX);
	struct events_reader *r;
	struct events_record rec;
	struct err err;
	size_t len, ends[4];
	_cleanup_free_ uint8_t *data = NULL;

	(void)state;
	assert_int_equal(events_reader_open(&r, c.path, &err), 0);
	assert_int_equal(events_next(r, &rec, &err), 0);
	assert_int_equal(events_next(r, &rec, &err), 0);
	events_put(c.w, &ev);
	assert_int_equal(events_next(r, &rec, &err), 0);
	events_flush(c.w);
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_memory_equal(&rec.event, &ev, sizeof(ev));
	assert_int_equal(events_next(r, &rec, &err), 0);
	assert_false(events_reader_is_truncated(r));
	events_reader_close(r);
	recording_finish(&c);

	/* In the middle of a frame. */
	data = slurp(c.path, &len);
	assert_int_equal(frame_ends(data, len, ends, 4), 2);
	spew(c.path, data, ends[0] + 7);
	assert_int_equal(events_reader_open(&r, c.path, &err), 0);
	assert_int_equal(events_next(r, &rec, &err), 0);
	assert_true(events_reader_is_truncated(r));
	spew(c.path, data, len);
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_memory_equal(&rec.event, &ev, sizeof(ev));
	assert_int_equal(events_next(r, &rec, &err), 0);
	assert_false(events_reader_is_truncated(r));
	events_reader_close(r);
	recording_end(&c);
}

/* -- memory: what is live, no more ------------------------------------------------------------- */

/* Writes the batch into a record and reads it back. */
static void pass(struct batch_writer *w, struct batch_reader *r)
{
	struct bytes b = {0};
	struct event ev;

	assert_int_equal(batch_put_head(w, &b), 0);
	for (int i = 0; i < COLS; i++) {
		assert_int_equal(bytes_reserve(&b, w->cols[i].len + 1), 0);
		if (w->cols[i].len)
			memcpy(b.data + b.len, w->cols[i].data, w->cols[i].len);
		b.len += w->cols[i].len;
	}
	assert_int_equal(load_le(b.data + 1, 4), b.len - RECORD_HEAD);
	assert_int_equal(
		batch_begin(r, (struct cursor){.p = b.data + RECORD_HEAD, .end = b.data + b.len}),
		0);
	while (r->n_left > 0)
		assert_int_equal(batch_next(r, &ev), 0);
	batch_reset(w);
	bytes_done(&b);
}

static void memory_is_bounded(void **state)
{
	struct batch_writer w = {0};
	struct batch_reader r = {0};

	(void)state;
	/* 100000 blocks, 3 of them live at the end: one whose frees are always lost, two of a ring
	 * of two; and 1000 processes that end. */
	for (uint32_t i = 0; i < 50000; i++) {
		uint64_t a = 4096 + i % 2 * 64;

		assert_int_equal(
			batch_add(&w,
				  &(struct event){.kind = EVENT_ALLOC, .pid = 7, .address = 64}),
			0);
		if (i >= 2)
			assert_int_equal(batch_add(&w, &(struct event){.kind = EVENT_FREE,
								       .pid = 7,
								       .address = a}),
					 0);
		assert_int_equal(
			batch_add(&w, &(struct event){.kind = EVENT_ALLOC, .pid = 7, .address = a}),
			0);
		if (i % 50 == 0) {
			assert_int_equal(
				batch_add(&w, &(struct event){.pid = 1000 + i, .address = 64}), 0);
			assert_int_equal(batch_add(&w, &(struct event){.kind = i % 100 ? EVENT_EXIT
										       : EVENT_EXEC,
								       .pid = 1000 + i}),
					 0);
		}
		if (i % 10000 == 9999)
			pass(&w, &r);
	}
	assert_int_equal(w.live.processes.n, 1);
	assert_int_equal(r.live.processes.n, 1);
	assert_int_equal(owners_find(&w.live, 7)->blocks.n, 3);
	assert_int_equal(owners_find(&r.live, 7)->blocks.n, 3);
	assert_true(owners_find(&r.live, 7)->blocks.cap <= 16);
	batch_writer_done(&w);
	batch_reader_done(&r);
}

/* -- docs/formats.md --------------------------------------------------------------------------- */

/* The bytes of the document's ```hexdump block. */
static size_t document_bytes(uint8_t *ret, size_t size)
{
	FILE *f = fopen("docs/formats.md", "r");
	char line[512], *p;
	bool inside = false;
	size_t n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "```", 3) == 0) {
			inside = strcmp(line, "```hexdump\n") == 0;
			continue;
		}
		for (p = line + 4; inside && *p != '\n'; p += 3) {
			unsigned int byte;

			while (*p == ' ')
				p++;
			assert_int_equal(sscanf(p, "%2x", &byte), 1);
			assert_true(n < size);
			ret[n++] = (uint8_t)byte;
			if (p[2] == '\n')
				break;
		}
	}
	(void)fclose(f);
	return n;
}

static void put_document(struct events_writer *w)
{
	struct module m = {.id = 1, .path = "/bin/x", .build_id = {0xab, 0xcd}, .build_id_len = 2};
	struct frame_ref frames[] = {{1, 0x1149}, {1, 0x1200}};
	struct event alloc = {.t_ns = 5000001000,
			      .pid = 77,
			      .tid = 77,
			      .address = 0x1000,
			      .size = 24,
			      .stack = 1,
			      .function = 1};
	struct event free1 = {.t_ns = 5000001300,
			      .pid = 77,
			      .tid = 78,
			      .address = 0x1000,
			      .function = 2,
			      .kind = EVENT_FREE};
	struct event free2 = {.t_ns = 5000001290,
			      .pid = 77,
			      .tid = 77,
			      .address = 0x2000,
			      .function = 2,
			      .kind = EVENT_FREE};

	events_put_run(w, 1, 5000000000);
	events_put_function(w, 1, "malloc");
	events_put_function(w, 2, "free");
	events_put_module(w, &m);
	events_put_stack(w, 1, STACK_FULL, frames, 2);
	events_put_loss(w, 0, 5000000000, 5000000100, 3);
	events_put(w, &alloc);
	events_put(w, &free1);
	events_put(w, &free2);
}

/* What the document's table says, in its words' order. */
static void assert_document(const char *path)
{
	struct events_reader *r;
	struct events_record rec;
	struct err err;

	assert_int_equal(events_reader_open(&r, path, &err), 0);
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_true(rec.type == EVENTS_RUN && rec.run.run_id == 1);
	assert_true(rec.run.started_mono_ns == 5000000000);
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_true(rec.type == EVENTS_FUNCTION && rec.function.id == 1);
	assert_string_equal(rec.function.name, "malloc");
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_true(rec.type == EVENTS_FUNCTION && rec.function.id == 2);
	assert_string_equal(rec.function.name, "free");
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_true(rec.type == EVENTS_MODULE && rec.module.id == 1);
	assert_string_equal(rec.module.path, "/bin/x");
	assert_true(rec.module.build_id_len == 2 && rec.module.build_id[0] == 0xab &&
		    rec.module.build_id[1] == 0xcd);
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_true(rec.type == EVENTS_STACK && rec.stack.quality == STACK_FULL);
	assert_true(rec.stack.depth == 2 && rec.stack.frames[0].module == 1 &&
		    rec.stack.frames[0].offset == 0x1149 && rec.stack.frames[1].offset == 0x1200);
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_true(rec.type == EVENTS_LOSS && rec.loss.ring == 0 && rec.loss.count == 3);
	assert_true(rec.loss.from_ns == 5000000000 && rec.loss.to_ns == 5000000100);
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_true(rec.event.kind == EVENT_ALLOC && rec.event.t_ns == 5000001000);
	assert_true(rec.event.address == 0x1000 && rec.event.size == 24 && rec.event.stack == 1);
	assert_true(rec.event.pid == 77 && rec.event.tid == 77 && rec.event.function == 1);
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_true(rec.event.kind == EVENT_FREE && rec.event.t_ns == 5000001300);
	assert_true(rec.event.address == 0x1000 && rec.event.tid == 78 && rec.event.function == 2);
	assert_int_equal(events_next(r, &rec, &err), 1);
	assert_true(rec.event.kind == EVENT_FREE && rec.event.t_ns == 5000001290);
	assert_true(rec.event.address == 0x2000 && rec.event.tid == 77);
	assert_int_equal(events_next(r, &rec, &err), 0);
	events_reader_close(r);
}

/* The records as `zstd -dc` gives them. */
static size_t decompressed(const uint8_t *file, size_t len, uint8_t *ret, size_t size)
{
	size_t n = ZSTD_decompress(ret, size, file, len);

	assert_false(ZSTD_isError(n));
	return n;
}

static void document(void **state)
{
	struct recording c = recording_begin(NO_MAX);
	uint8_t doc[1024], records[1024], ours[1024];
	size_t n = document_bytes(doc, sizeof(doc)), len, n_records;
	_cleanup_free_ uint8_t *file = NULL;

	(void)state;
	assert_int_equal(n, 204);
	put_document(c.w);
	recording_finish(&c);
	file = slurp(c.path, &len);
	n_records = decompressed(doc, n, records, sizeof(records));
	assert_int_equal(n_records, 143);
	assert_int_equal(decompressed(file, len, ours, sizeof(ours)), n_records);
	assert_memory_equal(ours, records, n_records);
	assert_memory_equal(file, doc, 24); /* the header up to the page size */

	spew(c.path, doc, n);
	assert_document(c.path);
	assert_int_equal(load_le(doc + 8 + HEADER_PAGE_SIZE, 4), 4096);
	assert_true(load_le(doc + 8 + HEADER_MONO_NS, 8) == 4999000000);
	/* date -u -d 2026-11-30T22:15:01Z +%s */
	assert_true(load_le(doc + 8 + HEADER_WALL_NS, 8) == UINT64_C(1796076901) * 1000000000);
	recording_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(definitions),
		cmocka_unit_test(definitions_come_first),
		cmocka_unit_test(price),
		cmocka_unit_test(frame_per_second),
		cmocka_unit_test(frame_per_mebibyte),
		cmocka_unit_test(growing_file),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(document),
	};

	return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
