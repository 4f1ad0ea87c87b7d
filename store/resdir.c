#include "store/resdir.h"

#include "base/clock.h"
#include "base/num.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Everything that we may have written into a results directory. */
static const char *const our_files[] = {
	"profile.db",  "profile.db-wal", "profile.db-shm", "profile.db-journal", "events.zst",
	"report.html", "report.txt",     "summary.json",   "analyzer.log",       "config.json",
};

static int64_t env_id(const char *name)
{
	const char *text = getenv(name);
	int64_t id;

	return geteuid() == 0 && text && num_parse_u63(text, &id) == 0 ? id : -1;
}

static int hand_over(const struct resdir *d, int fd)
{
	return d->uid == (uid_t)-1 ? 0 : fchown(fd, d->uid, d->gid) < 0 ? -errno : 0;
}

/* A file name from a command's: what a shell or a person could stumble over becomes '_'. */
static void base_name(char *buf, size_t size, const char *workload)
{
	const char *slash = strrchr(workload, '/');

	(void)snprintf(buf, size, "%.60s", slash && slash[1] ? slash + 1 : workload);
	for (char *p = buf; *p; p++) {
		if (!isalnum((unsigned char)*p) && !strchr("._+-", *p))
			*p = '_';
	}
}

static int make_unique(struct resdir *d, const char *workload, struct err *err)
{
	char stamp[CLOCK_ISO_MAX], base[64];

	clock_stamp_local(stamp);
	base_name(base, sizeof(base), workload);
	for (int i = 1; i < 1000; i++) {
		(void)snprintf(d->path, sizeof(d->path), "profile.%s.%s", base, stamp);
		if (i > 1) {
			size_t n = strlen(d->path);

			(void)snprintf(d->path + n, sizeof(d->path) - n, "-%d", i);
		}
		if (mkdir(d->path, 0755) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	(void)err_errno(err, -errno, "cannot create the results directory %s", d->path);
	return err_hint(err, "run in a directory that you may write to, or give -o DIR");
}

static bool is_empty(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	bool found = false;

	if (!dir)
		return false;
	while (!found && (e = readdir(dir)))
		found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(dir);
	return !found;
}

static int reuse(struct resdir *d, struct err *err)
{
	_cleanup_close_ int fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, -errno, "cannot use the results directory %s", d->path);
	if (!is_empty(fd) && faccessat(fd, "profile.db", F_OK, 0) < 0) {
		(void)err_set(err, -EEXIST, "%s is not a results directory of analyzer", d->path);
		return err_hint(err, "-O replaces only what analyzer has written: there is no "
				     "profile.db in it");
	}
	for (size_t i = 0; i < ARRAY_SIZE(our_files); i++) {
		if (unlinkat(fd, our_files[i], 0) < 0 && errno != ENOENT)
			return err_errno(err, -errno, "cannot replace %s/%s", d->path,
					 our_files[i]);
	}
	return 0;
}

static int make_named(struct resdir *d, const char *path, bool force, struct err *err)
{
	if (strlen(path) >= sizeof(d->path))
		return err_set(err, -ENAMETOOLONG, "-o: the path is too long");
	(void)snprintf(d->path, sizeof(d->path), "%s", path);
	if (mkdir(path, 0755) == 0)
		return 0;
	if (errno == EEXIST && force)
		return reuse(d, err);
	(void)err_errno(err, -errno, "cannot create the results directory %s", path);
	if (errno == EEXIST)
		return err_hint(err, "choose another -o DIR, or replace it with -O %s", path);
	return err_hint(err, "choose a place for -o DIR that you may write to");
}

/* profile.latest beside the directory, replaced in one step; anything there that is not a link
 * is somebody else's and stays. A place without symbolic links has none: no error. */
static void link_latest(const struct resdir *d)
{
	char dir[sizeof(d->path)], tmp[sizeof(d->path) + 32], link[sizeof(d->path) + 32];
	const char *name = d->path;
	struct stat st;
	char *slash;

	(void)snprintf(dir, sizeof(dir), "%s", d->path);
	while (strlen(dir) > 1 && dir[strlen(dir) - 1] == '/')
		dir[strlen(dir) - 1] = '\0';
	slash = strrchr(dir, '/');
	name = slash ? slash + 1 : dir;
	(void)snprintf(link, sizeof(link), "%.*sprofile.latest", (int)(name - dir), dir);
	(void)snprintf(tmp, sizeof(tmp), "%.*s.profile.latest.%d", (int)(name - dir), dir,
		       getpid());
	if (lstat(link, &st) == 0 && !S_ISLNK(st.st_mode))
		return;
	if (symlink(name, tmp) < 0)
		return;
	if (d->uid != (uid_t)-1)
		(void)!lchown(tmp, d->uid, d->gid);
	if (rename(tmp, link) < 0)
		(void)unlink(tmp);
}

static int open_made(struct resdir *ret, const char *path, struct err *err)
{
	struct resdir d = {.uid = env_id("SUDO_UID"), .gid = env_id("SUDO_GID")};

	d.dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d.dirfd < 0)
		return err_errno(err, -errno, "cannot open the results directory %s", path);
	(void)snprintf(d.path, sizeof(d.path), "%s", path);
	*ret = d;
	return 0;
}

int resdir_create(struct resdir *ret, const char *path, bool force, const char *workload,
		  struct err *err)
{
	struct resdir made = {.dirfd = -1}, d;
	int r;

	r = path ? make_named(&made, path, force, err) : make_unique(&made, workload, err);
	if (r == 0)
		r = open_made(&d, made.path, err);
	if (r < 0)
		return r;
	r = hand_over(&d, d.dirfd);
	if (r < 0) {
		resdir_close(&d);
		return err_errno(err, r, "cannot give %s to the user behind sudo", d.path);
	}
	link_latest(&d);
	*ret = d;
	return 0;
}

void resdir_close(struct resdir *d)
{
	close_fd(&d->dirfd);
}

static int create(const struct resdir *d, const char *name, int flags, struct err *err)
{
	int fd = openat(d->dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
	int r = fd < 0 ? -errno : hand_over(d, fd);

	if (r < 0) {
		close_fd(&fd);
		return err_errno(err, r, "cannot create %s/%s", d->path, name);
	}
	return fd;
}

int resdir_open_log(const struct resdir *d, const char *name, struct err *err)
{
	return create(d, name, O_APPEND, err);
}

int resdir_write_file(const struct resdir *d, const char *name, const char *data, size_t len,
		      struct err *err)
{
	_cleanup_close_ int fd = -1;
	char tmp[64];
	size_t done = 0;

	(void)snprintf(tmp, sizeof(tmp), ".%s.new", name);
	fd = create(d, tmp, O_TRUNC, err);
	if (fd < 0)
		return fd;
	while (done < len) {
		ssize_t n = write(fd, data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += n;
	}
	if (done < len || fsync(fd) < 0 || renameat(d->dirfd, tmp, d->dirfd, name) < 0) {
		int code = -errno;

		(void)unlinkat(d->dirfd, tmp, 0);
		return err_errno(err, code, "cannot write %s/%s", d->path, name);
	}
	return 0;
}
