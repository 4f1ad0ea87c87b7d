/* The read side of events.zst: frame by frame into memory, then record by record. */
#include "store/events.h"

#include "store/events_columns.h"

#include <fcntl.h>
#include <zstd.h>

#define INPUT_SIZE (128 << 10)
/* What every reader of zstd should accept: 8 MiB. A larger window is no frame of ours. */
#define WINDOW_LOG_MAX 23

struct events_reader {
	int fd;
	char path[512];
	ZSTD_DCtx *zstd;
	uint8_t *input;
	ZSTD_inBuffer in;
	int64_t in_offset;    /* in the file, of the end of `in` */
	int64_t frame_offset; /* in the file */
	bool is_in_frame;     /* a part of a frame has been read */
	bool has_more_output; /* zstd has not yet given all that the input makes */
	bool is_at_end;
	struct bytes content;  /* of the frame, decompressed */
	struct cursor records; /* in content */
	struct batch_reader batch;
	struct bytes text; /* what the last record points to */
	struct frame_ref *frames;
	size_t frames_size;
	struct err failure;
};

/* Every later call gets the same answer. */
static int failed(struct events_reader *r, int code, const char *what, struct err *err)
{
	(void)err_set(&r->failure, code, "%s cannot be read beyond byte %lld: %s", r->path,
		      (long long)r->frame_offset, what);
	if (code == -EBADMSG)
		(void)err_hint(&r->failure, "the file is damaged there; what comes before is good");
	*err = r->failure;
	return code;
}

static int failed_as(struct events_reader *r, int code, struct err *err)
{
	const char *what = code == -EBADMSG ? "a record makes no sense" : strerror(-code);

	return failed(r, code, what, err);
}

/* -- frames ---------------------------------------------------------------------------------- */

/* 1: there is input; 0: none for now. */
static int fill(struct events_reader *r)
{
	ssize_t n;

	do
		n = read(r->fd, r->input, INPUT_SIZE);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	r->in = (ZSTD_inBuffer){.src = r->input, .size = (size_t)n};
	r->in_offset += n;
	return n > 0;
}

static int64_t offset(const struct events_reader *r)
{
	return r->in_offset - (int64_t)(r->in.size - r->in.pos);
}

/* Decompresses on: 1: the frame is whole; 0: more input is needed. */
static int decompress(struct events_reader *r, struct err *err)
{
	ZSTD_outBuffer out;
	size_t left;

	if (!r->is_in_frame) {
		r->frame_offset = offset(r);
		r->content.len = 0;
	}
	if (bytes_reserve(&r->content, INPUT_SIZE) < 0)
		return failed(r, -ENOMEM, strerror(ENOMEM), err);
	out = (ZSTD_outBuffer){
		.dst = r->content.data, .size = r->content.size, .pos = r->content.len};
	left = ZSTD_decompressStream(r->zstd, &out, &r->in);
	if (ZSTD_isError(left))
		return failed(r, -EBADMSG, ZSTD_getErrorName(left), err);
	r->content.len = out.pos;
	r->has_more_output = left != 0 && out.pos == out.size;
	r->is_in_frame = left != 0;
	if (out.pos > FRAME_MAX)
		return failed(r, -EBADMSG, "a frame claims to be too large", err);
	return left == 0;
}

/* 1: records has the next frame's; 0: the end for now. What was read of a frame is kept: the file
 * may have grown when we are asked again. */
static int next_frame(struct events_reader *r, struct err *err)
{
	int n;

	r->is_at_end = false;
	for (;;) {
		if (r->in.pos == r->in.size && !r->has_more_output) {
			n = fill(r);
			if (n < 0)
				return failed(r, n, strerror(-n), err);
			if (n == 0) {
				r->is_at_end = true;
				return 0;
			}
		}
		n = decompress(r, err);
		if (n < 0)
			return n;
		if (n > 0 && r->content.len > 0) {
			r->records = (struct cursor){.p = r->content.data,
						     .end = r->content.data + r->content.len};
			return 1;
		}
	}
}

/* -- records --------------------------------------------------------------------------------- */

/* A string as C has them; NULL: no memory. Valid until the next record. */
static char *get_string(struct events_reader *r, struct cursor *c)
{
	struct cursor s = get_part(c, get_varint(c));
	size_t len = cursor_left(&s);

	r->text.len = 0;
	if (bytes_reserve(&r->text, len + 1) < 0)
		return NULL;
	if (len)
		memcpy(r->text.data, s.p, len);
	r->text.data[len] = '\0';
	return (char *)r->text.data;
}

static int read_run(struct events_reader *r, struct cursor *c, struct events_record *ret)
{
	owners_done(&r->batch.live); /* the processes of the run before are gone */
	ret->type = EVENTS_RUN;
	ret->run.run_id = get_signed(c);
	ret->run.started_mono_ns = get_signed(c);
	return 1;
}

static int read_function(struct events_reader *r, struct cursor *c, struct events_record *ret)
{
	ret->type = EVENTS_FUNCTION;
	ret->function.id = (uint16_t)get_max(c, UINT16_MAX);
	ret->function.name = get_string(r, c);
	return ret->function.name ? 1 : -ENOMEM;
}

static int read_module(struct events_reader *r, struct cursor *c, struct events_record *ret)
{
	struct module *m = &ret->module;
	struct cursor build_id;

	ret->type = EVENTS_MODULE;
	*m = (struct module){.id = (uint32_t)get_max(c, UINT32_MAX)};
	build_id = get_part(c, get_max(c, BUILD_ID_MAX));
	m->build_id_len = (int)cursor_left(&build_id);
	memcpy(m->build_id, build_id.p, (size_t)m->build_id_len);
	m->path = get_string(r, c);
	return m->path ? 1 : -ENOMEM;
}

static int read_stack(struct events_reader *r, struct cursor *c, struct events_record *ret)
{
	ret->type = EVENTS_STACK;
	ret->stack.id = (uint32_t)get_max(c, UINT32_MAX);
	ret->stack.quality = (enum stack_quality)get_max(c, STACK_NONE);
	ret->stack.depth = (uint32_t)get_max(c, MIN(cursor_left(c) / 2, (size_t)STACK_DEPTH_MAX));
	if (ret->stack.depth > r->frames_size) {
		void *grown = reallocarray(r->frames, ret->stack.depth, sizeof(*r->frames));

		if (!grown)
			return -ENOMEM;
		r->frames = grown;
		r->frames_size = ret->stack.depth;
	}
	for (uint32_t i = 0; i < ret->stack.depth; i++) {
		r->frames[i].module = (uint32_t)get_max(c, UINT32_MAX);
		r->frames[i].offset = get_varint(c);
	}
	ret->stack.frames = r->frames;
	return 1;
}

static int read_loss(struct cursor *c, struct events_record *ret)
{
	ret->type = EVENTS_LOSS;
	ret->loss.ring = (int)get_signed(c);
	ret->loss.from_ns = get_signed(c);
	ret->loss.to_ns = get_signed(c);
	ret->loss.count = get_signed(c);
	return 1;
}

/* 1: *ret is filled; 0: a batch was begun, or the record is of a type that we do not know. */
static int read_record(struct events_reader *r, struct events_record *ret)
{
	struct cursor head = get_part(&r->records, RECORD_HEAD), content;
	int n = 0;

	if (r->records.failed)
		return -EBADMSG;
	content = get_part(&r->records, load_le(head.p + 1, 4));
	if (r->records.failed)
		return -EBADMSG;
	switch (head.p[0]) {
	case RECORD_RUN:
		n = read_run(r, &content, ret);
		break;
	case RECORD_FUNCTION:
		n = read_function(r, &content, ret);
		break;
	case RECORD_MODULE:
		n = read_module(r, &content, ret);
		break;
	case RECORD_STACK:
		n = read_stack(r, &content, ret);
		break;
	case RECORD_BATCH:
		return batch_begin(&r->batch, content);
	case RECORD_LOSS:
		n = read_loss(&content, ret);
		break;
	default:
		break;
	}
	return content.failed ? -EBADMSG : n;
}

int events_next(struct events_reader *r, struct events_record *ret, struct err *err)
{
	int n = 0;

	if (r->failure.code) {
		*err = r->failure;
		return r->failure.code;
	}
	while (n == 0) {
		if (r->batch.n_left > 0) {
			ret->type = EVENTS_EVENT;
			n = batch_next(&r->batch, &ret->event);
			if (n == 0)
				return 1;
		} else if (cursor_left(&r->records) > 0) {
			n = read_record(r, ret);
		} else {
			n = next_frame(r, err);
			if (n <= 0)
				return n;
			n = 0;
		}
	}
	return n < 0 ? failed_as(r, n, err) : n;
}

bool events_reader_is_truncated(const struct events_reader *r)
{
	return r->is_at_end && r->is_in_frame;
}

/* -- opening --------------------------------------------------------------------------------- */

static int check_header(const struct events_reader *r, const uint8_t *h, size_t n, struct err *err)
{
	unsigned int version;

	if (n < 8 + HEADER_SIZE || load_le(h, 4) != EVENTS_SKIPPABLE ||
	    load_le(h + 4, 4) < HEADER_SIZE ||
	    memcmp(h + 8 + HEADER_MAGIC, EVENTS_MAGIC, strlen(EVENTS_MAGIC)) != 0)
		return err_set(err, -EINVAL, "%s does not begin as an events.zst does", r->path);
	version = (unsigned int)load_le(h + 8 + HEADER_VERSION, 2);
	if (version > EVENTS_VERSION) {
		(void)err_set(err, -EPROTO,
			      "%s has format version %u; this analyzer reads up to version %d",
			      r->path, version, EVENTS_VERSION);
		return err_hint(err, "read it with the analyzer that recorded it, or a newer one");
	}
	if (load_le(h + 8 + HEADER_BYTE_ORDER, 4) != EVENTS_BYTE_ORDER)
		return err_set(err, -EPROTO, "%s is not in little-endian byte order", r->path);
	return 0;
}

static int open_file(struct events_reader *r, struct err *err)
{
	uint8_t header[8 + HEADER_SIZE];
	ssize_t n;

	r->fd = open(r->path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0)
		return err_errno(err, -errno, "cannot open %s", r->path);
	/* The header's frame is then skipped by zstd like any that is not for it. */
	n = pread(r->fd, header, sizeof(header), 0);
	if (n < 0)
		return err_errno(err, -errno, "cannot read %s", r->path);
	if (check_header(r, header, (size_t)n, err) < 0)
		return err->code;
	r->zstd = ZSTD_createDCtx();
	r->input = malloc(INPUT_SIZE);
	if (!r->zstd || !r->input ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(r->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
		return err_errno(err, -ENOMEM, "cannot read %s", r->path);
	return 0;
}

int events_reader_open(struct events_reader **ret, const char *path, struct err *err)
{
	struct events_reader *r = calloc(1, sizeof(*r));
	int n;

	if (!r)
		return err_errno(err, -ENOMEM, "cannot open %s", path);
	r->fd = -1;
	(void)snprintf(r->path, sizeof(r->path), "%s", path);
	n = open_file(r, err);
	if (n < 0) {
		events_reader_close(r);
		return n;
	}
	*ret = r;
	return 0;
}

void events_reader_close(struct events_reader *r)
{
	if (!r)
		return;
	close_fd(&r->fd);
	(void)ZSTD_freeDCtx(r->zstd);
	free(r->input);
	bytes_done(&r->content);
	bytes_done(&r->text);
	free(r->frames);
	batch_reader_done(&r->batch);
	free(r);
}
