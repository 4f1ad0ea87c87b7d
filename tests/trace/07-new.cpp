/*
 * operator new calls malloc, operator delete calls free: one event each, of the operator.
 * EXPECT alloc new 1049 x 7 in 07-new
 * EXPECT free delete 1049 x 7
 * EXPECT alloc new 1051 x 5 in 07-new
 * EXPECT free delete 1051 x 5
 * EXPECT alloc new 1061 x 3 in 07-new
 * EXPECT free delete 1061 x 3
 * EXPECT alloc malloc 72704 x 1 in libstdc++
 * EXPECT[other] alloc new 1049 x 7
 * EXPECT[other] free * 1049 x 7
 * EXPECT[other] alloc new 1051 x 5
 * EXPECT[other] free * 1051 x 5
 * EXPECT[other] alloc new 1061 x 3
 * EXPECT[other] free * 1061 x 3
 * EXPECT[other] alloc malloc 72704 x 1
 * IGNORE alloc libtcmalloc
 */
#include <new>

template <int size> struct block {
	char bytes[size];
};

template <class T> static T *opaque(T *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

int main()
{
	for (int i = 0; i < 7; i++)
		delete opaque(new block<1049>);
	for (int i = 0; i < 5; i++)
		delete[] opaque(new char[1051]);
	for (int i = 0; i < 3; i++)
		delete opaque(new (std::nothrow) block<1061>);
	return 0;
}
