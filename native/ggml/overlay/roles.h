/* roles.h: who shares which buffers (R1 to R11), apart from any planner.
 *
 * A role is one graph allocator. It has for each of its buffer types an entry (the
 * buffers) and a requirement (what its last plan needs). Roles that share buffers
 * form a circle: an allocator alone, an owner and its borrower, or the members of a
 * group. An entry of a type that several have is one object that all of them point
 * at. All sizes are bytes. What is done where the contract leaves a choice:
 * docs/choices.md.
 */
#ifndef GC_OVERLAY_ROLES_H
#define GC_OVERLAY_ROLES_H

#include "ggml-backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROLE_CHUNKS 16
#define ROLE_TYPES  16

struct entry {
    ggml_backend_buffer_type_t buft;
    ggml_backend_buffer_t      chunks[ROLE_CHUNKS]; /* NULL where nothing was asked for */
    size_t                     asked[ROLE_CHUNKS];
    ggml_backend_buffer_t      nothing;             /* stands for a chunk of zero bytes */
    int                        roles;               /* how many point at it */
};

struct circle {
    struct role * members;
    bool          held;    /* a group that its maker has not freed */
    bool          pending; /* a request to shrink */
    uint64_t      generation, shrink_generation; /* of all entries: what a group reads */
};

struct role {
    const void *    key;    /* the allocator */
    void *          sched;  /* the scheduler around it, once it has joined others through that */
    struct role *   next;   /* in the table */
    struct circle * circle; /* never NULL */
    struct role *   beside; /* the next member of the circle */
    bool            owner, borrower, member; /* the two of a pair; of a group */
    bool            reserved; /* has had a plan whose buffers were made */
    bool            seen;     /* has reserved since the pending request */
    bool            asking;   /* its private entries shrink at its next reserve */
    uint64_t        generation, shrink_generation; /* of its own entries: what a pair reads */
    int             n_types;
    struct entry *  entries[ROLE_TYPES];
    bool            common[ROLE_TYPES]; /* is, or was, shared; in a group all are */
    size_t          required[ROLE_TYPES][ROLE_CHUNKS];
    ggml_backend_buffer_t aliases[ROLE_TYPES][ROLE_CHUNKS]; /* what it bound to last, where that is not the buffer itself (M2) */
    uint64_t *      plan;     /* what the last plan was made for, in words; NULL: no plan */
    size_t          n_plan;
};

struct role * role_find(const void * key);
struct role * role_new(const void * key);        /* alone */
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

struct circle * circle_new(void);                /* a group without members yet */
void circle_drop(struct circle * c);             /* its maker's hold; it lives on until its last member has gone */
bool circle_join(struct circle * c, struct role * r); /* false, and nothing changed, where R1 forbids it */
void circle_request_shrink(struct circle * c);   /* R8 */

#ifdef __cplusplus
}
#endif
#endif
