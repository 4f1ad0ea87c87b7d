#include "pages.h"

#include <string.h>

#define PARTS 4 /* of a sentence: who, does, what, where */
#define CHOICES 16
#define CHOICE_BITS 4 /* log2(CHOICES) */
#define PHRASE_MAX 24 /* room for the longest; two or three moves of a vector register */

struct phrase {
	char text[PHRASE_MAX]; /* padded with NUL bytes */
	size_t len;
};

#define P(s)                     \
	{                        \
		s, sizeof(s) - 1 \
	}

/*
 * Whole phrases and not letters or single words, for two reasons. A compressor that sees one
 * page only finds matches long enough to pay, so zswap gets the ratio it gets on real text. And
 * one copy yields some sixteen bytes, so that filling runs at the speed of the page faults.
 */
static const struct phrase phrases[PARTS][CHOICES] = {
	{P("The kernel "), P("A small service "), P("The old database "), P("Every worker "),
	 P("The web server "), P("One busy thread "), P("The garbage collector "), P("A cron job "),
	 P("The compiler "), P("Some library "), P("The session cache "), P("A log shipper "),
	 P("The parser "), P("Our scheduler "), P("The search index "), P("Nobody else ")},
	{P("remembers "), P("allocates "), P("rarely reads "), P("writes back "), P("copies "),
	 P("keeps hold of "), P("never releases "), P("looks up "), P("compresses "),
	 P("walks through "), P("throws away "), P("touches "), P("prepares "), P("waits for "),
	 P("duplicates "), P("asks for ")},
	{P("a cold page "), P("the whole table "), P("two large buffers "), P("its own history "),
	 P("an unused arena "), P("the next request "), P("a list of names "),
	 P("the configuration "), P("many short strings "), P("a forgotten key "),
	 P("the lookup tree "), P("yesterday's report "), P("an open file "),
	 P("a copy of itself "), P("the oldest entry "), P("half of the heap ")},
	{P("at the start. "), P("when memory is short. "), P("behind a lock. "),
	 P("once per minute. "), P("in the background. "), P("without looking. "),
	 P("before the deadline. "), P("for no good reason. "), P("on every node. "),
	 P("during the night. "), P("until it is stopped. "), P("after a restart. "),
	 P("in a long loop. "), P("under light load. "), P("far from the disk. "),
	 P("as it always did.\n")},
};

/* splitmix64: seeds that differ by one, as page numbers do, give unrelated sequences. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void page_fill(char *page, size_t page_bytes, uint64_t seed)
{
	const struct phrase *phrase;
	uint64_t bits = 0;
	size_t room;

	for (size_t used = 0, part = 0; used < page_bytes; used += phrase->len) {
		if (part == 0)
			bits = next_random(&seed);
		phrase = &phrases[part][bits % CHOICES];
		bits >>= CHOICE_BITS;
		part = (part + 1) % PARTS;
		/* A constant length makes moves of the copy instead of a call, twice as fast; the
		 * next phrase overwrites the padding. Only the end of the page has to count. */
		room = page_bytes - used;
		if (room >= PHRASE_MAX)
			memcpy(page + used, phrase->text, PHRASE_MAX);
		else
			memcpy(page + used, phrase->text, phrase->len < room ? phrase->len : room);
	}
}
