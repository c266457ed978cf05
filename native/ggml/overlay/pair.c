/* pair.c: see pair.h. */
#include "ggml-backend-impl.h"

#include "pair.h"

#include <stdlib.h>
#include <string.h>

static struct role * table = NULL;

struct role * role_find(const void * key) {
    struct role * r = table;
    while (r && r->key != key) {
        r = r->next;
    }
    return r;
}

struct role * role_new(const void * key) {
    struct role * r = calloc(1, sizeof(*r));
    r->key = key;
    r->next = table;
    table = r;
    return r;
}

static char nowhere[1];
static void * nowhere_base(ggml_backend_buffer_t buffer) {
    (void) buffer;
    return nowhere;
}

/* ggml binds tensors of zero bytes too, and a buffer of zero bytes has no address. */
static ggml_backend_buffer_t nothing(ggml_backend_buffer_type_t buft) {
    struct ggml_backend_buffer_i iface;
    memset(&iface, 0, sizeof(iface));
    iface.get_base = nowhere_base;
    return ggml_backend_buffer_init(buft, iface, NULL, 1);
}

int role_type(struct role * r, ggml_backend_buffer_type_t buft) {
    for (int i = 0; i < r->n_types; i++) {
        if (r->entries[i]->buft == buft) {
            return i;
        }
    }
    struct entry * e = calloc(1, sizeof(*e));
    e->buft = buft;
    e->nothing = nothing(buft);
    e->roles = 1;
    r->entries[r->n_types] = e;
    return r->n_types++;
}

static bool has_chunks(const struct entry * e) {
    for (int c = 0; c < PAIR_CHUNKS; c++) {
        if (e->chunks[c]) {
            return true;
        }
    }
    return false;
}

static size_t chunk_size(const struct entry * e, int c) {
    return e->chunks[c] ? ggml_backend_buffer_get_size(e->chunks[c]) : 0;
}

size_t entry_size(const struct entry * e) {
    size_t size = 0;
    for (int c = 0; c < PAIR_CHUNKS; c++) {
        size += chunk_size(e, c);
    }
    return size;
}

static void free_chunks(struct entry * e) {
    for (int c = 0; c < PAIR_CHUNKS; c++) {
        ggml_backend_buffer_free(e->chunks[c]);
        e->chunks[c] = NULL;
        e->asked[c] = 0;
    }
}

static void drop_entry(struct entry * e) {
    if (--e->roles == 0) {
        free_chunks(e);
        ggml_backend_buffer_free(e->nothing);
        free(e);
    }
}

static int index_of(const struct role * r, const struct entry * e) {
    for (int i = 0; r && i < r->n_types; i++) {
        if (r->entries[i] == e) {
            return i;
        }
    }
    return -1;
}

/* R7: everybody who uses the entry sees that it changed. */
static void changed(struct role * r, const struct entry * e) {
    r->generation++;
    if (index_of(r->partner, e) >= 0) {
        r->partner->generation++;
    }
}

/* R3: chunk by chunk the larger requirement of those who use the entry. */
static void wanted(const struct role * r, int i, size_t * want) {
    const int other = index_of(r->partner, r->entries[i]);
    for (int c = 0; c < PAIR_CHUNKS; c++) {
        want[c] = r->required[i][c];
        if (other >= 0 && r->partner->required[other][c] > want[c]) {
            want[c] = r->partner->required[other][c];
        }
    }
}

static bool allocate(struct entry * e, const size_t * want) {
    for (int c = 0; c < PAIR_CHUNKS; c++) {
        if (want[c] == 0) {
            continue;
        }
        e->chunks[c] = ggml_backend_buft_alloc_buffer(e->buft, want[c]);
        if (!e->chunks[c]) {
            free_chunks(e);
            return false;
        }
        ggml_backend_buffer_set_usage(e->chunks[c], GGML_BACKEND_BUFFER_USAGE_COMPUTE);
        e->asked[c] = want[c];
    }
    return true;
}

/* R4: the old buffers go before the new ones come. R9: a failure leaves none. */
static bool replace(struct role * r, struct entry * e, const size_t * want) {
    bool nothing = !has_chunks(e);
    for (int c = 0; c < PAIR_CHUNKS; c++) {
        nothing = nothing && want[c] == 0;
    }
    if (nothing) {
        return true;
    }
    free_chunks(e);
    changed(r, e);
    return allocate(e, want);
}

static bool all_seen(const struct role * r) {
    return r->seen && (!r->partner || r->partner->seen);
}

static void set_pending(struct role * r, bool pending) {
    r->pending = pending;
    r->seen = false;
    if (r->partner) {
        r->partner->pending = pending;
        r->partner->seen = false;
    }
}

/* R6. Everybody attached uses a common entry, so "all who use it" are all. */
static bool due(const struct role * r, int i) {
    return r->common[i] ? r->pending && all_seen(r) : r->asking;
}

static bool fit_entry(struct role * r, int i) {
    struct entry * e = r->entries[i];
    size_t want[PAIR_CHUNKS];
    wanted(r, i, want);
    bool replaced = due(r, i) && memcmp(want, e->asked, sizeof(want)) != 0;
    for (int c = 0; c < PAIR_CHUNKS; c++) {
        replaced = replaced || want[c] > chunk_size(e, c);
    }
    return !replaced || replace(r, e, want);
}

bool role_fit(struct role * r) {
    if (r->pending) {
        r->seen = true;
    }
    for (int i = 0; i < r->n_types; i++) {
        if (!fit_entry(r, i)) {
            return false;
        }
    }
    r->asking = false;
    if (r->pending && all_seen(r)) {
        set_pending(r, false);
    }
    r->reserved = true;
    return true;
}

bool role_fits(const struct role * r) {
    for (int i = 0; i < r->n_types; i++) {
        for (int c = 0; c < PAIR_CHUNKS; c++) {
            if (r->required[i][c] > chunk_size(r->entries[i], c)) {
                return false;
            }
        }
    }
    return true;
}

void role_request_shrink(struct role * r) {
    r->asking = true;
    if (r->pending) {
        return;
    }
    set_pending(r, true);
    r->shrink_generation++;
    if (r->partner) {
        r->partner->shrink_generation++;
    }
}

static bool may_attach(const struct role * r) {
    bool holds = false;
    for (int i = 0; i < r->n_types; i++) {
        holds = holds || has_chunks(r->entries[i]);
    }
    return !r->owner && !r->borrower && !r->reserved && !holds;
}

bool role_own(struct role * r) {
    if (!may_attach(r)) {
        return false;
    }
    r->owner = true;
    return true;
}

static int same_type(const struct role * r, ggml_backend_buffer_type_t buft) {
    for (int i = 0; i < r->n_types; i++) {
        if (r->entries[i]->buft == buft) {
            return i;
        }
    }
    return -1;
}

bool role_borrow(struct role * r, struct role * owner) {
    bool in_common = false;
    for (int i = 0; i < r->n_types; i++) {
        in_common = in_common || same_type(owner, r->entries[i]->buft) >= 0;
    }
    if (!may_attach(r) || !owner->owner || owner->partner || !in_common) {
        return false;
    }
    for (int i = 0; i < r->n_types; i++) {
        const int j = same_type(owner, r->entries[i]->buft);
        if (j >= 0) {
            drop_entry(r->entries[i]);
            r->entries[i] = owner->entries[j];
            r->entries[i]->roles++;
            r->common[i] = owner->common[j] = true;
        }
    }
    r->borrower = true;
    r->partner = owner;
    owner->partner = r;
    r->pending = owner->pending;
    r->generation = owner->generation;
    r->shrink_generation = owner->shrink_generation;
    return true;
}

/* R8: who stays behind has to reserve again before what was shared can shrink. */
static void detach(struct role * r) {
    struct role * other = r->partner;
    if (other) {
        other->partner = NULL;
        other->pending = true;
        other->seen = false;
        other->shrink_generation++;
    }
}

void role_free(struct role * r) {
    detach(r);
    for (int i = 0; i < r->n_types; i++) {
        drop_entry(r->entries[i]);
    }
    struct role ** at = &table;
    while (*at != r) {
        at = &(*at)->next;
    }
    *at = r->next;
    free(r->plan);
    free(r);
}
