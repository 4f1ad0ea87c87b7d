#include "tracer/ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>

int ring_open(struct ring *r, int fd, size_t size, struct err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *consumer, *rest;

	*r = (struct ring){.fd = fd, .size = size};
	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (consumer == MAP_FAILED)
		return err_errno(err, -errno, "cannot map a ring of the tracer");
	rest = mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, fd, (off_t)page);
	if (rest == MAP_FAILED) {
		int r2 = err_errno(err, -errno, "cannot map a ring of the tracer");

		munmap(consumer, page);
		return r2;
	}
	r->consumer = consumer;
	r->producer = rest;
	r->data = (const uint8_t *)rest + page;
	return 0;
}

void ring_close(struct ring *r)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!r->consumer)
		return;
	munmap(r->consumer, page);
	munmap((void *)r->producer, page + 2 * r->size);
	r->consumer = NULL;
}

uint64_t ring_produced(const struct ring *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
}

uint64_t ring_consumed(const struct ring *r)
{
	return __atomic_load_n(r->consumer, __ATOMIC_ACQUIRE);
}

const void *ring_next(struct ring *r, uint32_t *ret_len)
{
	while (r->at < ring_produced(r)) {
		const uint8_t *head = r->data + (r->at & (r->size - 1));
		uint32_t word = __atomic_load_n((const uint32_t *)head, __ATOMIC_ACQUIRE);
		uint32_t len = word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (word & BPF_RINGBUF_BUSY_BIT)
			return NULL;
		r->at += (len + BPF_RINGBUF_HDR_SZ + 7) & ~UINT64_C(7);
		if (word & BPF_RINGBUF_DISCARD_BIT)
			continue;
		*ret_len = len;
		return head + BPF_RINGBUF_HDR_SZ;
	}
	return NULL;
}

void ring_release(struct ring *r)
{
	__atomic_store_n(r->consumer, r->at, __ATOMIC_RELEASE);
}
