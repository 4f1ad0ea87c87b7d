#include "tracer/processes.h"

#include "model/kinds.h"
#include "tracer/idmap.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

struct processes {
	int64_t t0_mono_ns;
	struct process_info *list;
	size_t n, cap;
	struct idmap by_pid; /* → index + 1 of the newest of that pid; 0 = it has ended */
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
	idmap_done(&p->by_pid);
	free(p->list);
	free(p);
}

void processes_start(struct processes *p, int64_t t0_mono_ns)
{
	p->t0_mono_ns = t0_mono_ns;
}

static struct process_info *get(struct processes *p, const struct record_process *r)
{
	const uint64_t *known = idmap_find(&p->by_pid, r->pid);
	size_t cap = p->cap ? 2 * p->cap : 64;
	struct process_info *grown;

	if (known && *known)
		return &p->list[*known - 1];
	if (p->n == p->cap) {
		grown = realloc(p->list, cap * sizeof(*grown));
		if (!grown)
			return NULL;
		p->list = grown;
		p->cap = cap;
	}
	if (idmap_put(&p->by_pid, r->pid, p->n + 1) < 0)
		return NULL;
	p->list[p->n] = (struct process_info){.pid = r->pid,
					      .start_t_ns = (int64_t)r->t_ns - p->t0_mono_ns,
					      .end_t_ns = -1,
					      .exit_code = -1};
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

	if (!info)
		return;
	memcpy(info->comm, r->comm, sizeof(info->comm));
	info->comm[sizeof(info->comm) - 1] = 0;
	switch (r->kind) {
	case EVENT_FORK:
		info->ppid = r->ppid;
		break;
	case EVENT_EXEC:
		note_exe(info);
		break;
	default:
		info->end_t_ns = (int64_t)r->t_ns - p->t0_mono_ns;
		info->exit_code = WIFEXITED(r->status) ? (int)WEXITSTATUS(r->status) : -1;
		(void)idmap_put(&p->by_pid, r->pid, 0);
	}
}

size_t processes_list(const struct processes *p, const struct process_info **ret)
{
	*ret = p->list;
	return p->n;
}
