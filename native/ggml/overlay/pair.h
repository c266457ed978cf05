/* pair.h: owner and borrower (R1 to R11), apart from any planner.
 *
 * A role is one graph allocator. It has for each of its buffer types an entry (the
 * buffers) and a requirement (what its last plan needs). An entry of a type that
 * owner and borrower have in common is one object that both point at. All sizes
 * are bytes. What is done where the contract leaves a choice: docs/choices.md.
 */
#ifndef GC_OVERLAY_PAIR_H
#define GC_OVERLAY_PAIR_H

#include "ggml-backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAIR_CHUNKS 16
#define PAIR_TYPES  16

struct entry {
    ggml_backend_buffer_type_t buft;
    ggml_backend_buffer_t      chunks[PAIR_CHUNKS]; /* NULL where nothing was asked for */
    size_t                     asked[PAIR_CHUNKS];
    ggml_backend_buffer_t      nothing;             /* stands for a chunk of zero bytes */
    int                        roles;               /* how many point at it */
};

struct role {
    const void *   key;      /* the allocator */
    struct role *  next;     /* in the table */
    struct role *  partner;  /* the other role, or NULL */
    bool           owner, borrower;
    bool           reserved; /* has had a plan whose buffers were made */
    bool           pending, seen, asking; /* pending is the same in both */
    uint64_t       generation, shrink_generation;
    int            n_types;
    struct entry * entries[PAIR_TYPES];
    bool           common[PAIR_TYPES];  /* was, or is, shared with a partner */
    size_t         required[PAIR_TYPES][PAIR_CHUNKS];
    uint64_t *     plan;     /* what the last plan was made for, in words; NULL: no plan */
    size_t         n_plan;
};

struct role * role_find(const void * key);
struct role * role_new(const void * key);
/* The index of the role's entry for a type; added if it has none yet. */
int  role_type(struct role * r, ggml_backend_buffer_type_t buft);
void role_free(struct role * r);                 /* R11, and the shrink that it starts (R8) */
bool role_own(struct role * r);                  /* R1 */
bool role_borrow(struct role * r, struct role * owner); /* R1, R2 */
void role_request_shrink(struct role * r);       /* R8 */
/* Makes the buffers fit the requirements, which are set already (R3 to R9). */
bool role_fit(struct role * r);
/* True where every chunk that the role's requirement needs is there and large enough. */
bool role_fits(const struct role * r);
size_t entry_size(const struct entry * e);       /* of its buffers, as the device rounds */

#ifdef __cplusplus
}
#endif
#endif
