/* What the program that looks into the swap cache and user space say to each other. */
#pragma once

#define SWAPCACHE_MAX 4096 /* entries per call */

struct swapcache_query {
	unsigned int n;
	unsigned int is_known; /* out: the kernel has the tables that the program reads */
	/* Offset in the swap area << 5 | number of the area. */
	unsigned long long entry[SWAPCACHE_MAX];
	unsigned char is_in[SWAPCACHE_MAX]; /* out: 0 or 1 */
};
