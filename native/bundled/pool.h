// pool.h (V): device memory for what comes and goes while a graph is computed.
//
// Every device has a pool for each of its streams. A VMM pool reserves one range
// of addresses and maps memory at its end as it grows; a legacy pool keeps the
// blocks that were given back. docs/choices.md, "Pools", says what exactly happens.
#pragma once

#include <memory>

#include "buffer.h"
#include "must.h"

namespace gc {

// While it lives, a device's context is the thread's current one.
class in_context {
  public:
    in_context(const cuda::driver & api, cuda::context c) : api_(api) {
        must(api_.ctx_get_current(&before_));
        must(api_.ctx_set_current(c));
    }
    ~in_context() { must(api_.ctx_set_current(before_)); }
    in_context(const in_context &) = delete;
    in_context & operator=(const in_context &) = delete;

  private:
    const cuda::driver & api_;
    cuda::context before_ = nullptr;
};

struct block {
    cuda::device_ptr at = 0;
    uint64_t size = 0;   // bytes, as they were handed out
    uint64_t number = 0; // of a legacy pool: which of those that it ever made
};

// What has become of a block that was given back.
enum class fate { free, lent, gone };

class pool {
  public:
    virtual ~pool() = default;
    // A block of at least so many bytes; false, nothing changed, where it cannot be had (V5).
    virtual bool take(uint64_t bytes, block & b) = 0;
    // False, nothing changed, where it is not this block's turn (V2).
    virtual bool give(const block & b) = 0;
    // Gives all physical memory back if nothing is handed out (V3); bytes. The caller has waited for the device.
    virtual uint64_t trim() = 0;
    // Whether a block that is given back now is freed: what uses it must be waited for first.
    virtual bool full() const { return false; }
    // Q1: whether a block is mapped still, and handed out to somebody else.
    virtual fate what_became_of(const block & b) const = 0;
    virtual cuda::device_ptr base() const = 0; // 0: no range
    uint64_t mapped() const { return mapped_; }
    uint64_t out() const { return out_; }

  protected:
    uint64_t mapped_ = 0; // physical bytes
    uint64_t out_ = 0;    // bytes of them that are handed out
};

// What a computation takes.
struct scratch_block {
    pool * of;
    block at;
};

// The unit that pool memory comes in: bytes.
uint64_t pool_unit(const device & d);
// `range`: addresses to reserve, whole units.
std::unique_ptr<pool> new_vmm_pool(const device & d, uint64_t range);
std::unique_ptr<pool> new_legacy_pool(const device & d, cuda::context c);

} // namespace gc
