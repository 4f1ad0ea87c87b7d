/*
 * Events of all CPUs in one order of time.
 *
 * Each ring is nearly in order; a ring's mark says that nothing older than it will still come
 * from there. An event goes out when no ring's mark is before it: nothing is ever put out of
 * order by a reader that looks at one ring later than at another.
 *
 * Pure; life: order_new → order_push, order_mark, order_pop … → order_free.
 */
#pragma once

#include "model/event.h"

struct order;

int order_new(struct order **ret, int rings);
void order_free(struct order *o); /* NULL allowed */

/* 0 or -ENOMEM: the event is lost. */
int order_push(struct order *o, int ring, const struct event *ev);

/* From now on, events of that ring are not older than t_ns. INT64_MAX: it has ended. */
void order_mark(struct order *o, int ring, int64_t t_ns);

/* The earliest mark: what was made before has been read, of whatever ring. */
int64_t order_marked(const struct order *o);

/* The next event in order of time, releases before acquisitions of the same instant; false when
 * a ring may still send an earlier one. */
bool order_pop(struct order *o, struct event *ret);

/* Events waiting. */
int64_t order_backlog(const struct order *o);
