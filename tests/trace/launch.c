/*
 * launch NAME=VALUE… -- COMMAND…: as env, but without a call of any allocator.
 */
#include "trace.h"

int main(int argc, char **argv, char **envp)
{
	char *env[1024];
	int n = 0, at;

	for (at = 1; at < argc && strcmp(argv[at], "--") != 0; at++)
		env[n++] = argv[at];
	for (int i = 0; envp[i] && n < 1023; i++)
		env[n++] = envp[i];
	env[n] = NULL;
	CHECK(at + 1 < argc);
	execvpe(argv[at + 1], argv + at + 1, env);
	return 127;
}
