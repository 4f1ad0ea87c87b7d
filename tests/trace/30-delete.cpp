/*
 * All forms of operator new and delete: one event each.
 * EXPECT alloc new 1427 x 8
 * EXPECT free delete 1427 x 8
 * EXPECT alloc new 1472 x 8
 * EXPECT free delete 1472 x 8
 * ALLOW alloc malloc 72704
 */
#include <new>

static void *opaque(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

int main()
{
	const std::align_val_t align = std::align_val_t(64);

	operator delete(opaque(operator new(1427)));
	operator delete(opaque(operator new(1427, std::nothrow)));
	operator delete(opaque(operator new(1427)), 1427ul);
	operator delete(opaque(operator new(1427)), std::nothrow);
	operator delete[](opaque(operator new[](1427)));
	operator delete[](opaque(operator new[](1427, std::nothrow)));
	operator delete[](opaque(operator new[](1427)), 1427ul);
	operator delete[](opaque(operator new[](1427)), std::nothrow);

	operator delete(opaque(operator new(1472, align)), align);
	operator delete(opaque(operator new(1472, align, std::nothrow)), align);
	operator delete(opaque(operator new(1472, align)), 1472ul, align);
	operator delete(opaque(operator new(1472, align)), align, std::nothrow);
	operator delete[](opaque(operator new[](1472, align)), align);
	operator delete[](opaque(operator new[](1472, align, std::nothrow)), align);
	operator delete[](opaque(operator new[](1472, align)), 1472ul, align);
	operator delete[](opaque(operator new[](1472, align)), align, std::nothrow);
	return 0;
}
