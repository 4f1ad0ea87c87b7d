/*
 * events_reader on any bytes. The first byte says what the others are: 0 a file as it is; else
 * the content of a frame that is then well-formed, as the checksum keeps random bytes from ever
 * getting past zstd.
 */
#include "store/events.h"
#include "store/events_format.h"

#include <sys/mman.h>
#include <zstd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void need(bool ok)
{
	if (!ok)
		abort();
}

static void write_all(int fd, const void *data, size_t len)
{
	need(write(fd, data, len) == (ssize_t)len);
}

static void write_header(int fd)
{
	uint8_t h[8 + HEADER_SIZE] = {0};

	store_le(h, EVENTS_SKIPPABLE, 4);
	store_le(h + 4, HEADER_SIZE, 4);
	memcpy(h + 8 + HEADER_MAGIC, EVENTS_MAGIC, strlen(EVENTS_MAGIC));
	store_le(h + 8 + HEADER_VERSION, EVENTS_VERSION, 2);
	store_le(h + 8 + HEADER_BYTE_ORDER, EVENTS_BYTE_ORDER, 4);
	write_all(fd, h, sizeof(h));
}

static void write_frame(int fd, const uint8_t *data, size_t len)
{
	size_t bound = ZSTD_compressBound(len), n;
	_cleanup_free_ uint8_t *frame = malloc(bound);

	need(frame != NULL);
	n = ZSTD_compress(frame, bound, data, len, 1);
	need(!ZSTD_isError(n));
	write_all(fd, frame, n);
}

/* Touches everything that a record points to. */
static void use(const struct events_record *rec)
{
	uint64_t sum = 0;

	if (rec->type == EVENTS_FUNCTION)
		sum = strlen(rec->function.name);
	else if (rec->type == EVENTS_MODULE)
		sum = strlen(rec->module.path) + rec->module.build_id[0];
	else if (rec->type == EVENTS_EVENT)
		sum = strlen(event_kind_name(rec->event.kind));
	for (uint32_t i = 0; rec->type == EVENTS_STACK && i < rec->stack.depth; i++)
		sum += rec->stack.frames[i].offset;
	if (rec->type == EVENTS_STACK)
		sum += strlen(stack_quality_name(rec->stack.quality));
	__asm__ volatile("" : : "r"(sum));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct events_reader *r;
	struct events_record rec;
	struct err err;
	char path[64];
	int fd, n;

	if (len == 0)
		return 0;
	fd = memfd_create("events", MFD_CLOEXEC);
	need(fd >= 0);
	if (data[0]) {
		write_header(fd);
		write_frame(fd, data + 1, len - 1);
	} else {
		write_all(fd, data + 1, len - 1);
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (events_reader_open(&r, path, &err) == 0) {
		while ((n = events_next(r, &rec, &err)) > 0)
			use(&rec);
		need(n == 0 || err.code == n);
		events_reader_close(r);
	}
	(void)close(fd);
	return 0;
}
