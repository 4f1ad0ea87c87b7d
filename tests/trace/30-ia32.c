/* A 32-bit program of its own making: no library, it ends with status 7 by int 0x80. */
void _start(void);

void _start(void)
{
	__asm__ volatile("int $0x80" : : "a"(1), "b"(7));
}
