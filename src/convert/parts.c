/* JSON values with the bytes they were spelled with. */
#include "convert/parts.h"

#include "base/clock.h"
#include "entry/members.h"

value value_get(value object, const char *name)
{
	value v = {json_get(object.v, name), {NULL, 0}};
	if (v.v != NULL)
		v.text = members_at(object.text, json_name_offset(object.v, v.v));
	return v;
}

value_iter value_each(value array)
{
	value_iter it = {.inside = {NULL, 0}};
	if (json_type_of(array.v) == JSON_ARRAY) {
		it.it = json_each(array.v);
		it.inside = members_inside(members_trim(array.text));
	}
	return it;
}

bool value_next(value_iter *it, value *out)
{
	if (it->inside.ptr == NULL || !json_next(&it->it) ||
	    !elements_next(it->inside, &it->at, &out->text))
		return false;
	out->v = it->it.value;
	return true;
}

sheaf_str head_members(sheaf_str head)
{
	sheaf_str text = members_trim(head);
	return text.len != 0 && text.ptr[0] == '{' ? (sheaf_str){text.ptr + 1, text.len - 1}
	                                           : (sheaf_str){NULL, 0};
}

int64_t value_time(value object, const char *name)
{
	const json_val *v = json_get(object.v, name);
	int64_t us;
	uint64_t ms;
	if (json_type_of(v) == JSON_STRING && clock_parse(json_string(v), &us))
		return us;
	if (json_u64(v, &ms) && ms < (uint64_t)INT64_MAX / 1000)
		return (int64_t)ms * 1000;
	return 0;
}
