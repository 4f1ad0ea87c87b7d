#include "tracer/spans.h"

bool spans_add(struct spans *s, uint64_t low, uint64_t high, size_t value)
{
	if (s->n == s->size) {
		size_t size = s->size ? s->size * 2 : 64;
		struct span *v = reallocarray(s->v, size, sizeof(*v));

		if (!v)
			return false;
		s->v = v;
		s->size = size;
	}
	s->v[s->n++] = (struct span){.low = low, .high = high, .value = value};
	return true;
}

static int by_low(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return (x->value > y->value) - (x->value < y->value);
}

void spans_sort(struct spans *s)
{
	uint64_t reach = 0;

	if (s->n > 0)
		qsort(s->v, s->n, sizeof(s->v[0]), by_low);
	for (size_t i = 0; i < s->n; i++) {
		reach = MAX(reach, s->v[i].high);
		s->v[i].reach = reach;
	}
}

const struct span *spans_find(const struct spans *s, uint64_t address)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->v[mid].low <= address)
			low = mid + 1;
		else
			high = mid;
	}
	while (low > 0 && s->v[low - 1].reach > address) {
		if (s->v[--low].high > address)
			return &s->v[low];
	}
	return NULL;
}

void spans_done(struct spans *s)
{
	free(s->v);
	*s = (struct spans){0};
}
