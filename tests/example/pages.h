/* Text that compresses like text: what the example workload fills its memory with. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Fills page_bytes bytes at page with English-looking sentences. The same seed gives the same
 * text, another seed another text. A 4 KiB page shrinks to about a quarter with zstd.
 */
void page_fill(char *page, size_t page_bytes, uint64_t seed);
