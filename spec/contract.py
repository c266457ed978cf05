"""The contract, clause by clause: id, title, the clause itself, the modules that check it.

An empty last field: not checked yet. spec/clauses.py makes objects of these.
"""

# fmt: off
ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("P1", "live tensors share no byte",
     "Two tensors whose lifetimes overlap never share a byte, unless one is a view of the other or "
     "reuses it in place.",
     "spec.placement"),
    ("P2", "offsets and sizes aligned",
     "Every offset is a multiple of the buffer type's alignment. Sizes are rounded up to it, also where "
     "the space left over from in-place reuse is given back.",
     "spec.placement"),
    ("P3", "tensors inside chunks",
     "Every tensor lies inside its chunk, and every chunk inside its buffer.",
     "spec.placement"),
    ("P4", "chunks within the largest buffer",
     "A chunk is no larger than the type's largest buffer, except where one tensor alone is larger, or "
     "where the 16th chunk must hold the rest.",
     "spec.placement"),
    ("P5", "outputs are kept",
     "An output is never freed and never overwritten.",
     "spec.placement"),
    ("P6", "inputs first and apart",
     "Inputs are placed before everything else and never overlap one another.",
     "spec.placement"),
    ("P7", "views follow their source",
     "A view is at its source's address plus its offset, and keeps its source alive.",
     "spec.placement"),
    ("P8", "in-place only where allowed",
     "In-place reuse happens only where the operation allows it, the parent is the allocator's own, is "
     "no output, has the same layout, has no other reader left and no other view.",
     "spec.placement"),
    ("P9", "same graph, same plan",
     "The same graph gives the same plan.",
     "fuzz.fresh"),
    ("P10", "nothing lost at the end",
     "When the last node has run, everything but outputs is free again: no byte is lost to a wrong size "
     "on the way.",
     "fuzz.fresh"),
    ("P11", "requirement is highest end",
     "A chunk's requirement is the highest end of any tensor placed in it.",
     "spec.placement"),
    ("P12", "measuring changes nothing",
     "Measuring a graph (sizes only) gives what reserving it would give, and changes no buffer and no "
     "bound address. A graph may be allocated after a measure only if the buffers still fit.",
     "fuzz.fresh, spec.resizable"),
    ("P13", "extreme sizes fail cleanly",
     "Sizes near the largest integer fail cleanly; they never wrap round to a small buffer. A zero-sized "
     "tensor, a zero-sized chunk between others, and an empty graph work.",
     "fuzz.fresh"),
    ("P14", "foreign memory left alone",
     "Preallocated tensors, and tensors that already sit in another buffer, are left where they are.",
     "spec.placement"),
    ("G1", "fitting reservation changes nothing",
     "A reservation that fits changes no buffer, no address and no generation. One that does not fit "
     "replaces the buffers of that type.",
     "spec.resizable, fuzz.judge"),
    ("G2", "failed reservation leaves no trap",
     "A failed reservation returns false. It leaves nothing half done that a later call could trip over: "
     "a following alloc returns false, or makes a new reservation and succeeds; it never aborts and "
     "never binds to memory that is gone. The same holds for either role when it was the other's "
     "reservation that failed, and for a retry when memory has come back.",
     "spec.resizable, fuzz.judge"),
    ("G3", "duplicate types counted once",
     "A buffer type listed twice is one set of buffers, and its bytes are reported once.",
     "fuzz.judge"),
    ("G4", "plan only for its graph",
     "Alloc uses the current plan only for a graph that the plan is right for. A graph with as many "
     "tensors as the last but other lifetimes, sources or views is planned again (one buffer type), or "
     "refused (several).",
     "fuzz.judge"),
    ("G5", "freeing returns every byte",
     "Freeing the allocator returns every byte to the device.",
     "fuzz.judge"),
    ("R1", "attach only before buffers",
     "Becoming an owner, or a borrower, is possible only before the allocator has buffers. An owner has "
     "at most one borrower at a time; a borrower cannot own.",
     "spec.resizable"),
    ("R2", "wrong attach refused, nothing changed",
     "Attaching as a borrower is refused, with nothing changed, when the other is no owner, already has "
     "a borrower, or shares no buffer type. Buffer types in common become shared entries; the others "
     "stay private to each.",
     "spec.resizable"),
    ("R3", "maximum of requirements",
     "Max of requirements. After a successful reserve by either role, chunk by chunk, an entry's buffer "
     "is at least the larger of the attached roles' published requirements. Where it was just resized it "
     "is exactly that.",
     "spec.resizable"),
    ("R4", "grows at once, frees first",
     "It takes the size of its last reserve, growing at once. The old buffer is freed before the new one "
     "is asked for, so the two never count against the device together.",
     "spec.resizable"),
    ("R5", "no smaller entry without request",
     "Without a completed request, no entry is replaced by a smaller one. An entry of which some chunk "
     "must grow is replaced whole, and then every chunk takes exactly the maximum, even one that becomes "
     "smaller by it: a claim that no *chunk* ever shrinks without a request is false of this design, and "
     "a proof attempt finds the counterexample.",
     "spec.resizable"),
    ("R6", "shrink after both reserve",
     "Shrink after both reserve. After a shrink request, an entry shrinks only once every attached role "
     "has reserved since the request; then it is exactly the maximum, and the request is done. \"Exactly\" "
     "means what was asked for: on a buffer type that rounds sizes up, nothing is replaced when what is "
     "asked for has not changed. With one role attached, its next reserve does it. Private buffer types "
     "shrink at the requester's own next reserve.",
     "spec.resizable"),
    ("R7", "generation counts every change",
     "Generation. Every time an entry's buffer is freed or replaced the generation goes up, also when "
     "the replacement fails; it never goes down. What a role reads is its own private count plus the "
     "shared one; both roles see every change of the shared part.",
     "spec.resizable"),
    ("R8", "shrink generation counts requests",
     "The shrink generation goes up when a request starts (not when one is already pending), and when "
     "one role detaches while the other stays, which starts a shrink by itself. A new request forgets "
     "who had reserved.",
     "spec.resizable"),
    ("R9", "failure leaves entry closed",
     "Fail closed. When a replacement cannot be allocated, that entry has no buffer and reports 0 bytes, "
     "the published requirement stays, a pending shrink stays pending, entries done before it keep their "
     "new buffers, entries after it are not touched, and reserve returns false.",
     "spec.resizable"),
    ("R10", "failed requirement stays in force",
     "Failed borrower. Because the requirement stays, a borrower that asked for more than the device has "
     "makes the owner's next reserve fail as well, however small, until one of them reserves "
     "successfully: with more memory, or with a smaller requirement of the role that asked too much. "
     "Then both work again.",
     "spec.resizable"),
    ("R11", "shared buffers outlive either role",
     "Shared buffers live until both roles are gone, whichever goes first. A borrower that goes can be "
     "followed by another.",
     "spec.resizable"),
    ("R12", "outdated graphs are not used",
     "Invalidation. A graph bound under an older generation must not be computed, read or written; "
     "whoever holds one finds out by comparing generations before use, drops it and reserves again. With "
     "that check taken out, the same sequence touches freed memory: the check is load-bearing, and the "
     "suite must show it.",
     "spec.resizable"),
    ("R13", "borrowed bytes counted once",
     "In a memory breakdown a borrowed byte is counted once, with the owner.",
     "spec.resizable"),
    ("R14", "owner remade under its borrower",
     "When an owner is replaced by a new one (its scheduler had to be made anew), the borrower keeps the "
     "old buffers until its own next reserve, then borrows the new ones.",
     "spec.resizable"),
    ("S1", "same buffers while they fit",
     "Both see the same buffers while their requirements fit them. Sharing adds no bytes: the peak is "
     "the larger, not the sum.",
     "spec.sharing"),
    ("S2", "larger need detaches",
     "A scheduler that later needs more detaches: it drops its reference and allocates its own buffers. "
     "The other's buffers, addresses and plan are untouched.",
     "spec.sharing"),
    ("S3", "freed with last reference",
     "A buffer is freed with its last reference, and only then.",
     "spec.sharing"),
    ("S4", "on only where validated",
     "Sharing turns itself on only where it was validated: one sequence, one CUDA device, native MTP (a "
     "draft context beside its target). Everything else has independent buffers, and says why.",
     "spec.sharing"),
    ("S5", "sharing never fails alone",
     "Sharing never fails where independent buffers would have worked.",
     "spec.sharing"),
    ("S6", "same outputs with sharing",
     "Outputs with and without sharing are identical, byte for byte.",
     "fuzz.differential"),
    ("S7", "starts near the limit",
     "Near the limit it starts where independent buffers run out of memory (in the seed: with 1,024 MiB "
     "of outside pressure).",
     "spec.sharing"),
    ("C1", "work finished before replacing",
     "Before any reservation that can replace buffers, work in flight that uses them has finished, that "
     "of the other role too.",
     "spec.scheduler, fuzz.scheduled"),
    ("C2", "failure is a status",
     "A failed reservation reaches the caller as a status, never as a crash, and nothing was computed.",
     "spec.scheduler, fuzz.scheduled"),
    ("C3", "larger graph, larger scheduler",
     "A graph larger than the scheduler was made for is met with a larger scheduler, not an abort.",
     "spec.scheduler, fuzz.scheduled"),
    ("C4", "reset forgets the graph",
     "Reset forgets the bound graph; computing without alloc allocates first.",
     "spec.scheduler, fuzz.scheduled"),
    ("C5", "scheduler reports its allocator",
     "The scheduler reports the same generation and shrink generation as its allocator.",
     "spec.scheduler, fuzz.scheduled"),
    ("M1", "made whole or not",
     "A meta buffer is one simple buffer per device. It is made whole or not at all: where device j "
     "fails, devices before it give back what they gave.",
     "spec.resizable, fuzz.meta, fuzz.scheduled"),
    ("M2", "alias has its own map",
     "Its tensor map belongs to one user. A borrower gets an *alias*: the same simple buffers, its own "
     "map, no ownership. Clearing, rotating or freeing one map leaves the other's alone.",
     "fuzz.meta"),
    ("M3", "no alias from before",
     "An alias made before the generation changed is not used after it.",
     "fuzz.meta"),
    ("V1", "address range reserved once",
     "The address range is reserved once, on first use, and stays reserved until the pool is destroyed: "
     "trimming never gives it back.",
     "spec.pool, fuzz.pools"),
    ("V2", "mapped at the end",
     "Physical memory is mapped at the end of the range in multiples of the granularity, with access "
     "set; freeing goes in reverse order of allocation.",
     "spec.pool, fuzz.pools"),
    ("V3", "trim only when idle",
     "Trim works only on an idle pool (nothing handed out), after the device has finished: it unmaps all "
     "physical memory, returns the bytes released, and a later alloc maps again at the same addresses. "
     "On a pool in use it releases nothing.",
     "spec.pool, fuzz.pools"),
    ("V4", "trim through meta backends",
     "Trim through a meta backend reaches the pools of every device under it.",
     "spec.pool, fuzz.pools"),
    ("V5", "half a mapping undone",
     "When mapping fails half way, what was created is released, the pool is as it was, and the caller "
     "gets an error.",
     "spec.pool, fuzz.pools"),
    ("Q1", "replayed only while mapped",
     "A captured graph holds addresses: of the pool, and of compute buffers. It is replayed only while "
     "all of them are mapped and of the same generation.",
     "spec.capture, fuzz.captures"),
    ("Q2", "trimming drops captured graphs",
     "Trimming drops the backend's captured graphs. Replaying one afterwards is impossible, not merely "
     "wrong.",
     "spec.capture, fuzz.captures"),
    ("Q3", "no trim during capture",
     "No trim and no buffer replacement happens during a capture.",
     "spec.capture, fuzz.captures"),
    ("W1", "reserve follows tokens and cells",
     "Each lane reserves for (tokens, KV cells). Tokens: the generation size until a prompt comes, then "
     "the micro-batch size. Cells: the used part of the cache rounded up in power-of-two steps, from one "
     "eighth of the cache to the whole.",
     "spec.workspace, fuzz.contexts"),
    ("W2", "growth at once, shrink slowly",
     "Growth takes effect at once. A smaller reservation takes effect only after 64 calls in a row that "
     "need less; a call that needs as much as is reserved, or more, starts the count again.",
     "spec.workspace"),
    ("W3", "lanes keep their state",
     "Each lane keeps its own state. Lane 1 is reserved again only for batches of at least 64 tokens. "
     "The draft borrows lane 0.",
     "spec.workspace, fuzz.contexts"),
    ("W4", "wait for the other",
     "Before a context allocates, sets inputs, computes or reserves, it waits for the other if that one "
     "has work in flight, and only then. Synchronizing covers both lanes.",
     "spec.waiting"),
    ("W5", "drop graphs after replacement",
     "When the other context replaced the shared buffers, a context drops its graphs and reserves again "
     "before it computes.",
     "spec.waiting"),
    ("W6", "attach says what happened",
     "Attaching returns 1 (shared), 0 (placement does not match, nothing changed) or -1 (the attempt "
     "failed and the borrower has no scheduler until a later attempt succeeds).",
     "spec.waiting"),
    ("W7", "unbounded kinds keep all",
     "A memory kind that has no bounded reservation keeps the full one. Supported kinds: plain KV, "
     "sliding window, hybrid, hybrid with sliding window, hybrid with an indexer (its indexer cache and "
     "pools follow the attention cache).",
     "spec.workspace, fuzz.contexts"),
    ("W8", "options off change nothing",
     "With both options off, behaviour and outputs are exactly as without the feature; with them on, "
     "outputs are the same and only memory and time differ.",
     "spec.workspace, fuzz.contexts, fuzz.options"),
    ("T1", "trim only without busy slots",
     "Device pools are trimmed when no slot is busy, and never while one is.",
     "spec.server"),
)
