#include "tracer/processes.h"

#include "base/map.h"
#include "model/kinds.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

struct processes {
	int64_t t0_mono_ns;
	struct process_info *list;
	size_t n, cap;
	struct map by_start; /* pid and start → index + 1 */
};

int processes_new(struct processes **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void processes_free(struct processes *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		free(p->list[i].exe);
	map_done(&p->by_start);
	free(p->list);
	free(p);
}

void processes_start(struct processes *p, int64_t t0_mono_ns)
{
	p->t0_mono_ns = t0_mono_ns;
}

/* A pid comes again, a pid with its start does not. Records of one process come from several
 * rings, in any order. */
static struct process_info *get(struct processes *p, const struct record_process *r)
{
	uint64_t key = map_mix(r->start_ns) + r->pid, known = map_get(&p->by_start, key);
	size_t cap = p->cap ? 2 * p->cap : 64;
	struct process_info *grown;

	if (known)
		return &p->list[known - 1];
	if (p->n == p->cap) {
		grown = realloc(p->list, cap * sizeof(*grown));
		if (!grown)
			return NULL;
		p->list = grown;
		p->cap = cap;
	}
	if (map_put(&p->by_start, key, p->n + 1, NULL) < 0)
		return NULL;
	p->list[p->n] = (struct process_info){
		.pid = r->pid, .start_t_ns = INT64_MAX, .end_t_ns = -1, .exit_code = -1};
	return &p->list[p->n++];
}

static void note_exe(struct process_info *info)
{
	char link[32], path[4096];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/%u/exe", info->pid);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return; /* it was short */
	path[n] = 0;
	free(info->exe);
	info->exe = strdup(path);
}

void processes_note(struct processes *p, const struct record_process *r)
{
	struct process_info *info = get(p, r);
	int64_t t_ns = (int64_t)r->t_ns - p->t0_mono_ns;

	if (!info)
		return;
	info->start_t_ns = MIN(info->start_t_ns, t_ns);
	/* The name that an exec or the end tells is newer than that of the fork. */
	if (r->kind != EVENT_FORK || !info->comm[0]) {
		memcpy(info->comm, r->comm, sizeof(info->comm));
		info->comm[sizeof(info->comm) - 1] = 0;
	}
	switch (r->kind) {
	case EVENT_FORK:
		info->ppid = r->ppid;
		break;
	case EVENT_EXEC:
		note_exe(info);
		break;
	default:
		info->end_t_ns = t_ns;
		info->exit_code = WIFEXITED(r->status) ? (int)WEXITSTATUS(r->status) : -1;
	}
}

size_t processes_list(const struct processes *p, const struct process_info **ret)
{
	*ret = p->list;
	return p->n;
}
