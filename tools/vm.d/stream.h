/*
 * What both ends of the virtual machine's serial ports share: the host's
 * launch.c and the guest's agent.c.
 *
 * Port 1 carries control frames in both directions, ports 2, 3 and 4 carry
 * COMMAND's stdin, stdout and stderr as plain bytes. Nothing depends on when a
 * port opens or closes: the control frames FRAME_EOF and FRAME_EXIT say how
 * many bytes each stream has in all, so that neither end can take a cut stream
 * for a finished one.
 */
#ifndef STREAM_H
#define STREAM_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum frame_type {
	/* guest to host */
	FRAME_READY = 1, /* text: the settings in force; send FRAME_RUN */
	FRAME_FAILED,    /* text: why COMMAND cannot be run */
	FRAME_EXIT,      /* u64 status, bytes of stdout, bytes of stderr */
	/* host to guest */
	FRAME_RUN,    /* u64 argc, ns since 1970; strings: cwd, argv…, environment… */
	FRAME_SIGNAL, /* u64 signal number, for COMMAND's process group */
	FRAME_EOF,    /* u64 bytes of stdin; then it ends */
	FRAME_CLOSED, /* u64 1 or 2: nobody reads this output any more */
};

struct frame {
	uint32_t type, len;
};

/* Collects one frame from a non-blocking descriptor. */
struct inbox {
	struct frame head;
	size_t got;
	char *body; /* head.len bytes and a 0; ours until the next call */
	bool complete;
};

/* Bytes on their way between two descriptors; one that is -1 has ended. */
struct stream {
	int from, to;
	uint64_t total; /* taken from `from` so far */
	size_t at, len;
	char buf[64 << 10];
};

/* 1: box holds a frame, 0: not yet, -1: the other end is gone. */
static inline int inbox_read(struct inbox *box, int fd)
{
	if (box->complete) {
		free(box->body);
		*box = (struct inbox){0};
	}
	for (;;) {
		size_t head = sizeof(box->head), end = head + box->head.len;
		char *to = box->got < head ? (char *)&box->head + box->got
					   : box->body + (box->got - head);
		ssize_t n = read(fd, to, (box->got < head ? head : end) - box->got);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		if (n == 0)
			return -1;
		box->got += n;
		if (box->got == head && !box->body) {
			box->body = calloc(1, box->head.len + 1);
			if (!box->body)
				return -1;
		}
		if (box->body && box->got == sizeof(box->head) + box->head.len) {
			box->complete = true;
			return 1;
		}
	}
}

static inline int write_all(int fd, const void *data, size_t len)
{
	for (const char *p = data; len;) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EAGAIN)
			poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
		else if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			p += n;
			len -= n;
		}
	}
	return 0;
}

static inline int frame_send(int fd, uint32_t type, const void *body, uint32_t len)
{
	struct frame head = {type, len};

	return write_all(fd, &head, sizeof(head)) || write_all(fd, body, len) ? -1 : 0;
}

static inline int frame_send_u64(int fd, uint32_t type, uint64_t value)
{
	return frame_send(fd, type, &value, sizeof(value));
}

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Fills the two entries of a poll set that this stream needs. */
static inline void stream_poll(const struct stream *s, struct pollfd p[2])
{
	p[0] = (struct pollfd){.fd = s->len ? -1 : s->from, .events = POLLIN};
	p[1] = (struct pollfd){.fd = s->len ? s->to : -1, .events = POLLOUT};
}

/*
 * Moves what can be moved now, at most `chunk` bytes a time: a pipe that polls
 * writable takes 4096 bytes without blocking, even if it is not O_NONBLOCK. A
 * `to` that fails is closed and what follows is thrown away, but counted.
 */
static inline void stream_move(struct stream *s, const struct pollfd p[2], size_t chunk)
{
	ssize_t n;

	if (p[0].fd >= 0 && p[0].revents) {
		n = read(s->from, s->buf, sizeof(s->buf));
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			close_fd(&s->from);
		s->at = 0;
		s->len = n > 0 ? n : 0;
		s->total += s->len;
	}
	if (p[1].fd >= 0 && p[1].revents) {
		n = write(s->to, s->buf + s->at, s->len < chunk ? s->len : chunk);
		if (n > 0) {
			s->at += n;
			s->len -= n;
		} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
			close_fd(&s->to);
		}
	}
	if (s->to < 0)
		s->len = 0;
}

#endif
