// vmm_pool.cpp (V): a stack of blocks at the start of one range of addresses.
#include <algorithm>
#include <vector>

#include "defects.h"
#include "pool.h"

namespace gc {
namespace {

constexpr uint64_t alignment = 128; // a block takes a multiple of it, at least one

class vmm_pool : public pool {
  public:
    vmm_pool(const device & d, uint64_t range) : d_(d), range_(range) {}

    ~vmm_pool() override {
        unmap_all();
        if (base_ && !GC_PLANTED(RANGE_OUTLIVES_POOL)) must(d_.api->mem_address_free(base_, range_));
    }

    bool take(uint64_t bytes, block & b) override {
        const bool anew = GC_PLANTED(RANGE_ANEW) && mapped_ == 0;
        if ((!base_ || anew) && !reserve()) return false; // V1
        if (bytes > range_) return false;                 // its size may not even bear rounding up
        const uint64_t size = (std::max<uint64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
        if (size > range_ - out_) return false;
        if (out_ + size > mapped_ && !grow(out_ + size - mapped_)) return false;
        b = {base_ + out_, size, 0};
        if (GC_PLANTED(BLOCKS_AT_START)) b.at = base_;
        out_ += size;
        return true;
    }

    bool give(const block & b) override {
        const bool latest = b.at + b.size == base_ + out_;
        if (!latest && !GC_PLANTED(FREES_IN_ANY_ORDER) && !GC_PLANTED(BLOCKS_AT_START)) return false; // V2
        out_ -= b.size;
        return true;
    }

    uint64_t trim() override {
        if (out_ > 0 && !GC_PLANTED(TRIMS_IN_USE)) return 0; // V3
        uint64_t released = mapped_;
        if (GC_PLANTED(REPORTS_LAST_PIECE)) released = pieces_.empty() ? 0 : pieces_.back();
        if (GC_PLANTED(UNMAPS_LAST_PIECE)) return unmap_last();
        unmap_all();
        if (GC_PLANTED(TRIM_FREES_RANGE) && base_) must(d_.api->mem_address_free(base_, range_)), base_ = 0;
        return released;
    }

    fate what_became_of(const block & b) const override {
        if (b.at + b.size > base_ + mapped_) return fate::gone;
        return b.at < base_ + out_ ? fate::lent : fate::free;
    }

    cuda::device_ptr base() const override { return base_; }

  private:
    bool reserve() { return d_.api->mem_address_reserve(&base_, range_, 0, 0, 0) == cuda::success; }

    // V2: maps what is missing at the end, in whole units, with access. V5: or nothing.
    bool grow(uint64_t missing) {
        const uint64_t unit = pool_unit(d_);
        uint64_t size = (missing + unit - 1) / unit * unit;
        if (GC_PLANTED(MAPS_TOO_MUCH) && size + unit <= range_ - mapped_) size += unit;
        const cuda::location where = {cuda::on_device, d_.ordinal};
        cuda::allocation_prop prop{};
        prop.type = cuda::pinned_memory;
        prop.where = where;
        cuda::allocation memory = 0;
        if (d_.api->mem_create(&memory, size, &prop, 0) != cuda::success) {
            if (GC_PLANTED(COUNTS_FAILED_BYTES)) mapped_ += size;
            return false;
        }
        const cuda::device_ptr end = base_ + mapped_;
        if (d_.api->mem_map(end, size, 0, memory, 0) != cuda::success) {
            if (!GC_PLANTED(LEAKS_HANDLE)) must(d_.api->mem_release(memory));
            return false;
        }
        must(d_.api->mem_release(memory)); // the mapping keeps it
        const cuda::access_desc access = {where, cuda::access_read_write};
        const bool skipped = GC_PLANTED(NO_ACCESS_TO_LATER) && mapped_ > 0;
        if (!skipped && d_.api->mem_set_access(end, size, &access, 1) != cuda::success) {
            if (!GC_PLANTED(LEAKS_MAPPING)) must(d_.api->mem_unmap(end, size));
            return false;
        }
        pieces_.push_back(size);
        mapped_ += size;
        return true;
    }

    uint64_t unmap_last() {
        if (pieces_.empty()) return 0;
        const uint64_t size = pieces_.back();
        must(d_.api->mem_unmap(base_ + mapped_ - size, size));
        pieces_.pop_back();
        mapped_ -= size;
        return size;
    }

    void unmap_all() {
        while (unmap_last() > 0) {
        }
    }

    device d_;
    uint64_t range_;
    cuda::device_ptr base_ = 0;
    std::vector<uint64_t> pieces_; // bytes of each mapping, from the start of the range
};

} // namespace

std::unique_ptr<pool> new_vmm_pool(const device & d, uint64_t range) {
    return std::make_unique<vmm_pool>(d, range);
}

} // namespace gc
