#include "tracer/history.h"

#include "base/map.h"

#include <errno.h>
#include <pthread.h>

/*
 * A page's value in `last`: when it last came back, shifted, and these. It is in there when it is
 * swapped or has come back; in `before` when it has come back more often.
 */
#define IS_SWAPPED 1 /* when a scan saw it last */
#define IS_GUESSED \
	2        /* by the last scan: it is back without a fault yet; the time is the earliest */
#define IS_ODD 4 /* seen by an odd scan */
#define TIME_SHIFT 3

struct history {
	pthread_mutex_t lock;
	size_t max;
	struct map last, before;
	int64_t scan_ns, previous_ns; /* when this scan and the one before began */
	int64_t seen_ns;              /* what history_pages was told last */
	uint64_t parity;              /* IS_ODD or 0 */
	int64_t forgotten;
};

int history_new(struct history **ret, size_t max)
{
	struct history *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	(void)pthread_mutex_init(&h->lock, NULL);
	h->max = max;
	*ret = h;
	return 0;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	map_done(&h->last);
	map_done(&h->before);
	(void)pthread_mutex_destroy(&h->lock);
	free(h);
}

static uint64_t key_of(uint32_t pid, uint64_t address)
{
	return map_mix(pid) + address / PAGE_BYTES;
}

static int64_t time_of(uint64_t value)
{
	return (int64_t)(value >> TIME_SHIFT);
}

/* was: its value so far. */
static void put(struct history *h, uint64_t key, uint64_t was, uint64_t value)
{
	if (value == was)
		return;
	if ((!was && h->last.n >= h->max) || map_put(&h->last, key, value, NULL) < 0)
		h->forgotten++;
}

/* flags: of the new value. */
static void come_back(struct history *h, uint64_t key, uint64_t was, int64_t t_ns, uint64_t flags)
{
	if (time_of(was) > 0)
		(void)map_put(&h->before, key, (uint64_t)time_of(was), NULL);
	put(h, key, was, (uint64_t)t_ns << TIME_SHIFT | flags);
}

void history_fault(struct history *h, uint32_t pid, uint64_t address, int64_t t_ns)
{
	uint64_t key = key_of(pid, address), was;

	(void)pthread_mutex_lock(&h->lock);
	was = map_get(&h->last, key);
	if (was & IS_GUESSED && t_ns <= h->seen_ns)
		/* The scan saw its effect before we were told of it. */
		put(h, key, was, (uint64_t)t_ns << TIME_SHIFT | (was & IS_ODD));
	else
		come_back(h, key, was, t_ns, h->parity);
	(void)pthread_mutex_unlock(&h->lock);
}

void history_begin(struct history *h, int64_t t_ns)
{
	(void)pthread_mutex_lock(&h->lock);
	h->previous_ns = h->scan_ns;
	h->scan_ns = t_ns;
	h->parity ^= IS_ODD;
	(void)pthread_mutex_unlock(&h->lock);
}

static void look_at(struct history *h, uint64_t key, struct page *p)
{
	uint64_t was = map_get(&h->last, key);
	uint64_t now = (was & ~(uint64_t)(IS_ODD | IS_GUESSED)) | h->parity;

	if (p->state == PAGE_SWAPPED)
		put(h, key, was, now | IS_SWAPPED);
	else if (was & IS_SWAPPED)
		come_back(h, key, was, h->previous_ns, IS_GUESSED | h->parity);
	else if (was)
		put(h, key, was, now);
	p->returned_ns = time_of(map_get(&h->last, key));
	p->returned_before_ns = p->returned_ns ? (int64_t)map_get(&h->before, key) : 0;
}

void history_pages(struct history *h, uint32_t pid, struct page *pages, size_t n, int64_t t_ns)
{
	(void)pthread_mutex_lock(&h->lock);
	h->seen_ns = t_ns;
	for (size_t i = 0; i < n; i++) {
		if (h->last.n > 0 || pages[i].state == PAGE_SWAPPED)
			look_at(h, key_of(pid, pages[i].address), &pages[i]);
	}
	(void)pthread_mutex_unlock(&h->lock);
}

void history_end(struct history *h)
{
	(void)pthread_mutex_lock(&h->lock);
	for (size_t i = 0; i < h->last.cap && h->last.n > 0; i++) {
		/* Taking one away may move another one here. */
		const struct map_slot *at = &h->last.slots[i];

		while (at->value && (at->value & IS_ODD) != h->parity) {
			(void)map_take(&h->before, at->key);
			(void)map_take(&h->last, at->key);
		}
	}
	(void)pthread_mutex_unlock(&h->lock);
}

int64_t history_forgotten(struct history *h)
{
	int64_t n;

	(void)pthread_mutex_lock(&h->lock);
	n = h->forgotten;
	(void)pthread_mutex_unlock(&h->lock);
	return n;
}
