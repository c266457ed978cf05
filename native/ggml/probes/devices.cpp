/* Compiles where backends belong to devices; in earlier trees a backend is all there is. */
#include "ggml-backend.h"
#include "ggml-backend-impl.h"
const char * probe(ggml_backend_t b, ggml_backend_dev_t d) {
    return b->device == d && d->iface.event_new ? d->iface.get_name(d) : nullptr;
}
