#include "tracer/areas.h"

#include <errno.h>
#include <string.h>

static FILE *open_file(pid_t pid, const char *name)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return fopen(path, "re");
}

static bool begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* A line of maps, or a mapping's first one in smaps. */
static bool parse(const char *line, struct area *ret)
{
	char rights[5];
	int path = 0;

	*ret = (struct area){0};
	if (sscanf(line, "%lx-%lx %4s %lx %*s %lu %n", &ret->start, &ret->end, rights, &ret->offset,
		   &ret->inode, &path) != 5 ||
	    path == 0)
		return false;
	line += path;
	if (rights[3] == 'p')
		ret->is_anon = ret->inode == 0 &&
			       (!*line || begins(line, "[heap]") || begins(line, "[anon:"));
	else
		ret->is_shmem = begins(line, "/dev/zero (deleted)") || begins(line, "[anon_shmem:");
	return true;
}

int areas_read(struct areas *a, pid_t pid)
{
	_cleanup_fclose_ FILE *f = open_file(pid, "maps");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	a->n = 0;
	if (!f)
		return -errno;
	while (getline(&line, &size, f) > 0) {
		if (a->n == a->cap) {
			size_t cap = a->cap ? 2 * a->cap : 64;
			struct area *grown = realloc(a->list, cap * sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			a->list = grown;
			a->cap = cap;
		}
		a->n += parse(line, &a->list[a->n]);
	}
	return 0;
}

int areas_read_swapped(struct areas *a, pid_t pid)
{
	_cleanup_fclose_ FILE *f = open_file(pid, "smaps");
	_cleanup_free_ char *line = NULL;
	struct area *at = NULL, seen;
	size_t size = 0, i = 0;
	uint64_t kib;

	if (!f)
		return -errno;
	while (getline(&line, &size, f) > 0) {
		if (parse(line, &seen)) {
			while (i < a->n && a->list[i].start < seen.start)
				i++;
			at = i < a->n && a->list[i].start == seen.start ? &a->list[i] : NULL;
		} else if (at && at->is_shmem && sscanf(line, "Swap: %lu kB", &kib) == 1) {
			at->swapped_bytes = kib * 1024;
		}
	}
	return 0;
}

void areas_done(struct areas *a)
{
	free(a->list);
	*a = (struct areas){0};
}
