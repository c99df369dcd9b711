/* Everything stable: see the headers in sheaf/, one for each noun. */
#ifndef SHEAF_H
#define SHEAF_H

#include "sheaf/agent.h"
#include "sheaf/client.h"
#include "sheaf/common.h"
#include "sheaf/compaction.h"
#include "sheaf/context.h"
#include "sheaf/convert.h"
#include "sheaf/entry.h"
#include "sheaf/error.h"
#include "sheaf/expiry.h"
#include "sheaf/ingest.h"
#include "sheaf/key.h"
#include "sheaf/message.h"
#include "sheaf/queue.h"
#include "sheaf/render.h"
#include "sheaf/search.h"
#include "sheaf/session.h"
#include "sheaf/state.h"
#include "sheaf/store.h"
#include "sheaf/sync.h"
#include "sheaf/todo.h"
#include "sheaf/transfer.h"
#include "sheaf/usage.h"
#include "sheaf/watch.h"

#endif
