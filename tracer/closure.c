/* The files that a command will map; see closure.h. */
#include "tracer/closure.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "tracer/elf.h"

/* As the kernel: more is ELOOP. */
#define SCRIPTS_MAX 4

/* Configuration files within configuration files. */
#define INCLUDES_MAX 4

static const char default_folders[] =
	"/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib";

struct object {
	struct elf_file *f;
	char *folder;          /* what $ORIGIN stands for */
	struct object *loader; /* NULL: the program */
	struct object *next;
};

struct finder {
	struct closure *closure;
	struct object *first, *last; /* owned; in the order of loading */
	struct str folders;          /* ld.so.conf's and the default ones; empty: not read yet */
};

static void finder_done(struct finder *d)
{
	while (d->first) {
		struct object *o = d->first;

		d->first = o->next;
		elf_file_close(o->f);
		free(o->folder);
		free(o);
	}
	str_done(&d->folders);
}

void closure_done(struct closure *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->path[i]);
	free(c->path);
	*c = (struct closure){0};
}

/* 1: added, 0: it is there already, or is gone. */
static int add_path(struct closure *c, const char *path)
{
	_cleanup_free_ char *real = realpath(path, NULL);
	char **p;

	if (!real)
		return errno == ENOMEM ? -ENOMEM : 0;
	for (size_t i = 0; i < c->n; i++) {
		if (strcmp(c->path[i], real) == 0)
			return 0;
	}
	p = realloc(c->path, (c->n + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	c->path = p;
	c->path[c->n++] = TAKE_PTR(real);
	return 1;
}

/* -- ld.so.conf -- */

static void read_conf(struct str *folders, const char *path, int depth);

/* Patterns are relative to the file's own folder. */
static void read_included(struct str *folders, const char *conf, const char *pattern, int depth)
{
	_cleanup_str_ struct str s = {0};
	const char *slash = strrchr(conf, '/');
	glob_t g = {0};

	if (pattern[0] != '/' && slash)
		str_addn(&s, conf, slash + 1 - conf);
	str_add(&s, pattern);
	if (!s.failed && glob(s.data, 0, NULL, &g) == 0) {
		for (size_t i = 0; i < g.gl_pathc; i++)
			read_conf(folders, g.gl_pathv[i], depth + 1);
	}
	globfree(&g);
}

static void read_conf(struct str *folders, const char *path, int depth)
{
	_cleanup_fclose_ FILE *f = depth < INCLUDES_MAX ? fopen(path, "re") : NULL;
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (f && getline(&line, &size, f) >= 0) {
		char *rest, *word;

		line[strcspn(line, "#\n")] = '\0';
		word = strtok_r(line, " \t", &rest);
		if (word && strcmp(word, "include") == 0) {
			while ((word = strtok_r(NULL, " \t", &rest)))
				read_included(folders, path, word, depth);
		} else if (word && word[0] == '/') {
			str_addf(folders, "%s:", word);
		}
	}
}

static const char *system_folders(struct finder *d)
{
	if (d->folders.len == 0) {
		read_conf(&d->folders, "/etc/ld.so.conf", 0);
		str_add(&d->folders, default_folders);
	}
	return d->folders.failed ? default_folders : d->folders.data;
}

/* -- libraries -- */

static int add_object(struct finder *d, const char *path, struct object *loader)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_free_ char *folder = NULL;
	struct elf_file *f;
	struct object *o;
	char *slash;
	struct err ignored = {0};
	int r;

	r = fd < 0 ? -errno : elf_file_open(&f, fd, path, &ignored);
	if (r < 0)
		return r;
	r = add_path(d->closure, path);
	/* $ORIGIN of a program is where it is, of a library where it was found. */
	folder = loader ? strdup(path) : realpath(path, NULL);
	o = r > 0 && folder ? calloc(1, sizeof(*o)) : NULL;
	if (!o) {
		elf_file_close(f);
		return r == 0 ? 0 : -ENOMEM;
	}
	slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	*o = (struct object){.f = f, .folder = TAKE_PTR(folder), .loader = loader};
	if (d->last)
		d->last->next = o;
	else
		d->first = o;
	d->last = o;
	return 1;
}

/* Adds text with $ORIGIN replaced; false: it has another variable. */
static bool expand(struct str *ret, const char *text, size_t len, const char *origin)
{
	static const char *const names[] = {"$ORIGIN", "${ORIGIN}"};

	while (len > 0) {
		size_t n = 1;

		for (size_t i = 0; *text == '$' && i < ARRAY_SIZE(names) && n == 1; i++) {
			if (len >= strlen(names[i]) &&
			    strncmp(text, names[i], strlen(names[i])) == 0)
				n = strlen(names[i]);
		}
		if (n == 1 && *text == '$')
			return false;
		if (n > 1)
			str_add(ret, origin);
		else
			str_addn(ret, text, 1);
		text += n;
		len -= n;
	}
	return true;
}

/* Looks in each of the folders. 1: found, 0: not there. An empty folder is the current one, no
 * text at all none. */
static int search_folders(struct finder *d, const char *folders, const char *separators,
			  const char *name, struct object *loader, const char *origin)
{
	if (folders && folders[0] == '\0')
		return 0;
	while (folders) {
		_cleanup_str_ struct str path = {0};
		size_t len = strcspn(folders, separators);
		bool is_known = expand(&path, folders, len, origin);
		int r;

		if (is_known) {
			str_addf(&path, "%s/%s", len > 0 ? "" : ".", name);
			if (path.failed)
				return -ENOMEM;
			r = add_object(d, path.data, loader);
			if (r >= 0 || r == -ENOMEM)
				return r < 0 ? r : 1;
		}
		folders = folders[len] ? folders + len + 1 : NULL;
	}
	return 0;
}

/* Those of the loader and of what loaded it, up to the program. */
static int search_rpaths(struct finder *d, const char *name, struct object *loader)
{
	int r = 0;

	if (elf_file_string(loader->f, ELF_RUNPATH, 0))
		return 0;
	for (struct object *o = loader; o && r == 0; o = o->loader) {
		if (!elf_file_string(o->f, ELF_RUNPATH, 0))
			r = search_folders(d, elf_file_string(o->f, ELF_RPATH, 0), ":", name,
					   loader, o->folder);
	}
	return r;
}

static bool is_loaded(const struct finder *d, const char *name)
{
	for (const struct object *o = d->first; o; o = o->next) {
		const char *soname = elf_file_string(o->f, ELF_SONAME, 0);

		if (soname && strcmp(soname, name) == 0)
			return true;
	}
	return false;
}

/* A library by name, as ld.so looks for it. One that is missing is no error. */
static int add_library(struct finder *d, const char *name, struct object *loader)
{
	_cleanup_str_ struct str path = {0};
	int r;

	if (strchr(name, '/')) {
		r = expand(&path, name, strlen(name), loader->folder) && !path.failed
			    ? add_object(d, path.data, loader)
			    : 0;
		return r == -ENOMEM ? r : 0;
	}
	if (is_loaded(d, name))
		return 0;
	r = search_rpaths(d, name, loader);
	if (r == 0)
		r = search_folders(d, getenv("LD_LIBRARY_PATH"), ":;", name, loader,
				   d->first->folder);
	if (r == 0)
		r = search_folders(d, elf_file_string(loader->f, ELF_RUNPATH, 0), ":", name, loader,
				   loader->folder);
	if (r == 0)
		r = search_folders(d, system_folders(d), ":", name, loader, "");
	return r < 0 ? r : 0;
}

static int add_listed(struct finder *d, const char *names)
{
	int r = 0;

	while (names && *names && r == 0) {
		size_t len = strcspn(names, " :\t\n");
		_cleanup_free_ char *name = strndup(names, len);

		if (!name)
			return -ENOMEM;
		if (len > 0)
			r = add_library(d, name, d->first);
		names += len + (names[len] != '\0');
	}
	return r;
}

static int add_preloaded(struct finder *d)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	int r = add_listed(d, getenv("LD_PRELOAD"));

	f = fopen("/etc/ld.so.preload", "re");
	while (r == 0 && f && getline(&line, &size, f) >= 0) {
		line[strcspn(line, "#")] = '\0';
		r = add_listed(d, line);
	}
	return r;
}

static int add_libraries(struct finder *d)
{
	const char *name;
	int r = add_preloaded(d);

	for (struct object *o = d->first; o && r == 0; o = o->next) {
		for (size_t i = 0; r == 0 && (name = elf_file_string(o->f, ELF_NEEDED, i)); i++)
			r = add_library(d, name, o);
	}
	return r;
}

/* -- programs -- */

static int check_program(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

/* As execvp(3): what may not be run is told only when nothing else is found. */
static int find_program(struct str *ret, const char *command)
{
	const char *folders = getenv("PATH");
	int r = -ENOENT;

	if (strchr(command, '/')) {
		str_add(ret, command);
		return ret->failed ? -ENOMEM : check_program(command);
	}
	if (command[0] == '\0')
		return -ENOENT;
	for (folders = folders ? folders : "/bin:/usr/bin"; folders;) {
		size_t len = strcspn(folders, ":");
		int checked;

		str_done(ret);
		str_addn(ret, folders, len);
		str_addf(ret, "%s%s", len > 0 ? "/" : "./", command);
		if (ret->failed)
			return -ENOMEM;
		checked = check_program(ret->data);
		if (checked == 0)
			return 0;
		if (checked == -EACCES)
			r = -EACCES;
		folders = folders[len] ? folders + len + 1 : NULL;
	}
	return r;
}

/* The program that a file which is no ELF is run with: its first line's, else the shell. */
static void script_interpreter(struct str *ret, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[256] = "";
	ssize_t n = fd >= 0 ? read(fd, head, sizeof(head) - 1) : 0;
	char *p = head + 2;

	if (n <= 2 || head[0] != '#' || head[1] != '!') {
		str_add(ret, "/bin/sh");
		return;
	}
	p += strspn(p, " \t");
	str_addn(ret, p, strcspn(p, " \t\n"));
}

static int check_interpreter(const char *program, const char *interp, struct err *err)
{
	int r = check_program(interp);

	return r < 0 ? err_errno(err, r, "%s: its interpreter %s", program, interp) : 0;
}

/* The program at path, with what it is interpreted by. */
static int add_program(struct finder *d, const char *path, int depth, struct err *err)
{
	_cleanup_str_ struct str script = {0};
	const char *interp;
	int r = add_object(d, path, NULL);

	if (r == -ENOEXEC && depth < SCRIPTS_MAX) {
		script_interpreter(&script, path);
		r = script.failed ? -ENOMEM : add_path(d->closure, path);
		if (r > 0)
			r = check_interpreter(path, script.data, err);
		else if (r == 0)
			return 0; /* a script that is its own interpreter */
		return r < 0 ? r : add_program(d, script.data, depth + 1, err);
	}
	if (r <= 0) /* what cannot be read is still run */
		return r == -ENOMEM ? r : add_path(d->closure, path);
	interp = elf_file_interp(d->first->f);
	if (!interp)
		return 0;
	r = check_interpreter(path, interp, err);
	if (r < 0)
		return r;
	r = add_object(d, interp, d->first);
	return r < 0 && r != -ENOMEM ? add_path(d->closure, interp) : r;
}

static void closure_donep(struct closure *c)
{
	closure_done(c);
}

int closure_find(struct closure *ret, const char *command, struct err *err)
{
	_cleanup_(closure_donep) struct closure c = {0};
	_cleanup_(finder_done) struct finder d = {.closure = &c};
	_cleanup_str_ struct str path = {0};
	int r = find_program(&path, command);

	if (r < 0)
		return err_errno(err, r, "%s", command);
	r = add_program(&d, path.data, 0, err);
	if (r >= 0 && d.first && elf_file_interp(d.first->f))
		r = add_libraries(&d);
	if (r < 0)
		return err->code ? r : err_errno(err, r, "%s", command);
	*ret = c;
	c = (struct closure){0};
	return 0;
}
