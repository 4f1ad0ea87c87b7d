/* One group's life, and the choice of its parent. */
#include "cgroup/cgroup.h"

#include "base/clock.h"
#include "base/num.h"
#include "cgroup/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* Controllers that the metrics need: memory.* and io.stat. cpu.stat's times and the pressure
 * files exist without a controller, and enabling cpu would change how the group is scheduled. */
static const char *const wanted[] = {"memory", "io"};

static bool has_controller(int dirfd, const char *file, const char *name)
{
	char buf[1024], *word, *rest = buf;

	if (read_file_at(dirfd, file, buf, sizeof(buf)) < 0)
		return false;
	while ((word = strsep(&rest, " "))) {
		if (strcmp(word, name) == 0)
			return true;
	}
	return false;
}

/* Makes the children of path get the controller; true when they do. */
static bool enable(struct cgroup_place *place, int dirfd, const char *name, struct undo *undo)
{
	char file[CGROUP_PATH_MAX + 32], minus[32], plus[32];
	struct undo_entry entry = {.kind = UNDO_CONTROLLER, .path = file, .value = minus};
	struct err ignored;
	int id;

	if (has_controller(dirfd, "cgroup.subtree_control", name))
		return true;
	if (!has_controller(dirfd, "cgroup.controllers", name))
		return false;
	(void)snprintf(file, sizeof(file), "%s/cgroup.subtree_control", place->parent);
	(void)snprintf(minus, sizeof(minus), "-%s", name);
	(void)snprintf(plus, sizeof(plus), "+%s", name);
	id = undo_add(undo, &entry, &ignored);
	if (id < 0)
		return false;
	/* EBUSY: processes live in that group itself, its children cannot have controllers. */
	if (write_file_at(dirfd, "cgroup.subtree_control", plus) < 0) {
		undo_drop(undo, id);
		return false;
	}
	place->undo_ids[place->n_undo++] = id;
	return true;
}

/* Tries one parent: 1 = a child gets memory, 0 = it can be made without, negative = neither. */
static int try_parent(struct cgroup_place *place, const struct cgroup_tree *tree, const char *path,
		      struct undo *undo)
{
	_cleanup_close_ int fd = root_openat(tree->root, path, O_RDONLY | O_DIRECTORY);
	struct statfs fs;

	if (fd < 0)
		return fd;
	/* Else a directory would be made anywhere by ".." or a wrong --cgpath. */
	if (!root_is_fake(tree->root) && (fstatfs(fd, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC))
		return -EXDEV;
	if (faccessat(fd, ".", W_OK, AT_EACCESS) < 0)
		return -errno;
	(void)snprintf(place->parent, sizeof(place->parent), "%s", path);
	place->has_memory = enable(place, fd, wanted[0], undo);
	if (!place->has_memory)
		return 0;
	for (size_t i = 1; i < ARRAY_SIZE(wanted); i++)
		(void)enable(place, fd, wanted[i], undo); /* io.stat is then NULL, no more */
	return 1;
}

static int place_at(struct cgroup_place *ret, const struct cgroup_tree *tree,
		    const char *parent_path, struct undo *undo, struct err *err)
{
	char path[CGROUP_PATH_MAX * 2];
	bool absolute = strncmp(parent_path, tree->mount, strlen(tree->mount)) == 0;
	int r;

	(void)snprintf(path, sizeof(path), "%s%s%s", absolute ? "" : tree->mount,
		       absolute || parent_path[0] == '/' ? "" : "/", parent_path);
	if (strlen(path) >= CGROUP_PATH_MAX)
		return err_set(err, -ENAMETOOLONG, "--cgroup-parent: the path is too long");
	r = try_parent(ret, tree, path, undo);
	if (r == -EXDEV)
		return err_set(err, -EINVAL, "--cgroup-parent %s is not on cgroup v2", path);
	if (r < 0)
		return err_errno(err, r, "cannot make a group in --cgroup-parent %s", path);
	return 0;
}

int cgroup_place_find(struct cgroup_place *ret, const struct cgroup_tree *tree,
		      const char *parent_path, struct undo *undo, struct err *err)
{
	struct cgroup_place place = {0}, nearest = {0};
	char path[CGROUP_PATH_MAX * 2];
	bool found = false;
	int r = -EACCES;

	*ret = place;
	if (parent_path)
		return place_at(ret, tree, parent_path, undo, err);
	(void)snprintf(path, sizeof(path), "%s%s", tree->mount, tree->self);
	for (;;) {
		r = try_parent(&place, tree, path, undo);
		if (r == 1) {
			*ret = place;
			return 0;
		}
		if (r == 0 && !found) {
			nearest = place;
			found = true;
		}
		if (strlen(path) <= strlen(tree->mount))
			break;
		*strrchr(path, '/') = '\0';
	}
	if (r == -EXDEV)
		return err_set(err, -EINVAL, "--cgpath %s is not a cgroup v2 mount", tree->mount);
	if (!found) {
		(void)err_errno(err, r < 0 ? r : -EACCES, "cannot make a cgroup below %s",
				tree->mount);
		return err_hint(err, "run as root, or in a delegated group: "
				     "systemd-run --user --scope -p Delegate=yes analyzer …");
	}
	*ret = nearest;
	return 0;
}

void cgroup_place_undo(struct cgroup_place *place, struct undo *undo)
{
	struct err ignored; /* the guard's journal keeps what fails here */

	while (place->n_undo > 0)
		(void)undo_run(undo, place->undo_ids[--place->n_undo], &ignored);
}

static int check_name(const char *name, struct err *err)
{
	if (!name[0] || strchr(name, '/') || strchr(name, '\n') || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0 || strlen(name) > 200) {
		(void)err_set(err, -EINVAL, "--cgname '%s' is not a group's name", name);
		return err_hint(err, "one path component without '/' or line breaks");
	}
	return 0;
}

static int make_dir(struct cgroup *cg, const struct cgroup_tree *tree, const char *path,
		    bool was_named, struct err *err)
{
	const char *rel = path + strspn(path, "/");

	if (mkdirat(tree->root->fd, rel, 0755) == 0)
		return 0;
	/* Only a fixture can have made a fake group's files: there it must exist. */
	if (errno == EEXIST && cg->is_fake)
		return 0;
	if (errno == EEXIST && was_named) {
		(void)err_set(err, -EEXIST, "the group %s exists and is not ours", path);
		return err_hint(err, "choose another --cgname, or remove it: rmdir %s", path);
	}
	return err_errno(err, -errno, "cannot make the group %s", path);
}

int cgroup_create(struct cgroup *ret, const struct cgroup_tree *tree,
		  const struct cgroup_place *place, const char *name, struct undo *undo,
		  struct err *err)
{
	struct cgroup cg = {.dirfd = -1, .events_fd = -1, .is_fake = root_is_fake(tree->root)};
	char own_name[64], path[CGROUP_PATH_MAX + 256];
	struct undo_entry entry = {.kind = UNDO_GROUP, .path = cg.path};
	struct stat st;
	uint32_t rnd = 0;
	int r;

	/* The dead groups of the past stay listed under their paths: names are never reused. */
	(void)getrandom(&rnd, sizeof(rnd), 0);
	(void)snprintf(own_name, sizeof(own_name), "analyzer-%d-%08x", getpid(), rnd);
	if (name && (r = check_name(name, err)) < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/%s", place->parent, name ? name : own_name);
	if (strlen(path) >= sizeof(cg.path))
		return err_set(err, -ENAMETOOLONG, "the group's path is too long: %s", path);
	memcpy(cg.path, path, strlen(path) + 1);
	/* Not registered before it is ours: the guard must not remove a stranger's group. */
	r = make_dir(&cg, tree, path, name != NULL, err);
	if (r < 0)
		return r;
	cg.undo_id = undo_add(undo, &entry, err);
	cg.dirfd = root_openat(tree->root, path, O_RDONLY | O_DIRECTORY);
	if (cg.undo_id < 0 || cg.dirfd < 0 || fstat(cg.dirfd, &st) < 0) {
		if (cg.dirfd < 0)
			(void)err_errno(err, cg.dirfd, "cannot open the new group %s", path);
		(void)unlinkat(tree->root->fd, path + strspn(path, "/"), AT_REMOVEDIR);
		cgroup_close(&cg);
		return err->code;
	}
	cg.id = st.st_ino;
	cg.events_fd = openat(cg.dirfd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	*ret = cg;
	return 0;
}

void cgroup_close(struct cgroup *cg)
{
	close_fd(&cg->dirfd);
	close_fd(&cg->events_fd);
}

ssize_t cgroup_read(const struct cgroup *cg, const char *file, char *buf, size_t size)
{
	return read_file_at(cg->dirfd, file, buf, size);
}

int cgroup_write(const struct cgroup *cg, const char *file, const char *value)
{
	return write_file_at(cg->dirfd, file, value);
}

int cgroup_read_number(const struct cgroup *cg, const char *file, int64_t *ret)
{
	char buf[64];
	ssize_t r = cgroup_read(cg, file, buf, sizeof(buf));

	return r < 0 ? r : num_parse_limit(buf, ret);
}

int64_t cgroup_cpu_ns(const struct cgroup *cg)
{
	char buf[1024];
	ssize_t r = cgroup_read(cg, "cpu.stat", buf, sizeof(buf));
	int64_t us;

	if (r < 0 || parse_flat_key(buf, (size_t)r, "usage_usec", &us) < 0)
		return -1;
	return us * (NS_PER_MS / 1000);
}

int cgroup_write_number(const struct cgroup *cg, const char *file, int64_t value)
{
	char buf[32];

	if (value == NUM_MAX)
		return cgroup_write(cg, file, "max");
	(void)snprintf(buf, sizeof(buf), "%" PRId64, value);
	return cgroup_write(cg, file, buf);
}

int cgroup_is_populated(const struct cgroup *cg)
{
	char buf[256];
	ssize_t n;

	if (cg->is_fake)
		return 0;
	n = pread(cg->events_fd, buf, sizeof(buf) - 1, 0);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return strstr(buf, "populated 1") != NULL;
}

/* For kernels without cgroup.kill: until nobody is left, since the killed may just have forked. */
static int kill_one_by_one(const struct cgroup *cg)
{
	for (int round = 0; round < 100; round++) {
		_cleanup_fclose_ FILE *f = NULL;
		int fd = openat(cg->dirfd, "cgroup.procs", O_RDONLY | O_CLOEXEC), pid, n = 0;

		f = fd < 0 ? NULL : fdopen(fd, "r");
		if (!f)
			return -errno;
		for (; fscanf(f, "%d", &pid) == 1; n++)
			(void)kill(pid, SIGKILL); /* gone by now is what we want */
		if (n == 0)
			return 0;
	}
	return -EBUSY;
}

int cgroup_kill(const struct cgroup *cg, struct err *err)
{
	int r = cgroup_write(cg, "cgroup.kill", "1");

	if (r == -ENOENT || r == -EACCES)
		r = kill_one_by_one(cg);
	return r < 0 ? err_errno(err, r, "cannot kill the group %s", cg->path) : 0;
}

int cgroup_remove(struct cgroup *cg, struct undo *undo, struct err *err)
{
	int r = undo_run(undo, cg->undo_id, err);

	cgroup_close(cg);
	return r;
}
