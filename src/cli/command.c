/* Finding a command by its name, or by what was meant. */
#include <string.h>

#include "cmd.h"

const command *command_find(const char *name)
{
	for (const command *cmd = commands; cmd->name != NULL; cmd++) {
		if (strcmp(cmd->name, name) == 0)
			return cmd;
	}
	return NULL;
}

#define WORD_MAX 16

static int least(int a, int b, int c)
{
	int m = a < b ? a : b;
	return m < c ? m : c;
}

/* How many insertions, removals, changes and swaps of neighbours lead from a to b. */
static int distance(const char *a, const char *b)
{
	int rows[WORD_MAX + 1][WORD_MAX + 1];
	int m = (int)strlen(a), n = (int)strlen(b);
	if (m > WORD_MAX || n > WORD_MAX)
		return WORD_MAX;
	for (int i = 0; i <= m; i++) {
		for (int j = 0; j <= n; j++) {
			if (i == 0 || j == 0) {
				rows[i][j] = i + j;
				continue;
			}
			int change = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			rows[i][j] = least(rows[i - 1][j] + 1, rows[i][j - 1] + 1, change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    rows[i - 2][j - 2] + 1 < rows[i][j])
				rows[i][j] = rows[i - 2][j - 2] + 1;
		}
	}
	return rows[m][n];
}

const command *command_guess(const char *name)
{
	/* Words of other tools that people try first. */
	static const char *const habits[][2] = {
		{"list", "ls"},         {"log", "show"},      {"view", "show"},
		{"add", "append"},      {"delete", "rm"},     {"remove", "rm"},
		{"fsck", "check"},      {"doctor", "check"},  {"create", "new"},
		{"init", "new"},        {"tag", "label"},     {"mv", "rename"},
		{"checkout", "branch"}, {"switch", "branch"}, {"grep", "search"},
		{"find", "search"},
	};
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++) {
		if (strcmp(habits[i][0], name) == 0)
			return command_find(habits[i][1]);
	}
	const command *best = NULL;
	int nearest = strlen(name) > 3 ? 3 : 2; /* fewer than this many slips */
	for (const command *cmd = commands; cmd->name != NULL; cmd++) {
		int slips = distance(name, cmd->name);
		if (slips < nearest) {
			nearest = slips;
			best = cmd;
		}
	}
	return best;
}
