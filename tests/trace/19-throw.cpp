/*
 * Exceptions out of operator new: the standard's own and one that a new handler throws. The
 * program must see them as without tracing, and every later call must be reported. The exception
 * itself is allocated inside the operator, so its free may be unknown.
 * EXPECT alloc new 1229 x 7
 * EXPECT free delete 1229 x 7
 * EXPECT alloc new 1231 x 7
 * EXPECT free delete 1231 x 7
 * ALLOW alloc malloc 72704
 * ALLOW failed new *
 * ALLOW failed malloc *
 * IGNORE alloc libstdc++
 * IGNORE alloc libgcc_s
 * IGNORE alloc ld-linux
 * ALLOW free free ?
 * UNKNOWN x *
 */
#include <cstdint>
#include <new>
#include <stdexcept>

template <class T> static T *opaque(T *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

static void refuse()
{
	throw std::bad_alloc();
}

static void __attribute__((noinline)) deeper(int levels)
{
	volatile char room[512];

	room[0] = (char)levels;
	if (levels > 0)
		deeper(levels - 1);
	else
		delete[] opaque(new char[1231]);
	room[1] = 1;
}

int main()
{
	volatile size_t huge = SIZE_MAX / 2 - 4096;
	int caught = 0;

	for (int i = 0; i < 7; i++) {
		std::set_new_handler(i % 2 ? refuse : nullptr);
		try {
			delete[] opaque(new char[huge]);
		} catch (const std::bad_alloc &) {
			caught++;
		}
		deeper(5);
		delete[] opaque(new char[1229]);
	}
	return caught == 7 && !opaque(new (std::nothrow) char[huge]) ? 0 : 98;
}
