/* seed_events DIR: inputs for fuzz_events: a file of every kind of record, whole and as content. */
#include "store/events.h"

#include <fcntl.h>
#include <string.h>
#include <zstd.h>

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void put_records(struct events_writer *w)
{
	static const struct frame_ref frames[] = {{1, 4096}, {0, 0x7fffffffe000}};
	struct module m = {.id = 1, .path = "/lib/x", .build_id = {1, 2}, .build_id_len = 2};

	events_put_run(w, 1, 5);
	events_put_function(w, 1, "malloc");
	events_put_module(w, &m);
	events_put_stack(w, 1, STACK_CUT, frames, ARRAY_SIZE(frames));
	events_put_loss(w, 1, 5, 6, 7);
	for (int i = 0; i < 40; i++)
		events_put(w, &(struct event){
				      .t_ns = 1000 + i * 70,
				      .pid = 1 + i % 3 % 2,
				      .tid = 1 + i % 3,
				      .address = i % 7 ? 0x1000 + i % 4 * 16 : 0,
				      .size = i % 5 ? 24 : 0,
				      .stack = i % 2,
				      .function = i % 3,
				      .kind = i < 30 ? i % 3 % 2 : i % EVENT_KINDS,
				      .flags = i % 11 == 0,
			      });
}

/* An input: the byte that says what it is, then the bytes. */
static void save(int dirfd, const char *name, uint8_t first, const uint8_t *data, size_t len)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	need(fd >= 0 && write(fd, &first, 1) == 1 && write(fd, data, len) == (ssize_t)len, name);
}

int main(int argc, char **argv)
{
	static uint8_t file[1 << 16], content[1 << 16];
	_cleanup_close_ int dirfd = argc == 2 ? open(argv[1], O_RDONLY | O_DIRECTORY) : -1;
	_cleanup_close_ int fd = -1;
	struct events_writer *w;
	struct err err;
	ssize_t n;
	size_t m;

	need(dirfd >= 0, "usage: seed_events DIR");
	(void)unlinkat(dirfd, "events.zst", 0);
	need(events_writer_open(&w, dirfd, argv[1], -1, -1, INT64_MAX, &err) == 0, argv[1]);
	put_records(w);
	need(events_writer_close(w, &err) == 0, argv[1]);
	fd = openat(dirfd, "events.zst", O_RDONLY);
	n = fd < 0 ? -1 : read(fd, file, sizeof(file));
	need(n > 0, "events.zst");
	m = ZSTD_decompress(content, sizeof(content), file, (size_t)n);
	need(!ZSTD_isError(m), "events.zst");
	save(dirfd, "seed-file", 0, file, (size_t)n);
	save(dirfd, "seed-content", 1, content, m);
	need(unlinkat(dirfd, "events.zst", 0) == 0, "events.zst");
	return 0;
}
