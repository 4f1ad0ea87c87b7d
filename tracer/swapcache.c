#include "tracer/swapcache.h"

#include "bpf/swapcache.h"
#include "bpf/swapcache.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

struct swapcache {
	struct swapcache_bpf *skel;
};

static int look(struct swapcache *c)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int r = bpf_prog_test_run_opts(bpf_program__fd(c->skel->progs.swapcache_look), &opts);

	return r < 0 ? -errno : 0;
}

struct swapcache *swapcache_open(void)
{
	struct swapcache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->skel = swapcache_bpf__open_and_load();
	if (c->skel && look(c) == 0 && c->skel->bss->query.is_known)
		return c;
	swapcache_close(c);
	return NULL;
}

void swapcache_close(struct swapcache *c)
{
	if (!c)
		return;
	swapcache_bpf__destroy(c->skel);
	free(c);
}

int swapcache_look(struct swapcache *c, const uint64_t *entries, size_t n, bool *ret)
{
	struct swapcache_query *q = &c->skel->bss->query;
	int r = 0;

	for (size_t done = 0; done < n; done += q->n) {
		q->n = (unsigned int)MIN(n - done, (size_t)SWAPCACHE_MAX);
		memcpy(q->entry, &entries[done], q->n * sizeof(*entries));
		r = look(c);
		if (r < 0)
			return r;
		for (size_t i = 0; i < q->n; i++)
			ret[done + i] = q->is_in[i];
	}
	return r;
}
