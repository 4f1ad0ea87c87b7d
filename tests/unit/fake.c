/* A fake system root; see fake.h. */
#include "tests/unit/fake.h"

#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

struct fake {
	char path[64];
	struct root root;
};

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	abort();
}

struct fake *fake_new(void)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct err err;

	need(f != NULL, "calloc");
	(void)snprintf(f->path, sizeof(f->path), "/tmp/analyzer-test-XXXXXX");
	need(mkdtemp(f->path) != NULL, "mkdtemp");
	need(root_open(&f->root, f->path, &err) == 0, "root_open");
	return f;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void fake_free(struct fake *f)
{
	if (!f)
		return;
	need(nftw(f->path, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0, f->path);
	root_close(&f->root);
	free(f);
}

const struct root *fake_root(const struct fake *f)
{
	return &f->root;
}

const char *fake_path(const struct fake *f)
{
	return f->path;
}

/* The path below our directory, its parents made. */
static const char *below(struct fake *f, const char *path)
{
	char dir[512];

	path += strspn(path, "/");
	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		need(snprintf(dir, sizeof(dir), "%.*s", (int)(p - path), path) < (int)sizeof(dir),
		     path);
		(void)mkdirat(f->root.fd, dir, 0755); /* there already, or the next open fails */
	}
	return path;
}

void fake_file(struct fake *f, const char *path, const char *text)
{
	int fd = openat(f->root.fd, below(f, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	need(fd >= 0, path);
	need(write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close_fd(&fd);
}

void fake_remove(struct fake *f, const char *path)
{
	path += strspn(path, "/");
	need(unlinkat(f->root.fd, path, 0) == 0, path);
}

void fake_dir(struct fake *f, const char *path)
{
	need(mkdirat(f->root.fd, below(f, path), 0755) == 0, path);
}

int fake_opendir(struct fake *f, const char *path)
{
	int fd = openat(f->root.fd, path + strspn(path, "/"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	need(fd >= 0, path);
	return fd;
}
