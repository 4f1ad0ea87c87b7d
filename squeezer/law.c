#include "squeezer/law.h"

#include <string.h>

const struct law *const laws[] = {&law_step, NULL};

const struct law *law_find(const char *name)
{
	for (size_t i = 0; laws[i]; i++) {
		if (strcmp(laws[i]->name, name) == 0)
			return laws[i];
	}
	return NULL;
}
