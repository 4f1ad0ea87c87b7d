#include "tracer/faults.h"

#include "base/map.h"

#include <errno.h>
#include <string.h>

struct slot {
	struct fault fault;
	uint64_t next_free; /* number; 0 = none */
};

struct faults {
	struct modules *modules;
	struct stacks *stacks;
	struct slot *slots; /* number 1 is slots[0] */
	size_t n, cap;
	uint64_t free;
	struct map path_ids; /* by the kernel's name of a file → index + 1 */
	char **paths;
	size_t n_paths, cap_paths;
	struct map place_ids; /* ROW_KEY → index + 1 */
	struct frame_ref *places;
	size_t n_places, cap_places;
};

int faults_new(struct faults **ret, struct modules *ms, struct stacks *stacks)
{
	struct faults *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->modules = ms;
	f->stacks = stacks;
	*ret = f;
	return 0;
}

void faults_free(struct faults *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_paths; i++)
		free(f->paths[i]);
	map_done(&f->path_ids);
	map_done(&f->place_ids);
	free(f->paths);
	free(f->places);
	free(f->slots);
	free(f);
}

/* Room for one more; *list is an array of elements of that size. */
static int grow(void *list, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? 2 * *cap : 64;
	void *grown;

	if (n < *cap)
		return 0;
	grown = reallocarray(*(void **)list, more, size);
	if (!grown)
		return -ENOMEM;
	*(void **)list = grown;
	*cap = more;
	return 0;
}

static uint32_t place_of(struct faults *f, const struct record_fault *r)
{
	struct frame_ref ref = stacks_locate(f->stacks, r->pid, r->ip);
	uint64_t key = ROW_KEY(ref.module, ref.offset), known = map_get(&f->place_ids, key);

	if (known)
		return (uint32_t)known;
	if (grow(&f->places, f->n_places, &f->cap_places, sizeof(*f->places)) < 0 ||
	    map_put(&f->place_ids, key, f->n_places + 1, NULL) < 0)
		return 0;
	f->places[f->n_places++] = ref;
	return (uint32_t)f->n_places;
}

static const char *keep_path(struct faults *f, uint64_t key, const char *path)
{
	char *copy;

	if (grow(&f->paths, f->n_paths, &f->cap_paths, sizeof(*f->paths)) < 0)
		return NULL;
	copy = strdup(path);
	if (!copy || map_put(&f->path_ids, key, f->n_paths + 1, NULL) < 0) {
		free(copy);
		return NULL;
	}
	f->paths[f->n_paths++] = copy;
	return copy;
}

static const char *path_of(struct faults *f, const struct record_fault *r)
{
	uint64_t key = map_mix(r->dev) ^ r->ino, known = map_get(&f->path_ids, key);
	const struct module_file *m;
	const char *path;
	char buf[1024];

	if (known)
		return f->paths[known - 1];
	m = modules_find(f->modules, r->dev, r->ino);
	path = m ? m->m.path : modules_mapped(r->pid, r->address, buf, sizeof(buf));
	return path ? keep_path(f, key, path) : NULL;
}

/* -- records -------------------------------------------------------------------------------------
 */

uint64_t faults_keep(struct faults *f, const struct record_fault *r)
{
	uint64_t number = f->free;
	struct slot *s;

	if (!number) {
		if (grow(&f->slots, f->n, &f->cap, sizeof(*f->slots)) < 0)
			return 0;
		number = ++f->n;
	} else {
		f->free = f->slots[number - 1].next_free;
	}
	s = &f->slots[number - 1];
	s->fault = (struct fault){
		.t_ns = (int64_t)r->t_ns,
		.pid = r->pid,
		.tid = r->tid,
		.address = r->address,
		.mapping = r->mapping,
		.file = r->mapping == FAULT_FILE ? path_of(f, r) : NULL,
		.file_offset = r->mapping == FAULT_FILE ? (int64_t)r->file_offset : -1,
		.place = place_of(f, r),
		.duration_ns = r->duration_ns ? (int64_t)r->duration_ns : -1,
		.is_own = r->is_own,
	};
	return number;
}

struct fault faults_take(struct faults *f, uint64_t number)
{
	struct slot *s = &f->slots[number - 1];

	s->next_free = f->free;
	f->free = number;
	return s->fault;
}

size_t faults_places(const struct faults *f, const struct frame_ref **ret)
{
	*ret = f->places;
	return f->n_places;
}
