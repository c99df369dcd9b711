/* A few random histories with every run of the suite; --histories runs as many as one likes. */
#include "histories.h"

CASE(a_few_histories)
{
	EQ(histories_some(&t->places[0], 1000003, 20, 100), 0);
	EQ(histories_some(&t->places[0], 2000003, 2, 600), 0); /* long ones */
}
