/* Generation: requests and tools in turn, until the model is done. */
#include "agent/agent.h"

#include "base/err.h"

/* Stores what was queued for the turn that is going on. */
static int steer(run *r, bool *any, sheaf_error *err)
{
	inputs in = {0};
	int rc = input_take(r, true, &in, err);
	*any = in.count != 0;
	for (size_t i = 0; rc == 0 && i < in.count; i++)
		rc = turn_append(r, in.items[i].message, in.items[i].id, in.items[i].extra, err);
	if (rc == 0 && in.token.ptr != NULL)
		rc = input_done(r, &in, err);
	inputs_free(&in);
	return rc;
}

/* Whether the model is to be asked again after its reply; runs what it calls. */
static int after_reply(run *r, const char *reply_id, bool *again, sheaf_error *err)
{
	size_t suspended = 0;
	bool paused = r->stop == SHEAF_STOP_PAUSE;
	bool called = r->open_calls && r->stop != SHEAF_STOP_REFUSAL;
	int rc = called ? tools_run(r, reply_id, &suspended, err) : 0;
	called = called && r->called;
	if (rc != 0)
		return rc;
	if (suspended != 0) {
		r->outcome = SHEAF_TURN_SUSPENDED;
		return 0;
	}
	if (run_cancelled(r))
		return err_set(err, SHEAF_CANCELLED, "cancelled");
	bool steered = false;
	rc = steer(r, &steered, err);
	*again = paused || called || steered;
	return rc;
}

int loop_run(run *r, sheaf_error *err)
{
	bool again = true;
	r->outcome = SHEAF_TURN_COMPLETED;
	while (again) {
		char reply_id[SHEAF_ID_ROOM];
		again = false;
		if (r->steps >= r->agent->o.steps_max) {
			r->outcome = SHEAF_TURN_LIMIT;
			return 0;
		}
		if (run_cancelled(r))
			return err_set(err, SHEAF_CANCELLED, "cancelled");
		int rc = exchange_step(r, reply_id, err);
		if (rc == 0)
			rc = after_reply(r, reply_id, &again, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}
