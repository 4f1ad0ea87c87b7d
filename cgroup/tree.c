/* Finding the v2 hierarchy and our own place in it. */
#include "cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* mountinfo writes blanks, tabs, newlines and backslashes of a path as \ooo. */
static void unescape(char *s)
{
	char *o = s;

	for (; *s; o++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*o = (s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0');
			s += 4;
		} else {
			*o = *s++;
		}
	}
	*o = '\0';
}

struct mount_line {
	char *root, *point, *type, *super;
};

/*
 * "36 35 98:0 /root /mnt rw,noatime shared:1 - cgroup2 cgroup2 rw,nsdelegate": the optional
 * fields before the dash vary in number.
 */
static bool split_mount(char *line, struct mount_line *ret)
{
	char *f[6], *rest = line, *dash;

	for (size_t i = 0; i < ARRAY_SIZE(f); i++) {
		f[i] = strsep(&rest, " ");
		if (!rest)
			return false;
	}
	dash = strncmp(rest, "- ", 2) == 0 ? rest : strstr(rest, " - ");
	if (!dash)
		return false;
	dash = strchr(dash, '-') + 2;
	ret->root = f[3];
	ret->point = f[4];
	ret->type = strsep(&dash, " ");
	if (!dash || !strsep(&dash, " ") || !dash)
		return false;
	ret->super = dash;
	unescape(ret->root);
	unescape(ret->point);
	return true;
}

static bool has_word(const char *list, const char *word, char sep)
{
	size_t n = strlen(word);

	for (const char *p = list; p; p = strchr(p, sep)) {
		if (*p == sep)
			p++;
		if (strncmp(p, word, n) == 0 && (p[n] == sep || p[n] == '\0'))
			return true;
	}
	return false;
}

static int find_mounts(struct cgroup_tree *t, char *mount_root, size_t size, struct err *err)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	size_t n = 0;
	int fd = root_openat(t->root, "/proc/self/mountinfo", O_RDONLY);

	if (fd < 0)
		return err_errno(err, fd, "cannot read %s/proc/self/mountinfo", t->root->prefix);
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return err_errno(err, -ENOMEM, "cannot read the mount table");
	}
	while (getline(&line, &n, f) > 0) {
		struct mount_line m;

		line[strcspn(line, "\n")] = '\0';
		if (!split_mount(line, &m))
			continue;
		if (strcmp(m.type, "cgroup2") == 0 && !t->mount[0]) {
			(void)snprintf(t->mount, sizeof(t->mount), "%s", m.point);
			(void)snprintf(mount_root, size, "%s", m.root);
		} else if (strcmp(m.type, "cgroup") == 0 && has_word(m.super, "memory", ',')) {
			(void)snprintf(t->memory_v1_mount, sizeof(t->memory_v1_mount), "%s",
				       m.point);
		}
	}
	return 0;
}

/* The path of line "0::/…", without the part above a mount that shows only a subtree. */
static int find_self(struct cgroup_tree *t, const char *mount_root, struct err *err)
{
	char buf[8192], *line, *rest = buf;
	ssize_t r = root_read(t->root, "/proc/self/cgroup", buf, sizeof(buf));
	size_t skip = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);

	if (r < 0)
		return err_errno(err, r, "cannot read %s/proc/self/cgroup", t->root->prefix);
	while ((line = strsep(&rest, "\n"))) {
		const char *path = line + 3;

		if (strncmp(line, "0::", 3) != 0)
			continue;
		if (skip && strncmp(path, mount_root, skip) == 0)
			path += skip;
		if (strcmp(path, "/") == 0)
			path = "";
		(void)snprintf(t->self, sizeof(t->self), "%s", path);
		return 0;
	}
	return 0; /* no v2 line: we count as being in its root */
}

int cgroup_tree_find(struct cgroup_tree *ret, const struct root *root, const char *cgpath,
		     struct err *err)
{
	char mount_root[CGROUP_PATH_MAX] = "/";
	int r;

	*ret = (struct cgroup_tree){.root = root};
	r = find_mounts(ret, mount_root, sizeof(mount_root), err);
	if (r < 0)
		return r;
	if (cgpath)
		(void)snprintf(ret->mount, sizeof(ret->mount), "%s", cgpath);
	if (!ret->mount[0])
		return err_set(err, -ENOENT, "no cgroup v2 is mounted on this machine");
	return find_self(ret, mount_root, err);
}
