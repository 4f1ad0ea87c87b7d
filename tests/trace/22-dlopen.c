/*
 * 22-dlopen DIR: two libraries that come and go at the same address, one after the other; each
 * allocation belongs to the one that was there. And a library's own allocator is traced from the
 * first call after dlopen on, with two of them loaded by two threads at once.
 * EXPECT alloc malloc 1289 x 15 in 22-one.so
 * EXPECT free free 1289 x 15
 * EXPECT alloc malloc 1291 x 15 in 22-two.so
 * EXPECT free free 1291 x 15
 * EXPECT alloc mi_malloc 1297 x 7
 * EXPECT free mi_free 1297 x 7
 * EXPECT alloc je_malloc 1301 x 7
 * EXPECT free je_free 1301 x 7
 * IGNORE alloc ld-linux
 * IGNORE alloc libc.so.6
 * IGNORE alloc libdl
 * IGNORE mmap libc.so.6
 * ALLOW free free ?
 * UNKNOWN x *
 * NOORACLE
 */
#include "trace.h"

#include <dlfcn.h>

static const char *dir;

static void *load(const char *name)
{
	char path[4096];
	void *lib;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	lib = dlopen(path, RTLD_NOW);
	CHECK(lib);
	return lib;
}

static void *call(const char *name, const char *function)
{
	void *lib = load(name), *at;
	void (*f)(int) = (void (*)(int))dlsym(lib, function);

	CHECK(f);
	f(3);
	at = (void *)f;
	CHECK(dlclose(lib) == 0);
	return at;
}

static void *own(void *arg)
{
	void *lib = load(arg ? "22-je.so" : "22-mi.so");
	void *(*take)(size_t) = (void *(*)(size_t))dlsym(lib, arg ? "je_malloc" : "mi_malloc");
	void (*give)(void *) = (void (*)(void *))dlsym(lib, arg ? "je_free" : "mi_free");

	CHECK(take && give);
	for (int i = 0; i < 7; i++)
		give(take(arg ? 1301 : 1297));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	int same = 0;

	CHECK(argc == 2);
	dir = argv[1];
	for (int i = 0; i < 5; i++)
		same += call("22-one.so", "one") == call("22-two.so", "two");
	CHECK(same > 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, own, i ? argv : NULL) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	return 0;
}
