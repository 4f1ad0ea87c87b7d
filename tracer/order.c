#include "tracer/order.h"

#include <errno.h>
#include <string.h>

struct queue {
	struct event *ev; /* [head, tail) in order */
	size_t head, tail, cap;
	int64_t mark_ns;
};

struct order {
	int n;
	int64_t backlog;
	struct queue queues[];
};

int order_new(struct order **ret, int rings)
{
	struct order *o = calloc(1, sizeof(*o) + (size_t)rings * sizeof(struct queue));

	if (!o)
		return -ENOMEM;
	o->n = rings;
	*ret = o;
	return 0;
}

void order_free(struct order *o)
{
	if (!o)
		return;
	for (int i = 0; i < o->n; i++)
		free(o->queues[i].ev);
	free(o);
}

static bool is_release(const struct event *ev)
{
	return ev->kind == EVENT_FREE || ev->kind == EVENT_MUNMAP;
}

static bool is_before(const struct event *a, const struct event *b)
{
	if (a->t_ns != b->t_ns)
		return a->t_ns < b->t_ns;
	return is_release(a) && !is_release(b);
}

static int make_room(struct queue *q)
{
	size_t n = q->tail - q->head;

	if (q->tail < q->cap)
		return 0;
	if (q->head > q->cap / 2) {
		memmove(q->ev, q->ev + q->head, n * sizeof(*q->ev));
	} else {
		size_t cap = q->cap ? 2 * q->cap : 4096;
		struct event *grown = malloc(cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		if (n)
			memcpy(grown, q->ev + q->head, n * sizeof(*grown));
		free(q->ev);
		q->ev = grown;
		q->cap = cap;
	}
	q->head = 0;
	q->tail = n;
	return 0;
}

int order_push(struct order *o, int ring, const struct event *ev)
{
	struct queue *q = &o->queues[ring];
	size_t at;

	if (make_room(q) < 0)
		return -ENOMEM;
	/* A few places back at most: two tasks between their reservation and their stamp. */
	for (at = q->tail; at > q->head && is_before(ev, &q->ev[at - 1]); at--)
		q->ev[at] = q->ev[at - 1];
	q->ev[at] = *ev;
	q->tail++;
	o->backlog++;
	return 0;
}

void order_mark(struct order *o, int ring, int64_t t_ns)
{
	o->queues[ring].mark_ns = t_ns;
}

int64_t order_marked(const struct order *o)
{
	int64_t mark_ns = INT64_MAX;

	for (int i = 0; i < o->n; i++)
		mark_ns = MIN(mark_ns, o->queues[i].mark_ns);
	return mark_ns;
}

bool order_pop(struct order *o, struct event *ret)
{
	int64_t mark_ns = order_marked(o);
	struct queue *first = NULL;

	if (o->backlog == 0)
		return false;
	for (int i = 0; i < o->n; i++) {
		struct queue *q = &o->queues[i];

		if (q->head < q->tail &&
		    (!first || is_before(&q->ev[q->head], &first->ev[first->head])))
			first = q;
	}
	/* What is yet to come may bear the mark's own time. */
	if (!first || (first->ev[first->head].t_ns >= mark_ns && mark_ns < INT64_MAX))
		return false;
	*ret = first->ev[first->head++];
	if (first->head == first->tail)
		first->head = first->tail = 0;
	o->backlog--;
	return true;
}

int64_t order_backlog(const struct order *o)
{
	return o->backlog;
}
