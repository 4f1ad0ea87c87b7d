/*
 * Metrics and samples as plain data. model/metrics.def is the one table: it drives the sampler,
 * the database's columns, `analyzer list metrics` and the reports.
 */
#pragma once

#include "base/base.h"

enum metric_kind {
	METRIC_GAUGE,   /* a level */
	METRIC_COUNTER, /* only grows; rates are derived from two samples' own times */
	METRIC_LIMIT,   /* a setting; "max" is INT64_MAX */
};

enum metric_scope { METRIC_GROUP, METRIC_HOST };

enum metric_id {
#define METRIC(name, file, key, kind, unit, scope, help) M_##name,
#include "model/metrics.def"
#undef METRIC
	METRIC_COUNT
};

struct metric {
	const char *name; /* column of table `sample` */
	const char *file; /* group scope: name in the group's directory; host: absolute path */
	const char *key;  /* inside the file; "" when the file is one number */
	enum metric_kind kind;
	const char *unit; /* bytes, us, ns, pages, count, faults, ops, percent */
	enum metric_scope scope;
	const char *help;
};

extern const struct metric metrics[METRIC_COUNT];

const char *metric_kind_name(enum metric_kind kind);    /* gauge, counter, limit */
const char *metric_scope_name(enum metric_scope scope); /* group, host */

/* The metric of that column name, or -1. */
int metric_find(const char *name);

#define SAMPLE_EXTRA_MAX 192

/* A value that metrics.def has no row for: a key new to us, or one device's own value. */
struct sample_extra {
	const char *key; /* "memory.stat:some_new_key"; borrowed from the sampler */
	int64_t value;
};

/* All counters read at one instant: a plain value, copied freely. */
struct sample {
	int64_t seq;  /* 1, 2, 3 … within a run */
	int64_t t_ns; /* since the run's first sample */
	int64_t v[METRIC_COUNT];
	bool has[METRIC_COUNT]; /* false: the kernel has no such value (NULL, never 0) */
	size_t n_extra;
	struct sample_extra extra[SAMPLE_EXTRA_MAX];
};

/* The value, or `otherwise` where the kernel has none. */
static inline int64_t sample_get(const struct sample *s, enum metric_id id, int64_t otherwise)
{
	return s->has[id] ? s->v[id] : otherwise;
}

/* b - a of a counter in *ret; false where one has no value or the counter went backwards. */
static inline bool sample_delta(const struct sample *a, const struct sample *b, enum metric_id id,
				int64_t *ret)
{
	if (!a->has[id] || !b->has[id] || b->v[id] < a->v[id])
		return false;
	*ret = b->v[id] - a->v[id];
	return true;
}
