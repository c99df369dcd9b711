/* What usage costs and what caches saved: whole numbers throughout, rounded once for each reply. */
#include "base/cleanup.h"
#include "entry/usage.h"

__extension__ typedef __int128 wide;

#define MILLION 1000000

/* ---- One reply ---------------------------------------------------------- */

/* Adds tokens at a price of a million of them; false if the price is not known or it is too much. */
static bool pay(wide *sum, uint64_t tokens, sheaf_money price)
{
	if (tokens == 0)
		return true;
	return price != SHEAF_MONEY_UNKNOWN &&
	       !__builtin_add_overflow(*sum, (wide)tokens * price, sum);
}

/* Adds what tokens cost less at one price than at another. */
static bool save(wide *sum, uint64_t tokens, sheaf_money price, sheaf_money instead)
{
	return pay(sum, tokens, instead) &&
	       pay(sum, tokens, price != SHEAF_MONEY_UNKNOWN ? -price : price);
}

/* Millionths of billionths as money, halves away from 0. */
static bool settle(wide sum, sheaf_money *out)
{
	wide half = sum < 0 ? -MILLION / 2 : MILLION / 2;
	if (__builtin_add_overflow(sum, half, &sum))
		return false;
	sum /= MILLION;
	*out = (sheaf_money)sum;
	return *out == sum && *out != SHEAF_MONEY_UNKNOWN;
}

static sheaf_cost cost_at(const sheaf_usage *u, const sheaf_prices *p)
{
	const sheaf_money no = SHEAF_MONEY_UNKNOWN;
	sheaf_cost c = {no, no, no};
	wide cost = 0, gross = 0;
	bool known = pay(&cost, u->input, p->input) && pay(&cost, u->cache_read, p->cache_read) &&
	             pay(&cost, u->cache_write_5m, p->cache_write_5m) &&
	             pay(&cost, u->cache_write_1h, p->cache_write_1h) &&
	             pay(&cost, u->output, p->output) &&
	             save(&gross, u->cache_read, p->cache_read, p->input);
	wide net = gross;
	known = known && save(&net, u->cache_write_5m, p->cache_write_5m, p->input) &&
	        save(&net, u->cache_write_1h, p->cache_write_1h, p->input) &&
	        settle(cost, &c.cost) && settle(gross, &c.saved_gross) && settle(net, &c.saved_net);
	return known ? c : (sheaf_cost){no, no, no};
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static uint64_t writes(const sheaf_usage *u)
{
	return sum_of(u->cache_write_5m, u->cache_write_1h);
}

static uint64_t all_input(const sheaf_usage *u)
{
	return sum_of(sum_of(u->input, u->cache_read), writes(u));
}

sheaf_cost sheaf_usage_cost(const sheaf_usage *usage, const sheaf_model_row *model)
{
	const sheaf_money no = SHEAF_MONEY_UNKNOWN;
	if (model == NULL)
		return (sheaf_cost){no, no, no};
	bool tier = model->tier_over != 0 && all_input(usage) > model->tier_over;
	return cost_at(usage, tier ? &model->tier : &model->prices);
}

sheaf_cost sheaf_usage_savings(const sheaf_usage *usage, sheaf_money input)
{
	const sheaf_money no = SHEAF_MONEY_UNKNOWN;
	sheaf_usage of_input = *usage;
	sheaf_prices p = {.input = input, .cache_read = input / 10};
	if (input < 0 || __builtin_add_overflow(input, input / 4, &p.cache_write_5m) ||
	    __builtin_add_overflow(input, input, &p.cache_write_1h))
		return (sheaf_cost){no, no, no};
	of_input.output = 0;
	return cost_at(&of_input, &p);
}

/* ---- Rates -------------------------------------------------------------- */

static double share(uint64_t part, uint64_t whole)
{
	return whole != 0 ? (double)part / (double)whole : 0;
}

double sheaf_usage_hit_rate(const sheaf_usage *usage)
{
	return share(usage->cache_read, all_input(usage));
}

double sheaf_usage_efficiency(const sheaf_usage *usage)
{
	return share(usage->cache_read, sum_of(usage->cache_read, writes(usage)));
}

uint64_t sheaf_usage_tokens_saved(const sheaf_usage *usage)
{
	uint64_t read = usage->cache_read;
	return read / 10 * 9 + (read % 10 * 9 + 5) / 10;
}

/* ---- Sums --------------------------------------------------------------- */

static void add_money(sheaf_money *to, sheaf_money more)
{
	if (__builtin_add_overflow(*to, more, to) || *to == SHEAF_MONEY_UNKNOWN)
		*to = more < 0 ? -INT64_MAX : INT64_MAX;
}

void sheaf_usage_sum_add(sheaf_usage_sum *to, const sheaf_usage_sum *more)
{
	to->replies = sum_of(to->replies, more->replies);
	to->unpriced = sum_of(to->unpriced, more->unpriced);
	usage_add(&to->tokens, &more->tokens);
	add_money(&to->cost, more->cost);
	add_money(&to->saved_gross, more->saved_gross);
	add_money(&to->saved_net, more->saved_net);
}

sheaf_usage_sum usage_sum_of(const sheaf_usage *usage, sheaf_cost cost)
{
	sheaf_usage_sum one = {.replies = 1, .tokens = *usage};
	if (cost.cost == SHEAF_MONEY_UNKNOWN) {
		one.unpriced = 1;
		return one;
	}
	one.cost = cost.cost;
	one.saved_gross = cost.saved_gross;
	one.saved_net = cost.saved_net;
	return one;
}
