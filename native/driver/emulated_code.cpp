// emulated_code.cpp: modules, functions and launches.
#include <algorithm>
#include <cstring>

#include "emulated_world.h"

namespace gc::emulated {
namespace {

function_state * function_of(world & w, cuda::function handle) {
    for (const auto & m : w.modules) {
        for (function_state & f : m->functions) {
            if (&f == handle) return &f;
        }
    }
    return nullptr;
}

bool valid_grid(unsigned x, unsigned y, unsigned z) {
    return x > 0 && y > 0 && z > 0;
}

} // namespace

namespace code {

// Of an image only this is looked at: whether it is PTX at all.
cuda::result module_load_data(cuda::module * m, const void * image) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    if (!current) return cuda::invalid_context;
    if (!m || !image) return cuda::invalid_value;
    if (!std::strstr(static_cast<const char *>(image), ".version")) return cuda::invalid_image;
    auto fresh = std::make_unique<module_state>();
    for (int i = 0; i < kernels::n_kernels; i++) {
        fresh->functions[i] = {&kernel_codes[i], current};
    }
    *m = fresh.get();
    here->modules.push_back(std::move(fresh));
    return cuda::success;
}

cuda::result module_unload(cuda::module m) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    module_state * which = find(here->modules, m);
    if (!which) return cuda::invalid_handle;
    take(here->modules, which);
    return cuda::success;
}

cuda::result module_get_function(cuda::function * f, cuda::module m, const char * name) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    if (!f || !name) return cuda::invalid_value;
    module_state * in = find(here->modules, m);
    if (!in) return cuda::invalid_handle;
    for (function_state & x : in->functions) {
        if (std::strcmp(x.code->name, name) == 0) {
            *f = &x;
            return cuda::success;
        }
    }
    return cuda::not_found;
}

cuda::result launch_kernel(cuda::function f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                           unsigned block_y, unsigned block_z, unsigned, cuda::stream s, void ** params,
                           void ** extra) {
    if (!here) return cuda::not_initialized;
    const locked lock(here->mutex);
    if (!current) return cuda::invalid_context;
    const function_state * which = function_of(*here, f);
    stream_state * on = stream_of(*here, s);
    if (!which || !on || which->device != on->device) return cuda::invalid_handle;
    if (!valid_grid(grid_x, grid_y, grid_z) || !valid_grid(block_x, block_y, block_z)) return cuda::invalid_value;
    if (block_x * block_y * block_z > 1024 || !params) return cuda::invalid_value;
    if (extra) return cuda::not_supported;
    command c{command::launch};
    c.code = which->code;
    std::memcpy(c.parameters.data(), params[0], which->code->parameters); // values are taken now
    return submit(*here, *on, std::move(c));
}

} // namespace code
} // namespace gc::emulated
