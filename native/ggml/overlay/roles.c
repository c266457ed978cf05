/* roles.c: see roles.h. */
#include "ggml-backend-impl.h"

#include "meta.h"
#include "roles.h"

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
    r->circle = calloc(1, sizeof(*r->circle));
    r->circle->members = r;
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
    for (int c = 0; c < ROLE_CHUNKS; c++) {
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
    for (int c = 0; c < ROLE_CHUNKS; c++) {
        size += chunk_size(e, c);
    }
    return size;
}

static void free_chunks(struct entry * e) {
    for (int c = 0; c < ROLE_CHUNKS; c++) {
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
    for (int i = 0; i < r->n_types; i++) {
        if (r->entries[i] == e) {
            return i;
        }
    }
    return -1;
}

/* R7: everybody who uses the entry sees that it changed. */
static void changed(struct circle * c, const struct entry * e) {
    c->generation++;
    for (struct role * m = c->members; m; m = m->beside) {
        m->generation += index_of(m, e) >= 0;
    }
}

/* R3: chunk by chunk the largest requirement of those who use the entry. */
static void wanted(const struct circle * circle, const struct entry * e, size_t * want) {
    memset(want, 0, ROLE_CHUNKS*sizeof(*want));
    for (const struct role * m = circle->members; m; m = m->beside) {
        const int i = index_of(m, e);
        for (int c = 0; i >= 0 && c < ROLE_CHUNKS; c++) {
            want[c] = m->required[i][c] > want[c] ? m->required[i][c] : want[c];
        }
    }
}

static bool allocate(struct entry * e, const size_t * want) {
    for (int c = 0; c < ROLE_CHUNKS; c++) {
        if (want[c] == 0) {
            continue;
        }
        e->chunks[c] = overlay_alloc_buffer(e->buft, want[c]);
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
    for (int c = 0; c < ROLE_CHUNKS; c++) {
        nothing = nothing && want[c] == 0;
    }
    if (nothing) {
        return true;
    }
    free_chunks(e);
    changed(r->circle, e);
    return allocate(e, want);
}

/* Everybody who uses the entry has reserved since the request; NULL: everybody. */
static bool all_seen(const struct circle * c, const struct entry * e) {
    for (const struct role * m = c->members; m; m = m->beside) {
        if (!m->seen && (!e || index_of(m, e) >= 0)) {
            return false;
        }
    }
    return true;
}

static void set_pending(struct circle * c, bool pending) {
    c->pending = pending;
    for (struct role * m = c->members; m; m = m->beside) {
        m->seen = false;
    }
}

/* R6 */
static bool due(const struct role * r, int i) {
    return r->common[i] ? r->circle->pending && all_seen(r->circle, r->entries[i]) : r->asking;
}

static bool fit_entry(struct role * r, int i) {
    struct entry * e = r->entries[i];
    size_t want[ROLE_CHUNKS];
    wanted(r->circle, e, want);
    bool replaced = due(r, i) && memcmp(want, e->asked, sizeof(want)) != 0;
    for (int c = 0; c < ROLE_CHUNKS; c++) {
        replaced = replaced || want[c] > chunk_size(e, c);
    }
    return !replaced || replace(r, e, want);
}

bool role_fit(struct role * r) {
    if (r->circle->pending) {
        r->seen = true;
    }
    for (int i = 0; i < r->n_types; i++) {
        if (!fit_entry(r, i)) {
            return false;
        }
    }
    r->asking = false;
    if (r->circle->pending && all_seen(r->circle, NULL)) {
        set_pending(r->circle, false);
    }
    r->reserved = true;
    return true;
}

bool role_fits(const struct role * r) {
    for (int i = 0; i < r->n_types; i++) {
        for (int c = 0; c < ROLE_CHUNKS; c++) {
            if (r->required[i][c] > chunk_size(r->entries[i], c)) {
                return false;
            }
        }
    }
    return true;
}

/* R8 */
static void start_shrink(struct circle * c) {
    set_pending(c, true);
    c->shrink_generation++;
    for (struct role * m = c->members; m; m = m->beside) {
        m->shrink_generation++;
    }
}

void circle_request_shrink(struct circle * c) {
    if (!c->pending) {
        start_shrink(c);
    }
}

void role_request_shrink(struct role * r) {
    r->asking = true;
    circle_request_shrink(r->circle);
}

static bool may_attach(const struct role * r) {
    bool holds = false;
    for (int i = 0; i < r->n_types; i++) {
        holds = holds || has_chunks(r->entries[i]);
    }
    return !r->owner && !r->borrower && !r->member && !r->reserved && !holds;
}

bool role_own(struct role * r) {
    if (!may_attach(r)) {
        return false;
    }
    r->owner = true;
    return true;
}

static void remove_from(struct circle * c, struct role * r) {
    struct role ** at = &c->members;
    while (*at != r) {
        at = &(*at)->beside;
    }
    *at = r->beside;
    if (!c->members && !c->held) {
        free(c);
    }
}

/* From r's index to that of the entry of the same type that another role has, or -1. */
static int same_type(const struct role * r, int i, const struct role * other) {
    for (int j = 0; j < other->n_types; j++) {
        if (other->entries[j]->buft == r->entries[i]->buft) {
            return j;
        }
    }
    return -1;
}

/* Whether the two have a type in common; each such type becomes one entry. */
static bool share(struct role * r, struct role * other, bool really) {
    bool any = false;
    for (int i = 0; i < r->n_types; i++) {
        const int j = same_type(r, i, other);
        any = any || j >= 0;
        if (really && j >= 0 && r->entries[i] != other->entries[j]) {
            drop_entry(r->entries[i]);
            r->entries[i] = other->entries[j];
            r->entries[i]->roles++;
            r->common[i] = other->common[j] = true;
        }
    }
    return any;
}

static void enter(struct circle * c, struct role * r) {
    remove_from(r->circle, r);
    for (struct role * m = c->members; m; m = m->beside) {
        share(r, m, true);
    }
    r->circle = c;
    r->beside = c->members;
    c->members = r;
}

bool role_borrow(struct role * r, struct role * owner) {
    const bool alone = owner->circle->members == owner && !owner->beside;
    if (!may_attach(r) || !owner->owner || !alone || !share(r, owner, false)) {
        return false;
    }
    enter(owner->circle, r);
    r->borrower = true;
    r->generation = owner->generation;
    r->shrink_generation = owner->shrink_generation;
    return true;
}

struct circle * circle_new(void) {
    struct circle * c = calloc(1, sizeof(*c));
    c->held = true;
    return c;
}

void circle_drop(struct circle * c) {
    c->held = false;
    if (!c->members) {
        free(c);
    }
}

bool circle_join(struct circle * c, struct role * r) {
    if (!may_attach(r)) {
        return false;
    }
    enter(c, r);
    r->member = true;
    for (int i = 0; i < r->n_types; i++) {
        r->common[i] = true;
    }
    return true;
}

void role_free(struct role * r) {
    struct circle * c = r->circle;
    const bool others = c->members != r || r->beside;
    remove_from(c, r);
    if (others) {
        start_shrink(c); /* R8: who stays has to reserve again before what was shared can shrink */
    }
    for (int i = 0; i < r->n_types; i++) {
        for (int k = 0; k < ROLE_CHUNKS; k++) {
            overlay_alias_free(r->aliases[i][k]);
        }
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
