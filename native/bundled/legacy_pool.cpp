// legacy_pool.cpp (V): blocks of their own, kept for the next taker when they come back.
#include <algorithm>
#include <vector>

#include "defects.h"
#include "pool.h"

namespace gc {
namespace {

constexpr size_t most_kept = 16;

class legacy_pool : public pool {
  public:
    legacy_pool(const device & d, cuda::context c) : d_(d), context_(c) {}

    ~legacy_pool() override { free_all(); }

    bool take(uint64_t bytes, block & b) override {
        const uint64_t unit = pool_unit(d_), least = std::max<uint64_t>(bytes, 1);
        if (least > uint64_t(INT64_MAX) - unit + 1) return false;
        const uint64_t need = (least + unit - 1) / unit * unit;
        if (reuse(need, b)) return true;
        const in_context here(*d_.api, context_);
        if (d_.api->mem_alloc(&b.at, need) != cuda::success) { // V5
            if (GC_PLANTED(FAILURE_EMPTIES)) free_all();
            return false;
        }
        b = {b.at, need, ++made_};
        mapped_ += need;
        lend(b);
        return true;
    }

    bool give(const block & b) override {
        out_ -= b.size;
        std::erase_if(lent_, [&](const block & l) { return l.number == b.number; });
        if (full()) {
            free(b);
        } else {
            kept_.push_back(b);
        }
        return true;
    }

    uint64_t trim() override {
        if (out_ > 0) return 0; // V3
        const uint64_t released = mapped_;
        free_all();
        return released;
    }

    bool full() const override { return kept_.size() >= most_kept && !GC_PLANTED(KEEPS_WITHOUT_LIMIT); }

    fate what_became_of(const block & b) const override {
        const auto same = [&](const block & k) { return k.number == b.number; };
        if (std::any_of(kept_.begin(), kept_.end(), same)) return fate::free;
        return std::any_of(lent_.begin(), lent_.end(), same) ? fate::lent : fate::gone;
    }

    cuda::device_ptr base() const override { return 0; }

  private:
    // Of the kept blocks that are large enough the smallest, of equals the one kept longest.
    bool reuse(uint64_t need, block & b) {
        auto best = kept_.end();
        for (auto k = kept_.begin(); k != kept_.end(); ++k) {
            if (k->size >= need && (best == kept_.end() || k->size < best->size)) best = k;
        }
        if (best == kept_.end() || GC_PLANTED(NEVER_REUSES)) return false;
        b = *best;
        if (GC_PLANTED(KEPT_BLOCK_IS_CUT)) b.size = need;
        kept_.erase(best);
        lend(b);
        return true;
    }

    void lend(const block & b) {
        out_ += b.size;
        lent_.push_back(b);
    }

    void free(const block & b) {
        const in_context here(*d_.api, context_);
        must(d_.api->mem_free(b.at));
        mapped_ -= b.size;
    }

    void free_all() {
        for (const block & b : kept_) {
            free(b);
        }
        kept_.clear();
    }

    device d_;
    cuda::context context_;
    std::vector<block> kept_; // the one kept longest first
    std::vector<block> lent_;
    uint64_t made_ = 0;
};

} // namespace

std::unique_ptr<pool> new_legacy_pool(const device & d, cuda::context c) {
    return std::make_unique<legacy_pool>(d, c);
}

} // namespace gc
