// captures.h (Q): what other layers ask of captured graphs.
#pragma once

#include <optional>

#include "pool.h"
#include "session.h"

namespace gc {

// Something is being captured; allocator n's stream is.
bool capture_going_on(const gc_session & s);
bool captured_stream(const gc_session & s, int n);
// Q3: the status of an operation where a capture decides it.
std::optional<int32_t> capture_decides(gc_session & s, const gc_op & op);
// Allocator n's buffers are gone, or another scheduler's: it has no captured graph any more.
void forget_captured(gc_session & s, int n);
// Q2: the captured graphs of allocators that use one of the devices in the bit set are dropped.
void drop_captured(gc_session & s, uint32_t devices);

// V3, V4: trims the pools of all devices under the types in the bit set; bytes released. Needs pools.
uint64_t trim_pools(gc_session & s, uint32_t types);
// What pool_take took, until pool_give.
std::vector<scratch_block> scratch_taken(const gc_session & s);

} // namespace gc
