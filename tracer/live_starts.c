#include "tracer/live_starts.h"

#include "base/map.h"

#include <errno.h>

struct start {
	uint64_t address;
	struct start *left, *right;
};

static bool is_above(const struct start *a, const struct start *b)
{
	return map_mix(a->address) > map_mix(b->address);
}

/* Splits into what is below the address and the rest. */
static void split(struct start *t, uint64_t address, struct start **below, struct start **others)
{
	while (t) {
		if (t->address < address) {
			*below = t;
			below = &t->right;
			t = t->right;
		} else {
			*others = t;
			others = &t->left;
			t = t->left;
		}
	}
	*below = *others = NULL;
}

int starts_add(struct starts *s, uint64_t address)
{
	struct start *new = malloc(sizeof(*new)), **at = &s->root;

	if (!new)
		return -ENOMEM;
	new->address = address;
	while (*at && is_above(*at, new))
		at = address < (*at)->address ? &(*at)->left : &(*at)->right;
	split(*at, address, &new->left, &new->right);
	*at = new;
	return 0;
}

static struct start *merge(struct start *a, struct start *b)
{
	struct start *root, **at = &root;

	while (a && b) {
		if (is_above(a, b)) {
			*at = a;
			at = &a->right;
			a = a->right;
		} else {
			*at = b;
			at = &b->left;
			b = b->left;
		}
	}
	*at = a ? a : b;
	return root;
}

void starts_remove(struct starts *s, uint64_t address)
{
	struct start **at = &s->root, *gone;

	while (*at && (*at)->address != address)
		at = address < (*at)->address ? &(*at)->left : &(*at)->right;
	gone = *at;
	if (!gone)
		return;
	*at = merge(gone->left, gone->right);
	free(gone);
}

uint64_t starts_below(const struct starts *s, uint64_t address)
{
	uint64_t best = 0;

	for (const struct start *t = s->root; t;) {
		if (t->address <= address) {
			best = t->address;
			t = t->right;
		} else {
			t = t->left;
		}
	}
	return best;
}

void starts_done(struct starts *s)
{
	struct start *t = s->root;

	while (t) {
		struct start *left = t->left, *next;

		if (left) { /* rotated up until there is none */
			t->left = left->right;
			left->right = t;
			t = left;
			continue;
		}
		next = t->right;
		free(t);
		t = next;
	}
	s->root = NULL;
}
